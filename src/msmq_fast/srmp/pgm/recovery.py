"""Missing packets of one session and the NAKs for them: the state machine of RFC 3208, 6.3."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from enum import Enum
from random import Random

from msmq_fast.srmp.pgm.settings import PgmSettings


class _State(Enum):
    BACK_OFF = 1
    DUE = 2  # the back-off is over; the NAK goes as soon as the NAK rate allows
    WAIT_NCF = 3
    WAIT_DATA = 4


class _Missing:
    __slots__ = ("data_retries", "deadline", "foreign_naks", "ncf_retries", "queued", "state")

    def __init__(self, deadline: float) -> None:
        self.state = _State.BACK_OFF
        self.deadline = deadline
        self.ncf_retries = 0
        self.data_retries = 0
        self.foreign_naks = 0
        self.queued = False  # there is one entry for it among the timers


class Recovery:
    """The missing packets, by sequence numbers that do not wrap. `len` returns how many they are."""

    def __init__(self, settings: PgmSettings, random: Random) -> None:
        self._settings = settings
        self._random = random
        self._missing: dict[int, _Missing] = {}
        self._timers: list[tuple[float, int]] = []
        self._due: dict[int, None] = {}

    def __len__(self) -> int:
        return len(self._missing)

    def __contains__(self, sequence: object) -> bool:
        return sequence in self._missing

    def detect(self, sequences: Iterable[int], now: float) -> None:
        """Register missing packets. They get the same back-off time, so that one NAK can request them all."""
        deadline = now + self._back_off()
        for sequence in sequences:
            missing = self._missing[sequence] = _Missing(deadline)
            self._start(sequence, missing)

    def found(self, sequence: int) -> bool:
        """Remove a packet that has arrived from the missing packets; return whether it was one of them."""
        self._due.pop(sequence, None)
        return self._missing.pop(sequence, None) is not None

    def drop_before(self, sequence: int) -> None:
        """Forget missing packets before `sequence`, because the window has advanced to this number."""
        for gone in [missing for missing in self._missing if missing < sequence]:
            self.found(gone)

    def confirmed(self, sequence: int, now: float) -> None:
        """Process an NCF: the source will send the packet."""
        missing = self._missing.get(sequence)
        if missing is not None:
            self._wait(sequence, missing, _State.WAIT_DATA, now + self._settings.nak_data)

    def asked_by_other(self, sequence: int, now: float) -> None:
        """Process the NAK of another receiver. It delays our own NAK, but not for ever: only as many times as
        we would repeat our own NAK.
        """
        missing = self._missing.get(sequence)
        if missing is None or missing.foreign_naks >= self._settings.nak_ncf_retries:
            return
        missing.foreign_naks += 1
        if missing.state is _State.WAIT_DATA:
            missing.deadline = now + self._settings.nak_data
        else:
            self._wait(sequence, missing, _State.WAIT_NCF, now + self._settings.nak_repeat)

    def expire(self, now: float) -> list[int]:
        """Advance the state of the missing packets whose deadline has passed.

        Returns the numbers of those that are given up; these are no longer registered as missing.
        """
        given_up: list[int] = []
        again: float | None = None
        timers = self._timers
        while timers and timers[0][0] <= now:
            _, sequence = heapq.heappop(timers)
            missing = self._missing.get(sequence)
            if missing is None:
                continue
            missing.queued = False
            if missing.deadline > now:
                self._start(sequence, missing)
            elif missing.state is _State.BACK_OFF:
                missing.state = _State.DUE
                self._due[sequence] = None
            elif missing.state is not _State.DUE:
                if self._exhausted(missing):
                    given_up.append(sequence)
                    del self._missing[sequence]
                    continue
                again = now + self._back_off() if again is None else again
                self._wait(sequence, missing, _State.BACK_OFF, again)
        return given_up

    @property
    def due(self) -> int:
        """Return the number of packets for which a NAK is due."""
        return len(self._due)

    def ask(self, limit: int, now: float) -> tuple[int, ...]:
        """Return the oldest packets for which a NAK is due, at most `limit`; the caller must send the NAK."""
        asked = tuple(sorted(self._due)[:limit])
        for sequence in asked:
            self._wait(sequence, self._missing[sequence], _State.WAIT_NCF, now + self._settings.nak_repeat)
        return asked

    def next_deadline(self) -> float:
        """Return the time at which `expire` is due, or an earlier time; infinity if no packet is missing."""
        return self._timers[0][0] if self._timers else float("inf")

    def _exhausted(self, missing: _Missing) -> bool:
        if missing.state is _State.WAIT_NCF:
            missing.ncf_retries += 1
            return missing.ncf_retries > self._settings.nak_ncf_retries
        missing.data_retries += 1
        return missing.data_retries > self._settings.nak_data_retries

    def _back_off(self) -> float:
        return self._random.uniform(self._settings.nak_backoff_least, self._settings.nak_backoff_most)

    def _wait(self, sequence: int, missing: _Missing, state: _State, deadline: float) -> None:
        self._due.pop(sequence, None)
        missing.state = state
        missing.deadline = deadline
        if not missing.queued:
            self._start(sequence, missing)

    def _start(self, sequence: int, missing: _Missing) -> None:
        """Add a timer entry for a packet. Each packet has one entry; if the deadline of the packet was
        postponed when the entry fires, the entry is added again.
        """
        missing.queued = True
        heapq.heappush(self._timers, (missing.deadline, sequence))
        if len(self._timers) > 2 * len(self._missing) + 64:  # most are of packets that have come
            self._timers = [
                (entry.deadline, number) for number, entry in self._missing.items() if entry.queued
            ]
            heapq.heapify(self._timers)
