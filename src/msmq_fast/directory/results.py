"""Results of directory operations, and the errors that applications get for them."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeVar

from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.protocol.errors import MSMQError, code_of, error
from msmq_fast.store.completion import Completion

T = TypeVar("T")


class DirectoryOperationResult(IntEnum):
    """The result of a directory operation: DirectoryOperationResult (MS-MQDMPR 3.1.1)."""

    SUCCESS = 0
    GENERIC_ERROR = 1
    NOT_CONNECTED = 2
    OBJECT_NOT_FOUND = 3
    ATTRIBUTE_NOT_FOUND = 4
    END_OF_DATA = 5
    OBJECT_ALREADY_EXISTS = 6


class DirectoryError(Exception):
    """A directory operation failed. `result` is its DirectoryOperationResult, never Success.

    `refusal` is the error that applications get. If it is None, their error follows from the result.
    """

    def __init__(
        self,
        result: DirectoryOperationResult,
        detail: str,
        *,
        kind: ObjectType | None = None,
        refusal: MSMQError | None = None,
    ) -> None:
        super().__init__(detail)
        self.result = result
        self.kind = kind
        self.detail = detail
        self._refusal = refusal

    def for_applications(self) -> MSMQError:
        """Return the error with the HRESULT that an application gets."""
        if self._refusal is not None:
            return self._refusal
        kind = "" if self.kind is None else self.kind.name
        names = _BY_KIND.get((self.result, kind)) or _BY_RESULT.get(self.result, "MQ_ERROR_DS_ERROR")
        return error(code_of(names), self.detail)


_BY_KIND = {
    (DirectoryOperationResult.OBJECT_NOT_FOUND, "QUEUE"): "MQ_ERROR_QUEUE_NOT_FOUND",
    (DirectoryOperationResult.OBJECT_NOT_FOUND, "QUEUE_MANAGER"): "MQ_ERROR_MACHINE_NOT_FOUND",
    (DirectoryOperationResult.OBJECT_ALREADY_EXISTS, "QUEUE"): "MQ_ERROR_QUEUE_EXISTS",
    (DirectoryOperationResult.OBJECT_ALREADY_EXISTS, "QUEUE_MANAGER"): "MQ_ERROR_MACHINE_EXISTS",
}
_BY_RESULT = {
    DirectoryOperationResult.NOT_CONNECTED: "MQ_ERROR_NO_DS",
    DirectoryOperationResult.GENERIC_ERROR: "MQ_ERROR_DS_ERROR",
}


def not_found(kind: ObjectType, detail: str) -> DirectoryError:
    """Return the error ObjectNotFound."""
    return DirectoryError(DirectoryOperationResult.OBJECT_NOT_FOUND, detail, kind=kind)


def generic(detail: str, kind: ObjectType | None = None) -> DirectoryError:
    """Return the error GenericError."""
    return DirectoryError(DirectoryOperationResult.GENERIC_ERROR, detail, kind=kind)


def for_applications(done: Completion[T]) -> Completion[T]:
    """Return a completion with the result of `done`, in which a DirectoryError is replaced by the error that
    applications get.
    """
    answer: Completion[T] = Completion()

    def pass_on(done: Completion[T]) -> None:
        error = done.exception()
        if error is None:
            answer.resolve(done.result())
        else:
            answer.fail(error.for_applications() if isinstance(error, DirectoryError) else error)

    done.add_done_callback(pass_on)
    return answer
