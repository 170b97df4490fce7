"""Multicast: the joined groups, the delivery of their messages, and the timers of all PGM sessions."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from ipaddress import IPv4Address
from typing import Final

from msmq_fast.admin.view import Labelled
from msmq_fast.logfields import logged
from msmq_fast.qm.faults import for_each
from msmq_fast.qm.queues.queue import QueueKind
from msmq_fast.server.front_end import FrontEnd, Runtime
from msmq_fast.server.pgm.sending import PgmSending
from msmq_fast.server.pgm.sockets import PgmSockets
from msmq_fast.srmp.apdus import Texts
from msmq_fast.srmp.outgoing import Requests
from msmq_fast.srmp.pgm.model import Group, ReceiverStatistics, Tsi
from msmq_fast.srmp.pgm.receiver import Receiver
from msmq_fast.srmp.receive import Pipeline
from msmq_fast.srmp.sending import Report

__all__ = ["PgmListener"]

_NAK: Final = 0x08
_HEADER: Final = 16  # octets that all packets have
_JOIN_AGAIN: Final = 20.0  # seconds until a group is tried again that could not be joined
_QUIET: Final = 1.0  # seconds without a packet after which no repair requests are expected
Values = dict[tuple[str, ...], float]

_BOUND: Final = (QueueKind.PUBLIC, QueueKind.PRIVATE)

_log = logging.getLogger("msmq_fast.pgm")


class PgmListener(FrontEnd):
    """The multicast front end. Joins the groups in the multicast addresses of queues and receives their
    messages; `sending` sends the messages of outgoing queues.
    """

    def __init__(
        self,
        runtime: Runtime,
        sockets: PgmSockets,
        pipeline: Pipeline,
        requests: Requests,
        report: Report | None,
    ) -> None:
        config, manager, clock = runtime.config, runtime.manager, runtime.clock
        commit_loop, refused, randomness = runtime.commit_loop, runtime.refusals, runtime.random
        self._manager = manager
        self._sockets = sockets
        self._pipeline = pipeline
        self._drain = config.server.drain_timeout / 2  # seconds
        self._monotonic = clock.monotonic
        self._touch = commit_loop.touch
        self._random = randomness
        self._settings = config.pgm.settings()
        self._receivers: dict[bytes, Receiver] = {}
        """The receivers by group address and port, as encoded in packets."""
        self._joined: Counter[str] = Counter()  # receivers of each address
        self._texts: dict[bytes, Texts] = {}
        self._changed = True
        self._look_again: float | None = None
        self._past = ReceiverStatistics()
        self._last_packet = 0.0
        self.sending = PgmSending(
            manager,
            sockets,
            self._settings,
            requests.apdu,
            lambda reason, text, fields: refused.refuse("message", reason, text, about=lambda: fields),
            clock.wall_s,
            randomness,
            config.name,
            config.srmp.idle_timeout,
            report,
        )
        manager.changes.changed.connect(self._queues_changed)
        sockets.watch(runtime.loop, self._readable)
        commit_loop.add(self)

    # -------------------------------------------------------------------------------- groups

    def _queues_changed(self) -> None:
        if not self._changed:
            self._changed = True
            self._touch()

    def _follow(self, now: float) -> None:
        """Join and leave groups according to the multicast addresses of queues."""
        self._changed, self._look_again = False, None
        wanted: dict[bytes, Group] = {}
        for queue in self._manager.registry.local():
            if queue.kind in _BOUND and queue.properties.multicast_address:
                group = _group(queue.properties.multicast_address)
                if group is not None:
                    wanted[_wire(group)] = group
        for key in self._receivers.keys() - wanted.keys():
            self._leave(key)
        for key in wanted.keys() - self._receivers.keys():
            self._join(key, wanted[key], now)

    def _join(self, key: bytes, group: Group, now: float) -> None:
        if not self._joined[group.address]:
            try:
                self._sockets.join(group.address)
            except OSError as error:
                _log.warning(
                    "multicast group %s cannot be joined: %s",
                    group.address,
                    error.strerror or error,
                    extra=logged(peer=group.address),
                )
                self._look_again = now + _JOIN_AGAIN
                return
        self._joined[group.address] += 1
        texts = self._texts[key] = Texts()
        name = f"{group.address}:{group.port}"

        def deliver(apdu: bytes, tsi: Tsi, source: str) -> None:
            for text in texts.feed(tsi, apdu):
                self._pipeline.handle_apdu(text, name, source)

        self._receivers[key] = Receiver(self._settings, group, self._random, deliver)

    def _leave(self, key: bytes) -> None:
        _add(self._past, self._receivers.pop(key).statistics)
        del self._texts[key]
        address = str(IPv4Address(key[:4]))
        self._joined[address] -= 1
        if not self._joined[address]:
            del self._joined[address]
            self._sockets.leave(address)

    # -------------------------------------------------------------------------------- packets

    def _readable(self) -> None:
        self._touch()
        now = self._monotonic()
        self._last_packet = now
        touched: set[bytes] = set()
        asked = False
        for packet, source, destination in self._sockets.receive():
            if len(packet) < _HEADER:
                continue
            multicast = 224 <= destination[0] < 240
            if packet[4] == _NAK:
                asked = self.sending.on_nak(packet, source, now, multicast=multicast) or asked
            key = destination + (packet[:2] if packet[4] == _NAK else packet[2:4])
            receiver = self._receivers.get(key)
            if receiver is not None:
                receiver.on_packet(packet, source, now)
                touched.add(key)
        self._answer(touched, now)
        if asked:
            self.sending.flush(now)

    def _answer(self, keys: Iterable[bytes], now: float) -> None:
        for key in keys:
            datagrams = self._receivers[key].packets(now)
            for index, interface in enumerate(self._sockets.interfaces if datagrams else ()):
                # To sources once, to the group everywhere.
                group = str(IPv4Address(key[:4]))
                some = [each for each in datagrams if not index or each.destination == group]
                self._sockets.send(some, interface)

    # -------------------------------------------------------------------------------- timers

    def next_deadline(self) -> float | None:
        """Return the time, in monotonic seconds, at which `expire` is due."""
        if self._changed:
            return 0.0
        due = [at for each in self._receivers.values() if (at := each.next_deadline()) is not None]
        due += [at for at in (self.sending.next_deadline(), self._look_again) if at is not None]
        return min(due, default=None)

    def expire(self, now: float) -> None:
        """Handle all deadlines that are due."""
        steps = (self._follow_changes, self._expire_receivers, self.sending.expire, self.sending.flush)
        for_each(steps, lambda step: step(now))

    def _follow_changes(self, now: float) -> None:
        if self._changed or (self._look_again is not None and self._look_again <= now):
            self._follow(now)

    def _expire_receivers(self, now: float) -> None:
        due = [
            key
            for key, receiver in self._receivers.items()
            if (at := receiver.next_deadline()) is not None and at <= now
        ]

        def expire(key: bytes) -> None:
            self._receivers[key].expire(now)
            self._answer((key,), now)

        for_each(due, expire)

    async def stop(self) -> None:
        """End the sessions of this server. Answer requests for repairs until none has arrived for a moment,
        for at most half of the drain timeout.
        """
        begun = self._last_packet = self._monotonic()
        busy = self.sending.busy
        self.sending.stop(begun)
        # No event tells that repair requests have ended.
        while busy and self._last_packet + _QUIET > self._monotonic() < begun + self._drain:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        self._sockets.close()

    # -------------------------------------------------------------------------------- figures

    @property
    def statistics(self) -> ReceiverStatistics:
        """Return the counters of all receivers since the start."""
        total = ReceiverStatistics()
        for each in (self._past, *(receiver.statistics for receiver in self._receivers.values())):
            _add(total, each)
        return total

    def labelled(self) -> Iterator[Labelled]:
        """Yield the metrics of multicast for the admin port (SR-029)."""
        sent: Values = {(name,): value for name, value in asdict(self.sending.statistics).items()}
        got: Values = {(name,): value for name, value in asdict(self.statistics).items()}
        rates: Values = {(group,): rate for group, rate in self.sending.rates(self._monotonic())}
        failures: Values = {(reason,): float(count) for reason, count in self._sockets.failures.items()}
        yield Labelled("pgm_sent", "Events of multicast sources", ("what",), sent)
        yield Labelled("pgm_received", "Events of multicast receivers", ("what",), got)
        yield Labelled("pgm_rate", "Bytes a second sent to multicast groups", ("group",), rates, grows=False)
        yield Labelled("pgm_unsent", "Multicast packets that could not be sent", ("reason",), failures)


def _group(text: str) -> Group | None:
    address, _, port = text.strip().partition(":")
    try:
        group = Group(str(IPv4Address(address)), int(port))
    except ValueError:
        return None
    return group if 0 <= group.port <= 0xFFFF else None


def _wire(group: Group) -> bytes:
    return IPv4Address(group.address).packed + group.port.to_bytes(2, "big")


def _add(total: ReceiverStatistics, more: ReceiverStatistics) -> None:
    for name in ReceiverStatistics.__slots__:
        setattr(total, name, getattr(total, name) + getattr(more, name))
