"""A queue manager that sends transactional messages over sessions."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest

from msmq_fast.mqqb.channel import OutgoingChannel
from msmq_fast.mqqb.endpoint import Endpoint
from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.mqqb.peers import Peers
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.sessioncontext import SessionContext
from msmq_fast.mqqb.timers import Timers
from msmq_fast.mqqb.transfer import Connect
from msmq_fast.packet.message import Message
from msmq_fast.protocol.properties import Journal
from msmq_fast.qm.access import Access
from msmq_fast.qm.outgoing.resending import OutgoingSequences
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.transactions.transacted import TransactedQueue
from tests.support.clocks import WALL
from tests.support.mqqb import wire
from tests.support.worlds.channels import context
from tests.support.worlds.queue_manager import World, carry

NAME = r"DIRECT=TCP:10.0.0.8\private$\orders"
JOURNAL = r".\system$;JOURNAL"
DEADXACT = r".\system$;DEADXACT"
TRANSACTION = 0x00100000


class Sent:
    """What a packet says of its place, read by hand."""

    def __init__(self, packet: bytes) -> None:
        (flags,) = struct.unpack_from("<I", packet, 60)
        assert flags & TRANSACTION
        (count,) = struct.unpack_from("<H", packet, 64)
        at = 64 + (2 + count + 3) // 4 * 4
        assert (flags >> 10 & 7, flags >> 13 & 7, flags >> 16 & 7) == (7, 0, 0)
        self.flags, self.ordinal, self.stamp, self.number, self.previous = struct.unpack_from(
            "<5I", packet, at
        )
        self.message_id = wire.ordinal(packet)
        self.body = packet[-4:].rstrip(b"\0")

    @property
    def place(self) -> tuple[int, int]:
        return self.number, self.previous


class Sender:
    """A queue manager in memory that sends to a peer of whom the test writes every byte."""

    def __init__(self, **settings: object) -> None:
        self.world = World(**settings)
        self.identifiers = 0
        self.restart()

    def restart(self) -> None:
        """Everything above the queue manager, new."""
        self.effects: list[object] = []
        self.session: Session | None = None
        self.said = self.said_recoverable = 0
        manager = self.manager = self.world.manager
        self.sequences = OutgoingSequences(manager.guid, manager.ledger, Timers().resend)
        hooks = Hooks(sequences=self.sequences)
        self.session_context = SessionContext(
            manager.guid, manager.ledger, lambda kind, name: None, hooks=hooks, peers=self.peers()
        )
        self.endpoint = Endpoint(self.session_context, self.effects.append, self.now)
        of_channels = context(
            carrier=self.endpoint.transfer,
            unix_time=lambda: WALL,
            monotonic=lambda: self.now,
            sequences=self.sequences,
        )
        carry(manager, lambda queue: OutgoingChannel(queue, of_channels))
        self.world.run()

    def peers(self) -> Peers:
        return Peers(self.manager.guid)

    @property
    def now(self) -> float:
        return self.world.clock.seconds

    @property
    def queue(self) -> OutgoingQueue:
        queue = self.manager.find(NAME)
        assert isinstance(queue, OutgoingQueue)
        return queue

    def send(self, *bodies: bytes, name: str = NAME, **values: object) -> None:
        transaction = self.manager.transactions.begin()
        handle = self.manager.open(name, Access.SEND)
        for body in bodies:
            message = Message(body=body, **values)  # type: ignore[arg-type]
            TransactedQueue(handle, transaction).send(message)
        self.world.finish(transaction.commit())
        handle.close()

    def connect(self) -> Session:
        """The peer accepts the connection that the outgoing queue wants."""
        effect = self.effects.pop()
        assert isinstance(effect, Connect)
        assert self.effects == []
        session = self.session = self.endpoint.connected(effect.link, self.now)
        assert session is not None
        stamp = int(self.now * 1000)
        session.data_to_send()
        answer = wire.establish(client=self.manager.guid, server=wire.PEER, stamp=stamp)
        session.receive(answer + wire.parameters(), self.now)
        self.said = self.said_recoverable = 0
        return session

    def taken(self) -> list[Sent]:
        """The messages that the peer gets now."""
        self.world.run()
        assert self.session is not None
        packets = wire.split(b"".join(self.session.data_to_send()))
        return [Sent(packet) for packet in packets if wire.kind(packet) == "MSG"]

    def keep(self, count: int) -> None:
        """The peer says that it keeps the first `count` recoverable messages of the session."""
        assert self.session is not None
        header = wire.session_ack(
            count, 1, (1 << count) - 1, sent=self.said, recoverable=self.said_recoverable
        )
        self.session.receive(header, self.now)
        self.world.run()

    def order(self, sent: Sent, number: int | None = None) -> None:
        """An OrderAck for the sequence of a message, up to `number` or the message itself."""
        number = number or sent.number
        body = struct.pack("<IIII20x", sent.ordinal, sent.stamp, number, number - 1)
        self._say(0xFF, body, recoverable=False)

    def final(self, sent: Sent, kind: int = 0x4000, source: UUID | None = None) -> None:
        """A FinalAck for a message."""
        place = struct.pack("<IIII", sent.ordinal, sent.stamp, sent.number, sent.previous)
        identifier = (source or self.manager.guid).bytes_le + struct.pack("<I", sent.message_id)
        self._say(kind, place + identifier, recoverable=True)

    def _say(self, kind: int, body: bytes, *, recoverable: bool) -> None:
        if self.session is None or not self.session.alive:
            self._call()
        assert self.session is not None
        self.said += 1
        self.said_recoverable += recoverable
        self.identifiers += 1
        packet = wire.message(
            self.identifiers,
            queue=r"TCP:10.0.0.7\PRIVATE$\order_queue$",
            label="QM Ordering Ack",
            priority=0,
            recoverable=recoverable,
            message_class=kind,
            body=body,
            sent_time=self.manager.ledger.now_s,
        )
        self.session.receive(packet, self.now)
        self.world.run()
        self.session.pump(self.now)
        assert self.session.alive, self.session.detail

    def _call(self) -> None:
        """The peer opens a session."""
        session = self.session = self.endpoint.accept("10.0.0.8", self.now)
        session.receive(wire.establish() + wire.parameters(), self.now)
        session.data_to_send()
        self.said = self.said_recoverable = 0

    def advance(self, seconds: float) -> None:
        """Time passes, with everything that is due meanwhile."""
        end = self.now + seconds
        while True:
            dues = [self.endpoint.next_deadline()]
            if self.session is not None and self.session.alive:
                dues.append(self.session.next_deadline())
            due = min((due for due in dues if due is not None), default=end)
            self.world.advance(max(0.0, min(due, end) - self.now))
            if due > end:
                return
            if self.session is not None and self.session.alive:
                self.session.expire(self.now)
            self.endpoint.expire(self.now)
            self.world.run()


@pytest.fixture
def sender() -> Sender:
    return Sender()


@pytest.fixture
def asked(sender: Sender) -> Sender:
    """A message of whom the sender wants to know everything, acknowledged by its session and in order."""
    sender.send(b"1", journal=Journal.JOURNAL | Journal.DEADLETTER)
    sender.connect()
    (sender.asked,) = sender.taken()  # type: ignore[attr-defined]
    sender.keep(1)
    return sender
