"""Decides when a connection has timed out."""

from __future__ import annotations

from msmq_fast.rpc.limits import Limits

__all__ = ["Deadlines"]


class Deadlines:
    """The times of one connection; monotonic seconds."""

    __slots__ = (
        "_blocked_at",
        "_handshake_at",
        "_limits",
        "due",
        "heard_at",
        "least",
        "partial_at",
        "silent",
    )

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self.least = min(limits.idle, limits.slow_writer, limits.slow_reader)
        """The time of a bound connection ends no earlier after bytes arrived."""
        self.heard_at = now
        """When bytes arrived."""
        self._handshake_at = now
        self.partial_at: float | None = None
        """When the PDU or request began that is incomplete; None if none is."""
        self._blocked_at: float | None = None
        self.due = ""
        """Which one `next` gave."""
        self.silent = True
        """Whether nothing has arrived yet."""

    def silence(self, now: float) -> float:
        """Seconds since bytes arrived."""
        return now - self.heard_at

    def handshake(self) -> None:
        """Note that a leg of a security context arrived."""
        self._handshake_at = self.heard_at

    def partial(self) -> None:
        """Note that a PDU or a request is incomplete."""
        if self.partial_at is None:
            self.partial_at = self.heard_at

    def blocked(self, now: float) -> None:
        """Note that the client does not read its replies."""
        if self._blocked_at is None:
            self._blocked_at = now

    def unblocked(self) -> None:
        """Note that the client reads its replies again."""
        self._blocked_at = None

    def next(self, *, bound: bool, idle: bool) -> float | None:
        """The first deadline; `due` says what it is for."""
        limits = self._limits
        deadline, self.due = (self.heard_at + limits.idle, "idle") if idle else (float("inf"), "")
        if not bound and self._handshake_at + limits.handshake < deadline:
            deadline, self.due = self._handshake_at + limits.handshake, "handshake timeout"
        if self.partial_at is not None and self.partial_at + limits.slow_writer < deadline:
            deadline, self.due = self.partial_at + limits.slow_writer, "slow writer"
        if self._blocked_at is not None and self._blocked_at + limits.slow_reader < deadline:
            deadline, self.due = self._blocked_at + limits.slow_reader, "slow reader"
        return deadline if deadline < float("inf") else None

    def leave(self) -> float:
        """Return the time by which a connection that we close must have ended: a client that does not read
        would keep it open.
        """
        return self.heard_at + self._limits.slow_reader
