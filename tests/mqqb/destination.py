"""A session that receives transactional messages and answers them."""

from __future__ import annotations

import struct
from uuid import UUID

from msmq_fast._native.history import DuplicateHistory
from msmq_fast._native.instream import InStreams
from msmq_fast.mqqb.destination import destinations
from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.mqqb.orderack import OrderAcks, load_streams
from msmq_fast.mqqb.peers import Peers
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.sessioncontext import SessionContext
from msmq_fast.packet import Message
from msmq_fast.packet.acks import FinalAck
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.qm.manager import QueueManager
from tests.support.clocks import WALL
from tests.support.mqqb import wire
from tests.support.worlds.queue_manager import World

ADDRESS = "10.0.0.9"
ORDER_QUEUE = rf"DIRECT=TCP:{ADDRESS}\PRIVATE$\order_queue$"
NEGATIVE, POSITIVE = 0x01, 0x02  # JN and JP in the second byte of UserHeader.Flags


class Destination(World):
    """A queue manager with a session to another one; without `everybody` nobody may send there."""

    def __init__(self, *, everybody: bool = True, hooks: Hooks | None = None) -> None:
        self.everybody = everybody
        self.hooks = hooks or Hooks()
        super().__init__()

    def _begin(self) -> None:
        manager = self.manager = QueueManager(self.store, self.settings, self.clock, self.random)
        self.writer.before_seal.connect(manager.before_submit)
        manager.start()
        peers = Peers(manager.guid)
        streams = InStreams(manager.ledger, vouches=peers.vouches)
        load_streams(streams, self.store.tables.scan, manager.report_corrupt)
        acks = OrderAcks(
            manager.guid,
            manager.ledger,
            streams,
            manager.ack_policy.send_away,
            self.clock.monotonic,
            peers=peers,
        )
        manager.incoming.register(final_acks=acks.final)
        manager.incoming.register(transfers=acks.transfers)
        self.session_context = SessionContext(
            manager.guid,
            manager.ledger,
            destinations(manager.find_field, lambda _queue: self.everybody),
            history=DuplicateHistory(),
            nack=manager.ack_policy.reject,
            order_acks=acks,
            peers=peers,
            hooks=self.hooks,
        )
        self.run()
        self.session = Session(self.session_context, ADDRESS, self.clock.seconds, initiator=False)
        self.take(wire.establish(server=manager.guid) + wire.parameters())

    def take(self, *packets: bytes) -> None:
        for packet in packets:
            self.session.receive(packet, self.clock.seconds)

    def answers(self, name: str = ORDER_QUEUE) -> list[FinalAck]:
        """The FinalAcks that wait in the outgoing queue to the sender."""
        found = self.leaving(name)
        return [
            FinalAck.decode_body(message.body, message.message_class)
            for message in found
            if message.message_class != MessageClass.ORDER_ACK
        ]

    def leaving(self, name: str = ORDER_QUEUE) -> list[Message]:
        """Everything that waits there."""
        if not any(queue.name == name for queue in self.manager.outgoing()):
            return []
        found: list[Message] = []
        queue = self.manager.find(name)
        for key in list(queue.core.positions.keys()):
            queue.core.peek(key, lambda received, _status: found.append(Message.from_packet(received.packet)))
            self.store.reader.complete()
        return found


def tx(
    number: int,
    *,
    journal: int = POSITIVE | NEGATIVE,
    flags: int = 0,
    source: UUID = wire.PEER,
    received: int = wire.NEVER,
    previous: int | None = None,
    **more: object,
) -> bytes:
    before = number - 1 if previous is None else previous
    place = struct.pack("<IIIII", flags, 1, 7, number, before)
    packet = bytearray(
        wire.message(
            100 + number,
            queue="TCP:10.0.0.7\\private$\\orders",
            transaction=place,
            source=source,
            sent_time=WALL,
            received=received,
            **more,  # type: ignore[arg-type]
        )
    )
    packet[61] |= journal
    return bytes(packet)
