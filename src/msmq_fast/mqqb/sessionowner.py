"""Events of sessions for their owner."""

from __future__ import annotations

from typing import Protocol, TypeVar

__all__ = ["SessionOwner", "ignore"]

S = TypeVar("S", contravariant=True)


class SessionOwner(Protocol[S]):
    """Follows a session to its end; an argument of its constructor."""

    def answered(self, session: S) -> None:
        """The peer has accepted our EstablishConnection."""

    def opened(self, session: S, now: float) -> None:
        """The handshake is complete."""

    def closed(self, session: S, now: float) -> None:
        """The session has ended; its `reason` says why."""

    def gone(self, session: S) -> None:
        """The transport of a session that has ended is closed, too."""


def ignore(_: object) -> None:
    """The `wake` of a session without a transport."""
