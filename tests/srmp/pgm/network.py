"""A network in virtual time that loses, doubles, delays and reorders PGM packets, as a seed says."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from random import Random

from msmq_fast.srmp.pgm.model import Datagram, Tsi
from msmq_fast.srmp.pgm.receiver import Receiver
from msmq_fast.srmp.pgm.settings import PgmSettings
from msmq_fast.srmp.pgm.source import Source
from tests.srmp.pgm.stage import GROUP


@dataclass(frozen=True)
class Weather:
    """Shares of the packets, and seconds of delay."""

    lost: float = 0.05
    doubled: float = 0.02
    least_delay: float = 0.0005
    most_delay: float = 0.004


class Network:
    """Sources at 192.0.2.1, 2, 3 … and receivers at 192.0.3.1, 2, 3 … of one group; all hear all."""

    def __init__(
        self,
        seed: int,
        weather: Weather,
        settings: PgmSettings,
        *,
        sources: int = 1,
        receivers: int = 1,
        first: int | None = None,
    ) -> None:
        self.random = Random(seed)
        self.weather = weather
        self.now = 0.0
        self.deaf: set[str] = set()
        """Receivers that nothing reaches."""
        self.sources: dict[str, Source] = {}
        self.receivers: dict[str, Receiver] = {}
        self.delivered: dict[tuple[str, str], list[bytes]] = {}
        """By receiver and source."""
        self.finished: dict[str, int] = {}
        self._under_way: list[tuple[float, int, str, bytes, str, bool]] = []
        self._count = 0
        self.carried: list[tuple[float, str, Datagram]] = []
        """Every datagram sent: when, by which host."""
        for number in range(1, sources + 1):
            self._add_source(f"192.0.2.{number}", settings, number, first)
        for number in range(1, receivers + 1):
            self._add_receiver(f"192.0.3.{number}", settings)

    def _add_source(self, host: str, settings: PgmSettings, number: int, first: int | None) -> None:
        def on_sent(handle: int) -> None:
            assert handle == self.finished[host] + 1
            self.finished[host] = handle

        self.finished[host] = 0
        tsi = Tsi(b"source", 1000 + number)
        self.sources[host] = Source(settings, tsi, GROUP, host, self.random, on_sent, first=first)

    def _add_receiver(self, host: str, settings: PgmSettings) -> None:
        def deliver(apdu: bytes, tsi: Tsi, source_ip: str) -> None:
            assert tsi.port == 1000 + int(source_ip.rsplit(".", 1)[1])
            self.delivered.setdefault((host, source_ip), []).append(apdu)

        self.receivers[host] = Receiver(settings, GROUP, self.random, deliver)

    def of(self, receiver: int, source: int = 1) -> list[bytes]:
        return self.delivered.get((f"192.0.3.{receiver}", f"192.0.2.{source}"), [])

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while True:
            at = self._next()
            if at is None or at > until:
                break
            self.now = max(self.now, at)
            while self._under_way and self._under_way[0][0] <= self.now:
                _, _, sender, packet, host, multicast = heapq.heappop(self._under_way)
                if host in self.deaf:
                    continue
                if host in self.sources:
                    self.sources[host].on_packet(packet, sender, self.now, multicast=multicast)
                else:
                    self.receivers[host].on_packet(packet, sender, self.now)
            for host, engine in (*self.sources.items(), *self.receivers.items()):
                deadline = engine.next_deadline()
                if isinstance(engine, Source) or (deadline is not None and deadline <= self.now):
                    for datagram in engine.packets(self.now):
                        self._carry(host, datagram)
        self.now = until

    def _next(self) -> float | None:
        times = [self._under_way[0][0]] if self._under_way else []
        for engine in (*self.sources.values(), *self.receivers.values()):
            deadline = engine.next_deadline()
            if deadline is not None:
                times.append(deadline)
        return min(times, default=None)

    def _carry(self, sender: str, datagram: Datagram) -> None:
        self.carried.append((self.now, sender, datagram))
        everybody = [*self.receivers, *self.sources]
        multicast = datagram.destination == GROUP.address
        for host in everybody if multicast else [datagram.destination]:
            if host == sender or self.random.random() < self.weather.lost:
                continue
            for _ in range(2 if self.random.random() < self.weather.doubled else 1):
                delay = self.random.uniform(self.weather.least_delay, self.weather.most_delay)
                self._count += 1
                heapq.heappush(
                    self._under_way,
                    (self.now + delay, self._count, sender, datagram.payload, host, multicast),
                )
