"""A PGM source (RFC 3208, 5): one transport session to one group and port. No IO, no clock.

Times are seconds of any clock that begins at 0 or later and does not go back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random

from msmq_fast.srmp.pgm.bucket import TokenBucket
from msmq_fast.srmp.pgm.heartbeat import Heartbeat
from msmq_fast.srmp.pgm.meter import Meter
from msmq_fast.srmp.pgm.model import Datagram, Group, SourceStatistics, Tsi
from msmq_fast.srmp.pgm.options import Malformed
from msmq_fast.srmp.pgm.outbox import Outbox
from msmq_fast.srmp.pgm.packets import Data, Nak, Spm, decode, encode_data, encode_nak, encode_spm
from msmq_fast.srmp.pgm.repairs import Repairs, repair_delay
from msmq_fast.srmp.pgm.sequence import unwrapped
from msmq_fast.srmp.pgm.settings import (
    APDU_LIMIT,
    DATA_HEADER,
    IP_HEADER,
    ROUTER_ALERT,
    PgmSettings,
)
from msmq_fast.srmp.pgm.window import Kept, TransmitWindow

_NCF_SHARE = 0.25
"""The largest share of the rate for NCFs, however many NAKs arrive."""
_RST_NO_NAKS = 0x40  # the N bit of OPT_RST, error code 0
_NOW = 0.0
_NEVER = float("inf")


class ApduTooLarge(ValueError):
    """The APDU has more than 65,536 octets ([MC-MQSRM] 2.1.3.1)."""


class Source:
    """The sending side of one transport session.

    The caller sends the datagrams that `packets` returns, in this order. It calls `packets` after `send`,
    `on_packet` and `close`, and at `next_deadline`.
    """

    def __init__(
        self,
        settings: PgmSettings,
        tsi: Tsi,
        group: Group,
        nla: str,
        random: Random,
        on_sent: Callable[[int], None],
        *,
        first: int | None = None,
    ) -> None:
        """`nla` is our unicast IPv4 address towards the group, to which NAKs are sent (path NLA of the SPMs).

        `on_sent(handle)` is called when `packets` has returned the last fragment of the APDU with this handle
        for the first time. `first` is the sequence number of the first data packet; random if None.
        """
        self._settings = settings
        self._tsi = tsi
        self._group = group
        self._nla = nla
        self._on_sent = on_sent
        self.statistics = SourceStatistics()
        self._meter = Meter()

        peak = settings.max_rate * settings.peak_factor
        self._tokens = TokenBucket(settings.max_rate, settings.bucket_bytes)
        self._peak = TokenBucket(peak, max(float(settings.mtu), peak / 1000))
        self._ncf_tokens = TokenBucket(settings.max_rate * _NCF_SHARE, settings.bucket_bytes)

        self._handle = 0
        self._outbox = Outbox(settings.fragment_bytes)
        self._window = TransmitWindow(
            random.getrandbits(32) if first is None else first, limit=settings.window_bytes
        )
        self._advance_at = _NEVER
        self._repairs = Repairs()
        self._repaired_last = False
        self._ncfs: deque[Nak] = deque()

        self._heartbeat = Heartbeat(settings)
        self._spm_sequence = 0
        self._blocked_until: float | None = None  # packets that are due wait for tokens
        self._wake_at = _NOW
        self._closing = self._fin = self._reset = False
        self._closed_at = _NEVER
        self.closed = False
        """Whether the session is over, TXW_SECS after FIN or RST; then nothing happens any more."""

    def send(self, apdu: bytes) -> int:
        """Queues an APDU; returns its handle (1, 2, 3 …).

        Raises ApduTooLarge, ValueError for an empty APDU, and RuntimeError after `close`.
        """
        if len(apdu) > APDU_LIMIT:
            raise ApduTooLarge(
                f"a multicast message has {len(apdu)} octets; at most {APDU_LIMIT} are allowed"
            )
        if not apdu:
            raise ValueError("a multicast message must not be empty")
        if self._closing:
            raise RuntimeError("the session is being closed")
        self._handle += 1
        self._outbox.put(self._handle, apdu)
        self._stir()
        return self._handle

    @property
    def backlog(self) -> int:
        """Number of octets in APDUs that were not yet sent for the first time.

        The source does not limit this number: the caller should send more only when `on_sent` is called.
        """
        return self._outbox.size

    def on_packet(self, packet: bytes, source_ip: str, now: float, *, multicast: bool = False) -> None:
        """Process a PGM packet from any host, without its IP header. Only NAKs for this session
        have an effect.

        `multicast`: the packet was addressed to the group. A NAK to the group is for the other receivers
        only, and is ignored here.
        """
        try:
            nak = decode(packet)
        except Malformed:
            self.statistics.malformed += 1
            return
        if isinstance(nak, Nak) and not nak.confirmed and not multicast:
            self._on_nak(nak, now)

    def close(self, now: float, *, rst: bool = False) -> None:
        """End the session: gracefully after the queued APDUs, or with `rst` at once.

        A graceful end announces FIN for TXW_SECS and answers NAKs. With `rst`, queued APDUs are not sent, RST
        is announced for TXW_SECS, and NAKs are not answered.
        """
        self._closing = True
        self._stir()
        if rst and not self._reset:
            self._reset = True
            self._outbox.clear()
            self._repairs.clear()
            self._ncfs.clear()
            self._announce_end(now)

    def next_deadline(self) -> float | None:
        """Return the time at which to call `packets` again; None after the end of the session."""
        if self.closed:
            return None
        timers = min(self._wake_at, self._advance_at, self._closed_at)
        if self._blocked_until is not None:
            return min(self._blocked_until, timers)
        return min(timers, self._heartbeat.due_at, self._repairs.due_at)

    def expire(self, now: float) -> None:
        """Advance the transmit window if it is time, and end a closed session. `packets` does this too."""
        step = self._settings.advance_seconds
        if now >= self._advance_at:
            self._window.advance(now - self._settings.window_seconds + step, self._repairs)
            self._advance_at += ((now - self._advance_at) // step + 1) * step if len(self._window) else _NEVER
        if now >= self._closed_at:
            self.closed = True

    def rate(self, now: float) -> float:
        """Return the octets per second that were sent in the last one or two seconds, IP headers included."""
        return self._meter.rate(now)

    def packets(self, now: float) -> list[Datagram]:
        """Return the datagrams that may be sent now: NCFs first, then SPMs, then repairs and new data in turn
        (RFC 3208, 5.1.3).
        """
        self.expire(now)
        sent: list[Datagram] = []
        self._blocked_until = None
        while not self.closed and (datagram := self._next(now)) is not None:
            sent.append(datagram)
        return sent

    def _next(self, now: float) -> Datagram | None:
        self._wake_at = _NEVER
        if self._ncfs:
            size = IP_HEADER + ROUTER_ALERT + _nak_size(self._ncfs[0])
            if self._ncf_tokens.has(size, now):
                return self._send_ncf(size, now)
            self._wake_at = self._ncf_tokens.ready_at(size, now)
        if self._closing and not self._fin and not self._reset and not self._outbox:
            self._fin = True
            self._announce_end(now)
        if self._heartbeat.due_at <= now:
            return self._send_spm(now)
        repair = self._repairs.due_at <= now
        if self._outbox and not (repair and not self._repaired_last):
            size = IP_HEADER + DATA_HEADER + self._outbox.next_size()
            if self._window.make_room(size, self._repairs):
                return self._send_data(size, now)
        return self._send_repair(now) if repair else None

    def _allowed(self, size: int, now: float, *, batch: bool) -> bool:
        """Return whether a datagram of this size may be sent now. If not, nothing is sent until it may be.

        `batch`: many more datagrams follow, so the source waits until several of them may be sent.
        """
        if not self._tokens.has(size, now):
            enough = max(float(size), self._tokens.depth / 4) if batch else size
            self._blocked_until = self._tokens.ready_at(enough, now)
        elif not self._peak.has(size, now):
            self._blocked_until = self._peak.ready_at(self._peak.depth if batch else size, now)
        else:
            self._tokens.take(size)
            self._peak.take(size)
            self._meter.count(size, now)
            self.statistics.bytes_sent += size
            return True
        return False

    def _send_ncf(self, size: int, now: float) -> Datagram | None:
        if not self._allowed(size, now, batch=False):
            return None
        self._ncf_tokens.take(size)
        self.statistics.ncf += 1
        return self._to_group(encode_nak(self._ncfs.popleft()), router_alert=True)

    def _send_spm(self, now: float) -> Datagram | None:
        packet = encode_spm(
            Spm(
                self._tsi, self._group.port, self._spm_sequence, self._window.trail, self._window.lead,
                self._nla,
                self._fin, _RST_NO_NAKS if self._reset else None,
            )
        )  # fmt: skip
        if not self._allowed(IP_HEADER + ROUTER_ALERT + len(packet), now, batch=False):
            return None
        self._spm_sequence += 1
        self._heartbeat.spm_sent(now)
        self.statistics.spm += 1
        return self._to_group(packet, router_alert=True)

    def _send_data(self, size: int, now: float) -> Datagram | None:
        if not self._allowed(size, now, batch=True):
            return None
        data, fragment, handle = self._outbox.take(self._window.lead + 1)
        sequence = self._window.append(Kept(now, data, fragment, size))
        self._repaired_last = False
        self._heartbeat.data_sent(now)
        if self._advance_at == _NEVER:
            self._advance_at = now + self._settings.advance_seconds
        statistics = self.statistics
        statistics.odata += 1
        statistics.apdu_bytes += len(data)
        if handle is not None:
            statistics.apdus += 1
            self._on_sent(handle)
        packet = Data(self._tsi, self._group.port, sequence, self._window.trail, data, fragment)
        return self._to_group(encode_data(packet), router_alert=False)

    def _send_repair(self, now: float) -> Datagram | None:
        sequence = self._repairs.first()
        kept = self._window.packet(sequence)
        if not self._allowed(kept.size + ROUTER_ALERT, now, batch=True):
            return None
        self._repairs.done()
        self._repaired_last = True
        self._heartbeat.data_sent(now)
        self.statistics.rdata += 1
        packet = Data(
            self._tsi, self._group.port, sequence, self._window.trail, kept.data, kept.fragment, repair=True
        )
        return self._to_group(encode_data(packet), router_alert=True)

    def _on_nak(self, nak: Nak, now: float) -> None:
        if nak.tsi != self._tsi or nak.port != self._group.port or nak.group != self._group.address:
            return
        if self._reset or self.closed:
            return
        self.statistics.naks += 1
        window = self._window
        wanted = [unwrapped(sequence, window.lead) for sequence in nak.sequences]
        wanted = [sequence for sequence in wanted if sequence in window]
        if not wanted:
            self.statistics.naks_outside_window += 1
            return
        if len(self._ncfs) >= self._settings.ncf_backlog:
            self.statistics.naks_dropped += 1
            return
        self._ncfs.append(nak._replace(confirmed=True))
        for sequence in wanted:
            delay = repair_delay(sequence, window.trail, window.lead, self._settings.repair_spread)
            self._repairs.add(sequence, now + delay)
        self._stir()

    def _announce_end(self, now: float) -> None:
        self._heartbeat.urge()
        self._closed_at = now + self._settings.window_seconds

    def _stir(self) -> None:
        """Make `packets` due at once, since there may be something new to send."""
        self._wake_at = _NOW

    def _to_group(self, packet: bytes, *, router_alert: bool) -> Datagram:
        return Datagram(packet, self._group.address, None, router_alert)


def _nak_size(nak: Nak) -> int:
    listed = len(nak.sequences) - 1
    return 36 + (8 + 4 * listed if listed else 0)
