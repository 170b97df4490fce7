"""Administration acknowledgments: which, when, and what they look like (X-67 … X-69, MS-MQQB 3.1.7.15)."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

import pytest

from msmq_fast.packet import Message
from msmq_fast.packet.fields import Hosts, QueueField, field_name
from msmq_fast.packet.names import FormatName, parse_format_name
from msmq_fast.packet.user import SecurityHeader
from msmq_fast.protocol.properties import Acknowledge, Journal
from msmq_fast.qm.outgoing.acknowledgment import acknowledgment
from msmq_fast.qm.queues.queue import QueueKind
from msmq_fast.store import decode
from msmq_fast.store.schema import EventKind, Table
from tests.qm.acknowledgments import HERE, answers
from tests.support.clocks import WALL
from tests.support.mqqb import wire
from tests.support.worlds.queue_manager import World

THERE = r"DIRECT=TCP:10.9.9.9\private$\admin"
ELSEWHERE = r"DIRECT=OS:elsewhere\private$\orders"
ALL = 15


@dataclass(frozen=True)
class Cause:
    """What happens to a message, the wish that it concerns, the class of the answer."""

    name: str
    act: Callable[[World], None]
    wish: int
    answer: int
    body: bool
    values: tuple[tuple[str, int], ...] = ()
    queue: str = "orders"


def _receive(world: World) -> None:
    world.receive()


def _purge(name: str) -> Callable[[World], None]:
    def purge(world: World) -> None:
        world.finish(world.manager.purge(world.manager.find(name)))

    return purge


def _delete(world: World) -> None:
    world.finish(world.manager.delete_queue("orders"))


def _wait(world: World) -> None:
    world.advance(20)


def _subscribe(world: World) -> None:
    handle = world.reader()
    got: list[int] = []
    subscription = handle.subscribe(
        lambda messages: got.extend(m.lookup_id for m in messages), 10, acknowledge=True
    )
    world.run()
    world.finish(subscription.ack(got))


# AckPosArrival 1, AckPosReceive 2, AckNegArrival 4, AckNegReceive 8; rows of 1.13.1 that a message in a queue
# can come to.
CAUSES = (
    Cause("arrival", lambda world: None, 1, 0x0002, False),
    Cause("receive", _receive, 2, 0x4000, False),
    Cause("acknowledged delivery", _subscribe, 2, 0x4000, False),
    Cause("queue deleted", _delete, 8, 0xC000, True),
    Cause("queue purged", _purge("orders"), 8, 0xC001, True),
    Cause("not received in time", _wait, 8, 0xC002, True, (("time_to_be_received", 10),)),
    Cause("purged before it was sent", _purge(ELSEWHERE), 4, 0x8001, True, (), ELSEWHERE),
    Cause("not sent in time", _wait, 4, 0x8002, True, (("time_to_reach_queue", 10),), ELSEWHERE),
    Cause("not received while it waited", _wait, 8, 0xC003, True, (("time_to_be_received", 10),), ELSEWHERE),
)


@pytest.fixture
def world() -> World:
    return ready()


def ready(**settings: object) -> World:
    world = World(**settings)
    world.create("orders")
    world.create("admin")
    return world


def send(world: World, cause: Cause, admin: str, delivery: int, wishes: int, **more: object) -> int:
    values: dict[str, object] = dict(cause.values) | more
    if wishes:
        values |= {"acknowledge": Acknowledge(wishes), "admin_queue": parse_format_name(admin)}
    return world.send(b"the body", cause.queue, delivery=delivery, **values)


@pytest.mark.parametrize("admin", [HERE, THERE])
@pytest.mark.parametrize("delivery", [0, 1])
@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)
@pytest.mark.rule(
    "X-67", "X-68", "DM-064", "DM-092", "DM-202", "DM-203", "DM-213", "QB-357", "QB-359", "QB-360", "QB-391"
)
def test_every_cause_answers_the_wishes_that_it_concerns(cause: Cause, delivery: int, admin: str) -> None:
    for wishes in range(16):
        world = ready()
        sent = send(world, cause, admin, delivery, wishes)
        cause.act(world)
        # Arriving, and being read, concern their wishes whatever happens later.
        due = [0x0002] if wishes & 1 and cause.queue == "orders" else []
        if wishes & cause.wish and cause.answer != 0x0002:
            due.append(cause.answer)
        found = answers(world, admin)
        assert [message.message_class for message in found] == due, wishes
        for message in found:
            body = b"the body" if message.message_class & 0x8000 else b""
            assert message.body == body
            assert message.delivery == delivery
            assert message.acknowledge == Acknowledge.NONE
            assert message.journal == Journal.NONE
        assert sent


@pytest.mark.parametrize("cause", [c for c in CAUSES if c.answer & 0x8000], ids=lambda cause: cause.name)
@pytest.mark.rule("X-67", "X-69", "REC-07")
def test_packets_that_are_on_the_disk_only_are_answered_too(cause: Cause) -> None:
    world = ready()
    for _ in range(3):
        send(world, cause, HERE, 1, ALL & ~1)
    world.crash()
    cause.act(world)
    assert [message.message_class for message in answers(world, HERE)] == [cause.answer] * 3
    world.crash()
    assert [message.message_class for message in answers(world, HERE)] == [cause.answer] * 3


@pytest.mark.rule("QB-383")
def test_without_an_admin_queue_nothing_is_sent(world: World) -> None:
    handle = world.sender()
    world.finish(handle.send(Message(body=b"x", acknowledge=Acknowledge(ALL), delivery=1)))  # type: ignore[arg-type]
    world.receive()
    assert world.manager.ack_policy.acknowledged.total() == 0
    assert answers(world, HERE) == []


@pytest.mark.rule("X-68", "QB-392")
@pytest.mark.parametrize(
    "admin",
    [
        r"DIRECT=OS:HOST\private$\nothing",
        "PUBLIC=4f1d3c2b-8a6e-4d4f-9c01-020304050607",
        r"DIRECT=OS:HOST\private$\order_queue$",
        r"DIRECT=OS:HOST\private$\transactional",
    ],
)
def test_an_acknowledgment_that_cannot_be_delivered_is_discarded(world: World, admin: str) -> None:
    world.create("transactional", transactional=True)
    world.send(b"x", acknowledge=Acknowledge(ALL), admin_queue=parse_format_name(admin))
    assert world.receive() == b"x"
    ack_policy = world.manager.ack_policy
    if "PUBLIC" not in admin:
        assert (ack_policy.discarded, ack_policy.acknowledged.total()) == (2, 0)
    assert all(
        queue.messages == 0 for queue in world.manager.queues() if queue.kind is not QueueKind.OUTGOING
    )


@pytest.mark.rule("X-68")
def test_an_acknowledgment_asks_for_nothing(world: World) -> None:
    """Whatever its original asked for."""
    journal = Journal.JOURNAL | Journal.DEADLETTER
    world.send(b"x", acknowledge=Acknowledge(ALL), admin_queue=parse_format_name(HERE), journal=journal)
    assert world.receive() == b"x"
    nothing = (Acknowledge.NONE, Journal.NONE)
    assert [
        (answer.message_class, answer.acknowledge, answer.journal) for answer in answers(world, HERE)
    ] == [
        (0x0002, *nothing),
        (0x4000, *nothing),
    ]
    assert world.bodies(r".\system$;JOURNAL") == [b"x"]


@pytest.mark.rule("X-68")
def test_an_admin_queue_without_room_discards_the_acknowledgment(world: World) -> None:
    world.finish(world.manager.set_properties(world.manager.find("admin"), quota_kb=0))
    world.send(b"x", acknowledge=Acknowledge(ALL), admin_queue=parse_format_name(HERE))
    assert world.receive() == b"x"
    assert world.manager.ack_policy.discarded == 2


def test_the_queue_itself_can_be_the_admin_queue(world: World) -> None:
    name = parse_format_name(r"DIRECT=OS:HOST\private$\orders")
    for _ in range(50):
        world.send(b"x", acknowledge=Acknowledge.POSITIVE_ARRIVAL, admin_queue=name)
    queue = world.manager.find("orders")
    assert queue.messages == 100
    assert [world.receive() for _ in range(100)] == [b"x", b""] * 50


@pytest.mark.rule("QB-294")
@pytest.mark.parametrize("delivery", [0, 1])
def test_no_acknowledgments_of_messages_to_internal_queues(world: World, delivery: int) -> None:
    name = r"DIRECT=OS:elsewhere\private$\order_queue$"
    world.send(
        b"x",
        name,
        delivery=delivery,
        acknowledge=Acknowledge(ALL),
        admin_queue=parse_format_name(HERE),
        journal=Journal.DEADLETTER,
        time_to_reach_queue=10,
    )
    world.advance(20)
    assert answers(world, HERE) == []
    assert world.manager.find(r".\system$;DEADLETTER").messages == 0


# ---- what they look like


def expected(world: World, original: Message, message_class: int, ordinal: int, body: bytes) -> bytes:
    """The packet of an acknowledgment to `THERE`, written by hand from 3.1.7.15."""
    flags = (7 << 10) | (7 << 16) | (1 << 21) | (int(original.delivery) << 5)
    user = world.manager.guid.bytes_le + bytes(16)
    user += struct.pack("<IIII", wire.NEVER, world.manager.ledger.now_s, ordinal, flags)
    assert original.destination is not None
    user += wire.direct(r"TCP:10.9.9.9\private$\admin") + wire.direct(original.destination.text)
    properties = struct.pack(
        "<BBH16sIIIIIIIII",
        0,
        0,
        message_class,
        original.source_machine.bytes_le,
        original.message_id,
        0,
        0,
        len(body),
        len(body),
        0,
        0x8004,
        0x6801,
        0,
    )
    properties += body + bytes(-(len(body)) % 4)
    packet = user + properties
    return wire.base(3, 16 + len(packet)) + packet


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)
@pytest.mark.parametrize("delivery", [0, 1])
@pytest.mark.rule("QB-358", "QB-385", "QB-387", "QB-388", "QB-389", "QB-390", "QB-391")
def test_the_packet_byte_for_byte(world: World, cause: Cause, delivery: int) -> None:
    send(world, cause, THERE, delivery, cause.wish, label="not copied", body_type=8, app_specific=7)
    original = first(world, cause.queue) if cause.answer != 0x0002 else None
    cause.act(world)
    if original is None:
        original = first(world, cause.queue)
    core = world.manager.find(THERE).core
    (taken,) = core.take(10, 1 << 30, 77)
    ordinal = Message.from_packet(taken.packet).message_id
    assert ordinal == original.message_id + 1
    body = b"the body" if cause.body else b""
    assert taken.packet == expected(world, original, cause.answer, ordinal, body)


def first(world: World, name: str) -> Message:
    core = world.manager.find(name).core
    (taken,) = core.take(1, 1 << 30, 77)
    core.release(array("Q", [taken.lookup_id]), 77)
    return Message.from_packet(taken.packet)


US, SOURCE, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)


@pytest.mark.rule("QB-386", "QB-388")
@pytest.mark.parametrize(
    ("field", "name"),
    [
        (QueueField(2, struct.pack("<I", 16)), f"PRIVATE={SOURCE}\\00000010"),
        (QueueField(3, struct.pack("<I", 16)), f"PRIVATE={US}\\00000010"),
        (QueueField(5, OTHER.bytes_le), f"PUBLIC={OTHER}"),
        (QueueField(6, OTHER.bytes_le + struct.pack("<I", 16)), f"PRIVATE={OTHER}\\00000010"),
        (QueueField(7, wire.direct("OS:x\\private$\\a")), "DIRECT=OS:x\\private$\\a"),
    ],
)
def test_where_an_acknowledgment_goes(field: QueueField, name: str) -> None:
    """Administration queue types 2, 3, 5, 6 and 7; the same kinds of names for the original destination."""
    admin = field_name(field, Hosts(SOURCE, US))
    for destination in (f"PRIVATE={US}\\00000011", f"PUBLIC={OTHER}", "DIRECT=OS:us\\private$\\q"):
        original = Message(
            destination=parse_format_name(destination), admin_queue=admin, source_machine=SOURCE
        )
        answer = Message.from_packet(acknowledgment(original, 0xC001, US).to_packet())
        assert str(answer.destination) == name
        assert str(answer.response_queue) == destination


@pytest.mark.rule("QB-391")
def test_the_body_of_an_encrypted_message_does_not_come_back() -> None:
    admin: FormatName = parse_format_name(THERE)
    plain = Message(body=b"secret", admin_queue=admin, destination=parse_format_name(ELSEWHERE))
    assert acknowledgment(plain, 0xC001, US).body == b"secret"
    assert acknowledgment(plain, 0x4000, US).body == b""
    sealed = Message(
        body=b"secret",
        admin_queue=admin,
        destination=plain.destination,
        security=SecurityHeader(encrypted=True),
    )
    assert acknowledgment(sealed, 0xC001, US).body == b""
    opened = Message(body=b"secret", admin_queue=admin, destination=plain.destination, privacy_level=1)
    assert acknowledgment(opened, 0xC001, US).body == b""


def test_the_feed_tells_of_acknowledgments(world: World) -> None:
    queue = world.manager.find("orders")
    world.send(b"x", acknowledge=Acknowledge(ALL), admin_queue=parse_format_name(HERE))
    world.send(b"y", acknowledge=Acknowledge(ALL), admin_queue=parse_format_name(HERE))
    world.receive()
    world.finish(world.manager.purge(queue))
    events = [
        (event.kind, event.message_class)
        for key, value in sorted(world.writer.tables.tables[Table.FEED].items())
        for event in decode.feed(key, value)
        if event.queue == queue.ordinal
    ]
    arrival = [(EventKind.ARRIVED, 0), (EventKind.ACKED, 0x0002)]
    assert events == [
        (EventKind.QUEUE_CREATED, 0),
        *arrival,
        *arrival,
        (EventKind.ACKED, 0x4000),
        (EventKind.RECEIVED, 0),
        (EventKind.NACKED, 0xC001),
        (EventKind.PURGED, 0),
    ]
    assert world.manager.ack_policy.acknowledged == {0x0002: 2, 0x4000: 1, 0xC001: 1}
    assert world.manager.ledger.now_s == WALL
