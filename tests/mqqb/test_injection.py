"""Fault injection with sessions: an exception at any call inside a unit of the sender or of the receiver.

The session in which it happens ends, as in a server. Afterwards every message has arrived once, and memory
and store agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from msmq_fast.mqqb.channel import ChannelContext
from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.timers import Timers
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.properties import Acknowledge, Journal
from msmq_fast.qm.access import Access
from msmq_fast.qm.faults import Faults
from msmq_fast.qm.outgoing.resending import OutgoingSequences
from msmq_fast.qm.transactions.transacted import TransactedQueue
from tests.mqqb.stations import Network, Station
from tests.support.worlds.injection import Operation, failing, lines
from tests.support.worlds.queue_manager import World

HERE, THERE = "10.0.0.1", "10.0.0.2"
BODIES = [b"0", b"1"]
ASKING = {
    "journal": Journal.DEADLETTER | Journal.JOURNAL,
    "acknowledge": Acknowledge.POSITIVE_ARRIVAL | Acknowledge.NEGATIVE_RECEIVE,
    "admin_queue": parse_format_name(f"DIRECT=TCP:{HERE}\\private$\\admin"),
}


class Ordered(Station):
    """A station that also sends streams."""

    def hooks(self) -> Hooks:
        manager = self.manager
        self.sequences = OutgoingSequences(
            manager.guid, manager.ledger, Timers().resend, faults=manager.faults
        )
        return replace(super().hooks(), sequences=self.sequences)

    def connect(self) -> None:
        super().connect()
        self.manager.incoming.register(final_acks=self.session_context.order_acks.final)

    def channel_context(self) -> ChannelContext:
        return replace(super().channel_context(), sequences=self.sequences)


class Scene:
    """A sender and a receiver; `name` is the queue of the receiver that messages are for."""

    def __init__(self, name: str) -> None:
        self.network = Network()
        self.sender, self.receiver = self._add("SENDER", HERE), self._add("RECEIVER", THERE)
        self.sender.make("admin")
        self.receiver.make("plain", journaling=True)
        self.receiver.make("stream", transactional=True)
        self.sent: list[bytes] = []  # what the program of the sender was told is sent
        self.got: list[bytes] = []
        self.name, self.target = name, f"DIRECT=TCP:{THERE}\\private$\\{name}"

    def _add(self, name: str, address: str) -> Ordered:
        made = Ordered(name, address, self.network.clock, faults=Faults, acknowledges=True)
        self.network.stations[address] = made
        return made

    def send(self) -> None:
        """The messages go, and what answers them comes."""
        if self.name == "stream":
            transaction = self.sender.manager.transactions.begin()
            handle = TransactedQueue(self.sender.sender(self.target), transaction)
            for body in BODIES:
                handle.send(Message(body=body, **ASKING))  # type: ignore[arg-type]
            done = transaction.commit()
            self.sender.run()
            done.result()
        else:
            self.sender.post(self.target, *BODIES, delivery=1, **ASKING)
        self.sent = BODIES
        self.network.settle()
        self.network.pass_time(3)
        self.read()
        self.network.pass_time(3)

    def read(self) -> None:
        """A program of the receiver reads everything."""
        queue = self.receiver.manager.find(self.name)
        handle = self.receiver.manager.open(queue.name, Access.RECEIVE)
        try:
            while queue.messages:
                request = handle.receive(0)
                self.receiver.run()
                self.got.append(Message.from_packet(request.completion.result().packet).body)
        finally:
            handle.close()

    def arrived(self) -> str:
        """What is wrong after the sessions have ended and everything was sent again."""
        for _, _, pipe in self.network.pipes:
            for end in pipe.ends:
                end.close(CloseReason.DISCONNECTED, self.network.clock.monotonic())
        self.network.settle()
        self.network.pass_time(400)
        self.read()
        self.network.pass_time(400)
        waiting = {name: queue.messages for name, queue in self.sender.outgoing().items() if queue.messages}
        wrong = self.got != self.sent
        return f"arrived: {self.got}, still to be sent: {waiting}" if wrong or waiting else ""


def operation(title: str, name: str, station: Callable[[Scene], Station]) -> Operation:
    """`station` is the one with the fault."""
    scenes: dict[World, Scene] = {}

    def prepare() -> World:
        scene = Scene(name)
        scenes.clear()
        scenes[station(scene)] = scene
        return station(scene)

    return Operation(
        title, prepare, lambda world: scenes[world].send(), after=lambda world: scenes[world].arrived()
    )


OPERATIONS = (
    operation("send over a session", "plain", lambda scene: scene.sender),
    operation("receive over a session", "plain", lambda scene: scene.receiver),
    operation("send a stream", "stream", lambda scene: scene.sender),
    operation("receive a stream", "stream", lambda scene: scene.receiver),
)


# The others are in the test of every call, which is long.
@pytest.mark.parametrize("operation", OPERATIONS[1:3], ids=lambda operation: operation.name)
def test_a_fault_at_each_site(operation: Operation) -> None:
    found = failing(operation, everywhere=False)
    assert not found, lines(found)


@pytest.mark.long(seconds=60)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_fault_at_every_call(operation: Operation) -> None:
    found = failing(operation, everywhere=True)
    assert not found, lines(found)
