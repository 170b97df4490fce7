"""The states of a session (MS-MQQB 3.1.1.3.1)."""

from __future__ import annotations

from enum import Enum
from typing import Final

__all__ = ["CLOSED", "LINGERING", "OPEN", "SessionState"]


class SessionState(Enum):
    """The states of a session. WAITING_RECONNECT belongs to the outgoing side, see `transfer`."""

    WAITING_EC_MSG = "waiting for EstablishConnection"
    WAITING_ECR_MSG = "waiting for the EstablishConnection response"
    WAITING_CP_MSG = "waiting for ConnectionParameters"
    WAITING_CPR_MSG = "waiting for the ConnectionParameters response"
    OPEN = "open"
    LINGERING = "lingering"
    """Not in the specification: the session ends for lack of room, but stays until the peer has what we
    sent.
    """
    CLOSED = "closed"


# Looked up once: in Python 3.11 `SessionState.OPEN` calls EnumType.__getattr__, several times for each read.
OPEN: Final = SessionState.OPEN
LINGERING: Final = SessionState.LINGERING
CLOSED: Final = SessionState.CLOSED
