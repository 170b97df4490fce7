"""What the bulk API answers instead of what was asked for: one class for each code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

__all__ = [
    "AccessDenied",
    "BadRequest",
    "BulkError",
    "Fenced",
    "GoneEvents",
    "LeaseLost",
    "NoArrow",
    "NotFound",
    "QueueNotFound",
    "SlotDropped",
    "StageNotFound",
    "SubscriptionNotFound",
    "TooLarge",
    "Truncated",
    "Unauthorized",
    "Unavailable",
    "WrongIncarnation",
    "error_of",
]


class BulkError(Exception):
    """A call failed; the text is one line for people. `code` is that of the API, `details` the answer."""

    code: ClassVar[str] = "ERROR"

    def __init__(self, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.details = dict(details or {})

    def __reduce__(self) -> tuple[Any, ...]:  # such errors cross processes, from executors to the driver
        return type(self), (str(self), self.details)


class BadRequest(BulkError):
    """The server did not understand what it was asked."""

    code = "BAD_REQUEST"


class Unauthorized(BulkError):
    """No token, or one that the server does not know."""

    code = "UNAUTHORIZED"


class AccessDenied(BulkError):
    """The caller may not do this."""

    code = "ACCESS_DENIED"


class QueueNotFound(BulkError):
    """There is no such queue."""

    code = "QUEUE_NOT_FOUND"


class NotFound(BulkError):
    """There is no such subscription, stage or call."""

    code = "NOT_FOUND"


class SubscriptionNotFound(NotFound):
    """There is no such subscription of the feed."""

    code = "SUBSCRIPTION_NOT_FOUND"


class StageNotFound(NotFound):
    """There is no such stage, or not any more: its time was over."""

    code = "STAGE_NOT_FOUND"


class LeaseLost(BulkError):
    """The lease ended before: its messages are back in the queue, its delivery numbers mean nothing."""

    code = "LEASE_LOST"


class Fenced(BulkError):
    """A later epoch of the same writer is at work."""

    code = "FENCED"


class WrongIncarnation(BulkError):
    """The store is another one than before: restored or copied. `incarnation` is that of the server."""

    code = "INCARNATION"

    @property
    def incarnation(self) -> int | None:
        """What the server has; None if it did not say."""
        value = self.details.get("incarnation")
        return value if isinstance(value, int) else None


class GoneEvents(BulkError):
    """Events that were asked for are no longer kept. `first` is the first one that is."""

    code = "GONE_EVENTS"

    @property
    def first(self) -> int | None:
        """Number of the first event that is left; None if the server did not say."""
        value = self.details.get("first")
        return value if isinstance(value, int) else None


class SlotDropped(BulkError):
    """The subscription of the feed fell behind by more than its limit and was dropped."""

    code = "SLOT_DROPPED"


class TooLarge(BulkError):
    """More than the server takes in one call."""

    code = "TOO_LARGE"


class NoArrow(BulkError):
    """The server has no pyarrow."""

    code = "NO_ARROW"


class Unavailable(BulkError):
    """The server cannot be reached, is starting or stopping, or failed; to be tried again later."""

    code = "NOT_READY"


class Truncated(Unavailable):
    """A stream of rows ended before its end: what came is to be thrown away, or read again."""

    code = "TRUNCATED"


_CLASSES: dict[str, type[BulkError]] = {
    kind.code: kind
    for kind in (
        BadRequest,
        Unauthorized,
        AccessDenied,
        QueueNotFound,
        NotFound,
        SubscriptionNotFound,
        StageNotFound,
        LeaseLost,
        Fenced,
        WrongIncarnation,
        GoneEvents,
        SlotDropped,
        TooLarge,
        NoArrow,
        Unavailable,
    )
}


def error_of(status: int, answer: object, where: str) -> BulkError:
    """The error that an answer with `status` stands for; `where` names the call for the message."""
    details = answer if isinstance(answer, dict) else {}
    code, message = details.get("error"), details.get("message")
    text = message if isinstance(message, str) else f"HTTP status {status}"
    kind = _CLASSES.get(code) if isinstance(code, str) else None
    if kind is None:
        kind = Unavailable if status >= 500 and status != 501 else BulkError
    return kind(f"{where}: {text}", details)
