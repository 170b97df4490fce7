"""The reason why an outgoing queue sends nothing although it holds messages, as operators see it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["FLOWING", "Stall", "StallCause"]


class StallCause(StrEnum):
    """The cause of a stall: a fixed vocabulary, so that metrics and alerts can use it as a label.

    To add a cause: 1. add it here; 2. return it from `qm.outgoing.stalls.stall_of` or from a channel's
    `obstacle`; 3. describe it in docs/how-to/routing.md.
    """

    NONE = ""
    ON_HOLD = "on hold"
    LOCKED = "locked"
    OFFLINE = "offline"
    NO_TRANSPORT = "transport off"
    NAME = "name not resolved"
    ROUTE = "no route"
    PING = "no answer to a ping"
    REFUSED = "connection refused"
    TIMED_OUT = "connection timed out"
    UNREACHABLE = "host unreachable"
    FAILED = "connection failed"
    SESSION_REFUSED = "session refused"
    NO_ANSWER = "no answer"
    LOST = "connection lost"
    SESSION_FAILED = "session failed"
    CERTIFICATE = "certificate refused"
    NO_SOCKET = "no socket"
    NO_QUEUE = "no such queue here"
    CONNECTING = "connecting"
    QUEUED = "waiting for a turn to connect"
    SILENT = "peer is silent"
    UNACKNOWLEDGED = "not acknowledged"
    UNREAD = "not received by a program"


@dataclass(frozen=True, slots=True)
class Stall:
    """Why a queue sends nothing: `reason` is a text for operators, with addresses and counts, that explains
    the cause and what to do. Both are empty if nothing is wrong.
    """

    cause: StallCause = StallCause.NONE
    reason: str = ""


FLOWING = Stall()
