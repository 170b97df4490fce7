"""Hostile names in every name field of a packet, whatever becomes of the message: the rest goes on as before.

The matrix runs in virtual time against one queue manager that also routes. After each packet messages flow
both ways, deadlines fire, a queue manager that is new gets an OrderAck; at the end a clean stop and a restart
bring back the same queues.
"""

from __future__ import annotations

import json
import struct
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
from tests.mqqb.test_streams import header
from tests.mqqb.test_trace import traced
from tests.support.clocks import WALL
from tests.support.mqqb import wire

HUB, PEER, STRANGER = "10.0.0.1", "10.0.0.2", "10.0.0.99"
IDLE = 30.0

# Each names the queue `private$\\inbox`, so that what is delivered in spite of it goes where others are read.
NAMES = {
    "high surrogate": "OS:h\ud800\\private$\\inbox",
    "low surrogate": "OS:h\udc00\\private$\\inbox",
    "pair in the wrong order": "OS:\udc00\ud800\\private$\\inbox",
    "surrogate as zone": "TCP:fe80::1%\ud800\\private$\\inbox",
    "text as zone": "TCP:fe80::1%a b<c>\\private$\\inbox",
    "long zone": "TCP:fe80::1%" + "z" * 300 + "\\private$\\inbox",
    "zone": "TCP:fe80::1%eth0\\private$\\inbox",
    "NUL": "OS:h\0\\private$\\inbox",
    "NUL behind": "OS:h\\private$\\inbox\0more",
    "control characters": "OS:h\x1b[2J\x07\\private$\\inbox",
    "lines": "OS:h\r\nERROR all is lost\\private$\\inbox",
    "right to left": "OS:h\u202e\\private$\\inbox",
    "letters that fold": "O\u017f:h\\private$\\inbox",
    "system queue by folding": "OS:h\\\u017fystem$;journal",
    "not ASCII": "OS:m\u00fcller\\private$\\inbox",
    "spaces": " OS: h \\private$\\inbox ",
    "comma": "OS:a,b\\private$\\inbox",
    "32 K host": "OS:" + "h" * 32_700 + "\\private$\\inbox",
    "32 K queue": "OS:h\\private$\\" + "q" * 32_700,
    "queue of 125": "OS:h\\private$\\" + "q" * 125,
    "backslashes": "OS:h" + "\\a" * 50,
    "label of 200": "OS:" + "h" * 200 + "\\private$\\inbox",
    "nothing": "",
    "no queue": "OS:h",
    "percent": "HTTP://h/msmq/private$/%00%0d%0a",
    "bracket": "HTTP://[fe80::1%\ud800]/msmq/private$/inbox",
}
GOOD = f"TCP:{PEER}\\private$\\told"
FIELDS = ("destination", "traced", "admin", "response", "destinations", "admins", "responses", "stream")
FATES = ("expired", "undeliverable", "delivered", "routed", "purged")


def listed(packet: bytes, name: str, place: int) -> bytes:
    """A packet with a MultiQueueFormatHeader; the name stands in one of its lists, before a good one."""
    trailer = b""
    for index, section in enumerate((0x0064, 0x00C8, 0x012C)):
        elements = b"".join(
            struct.pack("<H", 3) + (text.partition("\0")[0] + "\0").encode("utf-16-le", "surrogatepass")
            for text in ((name, GOOD) if index == place else ())
        )
        found = struct.pack("<IHHI", 12 + len(elements), section, 0, 2 * (index == place)) + elements
        trailer += found + bytes(-len(found) % 4)
    trailer += struct.pack("<HHI", 0x015E, 0, 0)
    (size,) = struct.unpack_from("<I", packet, 8)
    packet = packet[:8] + struct.pack("<I", size + len(trailer)) + packet[12:]
    (flags,) = struct.unpack_from("<I", packet, 60)
    return packet[:60] + struct.pack("<I", flags | 1 << 23) + packet[64:] + trailer


def cell(field: str, name: str, fate: str, number: int, now: int, elsewhere: UUID) -> bytes:
    """The packet of one cell of the matrix. What is to be passed on goes to the queue manager `elsewhere`."""
    queue = "OS:hub\\private$\\none" if fate == "undeliverable" else "OS:hub\\private$\\inbox"
    if field in ("destination", "traced", "stream"):
        queue = name
    packet = wire.message(
        number,
        queue=queue,
        recoverable=True,
        address=elsewhere if fate == "routed" else wire.NULL,
        reach=1 if fate == "expired" else wire.NEVER,
        sent_time=now - 100 if fate == "expired" else now,
        ack_flags=0x0F,
        admin=name if field == "admin" else GOOD,
        response=name if field == "response" else None,
        transaction=header(1, 0, number) if field == "stream" else b"",
    )
    (flags,) = struct.unpack_from("<I", packet, 60)
    packet = packet[:60] + struct.pack("<I", flags | 0x0300) + packet[64:]  # dead letter and journal
    if field in ("destinations", "admins", "responses"):
        return listed(packet, name, ("destinations", "admins", "responses").index(field))
    return traced(packet) if field == "traced" else packet


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
        before = self.hub.node.order_acks.order_acks  # type: ignore[union-attr]
        session.receive(
            wire.message(
                number, queue="OS:hub\\private$\\stream", source=guid, transaction=header(1, 0, number)
            ),
            self.hub.now,
        )
        self.network.pass_time(2)
        assert self.hub.node.order_acks.order_acks == before + 1  # type: ignore[union-attr]
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
