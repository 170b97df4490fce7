"""Error answers of the bulk API: an HTTP status, a code for programs, and one line for people."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast.packet.malformed import Malformed
from msmq_fast.protocol.arrow import ArrowMissing
from msmq_fast.protocol.columns import ColumnError
from msmq_fast.protocol.errors import (
    AccessDenied,
    InsufficientResources,
    MSMQError,
    QueueNotFound,
    ServiceNotAvailable,
)
from msmq_fast.security.callers import CallerRefused

__all__ = ["Refusal", "bad_request", "events_gone", "refusal_of"]

STATUS: Final = {
    "BAD_REQUEST": 400,
    "UNAUTHORIZED": 401,
    "ACCESS_DENIED": 403,
    "NOT_FOUND": 404,
    "QUEUE_NOT_FOUND": 404,
    "STAGE_NOT_FOUND": 404,
    "SUBSCRIPTION_NOT_FOUND": 404,
    "METHOD_NOT_ALLOWED": 405,
    "BUSY": 409,
    "FENCED": 409,
    "INCARNATION": 409,
    "LEASE_LOST": 409,
    "GONE_EVENTS": 410,
    "SLOT_DROPPED": 410,
    "TOO_LARGE": 413,
    "FAILED": 500,
    "NO_ARROW": 501,
    "NOT_READY": 503,
}


class Refusal(Exception):
    """The refusal of a request. `code` is a key of STATUS; `details` are further members of the JSON
    answer.
    """

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.status = STATUS[code]
        self.details = details

    def answer(self) -> dict[str, Any]:
        """Return the JSON object that is sent to the client."""
        return {"error": self.code, "message": str(self), **self.details}


def bad_request(message: str) -> Refusal:
    """Return the refusal of a malformed request."""
    return Refusal("BAD_REQUEST", message)


def events_gone(first: int) -> Refusal:
    """Return the refusal of a request for events that the feed no longer holds. `first` is the number of the
    first event in the feed.
    """
    return Refusal("GONE_EVENTS", f"events before {first} are no longer kept", first=first)


def refusal_of(error: Exception) -> Refusal | None:
    """Return the refusal that reports an expected exception of the store, the queue manager or a parser; None
    for any other exception.
    """
    match error:
        case Refusal():
            return error
        case CallerRefused():
            return Refusal(error.code, str(error))
        case AccessDenied():
            return Refusal("ACCESS_DENIED", _words(error))
        case QueueNotFound():
            return Refusal("QUEUE_NOT_FOUND", _words(error))
        case ServiceNotAvailable():
            return Refusal("NOT_READY", _words(error))
        case InsufficientResources():
            return Refusal("TOO_LARGE", _words(error))
        case MSMQError():
            return Refusal("BAD_REQUEST", _words(error))
        case ArrowMissing():
            return Refusal("NO_ARROW", str(error))
        case Malformed() | ColumnError():
            return Refusal("BAD_REQUEST", str(error))
    return None


def _words(error: MSMQError) -> str:
    return error.detail or str(error)
