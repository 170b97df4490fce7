"""Sends messages by multicast: connects outgoing queues with their PGM sources and the interfaces."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from msmq_fast.logfields import Fields
from msmq_fast.qm.faults import for_each
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.queues.outgoing import Channel, ConnectionStatus, OutgoingQueue, OutgoingState
from msmq_fast.qm.queues.stall import FLOWING, Stall
from msmq_fast.server.pgm.interfaces import Interface
from msmq_fast.server.pgm.sockets import PgmSockets
from msmq_fast.srmp.multicast import Feed
from msmq_fast.srmp.pgm.model import Group, SourceStatistics, make_tsi
from msmq_fast.srmp.pgm.settings import PgmSettings
from msmq_fast.srmp.pgm.source import Source
from msmq_fast.srmp.sending import Report

__all__ = ["PgmSending"]

_log = logging.getLogger("msmq_fast.pgm")

_RETRY: Final = 20.0  # seconds until a queue tries again to which there was no way
_LEAST_ROOM: Final = 128 << 10  # octets that wait in a source at most; more where the rate is high
_AHEAD: Final = 0.1  # seconds of the rate that wait in a source
_E_UNREACHABLE: Final = 0x80072743  # WSAENETUNREACH as an HRESULT


class PgmSending:
    """Sends the messages of outgoing queues with MULTICAST names; implements `server.outgoing.Carrier`."""

    def __init__(
        self,
        manager: QueueManager,
        sockets: PgmSockets,
        settings: PgmSettings,
        encode: Callable[[bytes, str], bytes],
        refused: Callable[[str, str, Fields], None],
        unix_time: Callable[[], int],
        randomness: random.Random,
        host: str,
        idle_timeout: float,
        report: Report | None = None,
    ) -> None:
        """`host` is the name from which the identifiers of transport sessions are made. A session without
        messages ends after `idle_timeout` seconds (the Session Cleanup Timer). `report` is called for traced
        messages.
        """
        self._manager = manager
        self._sockets = sockets
        self._settings = settings
        self._encode = encode
        self._refused = refused
        self._unix_time = unix_time
        self._random = randomness
        self._host = host
        self._idle = idle_timeout
        self._report = report
        self._owner = manager.ledger.new_owner()  # locks messages in progress, which do not expire meanwhile
        self._feeds: dict[OutgoingQueue, Feed] = {}
        self._retries: dict[OutgoingQueue, float] = {}
        self._sources: dict[tuple[bytes, bytes], tuple[Source, Interface]] = {}
        """The sources by source port and GSI, as encoded in packets. Includes ended sources that only send
        repairs.
        """
        self._past = SourceStatistics()

    # -------------------------------------------------------------------------------- outgoing queues

    def channel_of(self, queue: OutgoingQueue) -> Channel:
        """Return the channel of an outgoing queue."""
        return _MulticastChannel(self, queue)

    def has_work(self, queue: OutgoingQueue) -> None:
        """Called when messages are available in an outgoing queue: send them."""
        feed = self._feeds.get(queue)
        now = self._manager.monotonic()
        if feed is not None and feed.sources:
            self._turn(feed, now)
        elif self._retries.get(queue, now) <= now:
            self._connect(queue, now)

    def resumed(self, queue: OutgoingQueue) -> None:
        """Called when an outgoing queue is resumed: send its messages."""
        self._retries.pop(queue, None)
        self.has_work(queue)

    def removed(self, queue: OutgoingQueue) -> None:
        """Called after an outgoing queue was deleted: end its session."""
        self._retries.pop(queue, None)
        feed = self._feeds.pop(queue, None)
        if feed is not None:
            feed.end(self._manager.monotonic())

    def _connect(self, queue: OutgoingQueue, now: float) -> None:
        """Connect a queue (3.1.7.9): its state is Waiting, then Connected once there is a route to the group
        (SR-221).
        """
        feed = self._feeds.get(queue)
        if feed is None:
            room = max(_LEAST_ROOM, int(self._settings.max_rate * _AHEAD))
            feed = Feed(self._manager, queue, self._owner, self._encode, self._refused, room, self._report)
            self._feeds[queue] = feed
        if not feed.waits():
            return
        queue.set_state(OutgoingState.WAITING)
        queue.next_attempt = 0
        queue.note(ConnectionStatus.IN_PROCESS, self._unix_time())
        address, _, port = feed.group.partition(":")
        try:
            own = [interface.address_towards(address) for interface in self._sockets.interfaces]
        except OSError as error:
            reason = error.strerror or str(error)
            queue.set_state(OutgoingState.INACTIVE)
            queue.note(ConnectionStatus.SOCKET_CONNECT_FAILURE, self._unix_time(), _E_UNREACHABLE, (), reason)
            self._retries[queue] = now + _RETRY
            queue.next_attempt = self._unix_time() + round(_RETRY)
            return
        self._retries.pop(queue, None)
        group = Group(address, int(port))
        feed.begin(
            [
                partial(self._source, interface, address, group)
                for interface, address in zip(self._sockets.interfaces, own, strict=True)
            ]
        )
        queue.next_hops = (feed.group,)
        queue.set_state(OutgoingState.CONNECTED)
        queue.note(ConnectionStatus.ESTABLISHED, self._unix_time(), addresses=(feed.group,))
        self._turn(feed, now)

    def _source(
        self, interface: Interface, address: str, group: Group, on_sent: Callable[[int], None]
    ) -> Source:
        tsi = make_tsi(self._host, self._random)
        while _key(tsi.port, tsi.gsi) in self._sources:
            tsi = make_tsi(self._host, self._random)
        source = Source(self._settings, tsi, group, address, self._random, on_sent)
        self._sources[_key(tsi.port, tsi.gsi)] = (source, interface)
        return source

    def _turn(self, feed: Feed, now: float) -> None:
        """Send messages of one queue, as many as the rate allows."""
        while True:
            feed.pump(now)
            sent = False
            for interface, datagrams in zip(self._sockets.interfaces, feed.packets(now), strict=True):
                if datagrams:
                    sent = True
                    self._sockets.send(datagrams, interface)
            feed.settle()
            if not sent:
                return

    # -------------------------------------------------------------------------------- what receivers say

    def on_nak(self, packet: bytes, source: str, now: float, *, multicast: bool) -> bool:
        """Handle a packet with a NAK. Return whether the NAK is for a session of this server."""
        found = self._sources.get((packet[2:4], packet[8:14]))
        if found is None:
            return False
        found[0].on_packet(packet, source, now, multicast=multicast)
        return True

    def flush(self, now: float) -> None:
        """Send the packets that are due because of NAKs and timers."""
        for_each([feed for feed in self._feeds.values() if feed.sources], lambda feed: self._turn(feed, now))
        active = {id(source) for feed in self._feeds.values() for source in feed.sources}
        for key, (source, interface) in list(self._sources.items()):
            if id(source) in active:
                continue
            self._sockets.send(source.packets(now), interface)
            if source.closed:
                _add(self._past, source.statistics)
                del self._sources[key]

    # -------------------------------------------------------------------------------- timers

    def next_deadline(self) -> float | None:
        """Return the time, in monotonic seconds, at which `expire` is due."""
        due = [at for source, _ in self._sources.values() if (at := source.next_deadline()) is not None]
        due += [feed.used + self._idle for feed in self._feeds.values() if feed.sources]
        due += self._retries.values()
        return min(due, default=None)

    def expire(self, now: float) -> None:
        """Handle all deadlines that are due. The caller then calls `flush`."""
        for_each((self._expire_sources, self._connect_again, self._end_idle), lambda step: step(now))

    def _expire_sources(self, now: float) -> None:
        sources = [source for source, _ in self._sources.values()]
        due = [source for source in sources if (at := source.next_deadline()) is not None and at <= now]
        for_each(due, lambda source: source.expire(now))

    def _connect_again(self, now: float) -> None:
        def connect(queue: OutgoingQueue) -> None:
            del self._retries[queue]
            try:
                self._connect(queue, now)
            except Exception:
                self._retries[queue] = now + _RETRY
                raise

        for_each([queue for queue, at in self._retries.items() if at <= now], connect)

    def _end_idle(self, now: float) -> None:
        def look(feed: Feed) -> None:
            if feed.sources and not feed.under_way and now >= feed.used + self._idle:
                feed.end(now)
                feed.queue.set_state(OutgoingState.DISCONNECTED)
            elif feed.sources and now >= feed.used + self._idle:
                feed.used = now

        for_each(list(self._feeds.values()), look)

    @property
    def busy(self) -> bool:
        """Whether a session has not ended, so that its receivers may still request repairs."""
        return bool(self._sources)

    def stop(self, now: float) -> None:
        """End all sessions; unsent messages are sent after the next start."""
        for feed in self._feeds.values():
            feed.end(now)
        self.flush(now)

    # -------------------------------------------------------------------------------- figures

    @property
    def statistics(self) -> SourceStatistics:
        """Return the counters of all sources since the start."""
        total = SourceStatistics()
        _add(total, self._past)
        for source, _ in self._sources.values():
            _add(total, source.statistics)
        return total

    def rates(self, now: float) -> Iterator[tuple[str, float]]:
        """Yield (group, octets per second) of each group that this server sends to."""
        for feed in self._feeds.values():
            if feed.sources:
                yield feed.group, sum(source.rate(now) for source in feed.sources)


class _MulticastChannel:
    """The channel of one outgoing queue. If the queue is paused, messages that the queue has already passed
    to its PGM sources are still sent.
    """

    def __init__(self, sending: PgmSending, queue: OutgoingQueue) -> None:
        self._sending = sending
        self._queue = queue

    def has_work(self) -> None:
        self._sending.has_work(self._queue)

    def held(self, on_hold: bool) -> None:
        if not on_hold:
            self._sending.resumed(self._queue)

    def kick(self) -> None:
        self._sending.resumed(self._queue)

    def obstacle(self) -> Stall:
        return FLOWING


def _key(port: int, gsi: bytes) -> tuple[bytes, bytes]:
    return port.to_bytes(2, "big"), gsi


def _add(total: SourceStatistics, more: SourceStatistics) -> None:
    for name in SourceStatistics.__slots__:
        setattr(total, name, getattr(total, name) + getattr(more, name))
