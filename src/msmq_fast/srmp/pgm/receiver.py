"""A PGM receiver (RFC 3208, 6): all transport sessions of one group and port. No IO, no clock.

Times are seconds of any clock that begins at 0 or later and does not go back.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv4Address
from random import Random
from typing import NamedTuple

from msmq_fast.srmp.pgm.bucket import TokenBucket
from msmq_fast.srmp.pgm.model import Datagram, Group, ReceiverStatistics, Tsi
from msmq_fast.srmp.pgm.options import NAK_LIST_LIMIT, Malformed
from msmq_fast.srmp.pgm.packets import Data, Nak, Spm, decode, encode_nak
from msmq_fast.srmp.pgm.reception import Reception, Room
from msmq_fast.srmp.pgm.settings import IP_HEADER, PgmSettings

_NAK_SHARE = 0.25
"""The share of TXW_MAX_RTE that NAKs may take, so that forged packets cannot cause a flood of them."""
_ENDED_LIMIT = 1024
_FULL_NAK = 2 * (IP_HEADER + 36 + 8 + 4 * NAK_LIST_LIMIT)


class _Key(NamedTuple):
    """The key of a session: its TSI and the source address. Because of the address, packets from another host
    with the same TSI do not affect the session.
    """

    tsi: Tsi
    source_ip: str


class _Session:
    __slots__ = ("asked_at", "heard_at", "key", "reception")

    def __init__(self, key: _Key, reception: Reception, heard_at: float) -> None:
        self.key = key
        self.reception = reception
        self.heard_at = heard_at
        self.asked_at = float("-inf")


class Receiver:
    """All transport sessions of one group and port, on the receiving side.

    The caller passes received packets to `on_packet` and sends the datagrams that `packets` returns. It calls
    `packets` after `on_packet` and `expire`, and at `next_deadline`.
    """

    def __init__(
        self, settings: PgmSettings, group: Group, random: Random, deliver: Callable[[bytes, Tsi, str], None]
    ) -> None:
        """`on_packet` and `expire` call `deliver(apdu, tsi, source_ip)` with the complete APDUs of a session,
        in the order in which they were sent.
        """
        self._settings = settings
        self._group = group
        self._random = random
        self._deliver = deliver
        self.statistics = ReceiverStatistics()
        self._sessions: dict[_Key, _Session] = {}
        self._room = Room(settings.receive_memory)
        self._ended: OrderedDict[_Key, float] = OrderedDict()  # and until when nothing of them is heard
        rate = settings.max_rate * _NAK_SHARE
        self._tokens = TokenBucket(rate, max(rate / 4, float(_FULL_NAK)))
        self._wake_at: float | None = None  # NAKs are due and wait for tokens
        self._idle_at = float("inf")  # not later than the first session is forgotten

    def __len__(self) -> int:
        """Return the number of sessions."""
        return len(self._sessions)

    def on_packet(self, packet: bytes, source_ip: str, now: float) -> None:
        """Process a received PGM packet without its IP header. Never raises because of its content."""
        statistics = self.statistics
        statistics.packets += 1
        statistics.bytes_received += len(packet)
        try:
            message = decode(packet)
        except Malformed:
            statistics.malformed += 1
            return
        if message is None or message.port != self._group.port:
            return
        if isinstance(message, Nak):
            self._on_nak(message, source_ip, now)
            return
        key = _Key(message.tsi, source_ip)
        session = self._sessions.get(key) or self._begin(key, message, now)
        if session is None:
            return
        session.heard_at = now
        if isinstance(message, Data):
            session.reception.on_data(message, now)
        else:
            session.reception.on_spm(message, now)
        if session.reception.ended:
            self._finish(key, now)

    def packets(self, now: float) -> list[Datagram]:
        """Return the NAKs to send. Each is sent twice: to the path address of the source and, with TTL 1, to
        the group ([MC-MQSRM] 2.1.3 note 3).
        """
        self.expire(now)
        sent: list[Datagram] = []
        self._wake_at = None
        waiting = [session for session in self._sessions.values() if session.reception.recovery.due]
        waiting.sort(key=lambda session: session.asked_at)  # in turns: no session uses up the budget of all
        while waiting:
            for session in waiting:
                key, recovery = session.key, session.reception.recovery
                listed = min(recovery.due, NAK_LIST_LIMIT + 1)
                size = 2 * (IP_HEADER + 36 + (4 + 4 * listed if listed > 1 else 0))
                if not self._tokens.has(size, now):
                    self._wake_at = self._tokens.ready_at(size, now)
                    return sent
                self._tokens.take(size)
                session.asked_at = now
                sequences = recovery.ask(listed, now)
                self.statistics.naks += len(sequences)
                packet = encode_nak(
                    Nak(key.tsi, self._group.port, sequences, key.source_ip, self._group.address)
                )
                sent.append(Datagram(packet, _unicast(session.reception.path, key.source_ip), None, False))
                sent.append(Datagram(packet, self._group.address, 1, False))
            waiting = [session for session in waiting if session.reception.recovery.due]
        return sent

    def next_deadline(self) -> float | None:
        """Return the time at which to call `packets` again; None if nothing is due."""
        if self._wake_at is not None:
            return self._wake_at
        timers = [session.reception.recovery.next_deadline() for session in self._sessions.values()]
        earliest = min(timers, default=float("inf"))
        earliest = min(earliest, self._idle_at)
        return None if earliest == float("inf") else earliest

    def expire(self, now: float) -> None:
        """Give up missing packets that were requested too often, and delete sessions that were silent for too
        long. `packets` does this too.
        """
        for key, session in list(self._sessions.items()):
            if session.reception.recovery.next_deadline() <= now:
                session.reception.expire(now)
                if session.reception.ended:
                    self._finish(key, now)
        if now >= self._idle_at:
            self._forget_idle(now)

    def _on_nak(self, nak: Nak, source_ip: str, now: float) -> None:
        """Process an NCF that the source sent, or a NAK that another receiver sent."""
        if nak.group != self._group.address:
            return
        session = self._sessions.get(_Key(nak.tsi, source_ip if nak.confirmed else nak.source))
        if session is None:
            return
        reception = session.reception
        act = reception.recovery.confirmed if nak.confirmed else reception.recovery.asked_by_other
        for sequence in nak.sequences:
            act(reception.unwrapped(sequence), now)

    def _begin(self, key: _Key, message: Spm | Data, now: float) -> _Session | None:
        """Return a new session if the packet may begin one and there is room for it, otherwise None."""
        if isinstance(message, Data):
            if message.repair:
                return None  # asked for by another receiver; it may be older than our part of the session
        elif message.fin or message.rst is not None:
            return None
        until = self._ended.get(key)
        if until is not None:
            if now < until:
                return None
            del self._ended[key]
        if not self._make_place(key.source_ip, now):
            self.statistics.refused_sessions += 1
            return None
        self.statistics.sessions += 1
        reception = Reception(
            self._settings, self._random, self.statistics, self._room, lambda apdu: self._deliver(apdu, *key)
        )
        session = self._sessions[key] = _Session(key, reception, now)
        self._idle_at = min(self._idle_at, now + self._settings.source_idle)
        return session

    def _make_place(self, source_ip: str, now: float) -> bool:
        """Make room for a new session of a host. Return whether there is room.

        If the host has too many sessions, delete the one of them that has been silent for the longest time.
        If there are too many sessions in all, delete the one that has been silent for the longest time, but
        only if its source seems to have gone.
        """
        settings = self._settings
        own = [session for session in self._sessions.values() if session.key.source_ip == source_ip]
        if len(own) >= settings.max_sources_of_host:
            self._forget(min(own, key=lambda session: session.heard_at).key)
        elif len(self._sessions) >= settings.max_sources:
            oldest = min(self._sessions.values(), key=lambda session: session.heard_at)
            if now - oldest.heard_at <= 2 * settings.heartbeat_last:
                return False
            self._forget(oldest.key)
        return True

    def _finish(self, key: _Key, now: float) -> None:
        """End a session, and remember it so that late packets do not start it again."""
        self._forget(key)
        self._ended[key] = now + self._settings.window_seconds
        if len(self._ended) > _ENDED_LIMIT:
            self._ended.popitem(last=False)

    def _forget(self, key: _Key) -> None:
        self._sessions.pop(key).reception.end()

    def _forget_idle(self, now: float) -> None:
        idle = self._settings.source_idle
        for session in [one for one in self._sessions.values() if now - one.heard_at >= idle]:
            self._forget(session.key)
        self._idle_at = min((one.heard_at for one in self._sessions.values()), default=float("inf")) + idle


def _unicast(path: str | None, source_ip: str) -> str:
    """Returns the destination address of a NAK: the path NLA if it can be the address of a host, otherwise
    the address of the source.
    """
    if path is None:
        return source_ip
    address = IPv4Address(path)
    return source_ip if address.is_multicast or address.is_unspecified or address.is_reserved else path
