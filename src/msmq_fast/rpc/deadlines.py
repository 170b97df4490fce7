"""Decides when a connection has timed out."""

from __future__ import annotations

from msmq_fast.rpc.limits import Limits

__all__ = ["Deadlines"]


class Deadlines:
    """The deadlines of one connection, in monotonic seconds."""

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
        """The shortest time after received bytes in which a bound connection can time out."""
        self.heard_at = now
        """The time at which the last bytes arrived."""
        self._handshake_at = now
        self.partial_at: float | None = None
        """The time at which the incomplete PDU or request began; None if there is none."""
        self._blocked_at: float | None = None
        self.due = ""
        """The name of the deadline that `next` returned."""
        self.silent = True
        """Whether nothing has arrived on the connection yet."""

    def silence(self, now: float) -> float:
        """Returns the seconds since the last bytes arrived."""
        return now - self.heard_at

    def handshake(self) -> None:
        """Restart the deadline of the handshake, because a leg of a security context arrived."""
        self._handshake_at = self.heard_at

    def partial(self) -> None:
        """Start the deadline of an incomplete PDU or request, unless it is running."""
        if self.partial_at is None:
            self.partial_at = self.heard_at

    def blocked(self, now: float) -> None:
        """Start the deadline of a client that does not read its replies, unless it is running."""
        if self._blocked_at is None:
            self._blocked_at = now

    def unblocked(self) -> None:
        """Stop the deadline that `blocked` started, because the client reads its replies again."""
        self._blocked_at = None

    def next(self, *, bound: bool, idle: bool) -> float | None:
        """Returns the first deadline in monotonic seconds, and sets the attribute `due` to its name.

        `bound` is whether the handshake is complete; if not, the deadline of the handshake counts. `idle` is
        whether the client has no calls, output or handles; if so, the deadline for silence counts.
        """
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
        """Returns the deadline of a connection that the server is closing: it ends then even if the client
        has not read its replies.
        """
        return self.heard_at + self._limits.slow_reader
