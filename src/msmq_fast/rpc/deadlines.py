"""When a connection has taken too long."""

from __future__ import annotations

from msmq_fast.rpc.limits import Limits

__all__ = ["Deadlines"]


class Deadlines:
    """The times of one connection; monotonic seconds."""

    __slots__ = (
        "_blocked_at",
        "_handshake_at",
        "_heard_at",
        "_least",
        "_limits",
        "due",
        "partial_at",
        "silent",
    )

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._least = min(limits.idle, limits.slow_writer, limits.slow_reader)
        self._heard_at = now
        self._handshake_at = now
        self.partial_at: float | None = None
        """When the PDU or request began that is incomplete; None if none is."""
        self._blocked_at: float | None = None
        self.due = ""
        """Which one `next` gave."""
        self.silent = True
        """Whether nothing has arrived yet."""

    def heard(self, now: float) -> None:
        """Bytes arrived."""
        self._heard_at = now
        self.silent = False

    def silence(self, now: float) -> float:
        """Seconds since bytes arrived."""
        return now - self._heard_at

    def handshake(self) -> None:
        """A leg of a security context arrived."""
        self._handshake_at = self._heard_at

    def partial(self) -> None:
        """A PDU or a request is incomplete now."""
        if self.partial_at is None:
            self.partial_at = self._heard_at

    def blocked(self, now: float) -> None:
        """The client does not take what there is for it."""
        if self._blocked_at is None:
            self._blocked_at = now

    def unblocked(self) -> None:
        """It takes it again."""
        self._blocked_at = None

    def next(self, *, bound: bool, idle: bool) -> float | None:
        """The first deadline; `due` says what it is for."""
        limits = self._limits
        deadline, self.due = (self._heard_at + limits.idle, "idle") if idle else (float("inf"), "")
        if not bound and self._handshake_at + limits.handshake < deadline:
            deadline, self.due = self._handshake_at + limits.handshake, "handshake timeout"
        if self.partial_at is not None and self.partial_at + limits.slow_writer < deadline:
            deadline, self.due = self.partial_at + limits.slow_writer, "slow writer"
        if self._blocked_at is not None and self._blocked_at + limits.slow_reader < deadline:
            deadline, self.due = self._blocked_at + limits.slow_reader, "slow reader"
        return deadline if deadline < float("inf") else None

    def looked_at_by(self, moment: float) -> bool:
        """Whether no deadline of a bound connection that begins now can be due before `moment`: each begins
        when bytes arrive, or later."""
        return moment <= self._heard_at + self._least

    def leave(self) -> float:
        """By when a connection that we close must be gone: a client that takes nothing would keep it."""
        return self._heard_at + self._limits.slow_reader
