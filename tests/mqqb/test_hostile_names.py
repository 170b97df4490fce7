"""Hostile names in every name field of a packet, whatever becomes of the message: the rest goes on as before.

The matrix runs in virtual time against one queue manager that also routes. After each packet messages flow
both ways, deadlines fire, a queue manager that is new gets an OrderAck; at the end a clean stop and a restart
bring back the same queues.
"""

from __future__ import annotations

import json
from itertools import count
from uuid import UUID

import pytest

from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.trace import Reports
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.qm.access import Access
from msmq_fast.qm.transactions.transaction import State
from tests.mqqb.stations import Network
from tests.support.clocks import WALL
from tests.support.hostile.names import FATES, FIELDS, HUB, NAMES, PEER, STRANGER, cell
from tests.support.mqqb import wire
from tests.support.mqqb.headers import header

IDLE = 30.0


class Scene:
    """The hub, a peer of good will, and a session of a stranger."""

    def __init__(self) -> None:
        self.network = Network()
        self.peer = self.network.add("PEER", PEER)
        self.told, self.news = self.peer.make("told"), self.peer.make("news")
        self.reports: list[Message] = []
        self.hub = self.network.add(
            "HUB",
            HUB,
            routes=True,
            acknowledges=True,
            trace=Reports(lambda _, report: self.reports.append(report), lambda: WALL).arrived,
            insecure_nacks=True,
            transaction_idle=IDLE,
        )
        self.inbox, self.outside = self.hub.make("inbox"), self.hub.make("outside")
        self.stream = self.hub.make("stream", transactional=True)
        self._numbers = count(1)
        self.connect()

    def connect(self) -> None:
        self.session = self.hub.endpoint.accept(STRANGER, self.hub.now)
        self.session.receive(wire.establish() + wire.parameters(), self.hub.now)

    def send(self, field: str, name: str, fate: str) -> None:
        """The packet of one cell of the matrix, and what becomes of it."""
        now, number = self.hub.manager.ledger.now_s, next(self._numbers)
        packet = cell(field, name, fate, number, now, self.peer.manager.guid)
        self.session.receive(packet, self.hub.now)
        self.network.settle()
        assert self.session.reason is None
        if fate == "purged":
            self.hub.finish(self.hub.manager.purge(self.inbox))
        else:
            self.show(self.hub.read(self.inbox))
        self.network.settle()

    @staticmethod
    def show(messages: list[Message]) -> None:
        """What programs and operators are told of messages can be written everywhere."""
        for message in messages:
            names = [message.destination, message.admin_queue, message.response_queue]
            names += [*message.destinations, *message.admin_queues, *message.response_queues]
            for name in names:
                assert name is None or str(name).isprintable()

    def check(self) -> None:
        """Everything else goes on."""
        self._messages_flow()
        self._deadlines_fire()
        self._a_newcomer_is_acknowledged()
        for queue in self.hub.manager.queues():
            json.dumps(queue.name, ensure_ascii=False).encode()
        for queue in self.hub.manager.outgoing():
            assert parse_format_name(queue.name) == queue.destination

    def _messages_flow(self) -> None:
        self.hub.post(f"DIRECT=TCP:{PEER}\\private$\\news", b"from the hub", delivery=1)
        self.peer.post(f"DIRECT=TCP:{HUB}\\private$\\outside", b"to the hub", delivery=1)
        self.network.settle()
        assert [message.body for message in self.peer.read(self.news)] == [b"from the hub"]
        assert [message.body for message in self.hub.read(self.outside)] == [b"to the hub"]

    def _deadlines_fire(self) -> None:
        transaction = self.hub.manager.transactions.begin()
        handle = self.hub.manager.open(self.outside.name, Access.SEND)
        handle.send(Message(body=b"short", time_to_be_received=5, sent_time=WALL))
        handle.close()
        self.hub.run()
        assert self.outside.messages == 1
        self.network.pass_time(IDLE + 1)
        assert transaction.state is State.GONE
        assert self.outside.messages == 0

    def _a_newcomer_is_acknowledged(self) -> None:
        number = next(self._numbers)
        session = self.hub.endpoint.accept(f"10.0.1.{number}", self.hub.now)
        guid = UUID(int=0x50000 + number)
        session.receive(wire.establish(client=guid) + wire.parameters(), self.hub.now)
        before = self.hub.session_context.order_acks.order_acks  # type: ignore[union-attr]
        session.receive(
            wire.message(
                number, queue="OS:hub\\private$\\stream", source=guid, transaction=header(1, 0, number)
            ),
            self.hub.now,
        )
        self.network.pass_time(2)
        assert self.hub.session_context.order_acks.order_acks == before + 1  # type: ignore[union-attr]
        session.close(CloseReason.DISCONNECTED, self.hub.now)
        assert len(self.hub.read(self.stream)) == 1

    def restart(self) -> None:
        """A clean stop and a new start: the same queues with the same messages."""
        self.hub.post(self.outside.name, b"kept", delivery=1)
        self.hub.run()
        self.hub.manager.stop()
        self.hub.run()
        before = self.queues()
        self.hub.crash()
        assert self.queues() == before
        assert self.hub.bodies(self.outside.name) == [b"kept"]
        assert not self.hub.manager.damage

    def queues(self) -> set[str]:
        return {queue.name for queue in self.hub.manager.queues()}


@pytest.mark.parametrize("field", FIELDS)
def test_the_rest_goes_on_beside_every_hostile_name(field: str) -> None:
    scene = Scene()
    for fate in FATES:
        for name in NAMES.values():
            scene.send(field, name, fate)
    scene.check()
    scene.restart()


@pytest.mark.long(seconds=15)
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_the_rest_goes_on_after_each_packet(name: str) -> None:
    for field in FIELDS:
        scene = Scene()
        for fate in FATES:
            scene.send(field, name, fate)
            scene.check()
        scene.restart()
