"""The interface through which a session notifies its owner of events."""

from __future__ import annotations

from typing import Protocol, TypeVar

__all__ = ["SessionOwner", "ignore"]

S = TypeVar("S", contravariant=True)


class SessionOwner(Protocol[S]):
    """Is notified of the events of a session; passed to the constructor of `Session`."""

    def answered(self, session: S) -> None:
        """Called when the peer of the session has accepted our EstablishConnection."""

    def opened(self, session: S, now: float) -> None:
        """Called when the handshake of the session is complete."""

    def closed(self, session: S, now: float) -> None:
        """Called when the session has ended; `session.reason` is the reason."""

    def gone(self, session: S) -> None:
        """Called when the transport of the session is closed; `closed` was called before."""


def ignore(_: object) -> None:
    """The `wake` function of a session without a transport; does nothing."""
