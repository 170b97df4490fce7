"""Reads with size limits: a message that is larger than the limits of its reader stays in its place.

1. The message is locked for the read (a two-phase read, or the transaction), not removed.
2. Its sizes are those of the fields in its MESSAGE frame, so that client and server measure alike.
3. If it fits, it is removed, and only then returned; in a transaction, the commit removes it.
4. If it does not fit, it is unlocked in its place, and the answer is an error with all sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgpack

from msmq_fast._native.appencode import Encoder
from msmq_fast.packet.text import utf16_units
from msmq_fast.protocol.errors import BufferTooSmall, InvalidParameter, MSMQError, code_of
from msmq_fast.protocol.frames import HEADER_SIZE, INFINITE, In, MessageSizes
from msmq_fast.store.completion import Completion

if TYPE_CHECKING:
    from msmq_fast._native.queuebase import Received
    from msmq_fast.qm.handles.handle import OpenQueue
    from msmq_fast.qm.reading.readers import ReadRequest
    from msmq_fast.qm.transactions.transaction import Transaction

__all__ = ["LimitedRead", "checked", "limits_of"]

_OVERFLOW: Final = code_of("MQ_ERROR_BUFFER_OVERFLOW")
_NAME: Final = code_of("MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL")
_PARTS: Final = (  # in the order of MessageSizes
    ("body", In.BODY, _OVERFLOW),
    ("label", In.LABEL, code_of("MQ_ERROR_LABEL_BUFFER_TOO_SMALL")),
    ("extension", In.EXTENSION, _OVERFLOW),
    ("response queue", In.RESPONSE_QUEUE, _NAME),
    ("admin queue", In.ADMIN_QUEUE, _NAME),
    ("destination queue", In.DESTINATION_QUEUE, _NAME),
    ("sender id", In.SENDER_ID, code_of("MQ_ERROR_SENDERID_BUFFER_TOO_SMALL")),
)


def limits_of(given: list[Any] | None) -> MessageSizes | None:
    """Return the size limits in a request, None if it has none. Raises InvalidParameter."""
    if given is None:
        return None
    if len(given) > len(_PARTS) or not all(type(one) is int and 0 <= one <= INFINITE for one in given):
        raise InvalidParameter(f"limits must be at most {len(_PARTS)} numbers from 0 to {INFINITE}")
    return MessageSizes(*given)


class LimitedRead:
    """A read whose message is checked against limits before it becomes the result."""

    def __init__(self, request: ReadRequest, completion: Completion[Received]) -> None:
        self.completion = completion
        self._request = request

    def cancel(self, error: MSMQError | None = None) -> bool:
        """End the read with `error` (default OPERATION_CANCELLED). Returns False if it already has
        a message.
        """
        return self._request.cancel(error)


def checked(
    done: Completion[Received],
    limits: MessageSizes,
    opened: OpenQueue,
    *,
    peek: bool,
    transaction: Transaction | None,
    back: Callable[[], object] = bool,
) -> Completion[Received]:
    """Return the result of a read within limits; it fails with BufferTooSmall if the message does not fit.

    `done` is the completion of a peek, of a read in `transaction`, or of a two-phase read of `opened`. `back`
    is called when a message was put back.
    """
    check = _Check(limits, opened, peek, transaction, back)
    done.add_done_callback(check.got)
    return check.completion


class _Check:
    def __init__(
        self,
        limits: MessageSizes,
        opened: OpenQueue,
        peek: bool,
        transaction: Transaction | None,
        back: Callable[[], object],
    ) -> None:
        self.completion: Completion[Received] = Completion()
        self._limits = limits
        self._opened = opened
        self._peek = peek
        self._transaction = transaction
        self._back = back

    def got(self, done: Completion[Received]) -> None:
        """Check the message that the read returned; it is locked, unless it was peeked."""
        try:
            received = done.result()
            problem = _problem(received, self._limits)
            if problem is not None:
                self._put_back(received.lookup_id)
                raise problem
            if self._peek or self._transaction is not None:
                self.completion.resolve(received)
                return
            removed = self._opened.end(received.lookup_id, delete=True)
        except MSMQError as error:
            self.completion.fail(error)
        else:
            removed.add_done_callback(lambda ended: self._removed(received, ended))

    def _put_back(self, key: int) -> None:
        if self._peek:
            return
        if self._transaction is not None:
            self._transaction.unlocked(self._opened.core, key)
        else:
            self._opened.end(key, delete=False)
        self._back()

    def _removed(self, received: Received, ended: Completion[None]) -> None:
        error = ended.exception()
        if error is None:
            self.completion.resolve(received)
        else:
            self.completion.fail(error)


def _problem(received: Received, limits: MessageSizes) -> BufferTooSmall | None:
    frame = b"".join(Encoder().message(0, received))
    fields = msgpack.unpackb(memoryview(frame)[HEADER_SIZE:])
    needed = [_size(fields[position]) for _, position, _ in _PARTS]
    for (what, _, code), size, limit in zip(_PARTS, needed, limits, strict=True):
        if size > limit and limit != INFINITE:
            return BufferTooSmall(
                f"the size of the {what} is {size}; the limit is {limit}", code=code, needed=needed
            )
    return None


def _size(value: Any) -> int:
    if value is None:
        return 0
    return utf16_units(value) if isinstance(value, str) else len(value)
