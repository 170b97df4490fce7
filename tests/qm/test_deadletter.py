"""Dead-letter queues: what goes there, when, atomic with its cause (X-20, X-21, X-62 … X-66)."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmq_fast._native.queuebase import Received
from msmq_fast.packet import Message
from msmq_fast.packet.user import TransactionHeader
from msmq_fast.protocol.errors import UnsupportedAccessMode
from msmq_fast.protocol.properties import Journal
from msmq_fast.qm.access import Access
from msmq_fast.store import decode
from msmq_fast.store.schema import EventKind, Table
from tests.support.clocks import WALL
from tests.support.mqqb import wire
from tests.support.worlds.arrivals import Inbound
from tests.support.worlds.queue_manager import World

DEADLETTER = r".\system$;DEADLETTER"
DEADXACT = r".\system$;DEADXACT"
FULL = -30792  # MDB_MAP_FULL
USER_FLAGS, DEAD_LETTER = 61, 0x01  # the second byte of UserHeader.Flags in a packet
ELSEWHERE = r"DIRECT=OS:elsewhere\private$\orders"


@pytest.fixture
def world() -> World:
    return World()


def first(world: World, name: str) -> Received:
    """The first message of a queue, left there."""
    handle = world.reader(name)
    received = world.finish(handle.receive(0, peek=True).completion)
    handle.close()
    assert isinstance(received, Received)
    return received


def reasons(world: World, name: str) -> list[int]:
    """Why each message is in a dead-letter queue, as stored beside it."""
    ordinal = world.manager.find(name).ordinal
    return [
        decode.position(value).reason
        for key, value in sorted(world.writer.tables.tables[Table.POSITION].items())
        if decode.position_key(key)[0] == ordinal
    ]


@pytest.mark.rule("X-20", "X-21")
def test_the_system_dead_letter_queues_have_their_names(world: World) -> None:
    guid = world.manager.guid
    for name in ("DEADLETTER", "DEADXACT"):
        queue = world.manager.find(rf".\system$;{name}")
        assert world.manager.find(rf"DIRECT=OS:HOST\SYSTEM$;{name}") is queue
        assert world.manager.find(f"MACHINE={guid};{name}") is queue
        assert queue.transactional is (name == "DEADXACT")
        with pytest.raises(UnsupportedAccessMode):
            world.manager.open(rf".\system$;{name}", Access.SEND)


@pytest.mark.parametrize("delivery", [0, 1])
@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.rule("X-62", "X-64", "X-66", "DM-213", "DU-16", "X-20")
def test_an_expired_message_goes_to_the_dead_letter_queue(world: World, delivery: int, on_disk: bool) -> None:
    world.create()
    world.send(b"unwanted", delivery=delivery, time_to_be_received=10)
    world.send(b"late", delivery=delivery, time_to_be_received=10, journal=Journal.DEADLETTER, label="l")
    if on_disk:
        if not delivery:
            return
        world.crash()
    world.advance(9)
    assert world.bodies(DEADLETTER) == []
    world.advance(2)
    assert world.bodies(DEADLETTER) == [b"late"]
    received = first(world, DEADLETTER)
    assert received.reason == 0xC002
    message = Message.from_packet(received.packet)
    assert (message.label, message.message_class, message.time_to_be_received) == ("l", 0, 10)
    assert world.manager.find("orders").messages == 0
    if delivery:
        assert reasons(world, DEADLETTER) == [0xC002]
        world.crash()
        assert first(world, DEADLETTER).reason == 0xC002
    world.advance(1000)
    assert world.bodies(DEADLETTER) == [b"late"]
    assert world.receive(DEADLETTER) == b"late"
    assert not world.writer.tables.tables[Table.CONTENT]


@pytest.mark.rule("X-66")
def test_dead_letters_keep_their_priority(world: World) -> None:
    world.create()
    for priority in (1, 6, 3):
        world.send(
            b"%d" % priority,
            delivery=1,
            priority=priority,
            time_to_be_received=10,
            journal=Journal.DEADLETTER,
        )
    world.advance(11)
    assert world.bodies(DEADLETTER) == [b"6", b"3", b"1"]
    world.crash()
    assert world.bodies(DEADLETTER) == [b"6", b"3", b"1"]


@pytest.mark.parametrize("how", ["purge", "delete"])
@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.rule("X-62", "X-64", "DM-064", "DM-092")
def test_purged_and_deleted_messages_go_to_the_dead_letter_queue(
    world: World, how: str, on_disk: bool
) -> None:
    queue = world.create()
    for number in range(5):
        journal = Journal.DEADLETTER if number % 2 else Journal.NONE
        world.send(b"%d" % number, journal=journal, delivery=1)
    if on_disk:
        world.crash()
        queue = world.manager.find("orders")
    else:
        world.send(b"express", journal=Journal.DEADLETTER, delivery=0)
    if how == "purge":
        world.finish(world.manager.purge(queue))
    else:
        world.finish(world.manager.delete_queue("orders"))
    found = sorted(world.bodies(DEADLETTER))
    assert found == [b"1", b"3"] if on_disk else [b"1", b"3", b"express"]
    assert set(reasons(world, DEADLETTER)) == {0xC001 if how == "purge" else 0xC000}
    assert len(world.writer.tables.tables[Table.CONTENT]) == 2


@pytest.mark.parametrize("how", ["purge", "delete"])
@pytest.mark.rule("X-65", "REC-07", "DU-08", "DU-09")
def test_a_purge_that_a_crash_interrupts_ends_with_every_dead_letter(world: World, how: str) -> None:
    queue = world.create()
    for number in range(5):
        world.send(b"%d" % number, journal=Journal.DEADLETTER)
    if how == "purge":
        world.manager.purge(queue)
    else:
        world.manager.delete_queue("orders")
    world.writer.submit()
    world.writer.complete_all()  # the marker is durable, nothing else happened
    world.crash()
    assert sorted(world.bodies(DEADLETTER)) == [b"0", b"1", b"2", b"3", b"4"]
    assert set(reasons(world, DEADLETTER)) == {0xC001 if how == "purge" else 0xC000}


@pytest.mark.rule("X-62", "DM-215", "QB-329", "QB-330")
@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"time_to_reach_queue": 10}, 0x8002),
        ({"time_to_be_received": 10}, 0xC003),
        ({"time_to_reach_queue": 10, "time_to_be_received": 5}, 0xC003),
        ({"time_to_reach_queue": 5, "time_to_be_received": 10}, 0x8002),
    ],
)
@pytest.mark.parametrize("on_disk", [False, True])
def test_what_waits_too_long_to_be_sent_goes_to_the_dead_letter_queue(
    world: World, values: dict[str, int], reason: int, on_disk: bool
) -> None:
    world.send(b"late", ELSEWHERE, journal=Journal.DEADLETTER, **values)
    world.send(b"unwanted", ELSEWHERE, **values)
    if on_disk:
        world.crash()
    world.advance(min(values.values()) + 1)
    assert world.bodies(DEADLETTER) == [b"late"]
    assert reasons(world, DEADLETTER) == [reason]


@pytest.mark.rule("X-62")
def test_a_purged_outgoing_queue_leaves_its_dead_letters(world: World) -> None:
    world.send(b"never sent", ELSEWHERE, journal=Journal.DEADLETTER)
    world.finish(world.manager.purge(world.manager.find(ELSEWHERE)))
    assert world.bodies(DEADLETTER) == [b"never sent"]
    assert reasons(world, DEADLETTER) == [0x8001]


@pytest.mark.rule("X-36")
def test_a_dead_letter_beyond_the_quota_of_its_queue_is_discarded(world: World) -> None:
    world.create()
    core = world.manager.find(DEADLETTER).core
    world.send(b"a" * 100, journal=Journal.DEADLETTER, time_to_be_received=5)
    size = world.manager.find("orders").bytes
    world.send(b"b" * 100, journal=Journal.DEADLETTER, time_to_be_received=5)
    core.quota_bytes = size
    world.advance(6)
    assert len(world.bodies(DEADLETTER)) == 1
    assert world.manager.find("orders").messages == 0
    assert len(world.writer.tables.tables[Table.CONTENT]) == 1


@pytest.mark.rule("X-62", "X-64")
def test_dead_letters_of_messages_from_elsewhere_leave_room_for_local_ones() -> None:
    inbound = Inbound()
    world = inbound.world
    core = world.manager.find(DEADLETTER).core
    core.quota_bytes = 20_000
    for number in range(1, 61):
        packet = bytearray(
            wire.message(
                number,
                queue=r"OS:HOST\private$\orders",
                received=5,
                sent_time=WALL,
                body=bytes(400),
                recoverable=True,
            )
        )
        packet[USER_FLAGS] |= DEAD_LETTER
        inbound.session.receive(bytes(packet), 100.0)
    world.run()
    assert world.manager.find("orders").messages == 60
    world.advance(6)
    assert 9_000 < core.used_bytes <= 10_000  # half of the quota, however many a stranger sends
    assert world.manager.ledger.discarded == 60 - world.manager.find(DEADLETTER).messages
    for _ in range(10):
        world.send(b"local" * 50, journal=Journal.DEADLETTER, time_to_be_received=5)
    world.advance(6)
    assert world.bodies(DEADLETTER).count(b"local" * 50) == 10


@pytest.mark.rule("X-36")
@pytest.mark.parametrize("room", [False, True])
def test_a_dead_letter_of_another_computer_has_to_fit_the_quota_of_the_queue_manager(room: bool) -> None:
    inbound = Inbound()
    message = Message.from_packet(
        wire.message(1, queue=r"OS:HOST\private$\orders", recoverable=True, reach=5, sent_time=WALL - 10)
    )
    message.journal = Journal.DEADLETTER
    inbound.world.manager.ledger.quota_bytes = 1 << 20 if room else 10
    inbound.session.receive(message.to_packet(), 100.0)
    inbound.world.run()
    assert inbound.world.bodies(DEADLETTER) == [message.body] * room
    assert inbound.world.manager.ledger.discarded == (not room)


@pytest.mark.rule("X-36")
def test_dead_letters_count_against_the_quota_of_the_queue_manager() -> None:
    world = World(quota_kb=2)
    world.create()
    world.send(b"x" * 1200, journal=Journal.DEADLETTER, time_to_be_received=5)
    before = world.manager.ledger.bytes
    world.advance(6)
    assert world.manager.ledger.bytes == before


@pytest.mark.rule("X-64", "DM-203")
def test_nothing_follows_from_what_happens_in_dead_letter_queues_and_journals(world: World) -> None:
    world.create(journaling=True)
    world.send(b"x", journal=Journal.DEADLETTER, time_to_be_received=5)
    world.advance(6)
    world.finish(world.manager.purge(world.manager.find(DEADLETTER)))
    assert world.bodies(DEADLETTER) == []
    world.send(b"y", journal=Journal.DEADLETTER)
    world.receive()
    world.finish(world.manager.purge(world.manager.find(r".\private$\orders;JOURNAL")))
    assert world.bodies(DEADLETTER) == []
    assert not world.writer.tables.tables[Table.CONTENT]


# ---- the application's own choice


def chosen(
    world: World, name: str, target: str = "orders", transactional: bool = False, **values: int
) -> None:
    """Send one message whose application names a queue for its failure."""
    handle = world.manager.open(target, Access.SEND)
    message = Message(body=b"own", delivery=1, journal=Journal.DEADLETTER, **values)  # type: ignore[arg-type]
    if transactional:
        message.transaction = TransactionHeader(0, 0, 0)
    packet = handle.stamp(message).to_packet()
    ordinal = world.manager.dead_letter_queue(name, None)
    world.finish(handle.send_packets([packet], [ordinal]))
    handle.close()


@pytest.mark.rule("X-62", "X-63", "X-20", "X-21")
@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize(
    ("name", "goes"),
    [
        ("plain", False),
        ("transacted", True),
        ("nothing", None),
        (r"DIRECT=OS:elsewhere\private$\transacted", None),
        (r".\system$;deadletter", None),
    ],
)
@pytest.mark.parametrize("crash", [False, True])
def test_the_dead_letter_queue_that_the_application_chose(
    world: World, transactional: bool, name: str, goes: bool | None, crash: bool
) -> None:
    """It is used if it is a queue of programs here, transactional as the message is."""
    world.create("plain")
    world.create("transacted", transactional=True)
    chosen(world, name, ELSEWHERE, transactional, time_to_reach_queue=10)
    if crash:
        world.crash()
    world.advance(11)
    system = DEADXACT if transactional else DEADLETTER
    own = {False: "plain", True: "transacted"}.get(goes) if goes is transactional else None
    for queue in (DEADLETTER, DEADXACT, "plain", "transacted"):
        assert world.bodies(queue) == ([b"own"] if queue == (own or system) else []), queue
    assert reasons(world, own or system) == [0x8002]


@pytest.mark.rule("X-62")
def test_a_chosen_dead_letter_queue_that_is_gone_gives_way_to_the_system_queue(world: World) -> None:
    world.create()
    world.create("own")
    chosen(world, "own", time_to_be_received=10)
    chosen(world, "own", time_to_be_received=20)
    world.advance(11)
    assert world.bodies("own") == [b"own"]
    world.finish(world.manager.delete_queue("own"))
    world.create("own")
    world.advance(10)
    assert world.bodies("own") == []
    assert world.bodies(DEADLETTER) == [b"own"]


@pytest.mark.rule("X-64")
@pytest.mark.parametrize("foreign", [False, True])
def test_a_transactional_message_fails_for_its_sender(world: World, foreign: bool) -> None:
    """One of this computer is its to keep; one of another is answered, and kept there."""
    world.create("transacted", transactional=True)
    handle = world.manager.open("transacted", Access.SEND)
    message = handle.stamp(Message(body=b"x", journal=Journal.DEADLETTER, time_to_be_received=10))
    message.transaction = TransactionHeader(0, 0, 0)
    if foreign:
        message.source_machine = UUID(int=5)
    world.finish(handle.send_packets([message.to_packet()]))
    world.advance(11)
    assert world.bodies(DEADXACT) == ([] if foreign else [b"x"])
    assert world.bodies(DEADLETTER) == []


def test_the_feed_tells_of_dead_letters(world: World) -> None:
    world.create()
    world.send(b"x", journal=Journal.DEADLETTER, time_to_be_received=5)
    world.advance(6)
    ordinal = world.manager.find(DEADLETTER).ordinal
    events = [
        event
        for key, value in sorted(world.writer.tables.tables[Table.FEED].items())
        for event in decode.feed(key, value)
        if event.kind not in (EventKind.STARTED, EventKind.QUEUE_CREATED)
    ]
    assert [event.kind for event in events] == [
        EventKind.ARRIVED,
        EventKind.DEAD_LETTERED,
        EventKind.EXPIRED,
    ]
    assert events[1].queue == ordinal


def test_a_peeked_and_given_back_dead_letter_keeps_its_reason(world: World) -> None:
    world.create()
    world.send(b"x", journal=Journal.DEADLETTER, time_to_be_received=5)
    world.advance(6)
    reader = world.reader(DEADLETTER)
    request = reader.receive(0)
    request.cancel()
    world.run()
    assert first(world, DEADLETTER).reason == 0xC002
    assert reasons(world, DEADLETTER) == [0xC002]


@pytest.mark.rule("X-65")
def test_no_room_on_the_disk_loses_no_dead_letter(world: World) -> None:
    """The expiry is not kept, and neither is the dead letter; both come when there is room."""
    world.create()
    world.send(b"x", journal=Journal.DEADLETTER, time_to_be_received=5)
    world.writer.fail_commit(1, FULL)
    world.advance(6)
    assert world.manager.ledger.removals.failed == 1
    world.advance(2)
    assert world.bodies(DEADLETTER) == [b"x"]
    world.crash()
    assert world.bodies(DEADLETTER) == [b"x"]
    assert world.bodies() == []
