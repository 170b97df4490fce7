"""Another queue manager that sends transactional messages to a host of the matrix."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

from msmq_fast._native.instream import InStreams
from msmq_fast.mqqb.destination import destinations
from msmq_fast.mqqb.history import load_history
from msmq_fast.mqqb.orderack import OrderAcks, load_streams
from msmq_fast.mqqb.peers import Peers
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.sessioncontext import SessionContext
from msmq_fast.protocol.errors import MessageStorageFailed
from msmq_fast.qm.manager import QueueManager
from msmq_fast.store.completion import Completion
from tests.faults.matrix.host import Host
from tests.support.mqqb import wire

ADDRESS = "10.0.0.9"
STRANGER = UUID(int=0x1234)
QUEUE = r"TCP:10.0.0.7\private$\orders"
JOURNAL = 0x02  # UserHeader.Flags.JP, in the second byte


def context(host: Host) -> SessionContext:
    """What MS-MQQB keeps of this life of the host."""
    known: dict[QueueManager, SessionContext] = host.__dict__.setdefault("nodes", {})
    manager = host.manager
    if manager not in known:
        peers = Peers(manager.guid)
        streams = InStreams(manager.ledger, vouches=peers.vouches)
        load_streams(streams, host.store.tables.scan, manager.report_corrupt)
        send = manager.ack_policy.send_away
        acks = OrderAcks(manager.guid, manager.ledger, streams, send, host.clock.monotonic, peers=peers)
        manager.incoming.register(final_acks=acks.final)
        known[manager] = SessionContext(
            manager.guid,
            manager.ledger,
            destinations(manager.find_field, lambda _queue: True),
            nack=manager.ack_policy.reject,
            order_acks=acks,
            peers=peers,
            history=load_history(host.store, bytes),
        )
    return known[manager]


def arrive(
    number: int, body: str, *, journal: bool = False, late: bool = False
) -> Callable[[Host], Completion[Any]]:
    """Message `number` of the one stream, on a session of its own; done when it is acknowledged there."""
    return _on_a_session(lambda host: _packet(host, number, body, journal=journal, late=late))


def bring(ordinal: int, body: str, **values: Any) -> Callable[[Host], Completion[Any]]:
    """A recoverable message outside of any stream, the same packet each time."""
    packet = wire.message(
        ordinal, queue=QUEUE, body=body.encode(), source=STRANGER, recoverable=True, **values
    )
    return _on_a_session(lambda _host: packet)


def _on_a_session(packet: Callable[[Host], bytes]) -> Callable[[Host], Completion[Any]]:
    def act(host: Host) -> Completion[Any]:
        now = host.clock.monotonic()
        done: Completion[Any] = Completion()

        def wake(session: Session) -> None:
            session.pump(now)
            if not session.alive and not done.done:
                done.fail(MessageStorageFailed("the session was closed"))
            elif any(wire.read_header(packet)[1] for packet in session.data_to_send()) and not done.done:
                done.resolve(None)

        session = Session(context(host), ADDRESS, now, initiator=False, wake=wake)
        session.receive(wire.establish(client=STRANGER) + wire.parameters(), now)
        session.data_to_send()
        session.receive(packet(host), now)
        wake(session)
        return done

    return act


def _packet(host: Host, number: int, body: str, *, journal: bool, late: bool) -> bytes:
    sent = host.clock.wall // 1_000_000
    packet = bytearray(
        wire.message(
            number,
            queue=QUEUE,
            body=body.encode(),
            source=STRANGER,
            sent_time=sent - 100 if late else sent,
            reach=5 if late else wire.NEVER,
            transaction=struct.pack("<IIIII", 0, 1, 7, number, number - 1),
        )
    )
    packet[61] |= JOURNAL if journal else 0
    return bytes(packet)


def numbers(host: Host) -> list[str]:
    """How far the streams are, by what is stored."""
    streams = InStreams(host.manager.ledger)
    load_streams(streams, host.store.tables.scan, host.manager.report_corrupt)
    return [str(stream.number) for stream in streams]
