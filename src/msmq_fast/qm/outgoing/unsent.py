"""Retries FinalAcks that could not be sent, because the sender of a message keeps it until it gets a
FinalAck.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from msmq_fast.qm.faults import Faults

__all__ = ["UnsentAcks"]

_RETRY: Final = 10.0  # seconds between two attempts
_ATTEMPTS: Final = 5
_MOST_BYTES: Final = 16 << 20  # of their messages; above this the oldest is dropped


@dataclass(slots=True)
class _Ack:
    packet: bytes
    reason: int
    due: float
    attempts: int = 0


class UnsentAcks:
    """The FinalAcks to retry. Implements `Timed`.

    `send(packet, reason)` sends a FinalAck in the current unit, `unit()` begins a unit.
    """

    def __init__(
        self,
        send: Callable[[bytes, int], object],
        unit: Callable[[], AbstractContextManager[object]],
        monotonic: Callable[[], float],
        faults: Faults,
    ) -> None:
        self._send = send
        self._unit = unit
        self._monotonic = monotonic
        self._faults = faults
        self._acks: deque[_Ack] = deque()  # by their deadlines
        self._bytes = 0

    def add(self, packet: bytes, reason: int) -> None:
        """Schedule a retry of the FinalAck of class `reason` for the message of `packet`."""
        self._put(_Ack(packet, reason, self._monotonic() + _RETRY))

    def _put(self, ack: _Ack) -> None:
        self._acks.append(ack)
        self._bytes += len(ack.packet)
        while self._bytes > _MOST_BYTES:
            self._take()

    def _take(self) -> _Ack:
        ack = self._acks.popleft()
        self._bytes -= len(ack.packet)
        return ack

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due; None for never."""
        return self._acks[0].due if self._acks else None

    def expire(self, now: float) -> None:
        """Send the FinalAcks again whose time for a retry has come."""
        while self._acks and self._acks[0].due <= now:
            ack = self._take()
            try:
                with self._unit():
                    self._send(ack.packet, ack.reason)
            except Exception as error:
                self._faults.note("a FinalAck", error)
                ack.attempts += 1
                ack.due = now + _RETRY
                if ack.attempts < _ATTEMPTS:
                    self._put(ack)
