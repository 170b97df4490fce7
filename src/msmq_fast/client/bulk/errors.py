"""Errors of the bulk API: one class for each code."""

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
    """A call failed; the text is one line for people. `code` is the error code of the bulk API, `details` the
    whole JSON answer.
    """

    code: ClassVar[str] = "ERROR"

    def __init__(self, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.details = dict(details or {})

    def __reduce__(self) -> tuple[Any, ...]:  # Spark sends such errors from executors to the driver
        return type(self), (str(self), self.details)


class BadRequest(BulkError):
    """The server rejected the request as malformed."""

    code = "BAD_REQUEST"


class Unauthorized(BulkError):
    """The request has no token, or one that the server does not know."""

    code = "UNAUTHORIZED"


class AccessDenied(BulkError):
    """The caller does not have the right to make this call."""

    code = "ACCESS_DENIED"


class QueueNotFound(BulkError):
    """The queue does not exist."""

    code = "QUEUE_NOT_FOUND"


class NotFound(BulkError):
    """The subscription, stage or call does not exist."""

    code = "NOT_FOUND"


class SubscriptionNotFound(NotFound):
    """The subscription of the event feed does not exist."""

    code = "SUBSCRIPTION_NOT_FOUND"


class StageNotFound(NotFound):
    """The stage does not exist, or the server has deleted it because it expired."""

    code = "STAGE_NOT_FOUND"


class LeaseLost(BulkError):
    """The lease has ended: its messages are available in the queue again, and its delivery numbers are no
    longer valid.
    """

    code = "LEASE_LOST"


class Fenced(BulkError):
    """The server refused a batch because the same writer has published in a later epoch, or in the same epoch
    from another origin.
    """

    code = "FENCED"


class WrongIncarnation(BulkError):
    """The store of the server does not have the expected incarnation: it was restored or copied.
    `incarnation` is the one that it has.
    """

    code = "INCARNATION"

    @property
    def incarnation(self) -> int | None:
        """The incarnation of the server's store; None if the server did not send it."""
        value = self.details.get("incarnation")
        return value if isinstance(value, int) else None


class GoneEvents(BulkError):
    """The feed no longer holds the requested events. `first` is the number of the first event that it
    holds.
    """

    code = "GONE_EVENTS"

    @property
    def first(self) -> int | None:
        """The number of the first event in the feed; None if the server did not send it."""
        value = self.details.get("first")
        return value if isinstance(value, int) else None


class SlotDropped(BulkError):
    """The subscription of the feed fell behind by more than its `max_lag_bytes`, and the server dropped its
    position.
    """

    code = "SLOT_DROPPED"


class TooLarge(BulkError):
    """The request is larger than the server accepts in one call."""

    code = "TOO_LARGE"


class NoArrow(BulkError):
    """The server cannot send or receive rows, because pyarrow is not installed there."""

    code = "NO_ARROW"


class Unavailable(BulkError):
    """The server is unreachable, starting or stopping, or it failed; retry later."""

    code = "NOT_READY"


class Truncated(Unavailable):
    """A stream of rows broke off: discard the rows that were read from it, and read the range again."""

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
    """Return the error for an HTTP answer with `status`; the text of the error names the call with
    `where`.
    """
    details = answer if isinstance(answer, dict) else {}
    code, message = details.get("error"), details.get("message")
    text = message if isinstance(message, str) else f"HTTP status {status}"
    kind = _CLASSES.get(code) if isinstance(code, str) else None
    if kind is None:
        kind = Unavailable if status >= 500 and status != 501 else BulkError
    return kind(f"{where}: {text}", details)
