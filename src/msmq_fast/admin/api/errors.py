"""Error answers of the management API: an HTTP status, a code for programs, and one line for people."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast.protocol.errors import Changed, MSMQError
from msmq_fast.security.callers import CallerRefused

__all__ = ["STATUS", "Refusal", "bad_request", "code_of", "denied", "refusal_of"]

STATUS: Final = {
    "BAD_REQUEST": 400,
    "UNAUTHORIZED": 401,
    "ACCESS_DENIED": 403,
    "CROSS_SITE": 403,
    "NOT_FOUND": 404,
    "QUEUE_NOT_FOUND": 404,
    "MESSAGE_NOT_FOUND": 404,
    "MACHINE_NOT_FOUND": 404,
    "OBJECT_NOT_FOUND": 404,
    "METHOD_NOT_ALLOWED": 405,
    "MACHINE_EXISTS": 409,
    "QUEUE_EXISTS": 409,
    "SHARING_VIOLATION": 409,
    "MESSAGE_LOCKED_UNDER_TRANSACTION": 409,
    "MESSAGE_ALREADY_RECEIVED": 409,
    "TRANSACTION_SEQUENCE": 409,
    "IN_PROGRESS": 409,
    "REMOTE_MACHINE_NOT_AVAILABLE": 409,  # the caller names that computer; this server is in order
    "CHANGED": 412,
    "INSUFFICIENT_RESOURCES": 413,
    "TOO_LARGE": 413,
    "MEDIA_TYPE": 415,
    "KEY_REUSED": 422,
    "TOO_MANY_REQUESTS": 429,
    "FAILED": 500,
    "MESSAGE_STORAGE_FAILED": 503,
    "NO_DS": 503,
    "NOT_READY": 503,
    "SERVICE_NOT_AVAILABLE": 503,
    "TIMED_OUT": 503,
}
"""The HTTP status of each code; 400 for the codes of the queue manager that are not here."""

_PREFIX: Final = "MQ_ERROR_"


class Refusal(Exception):
    """The refusal of a call: `code` for programs, and the text in one line."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.status = STATUS.get(code, 400)

    def answer(self) -> dict[str, Any]:
        """Return the JSON object that is sent to the client."""
        return {"error": {"code": self.code, "message": str(self)}}


def bad_request(text: str) -> Refusal:
    """Return the refusal of a malformed request."""
    return Refusal("BAD_REQUEST", text)


def code_of(error: MSMQError) -> str:
    """Return the code of the API for an error of the queue manager."""
    code = error.name.removeprefix(_PREFIX)
    return "FAILED" if code == "MQ_ERROR" else code


def denied(text: str) -> Refusal:
    """Return the refusal of a caller without the right to a page or a call."""
    return Refusal("ACCESS_DENIED", text)


def refusal_of(error: Exception) -> Refusal | None:
    """Return the refusal that reports an expected exception; None for any other exception."""
    match error:
        case Refusal():
            return error
        case CallerRefused():
            return Refusal(error.code, str(error))
        case Changed():
            return Refusal("CHANGED", error.detail)
        case MSMQError():
            return Refusal(code_of(error), error.detail or str(error))
        case TimeoutError():
            return Refusal("TIMED_OUT", "the queue manager did not answer in time")
    return None
