"""MS-MQQB on sockets: accepted and dialled sessions, the ping responder, outgoing queues."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from uuid import UUID

from msmq_fast._native.instream import InStreams
from msmq_fast._native.receive import Receiver
from msmq_fast.config.sections import Config
from msmq_fast.mqqb.channel import ChannelContext, OutgoingChannel
from msmq_fast.mqqb.destination import destination_of, destinations
from msmq_fast.mqqb.endpoint import Endpoint
from msmq_fast.mqqb.history import load_history
from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.mqqb.limits import Limits
from msmq_fast.mqqb.orderack import OrderAcks, load_streams
from msmq_fast.mqqb.peers import Peers
from msmq_fast.mqqb.protection import OutgoingProtection
from msmq_fast.mqqb.reasons import Contest, Refusal
from msmq_fast.mqqb.refused import about_message
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.sessioncontext import SessionContext
from msmq_fast.mqqb.timers import Timers
from msmq_fast.packet.acks import FinalAck
from msmq_fast.protocol.classes import MessageClass, name_of
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.outgoing.resending import OutgoingSequences, SequenceEvent
from msmq_fast.qm.queues.incoming import IncomingTransfer
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.security.addresses import address_group
from msmq_fast.security.domainaccounts import GroupsNeeded
from msmq_fast.security.encryption import Failure
from msmq_fast.security.keyturns import KeyNeeded
from msmq_fast.server.front_end import Bound, FrontEnd, Runtime
from msmq_fast.server.mqqb.sockets import AcceptedSession, DialledSession, PingResponder, SocketContext
from msmq_fast.server.net.addresses import is_own_address, source_address
from msmq_fast.server.net.allowed import allowed_addresses
from msmq_fast.server.net.connections import Slot
from msmq_fast.server.net.dialing import Network, PeerPorts
from msmq_fast.server.routing import Routing, named_routers, pinned_addresses
from msmq_fast.server.runtime.clock import SystemClock
from msmq_fast.store.schema import Table
from msmq_fast.store.store import Store

__all__ = ["MqqbListener"]

_log = logging.getLogger("msmq_fast.mqqb")
_PORT, _PING_PORT = 1801, 3527
_IDLE, _ROUTER_IDLE = 300.0, 120.0  # seconds (3.1.2.2)
_FLOOD_MARGIN = 256  # connections above listen.mqqb.max_connections that still get an answer


class MqqbListener(FrontEnd):
    """The MS-MQQB front end of one server."""

    def __init__(self, runtime: Runtime) -> None:
        config, manager, store, clock = runtime.config, runtime.manager, runtime.store, runtime.clock
        loop, commit_loop, acceptors = runtime.loop, runtime.commit_loop, runtime.acceptors
        refused, security = runtime.refusals, runtime.security
        self._turns = security.turns
        self._sent_protection = security.sent
        self._manager = manager
        self._clock = clock
        self._loop = loop
        self._touch = commit_loop.touch
        self._refused = refused
        self._acceptors = acceptors
        self._allowed = allowed_addresses(config.mqqb.allow)
        # Over its limits the engine still answers, with the refusal bit; a flood gets no answer.
        self._share = acceptors.table.network.share(
            "session",
            config.listen.mqqb.max_connections,
            config.listen.mqqb.max_connections_per_address,
            _FLOOD_MARGIN,
            self._is_allowed,
            resumes=True,
        )
        self._delivered = 0  # by sessions that have ended
        self._stop_accepting: list[Callable[[], None]] = []
        self._pings: list[asyncio.DatagramTransport] = []
        self._channels: dict[OutgoingQueue, OutgoingChannel] = {}
        self._routers = named_routers(config.mqqb.routers)
        peers = Peers(
            manager.guid,
            several_addresses=config.mqqb.several_addresses,
            pinned=pinned_addresses(config.peers),
            on_contest=self._contested,
            is_router=self._is_router,
        )
        self._order_acks = _order_acks(config, manager, store, clock, self._has_route, peers)
        timers = _timers(config)
        self.sequences = OutgoingSequences(
            manager.guid, manager.ledger, timers.resend, self._rejected, manager.faults
        )
        self._routing = Routing(
            config, manager, clock.monotonic, clock.wall_s, self.channel_of, self._rerouted
        )
        self.reports = self._routing.reports
        manager.routes.register(self._routing.next_hops)
        self.session_context = SessionContext(
            manager.guid,
            manager.ledger,
            destinations(manager.find_field, manager.guard.open_to_everybody),
            history=load_history(store, manager.random_bytes),
            window=config.mqqb.window,
            timers=timers,
            limits=_limits(config),
            peers=peers,
            on_refusal=self._message_refused,
            gate=runtime.access.gate(),
            quarantine=runtime.access.quarantine(manager),
            nack=manager.ack_policy.reject,
            order_acks=self._order_acks,
            hooks=Hooks(
                forward=self._routing.forward,
                protection=security.received,
                trace=None if self.reports is None else self.reports.arrived,
                trace_sent=None if self.reports is None else self.reports.sent,
                sequences=self.sequences,
                must_wait=manager.ack_policy.must_wait,
                brought=manager.answer_queues.origins.brought,
            ),
            turns=security.turns,
        )
        manager.incoming.register(arrival=self._arrives, transfers=self.transfers)
        manager.ledger.final_grace = round(config.mqqb.final_ack_grace)
        ports = PeerPorts(
            config.mqqb.peer_port or config.listen.mqqb.port or _PORT,
            config.mqqb.peer_ping_port or config.listen.mqqb.ping_port or _PING_PORT,
            config.mqqb.connect_timeout,
        )
        self._network = Network(
            loop,
            clock.monotonic,
            self._touch,
            ports,
            source_address(config.listen.mqqb.host),
            acceptors.table.outgoing.share("outgoing session"),
            lambda execute: Endpoint(
                self.session_context,
                execute,
                clock.monotonic(),
                ping_first=config.mqqb.ping,
                is_own=_own_addresses(config),
                on_close=self._session_closed,
                trim_history=lambda before, limit: store.trim(Table.HISTORY, before, limit),
                faults=manager.faults,
            ),
            self._dialled,
        )
        self.endpoint = self._network.engine
        self._of_channels = ChannelContext(
            self.endpoint.transfer,
            clock.wall_s,
            clock.monotonic,
            self._touch,
            self._routing.router.hops,
            self.sequences,
            self.session_context.peers.last_address,
        )
        self._routing.start()
        self._context = SocketContext(
            self.endpoint, loop, clock.monotonic, manager.ledger.writer, self._touch
        )
        commit_loop.add(self)
        commit_loop.add(self._routing)
        manager.changes.changed.connect(self.session_context.forget_routes)
        runtime.access.users_changed.connect(self.session_context.forget_routes)
        manager.flow.watch(self._short)

    def set_routes(self, config: Config) -> None:
        """Apply the [[routes]] of a configuration."""
        self._routing.set_static(config.routes)

    def set_peers(self, config: Config) -> None:
        """Apply mqqb.allow, mqqb.routers and the [[peers]] of a configuration. Sessions with addresses that
        are no longer allowed are closed.
        """
        self._allowed = allowed_addresses(config.mqqb.allow)
        self._routers = named_routers(config.mqqb.routers)
        self.session_context.peers.set_pinned(pinned_addresses(config.peers))
        self._share.expel()

    def _is_allowed(self, address: str) -> bool:
        return self._allowed(address)

    def set_limits(self, config: Config) -> None:
        """Apply the limits in a configuration on connections, sessions and pings."""
        mqqb = config.listen.mqqb
        self._share.resize(mqqb.max_connections, mqqb.max_connections_per_address)
        self.endpoint.set_limits(_limits(config), config.limits.handshake_timeout)

    def _contested(self, guid: UUID, home: str, other: str) -> None:
        self._refused.refuse(
            "session",
            Contest.ANOTHER_ADDRESS.value,
            f"{other} {guid}, whose home is {home}",
            about=lambda: {"peer": other},
        )

    def _is_router(self, address: str, manager: UUID | None) -> bool:
        """Whether the configuration or the directory declares a peer a router, which forwards messages of
        other queue managers.
        """
        if address in self._routers or (manager is not None and str(manager) in self._routers):
            return True
        return manager is not None and self._routing.is_router(manager)

    # -------------------------------------------------------------------------------- figures

    @property
    def connections(self) -> int:
        """Number of sessions, including those in the handshake."""
        return len(self.endpoint.sessions)

    @property
    def messages_in(self) -> int:
        """Number of messages that sessions have put into local queues since the start."""
        return self._delivered + sum(session.receiver.delivered for session in self.endpoint.sessions)

    @property
    def streams(self) -> int:
        """Number of incoming transactional streams."""
        return len(self.session_context.streams)

    def transfers(self) -> list[IncomingTransfer]:
        """Return the incoming transactional streams, for operators."""
        return self._order_acks.transfers()

    @property
    def order_acks(self) -> tuple[int, int]:
        """Return (number of OrderAcks received, number of OrderAcks sent) since the start."""
        return self.session_context.counts.order_acks, self._order_acks.order_acks

    @property
    def final_acks(self) -> tuple[int, int]:
        """Return (number of FinalAcks received, number of FinalAcks sent) since the start."""
        return self.session_context.counts.final_acks, self._order_acks.final_acks

    @property
    def resends(self) -> tuple[int, int]:
        """Return (resend time-outs of outgoing sequences, rejected acknowledgments) since the start. An
        acknowledgment is rejected if it matches no outgoing sequence, or does not come from the address to
        which the messages were sent.
        """
        counts = self.sequences.counts
        strays = (SequenceEvent.STRAY_ORDER_ACK, SequenceEvent.STRAY_FINAL_ACK, SequenceEvent.FOREIGN)
        return counts[SequenceEvent.RESEND], sum(counts[each] for each in strays)

    # -------------------------------------------------------------------------------- connections

    async def listen(self, bound: Bound) -> None:
        for listener in bound.get("mqqb", ()):
            self._stop_accepting.append(self._acceptors.accept(listener, self._share, self._accepted))
        for listener in bound.get("ping", ()):
            transport, _ = await self._loop.create_datagram_endpoint(
                lambda: PingResponder(self.endpoint, self._clock.monotonic, self._is_allowed), sock=listener
            )
            self._pings.append(transport)

    def _accepted(self, slot: Slot) -> asyncio.BaseProtocol:
        return AcceptedSession(self._context, slot)

    def _dialled(self, link: int, slot: Slot) -> asyncio.BaseProtocol:
        return DialledSession(self._context, slot, link)

    def _session_closed(self, session: Session) -> None:
        self._delivered += session.receiver.delivered
        reason = session.reason
        if reason is None:
            return
        if reason.is_refusal:
            detail = f"{session.peer_address} {session.detail}".rstrip()
            peer = {"peer": session.peer_address}
            self._refused.refuse("session", reason.value, detail, about=lambda: peer)
        else:
            _log.debug("session with %s ended: %s", session.peer_address, reason.value)

    def _arrives(self, queue: Queue, packet: bytes) -> bytes | MessageClass:
        everybody = self._manager.guard.open_to_everybody(queue)
        target = destination_of(queue, everybody=everybody)
        try:
            return self._turns.at_once(lambda: self.session_context.pipeline.judge(packet, target))
        except KeyNeeded:  # its sender gets the error and can retry
            return MessageClass.NACK_BAD_ENCRYPTION
        except GroupsNeeded:
            return MessageClass.NACK_ACCESS_DENIED

    def _message_refused(self, refusal: Refusal, receiver: Receiver) -> None:
        about = partial(about_message, receiver, self._manager.guid)
        if refusal is Refusal.DUPLICATE:
            self._refused.repeat(receiver.describe())
            self._manager.message_log.duplicate(receiver.describe(), about)
        else:
            self._refused.refuse("message", refusal.value, receiver.describe(), about=about)

    def _rejected(self, ack: FinalAck) -> None:
        """Count and log that the receiver has rejected a transactional message."""
        reason = name_of(ack.message_class)
        identifier = ack.sequence_timestamp << 32 | ack.sequence_ordinal

        detail = f"{{{ack.source}}}\\{ack.message_id}"

        def about() -> Mapping[str, str]:
            for queue in self._manager.outgoing():
                sequence = queue.core.sequence
                if sequence is not None and identifier in (sequence.identifier, sequence.alias):
                    peer = ", ".join(queue.next_hops)
                    return {"message_id": detail, "queue": queue.name, "peer": peer}
            return {"message_id": detail}

        self._refused.refuse("sent message", reason, detail, about=about)

    # -------------------------------------------------------------------------------- outgoing queues

    def channel_of(self, queue: OutgoingQueue) -> OutgoingChannel:
        """Return the channel of an outgoing queue, see `server.outgoing.Carrier`."""
        channel = self._channels.get(queue)
        if channel is None:
            protect = OutgoingProtection(
                queue, self._sent_protection, self._clock.wall_s, partial(self._not_encrypted, queue)
            )
            channel = self._channels[queue] = OutgoingChannel(queue, self._of_channels, protect)
        return channel

    def _not_encrypted(self, queue: OutgoingQueue, failure: Failure, description: str) -> None:
        def about() -> Mapping[str, str]:
            message_id = description.partition(" ")[0]
            return {"queue": queue.name, "peer": ", ".join(queue.next_hops), "message_id": message_id}

        self._refused.refuse("message", failure.value, description, about=about)

    def removed(self, queue: OutgoingQueue) -> None:
        """Drop all references to a deleted outgoing queue. Later messages look up a new queue of the same
        name.
        """
        channel = self._channels.pop(queue, None)
        if channel is not None:
            self.endpoint.transfer.withdraw(channel)
        self.sequences.forget(queue.core)
        self.session_context.forget_routes()

    def _has_route(self, guid: UUID) -> bool:
        return any(hop.host for hop in self._routing.router.hops("", guid))

    def _rerouted(self) -> None:
        self.session_context.forget_routes()
        self.endpoint.transfer.routes_changed(self._clock.monotonic())
        self._touch()

    def _short(self, short: bool) -> None:
        self.endpoint.shortage(short, self._clock.monotonic())
        self._touch()

    # -------------------------------------------------------------------------------- timers

    def next_deadline(self) -> float | None:
        """Return the time of the next deadline."""
        return self.endpoint.next_deadline()

    def expire(self, now: float) -> None:
        """Handle all deadlines that are due."""
        self.endpoint.expire(now)

    async def stop(self) -> None:
        for stop in self._stop_accepting:
            stop()
        for transport in self._pings:
            transport.close()
        self._network.close()
        self.endpoint.stop(self._clock.monotonic())


def _order_acks(
    config: Config,
    manager: QueueManager,
    store: Store,
    clock: SystemClock,
    has_route: Callable[[UUID], bool],
    peers: Peers,
) -> OrderAcks:
    """Return the object that acknowledges incoming transactional streams, with the streams in the state in
    which the server last stopped.
    """
    streams = InStreams(manager.ledger, config.limits.streams, group=address_group, vouches=peers.vouches)
    load_streams(streams, store.tables.scan, manager.report_corrupt)
    send = manager.ack_policy.send_away
    acks = OrderAcks(
        manager.guid,
        manager.ledger,
        streams,
        send,
        clock.monotonic,
        _timers(config),
        has_route,
        manager.faults,
        peers,
    )
    manager.incoming.register(final_acks=acks.final)
    return acks


def _timers(config: Config) -> Timers:
    return Timers(
        session_init=config.limits.handshake_timeout,
        session_cleanup=config.mqqb.idle_timeout or (_ROUTER_IDLE if config.mqqb.router else _IDLE),
        retry_connect=config.mqqb.retry_interval,
        retry_max=config.mqqb.retry_max,
        ack_wait=config.mqqb.ack_timeout,
        connect=config.mqqb.connect_timeout,
        resend=_ladder(config),
        order_ack=config.mqqb.order_ack_delay,
        order_ack_max=config.mqqb.order_ack_max,
        stream_lifetime=config.mqqb.stream_lifetime,
    )


def _ladder(config: Config) -> tuple[float, ...]:
    """Return the times before the successive resends (ResendTimerTable, QB-128), in seconds."""
    mqqb = config.mqqb
    steps = (mqqb.resend_short, mqqb.resend_medium, mqqb.resend_long)
    return (*(step for step in steps for _ in range(3)), mqqb.resend_final)


def _limits(config: Config) -> Limits:
    return Limits(
        sessions=config.listen.mqqb.max_connections,
        sessions_per_address=config.listen.mqqb.max_connections_per_address,
        slow_reader=config.limits.slow_reader_timeout,
        slow_writer=config.limits.slow_writer_timeout,
        session_keys=config.limits.session_keys,
        pings_per_address=config.limits.pings_per_address,
        ping_ports=frozenset((config.mqqb.peer_ping_port or _PING_PORT,)),
        dials=config.limits.dials,
        streams_per_address=config.limits.streams_per_address,
    )


def _own_addresses(config: Config) -> Callable[[str], bool]:
    """Return a function that tests whether a connection to an address would reach this server itself. The
    function always returns False if this server connects to other queue managers at a port other than its
    own.
    """
    if config.mqqb.peer_port not in (0, config.listen.mqqb.port):
        return lambda _: False
    return is_own_address(config.listen.mqqb.host, config.server.advertised_address)
