"""Flow control: watermarks of the memory that express messages take, and reasons from outside."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast._native.effects import dead_letter
from msmq_fast._native.ledger import Ledger
from msmq_fast._native.memorystore import MemoryReader, MemoryTables, MemoryWriter
from msmq_fast._native.queue import QueueCore
from msmq_fast.packet import Message
from msmq_fast.protocol import errors
from msmq_fast.protocol.properties import Journal
from msmq_fast.qm.access import Access
from msmq_fast.qm.queues.flow import MEMORY_FULL, FlowControl
from msmq_fast.qm.transactions.transacted import TransactedQueue
from tests.support.worlds.queue_manager import World

BODY = bytes(900)


def made(messages: int = 16) -> World:
    world = World(express_memory=messages * 1200)
    world.create()
    return world


def fill(world: World, name: str = "orders", delivery: int = 0) -> int:
    """Send until nothing is let in; how many messages were."""
    count = 0
    while True:
        try:
            world.send(BODY, name, delivery=delivery)
        except errors.InsufficientResources:
            return count
        count += 1


@pytest.mark.rule("X-38", "DM-211", "DM-212", "DM-096")
def test_express_messages_that_fill_the_memory_stop_the_intake_until_an_eighth_of_it_is_free() -> None:
    world = made()
    flow, ledger = world.manager.flow, world.manager.ledger
    assert flow.why is None
    count = fill(world)
    assert ledger.express_bytes > ledger.express_high >= ledger.express_bytes - ledger.express_bytes // count
    assert flow.why == MEMORY_FULL
    with pytest.raises(errors.InsufficientResources):
        world.send(BODY, delivery=1)  # recoverable ones neither
    while ledger.express_bytes > ledger.express_low:
        with pytest.raises(errors.InsufficientResources):
            world.send(BODY, delivery=0)
        world.receive()
    assert flow.why is None
    world.send(BODY, delivery=0)
    assert flow.began == 1


@pytest.mark.rule("X-38")
def test_recoverable_messages_take_no_part() -> None:
    world = made(4)
    for _ in range(20):
        world.send(BODY, delivery=1)
    assert world.manager.ledger.express_bytes == 0
    assert world.manager.flow.why is None


@pytest.mark.rule("X-38")
def test_every_way_out_gives_the_memory_back() -> None:
    world = made(64)
    ledger = world.manager.ledger
    for way in ("receive", "purge", "delete", "expire", "move", "abort"):
        name = f"q-{way}"
        world.create(name)
        for _ in range(5):
            world.send(BODY, name, delivery=0, time_to_be_received=5 if way == "expire" else 0xFFFFFFFF)
        assert ledger.express_bytes > 0
        if way == "receive":
            for _ in range(5):
                world.receive(name)
        elif way == "purge":
            world.finish(world.reader(name).purge())
        elif way == "delete":
            world.finish(world.manager.delete_queue(name))
        elif way == "expire":
            world.advance(6)
        elif way == "move":
            held = ledger.express_bytes
            mover = world.manager.open(f"{name};aside", Access.MOVE)
            first = next(iter(world.manager.find(name).core.positions.keys()))
            world.finish(world.reader(name).move(first, mover))
            assert ledger.express_bytes == held
            world.finish(world.manager.delete_queue(name))
        else:
            transaction = world.manager.transactions.begin()
            world.finish(world.reader(name).receive(0, hold=transaction).completion)
            world.finish(transaction.abort())
            for _ in range(5):
                world.receive(name)
        world.run()
        assert ledger.express_bytes == 0, way


@pytest.mark.rule("X-38", "DM-211", "DM-212")
def test_a_shortage_is_told_before_anything_is_refused_and_reasons_add_up() -> None:
    world = made(64)
    flow, ledger = world.manager.flow, world.manager.ledger
    told: list[bool] = []
    flow.watch(told.append)
    while ledger.express_bytes <= ledger.express_mid:
        assert told == []
        world.send(BODY, delivery=0)
    assert told == [True]
    assert flow.why is None
    flow.begin("the disk is full")
    flow.begin("the disk is full")
    late: list[bool] = []
    flow.watch(late.append)
    assert late == [True]
    flow.watch(told.append)
    assert told == [True, True]
    assert flow.why == "the disk is full"
    with pytest.raises(errors.InsufficientResources):
        world.send(BODY, delivery=0)
    while ledger.express_bytes:
        world.receive()
    assert told == [True, True]
    flow.end("the disk is full")
    flow.end("the disk is full")
    assert told == [True, True, False]
    assert flow.why is None
    assert flow.began == 1
    world.send(BODY, delivery=0)


@pytest.mark.rule("X-38")
@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-3, 5), max_size=60))
def test_the_levels_have_hysteresis(steps: list[int]) -> None:
    ledger = Ledger(bytes(16), MemoryWriter(tables := MemoryTables()), MemoryReader(tables))
    ledger.reserved(1 << 40)
    ledger.feed = False
    flow = FlowControl(ledger)
    ledger.on_memory = flow.memory_changed
    packet = Message(body=BODY).to_packet()
    flow.limit_memory(16 * len(packet))
    core = QueueCore(ledger, 1)
    held = level = 0
    for step in steps:
        for _ in range(abs(step)):
            if step > 0:
                (result,), _ = core.enqueue_packets([packet])
                assert (result == 2) == (level == 2)
                held += result == 0
                level = 2 if level == 2 or held > 16 else 1 if held > 15 else level
            elif held:
                key = next(iter(core.positions.keys()))
                core.remove(key)
                held -= 1
                level = 0 if held <= 14 else level
            assert ledger.express_bytes == held * len(packet)
            assert ledger.memory == level
            assert (flow.why == MEMORY_FULL) == (level == 2)


@pytest.mark.rule("X-38")
def test_the_log_says_when_the_memory_is_full_and_when_it_suffices_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "msmq_fast.qm.queues.flow")
    world = made(64)
    ledger = world.manager.ledger
    for bound, lines in ((ledger.express_mid, 0), (ledger.express_high, 1)):
        while ledger.express_bytes <= bound:
            world.send(BODY, delivery=0)
        while ledger.express_bytes:
            assert len(caplog.records) == lines or ledger.express_bytes <= ledger.express_low
            world.receive()
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]


@pytest.mark.rule("X-35", "X-38")
@pytest.mark.parametrize("delivery", [0, 1])
def test_copies_of_what_was_let_in_pass_flow_control(delivery: int) -> None:
    world = World()
    world.create(transactional=True)
    world.create("plain")
    transaction = world.manager.transactions.begin()
    handle = world.sender()
    TransactedQueue(handle, transaction).send(Message(body=b"journal", journal=Journal.JOURNAL))
    world.send(b"dead", "plain", delivery=delivery, journal=Journal.DEADLETTER, time_to_be_received=5)
    world.manager.flow.begin("the disk is full")
    world.finish(transaction.commit())
    world.advance(6)
    assert world.bodies(r".\system$;journal") == [b"journal"]
    assert world.bodies(r".\system$;deadletter") == [b"dead"]
    assert world.manager.ledger.discarded == 0


@pytest.mark.rule("X-35", "X-36")
def test_copies_without_room_are_counted_and_told_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.create(journaling=True)
    journal = world.manager.find("orders").journal
    assert journal is not None
    journal.core.quota_bytes = 0
    for wait in (0, 1, 58, 2):
        world.advance(wait)
        world.send(b"x")
        assert world.receive() == b"x"
    assert world.manager.ledger.discarded == 4
    told = [record.message for record in caplog.records if "no room" in record.message]
    assert [line.split(": ", 1)[1].split()[0] for line in told] == ["1", "4"]
    assert "orders" in told[0]


@pytest.mark.rule("X-38")
def test_dead_letters_of_others_are_not_let_in_but_counted() -> None:
    world = World()
    packet = Message(body=b"late", journal=Journal.DEADLETTER, delivery=1).to_packet()
    core = world.manager.find(r".\system$;deadletter").core
    world.manager.flow.begin("the disk is full")
    assert not dead_letter(core, packet, 0x8002)
    assert world.manager.ledger.discarded == 1
    world.manager.flow.end("the disk is full")
    with world.manager.ledger.writer.unit():
        assert dead_letter(core, packet, 0x8002)
    assert world.manager.ledger.discarded == 1
