"""Whole queue managers that are connected by pipes in virtual time: sender, routers, receiver."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from msmq_fast._native.instream import InStreams
from msmq_fast.mqqb.channel import ChannelContext, OutgoingChannel
from msmq_fast.mqqb.destination import destinations
from msmq_fast.mqqb.endpoint import Endpoint, SendPing
from msmq_fast.mqqb.enterprise import DirectoryEnterprise
from msmq_fast.mqqb.forwarding import Forwarder
from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.mqqb.hops import Target
from msmq_fast.mqqb.orderack import OrderAcks, load_streams
from msmq_fast.mqqb.peers import Peers
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.routing import Router
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.sessioncontext import SessionContext
from msmq_fast.mqqb.transfer import Connect, Resolve
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName
from msmq_fast.qm.access import Access
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.timing import earliest
from tests.support.clocks import WALL, StillClock
from tests.support.worlds.channels import context
from tests.support.worlds.queue_manager import World, carry


class Station(World):
    """One queue manager with its sessions; `static` are its routes, `routes`: whether it forwards,
    `acknowledges`: whether it sends OrderAcks."""

    def __init__(
        self,
        name: str,
        address: str,
        clock: StillClock,
        *,
        static: dict[UUID | str, tuple[Target, ...]] | None = None,
        routes: bool = False,
        acknowledges: bool = False,
        trace: Callable[..., None] | None = None,
        **settings: object,
    ) -> None:
        self.trace = trace
        seed = int(address.rpartition(".")[2])
        super().__init__(
            clock=clock, seed=seed, computer_name=name, addresses=frozenset({address}), **settings
        )
        self.address = address
        self.static = static or {}
        self.routes = routes
        self.acknowledges = acknowledges
        self.refusals: list[tuple[str, str]] = []
        self.effects: list[Resolve | Connect | SendPing] = []
        self.connect()

    def connect(self) -> None:
        """Sessions, as the server composes them."""
        manager = self.manager
        order_acks, peers = None, Peers(manager.guid)
        if self.acknowledges:
            streams = InStreams(manager.ledger, vouches=peers.vouches)
            load_streams(streams, manager.store.tables.scan, manager.report_corrupt)
            order_acks = OrderAcks(
                manager.guid,
                manager.ledger,
                streams,
                manager.ack_policy.send_away,
                self.clock.monotonic,
                peers=peers,
            )
        self.session_context = SessionContext(
            manager.guid,
            manager.ledger,
            destinations(manager.find_field, manager.guard.open_to_everybody),
            on_refusal=lambda reason, about: self.refusals.append((reason.value, about.describe())),
            nack=manager.ack_policy.reject,
            order_acks=order_acks,
            peers=peers,
            hooks=self.hooks(),
        )
        enterprise = DirectoryEnterprise(lambda: manager.directory.events, manager.directory.queue_manager)
        self.router = Router(manager.guid, enterprise, self.now, static=self.static)
        self.router.refresh(self.now)
        self.endpoint = Endpoint(self.session_context, self.effects.append, self.now)
        self.channels: dict[OutgoingQueue, OutgoingChannel] = {}
        self.of_channels = self.channel_context()
        carry(manager, self.channel_of)
        manager.changes.changed.connect(self.session_context.forget_routes)

    def hooks(self) -> Hooks:
        manager = self.manager
        forward = Forwarder(manager.guid, self.way_out, trace=self.trace) if self.routes else None
        return Hooks(forward=forward, trace=self.trace, must_wait=manager.ack_policy.must_wait)

    @property
    def now(self) -> float:
        return self.clock.monotonic()

    def channel_context(self) -> ChannelContext:
        return context(
            carrier=self.endpoint.transfer,
            unix_time=lambda: WALL,
            monotonic=lambda: self.now,
            route=self.router.hops,
        )

    def channel_of(self, queue: OutgoingQueue) -> OutgoingChannel:
        if queue not in self.channels:
            self.channels[queue] = OutgoingChannel(queue, self.of_channels)
        return self.channels[queue]

    def way_out(self, name: FormatName, manager: UUID) -> OutgoingChannel:
        return self.channel_of(self.manager.outgoing_for(name, manager))

    # ---- what a program does

    def make(self, name: str, **properties: object) -> Queue:
        done = self.manager.create_queue(f".\\private$\\{name}", **properties)
        self.run()
        return done.result()

    def post(self, name: str, *bodies: bytes, **properties: object) -> None:
        handle = self.manager.open(name, Access.SEND)
        for body in bodies:
            handle.send(Message(body=body, **properties))  # type: ignore[arg-type]
        handle.close()

    def read(self, queue: Queue) -> list[Message]:
        handle = self.manager.open(queue.name, Access.RECEIVE)
        found = []
        while queue.messages:
            request = handle.receive(0)
            self.run()
            found.append(Message.from_packet(request.completion.result().packet))
        handle.close()
        return found

    def outgoing(self) -> dict[str, OutgoingQueue]:
        return {queue.name: queue for queue in self.manager.outgoing()}


class Pipe:
    """One connection."""

    def __init__(self, first: Session, second: Session) -> None:
        self.ends = (first, second)

    def carry(self, now: float) -> bool:
        """Whether bytes went over; a session that ends takes the other one with it."""
        moved = False
        for session, other in (self.ends, self.ends[::-1]):
            session.pump(now)
            data = b"".join(session.data_to_send())
            if data and other.alive:
                other.receive(data, now)
                moved = True
        if not all(end.alive for end in self.ends):
            for end in self.ends:
                end.close(CloseReason.DISCONNECTED, now)
        return moved


class Network:
    """Stations by address, host names by `names`. What is in `down` cannot be reached."""

    def __init__(self) -> None:
        self.clock = StillClock()
        self.stations: dict[str, Station] = {}
        self.names: dict[str, list[str]] = {}
        self.down: set[str] = set()
        self.pipes: list[tuple[str, str, Pipe]] = []
        self.dialled: list[tuple[str, str]] = []

    def add(self, name: str, address: str, **options: object) -> Station:
        station = Station(name, address, self.clock, **options)  # type: ignore[arg-type]
        self.stations[address] = station
        return station

    def cut(self, address: str) -> None:
        """A host goes down: its connections break."""
        self.down.add(address)
        for first, second, pipe in self.pipes:
            if address in (first, second):
                pipe.ends[0].close(CloseReason.DISCONNECTED, self.clock.monotonic())
        self.settle()

    def _execute(self, station: Station) -> None:
        now, transfer = self.clock.monotonic(), station.endpoint.transfer
        for effect in list(station.effects):
            station.effects.remove(effect)
            if isinstance(effect, Resolve):
                found = self.names.get(effect.host)
                if found is None:
                    transfer.failed(effect.link, "unknown host", now)
                else:
                    transfer.resolved(effect.link, found, now)
            elif isinstance(effect, Connect):
                self.dialled.append((station.address, effect.address))
                peer = self.stations.get(effect.address)
                if peer is None or {effect.address, station.address} & self.down:
                    transfer.failed(effect.link, "refused", now)
                    continue
                session = station.endpoint.connected(effect.link, now)
                if session is not None:
                    accepted = peer.endpoint.accept(station.address, now)
                    self.pipes.append((station.address, effect.address, Pipe(session, accepted)))

    def settle(self) -> None:
        """Until nothing more happens without time passing."""
        for _ in range(200):
            moved = False
            for station in self.stations.values():
                station.run()
                moved |= bool(station.effects)
                self._execute(station)
            for _, _, pipe in list(self.pipes):
                moved |= pipe.carry(self.clock.monotonic())
            self.pipes = [entry for entry in self.pipes if all(end.alive for end in entry[2].ends)]
            if not moved:
                return
        raise AssertionError("the network does not come to rest")

    def pass_time(self, seconds: float) -> None:
        """Run every deadline on the way."""
        end = self.clock.monotonic() + seconds
        while True:
            self.settle()
            due = [self._next_deadline(station) for station in self.stations.values()]
            now = earliest(*due, end) or end
            self.clock.advance(max(0.0, min(now, end) - self.clock.monotonic()))
            for station in self.stations.values():
                station.manager.tick()
                station.endpoint.expire(self.clock.monotonic())
                for session in list(station.endpoint.sessions):
                    session.expire(self.clock.monotonic())
                station.router.expire(self.clock.monotonic())
            if self.clock.monotonic() >= end:
                self.settle()
                return

    def _next_deadline(self, station: Station) -> float | None:
        sessions = (session.next_deadline() for session in station.endpoint.sessions)
        return earliest(station.endpoint.next_deadline(), station.router.next_deadline(), *sessions)
