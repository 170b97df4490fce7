"""The receiver's side of one transport session: its window, held packets and delivered data (RFC 3208, 6)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from msmq_fast.srmp.pgm.model import ReceiverStatistics
from msmq_fast.srmp.pgm.packets import Data, Spm
from msmq_fast.srmp.pgm.reassembly import Reassembly
from msmq_fast.srmp.pgm.recovery import Recovery
from msmq_fast.srmp.pgm.sequence import HALF, MASK, unwrapped
from msmq_fast.srmp.pgm.settings import PgmSettings

_PACKET_COST = 256
"""Memory in octets that a held packet takes besides its data."""


class Room:
    """The memory for held packets that all sessions of a receiver share."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0


class Reception:
    """The receiver's side of one session. Its sequence numbers do not wrap.

    - All packets before `_expected` are delivered or given up.
    - The packets from `_expected` to `_examined` are held, missing or given up.
    - `_lead` is the greatest known sequence number.
    """

    def __init__(
        self,
        settings: PgmSettings,
        random: Random,
        statistics: ReceiverStatistics,
        room: Room,
        deliver: Callable[[bytes], None],
    ) -> None:
        self._settings = settings
        self._statistics = statistics
        self._room = room
        self._deliver = deliver
        self.recovery = Recovery(settings, random)
        self._reassembly = Reassembly(statistics)
        self._joined = False
        self._expected = self._examined = self._trail = self._lead = 0
        self._held: dict[int, Data] = {}
        self._held_bytes = 0
        self._packet_bytes = settings.mtu + _PACKET_COST  # what a packet that is missing will need
        self._given_up: set[int] = set()
        self._spm_sequence: int | None = None
        self._fin_at: int | None = None
        self.path: str | None = None
        """The destination of NAKs, from the latest SPM. Without one no repairs are requested (RFC 3208, 6.2).
        """
        self.ended = False
        """Whether the session has ended: by RST, or by FIN after everything was delivered."""

    def on_data(self, data: Data, now: float) -> None:
        if not self._joined:
            if data.repair:
                return  # asked for by another one; it may be older than what the session begins with for us
            self._join(data.sequence, data.trail, data.join)
        sequence = unwrapped(data.sequence, self._expected)
        trail = unwrapped(data.trail, sequence)
        if trail > sequence or sequence - trail >= HALF - 1:
            self._statistics.outside_window += 1
            return
        if data.fin:
            self._fin_at = sequence
        self._advance(trail)
        if sequence < self._expected or sequence in self._held:
            self._statistics.duplicates += 1
        elif sequence == self._expected:
            self._note(sequence)
            self._consume(sequence, data)
            self._drain()
        elif self._hold(sequence, data):
            self._given_up.discard(sequence)
            self._note(sequence)
        else:
            self._statistics.no_room += 1
        self._lead = max(self._lead, sequence)
        self._look_for_gaps(now)

    def on_spm(self, spm: Spm, now: float) -> None:
        if self._spm_sequence is not None:
            order = unwrapped(spm.sequence, self._spm_sequence)
            if order <= self._spm_sequence:
                return
            self._spm_sequence = order
        else:
            self._spm_sequence = spm.sequence
        self.path = spm.path
        if spm.rst is not None:
            self.end()
            return
        if spm.trail == 0 and spm.lead == HALF:
            return  # carries no window (RFC 3208, 8.1)
        if not self._joined:
            self._join(spm.lead + 1 & MASK, spm.trail, spm.join)
        trail = unwrapped(spm.trail, self._expected)
        lead = unwrapped(spm.lead, trail)
        if lead < trail - 1:
            self._statistics.outside_window += 1
            return
        if spm.fin:
            self._fin_at = lead
        self._advance(trail)
        self._lead = max(self._lead, lead)
        self._drain()
        self._look_for_gaps(now)

    def expire(self, now: float) -> None:
        """Give up missing packets that were requested too often; deliver the packets that waited for them."""
        given_up = self.recovery.expire(now)
        if given_up:
            self._given_up.update(given_up)
            self._drain()
            self._look_for_gaps(now)

    def end(self) -> None:
        """End the session: drop all held packets; no packets are requested or delivered any more."""
        self.ended = True
        self._reassembly.interrupt()
        self._room.used -= self._held_bytes
        self._held_bytes = 0
        self._held.clear()
        self._given_up.clear()
        self.recovery.drop_before(self._lead + 1)

    def unwrapped(self, sequence: int) -> int:
        """Return the unwrapped number for the 32-bit number in a NAK or NCF."""
        return unwrapped(sequence, self._expected)

    def _join(self, sequence: int, trail: int, join: int | None) -> None:
        """Begin with the packet `sequence`, or, if OPT_JOIN allows it, with an earlier packet (RFC 3208, 6.1,
        9.4.2). `join` is the number in OPT_JOIN, None without this option.
        """
        self._joined = True
        begin = sequence + (1 << 32)  # so that no number becomes negative
        self._trail = unwrapped(trail, begin)
        if join is not None:
            earliest = max(unwrapped(join, begin), self._trail)
            if begin - earliest < HALF:
                begin = min(begin, earliest)
        self._expected = self._examined = begin
        self._lead = begin - 1

    def _note(self, sequence: int) -> None:
        if self.recovery.found(sequence):
            self._statistics.recovered += 1

    def _hold(self, sequence: int, data: Data) -> bool:
        """Hold a packet that arrived after a gap. Return False if there is no room for it.

        Some room is reserved for the missing packets: without this reserve, their repairs would be dropped
        and requested again.
        """
        cost = len(data.data) + _PACKET_COST
        reserved = 0 if sequence in self.recovery else len(self.recovery) * self._packet_bytes
        if cost + reserved > self._free():
            return False
        self._held[sequence] = data
        self._held_bytes += cost
        self._room.used += cost
        return True

    def _free(self) -> int:
        """Return the number of octets that more held packets may use."""
        room = self._room
        return min(self._settings.receive_memory_of_source - self._held_bytes, room.limit - room.used)

    def _release(self, sequence: int) -> Data | None:
        data = self._held.pop(sequence, None)
        if data is not None:
            cost = len(data.data) + _PACKET_COST
            self._held_bytes -= cost
            self._room.used -= cost
        return data

    def _consume(self, sequence: int, data: Data) -> None:
        """Process the next packet in order."""
        self._expected = sequence + 1
        apdu = self._reassembly.take(data.sequence, data.data, data.fragment)
        if apdu is not None:
            self._statistics.apdus += 1
            self._statistics.apdu_bytes += len(apdu)
            self._deliver(apdu)

    def _drain(self) -> None:
        """Consume the held packets that have become contiguous; restart the session after lost packets."""
        while True:
            data = self._release(self._expected) if self._held else None
            if data is not None:
                self._consume(self._expected, data)
            elif self._expected in self._given_up:
                self._restart(self._expected + 1)
            else:
                break
        if self._fin_at is not None and self._expected > self._fin_at:
            self.end()

    def _restart(self, sequence: int) -> None:
        """Continue with `sequence`; all packets before it that did not arrive are lost."""
        self._reassembly.interrupt()
        self._statistics.restarts += 1
        self._statistics.lost += sequence - self._expected
        self._given_up.discard(self._expected)
        self._expected = sequence

    def _advance(self, trail: int) -> None:
        """Advance the window: the source no longer repairs packets before `trail`."""
        if trail <= self._trail:
            return
        self._trail = trail
        if trail <= self._expected:
            return
        for sequence in sorted(sequence for sequence in self._held if sequence < trail):
            data = self._release(sequence)
            if data is not None:
                if sequence != self._expected:
                    self._restart(sequence)
                self._consume(sequence, data)
        if self._expected < trail:
            self._restart(trail)
        self._given_up = {sequence for sequence in self._given_up if sequence >= trail}
        self.recovery.drop_before(trail)
        self._lead = max(self._lead, trail - 1)
        self._drain()

    def _look_for_gaps(self, now: float) -> None:
        """Register missing packets up to the greatest known number, at most as many as may be requested at a
        time.
        """
        if self._examined < self._expected:
            self._examined = self._expected
        if self._examined > self._lead or self.path is None or self.ended:
            return
        missing = len(self.recovery)
        free = min(
            self._settings.max_missing - missing - len(self._given_up),
            max(self._free() // self._packet_bytes - missing, 0 if missing else 1),
        )
        gaps: list[int] = []
        while self._examined <= self._lead and len(gaps) < free:
            if self._examined not in self._held:
                gaps.append(self._examined)
            self._examined += 1
        if gaps:
            self.recovery.detect(gaps, now)
