"""The events of MS-MQDMPR 3.1.7.2 and 3.1.7.3 from outside: what is available, who waits, who is served."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import pytest

from msmq_fast._native.seek import seek
from msmq_fast.packet import Message
from msmq_fast.packet.base import INFINITE
from msmq_fast.protocol.errors import (
    InvalidHandle,
    IOTimeout,
    MessageNotFound,
    OperationCancelled,
    QueueDeleted,
    QueueNotAvailable,
    ServiceNotAvailable,
)
from msmq_fast.qm.access import Access
from msmq_fast.qm.queues.outgoing import OutgoingQueue, OutgoingState
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.qm.services import State
from msmq_fast.store.schema import MetaName, Table
from tests.support.worlds.queue_manager import World, body, tell

FAR = r"DIRECT=OS:THERE\private$\far"


@pytest.fixture
def world() -> World:
    world = World()
    world.create()
    return world


def keys(world: World, name: str = "orders") -> list[int]:
    return list(world.manager.find(name).core.positions.keys())


# ---- available and deleted positions


@pytest.mark.rule("DM-204")
def test_a_message_is_counted_once_and_available_with_its_commit(world: World) -> None:
    core = world.manager.find("orders").core
    sent = world.sender().send(Message(body=b"x", delivery=1))
    assert (core.bytes, core.messages, core.positions.available) == (0, 0, 0)
    world.finish(sent)
    size = core.bytes
    assert (core.messages, core.positions.available) == (1, 1)
    assert size == core.used_bytes > 0
    (key,) = keys(world)
    for _ in range(2):
        assert core.claim(key, 77)
        assert core.positions.available == 0
        handle = world.reader()
        handle.two_phase.add(key, 77)
        handle.close()
        assert (core.bytes, core.messages, core.positions.available) == (size, 1, 1)


@pytest.mark.rule("DM-206")
def test_one_message_serves_one_receiver_and_the_others_stay(world: World) -> None:
    requests = [world.reader().receive(None) for _ in range(3)]
    peeker = world.reader().receive(None, peek=True)
    world.send(b"1")
    assert [request.completion.done for request in requests] == [True, False, False]
    assert peeker.completion.done
    world.send(b"2")
    assert [request.completion.done for request in requests] == [True, True, False]
    assert body(requests[1].completion.result()) == b"2"


@pytest.mark.rule("X-55")
def test_what_can_happen_to_an_available_message(world: World) -> None:
    world.send(b"0", time_to_be_received=100)
    core = world.manager.find("orders").core
    assert world.receive(peek=True) == b"0"
    assert world.receive(peek=True) == b"0"  # a peek changes nothing
    (key,) = keys(world)
    assert core.claim(key, 77)
    assert not core.claim(key, 78)
    assert core.release(array("Q", [key]), 77) == 1
    world.advance(101)
    assert world.bodies() == []
    world.send(b"1")
    world.finish(world.reader().purge())
    assert world.bodies() == []
    world.send(b"2")
    world.finish(world.manager.delete_queue("orders"))
    world.run()
    assert not world.writer.tables.tables[Table.POSITION]


@pytest.mark.rule("X-58")
def test_a_deleted_message_is_gone_for_everybody(world: World) -> None:
    world.send(b"1")
    (key,) = keys(world)
    handle = world.reader()
    assert world.receive() == b"1"
    core = world.manager.find("orders").core
    assert (core.positions.state(key), core.bytes, core.messages) == (0, 0, 0)
    assert not core.claim(key, 77)
    assert not core.peek(key, lambda *_: None)
    for operation in (Lookup.CURRENT, Lookup.NEXT, Lookup.PREVIOUS):
        with pytest.raises(MessageNotFound):
            handle.lookup(key, operation, peek=True)
    with pytest.raises(IOTimeout):
        handle.receive(0, peek=True).completion.result()
    world.crash()
    assert world.bodies() == []


# ---- seeking


@pytest.mark.rule("DM-221", "DM-222", "DM-224")
def test_seeking_backward_begins_at_the_tail_or_before_a_place(world: World) -> None:
    core = world.manager.find("orders").core
    last = (1 << 64) - 1
    assert seek(core, last, forward=False) is None
    assert seek(core, 0) is None
    for text in (b"1", b"2", b"3"):
        world.send(text)
    first, second, third = keys(world)
    assert seek(core, last, forward=False) == third
    assert seek(core, third, forward=False) == second
    assert seek(core, first, forward=False) is None
    assert seek(core, third) is None
    assert seek(core, 0) == first
    assert core.claim(third, 77)
    assert seek(core, last, forward=False) == second
    handle = world.reader()
    assert body(world.finish(handle.lookup(0, Lookup.LAST, peek=True))) == b"2"
    for key, operation in ((first, Lookup.PREVIOUS), (third, Lookup.NEXT)):
        with pytest.raises(MessageNotFound):
            handle.lookup(key, operation, peek=True)


# ---- waiting


@pytest.mark.rule("DM-097")
def test_the_quota_of_the_computer_counts_before_that_of_the_queue(world: World) -> None:
    handle = world.sender()
    packet = handle.stamp(Message(body=b"x")).to_packet()
    world.manager.find("orders").core.quota_bytes = len(packet) - 1
    assert handle.send_packets([packet]).result()[0] == [1]
    world.manager.ledger.quota_bytes = len(packet) - 1
    assert handle.send_packets([packet]).result()[0] == [2]


@pytest.mark.rule("DM-097")
def test_the_quota_of_a_queue_is_in_units_of_1024_bytes(world: World) -> None:
    world.create("small", quota_kb=9)
    handle = world.sender("small")
    fixed = len(handle.stamp(Message()).to_packet())
    for more, result in ((1, 1), (0, 4)):
        packet = handle.stamp(Message(body=bytes(9 * 1024 - fixed + more), delivery=1)).to_packet()
        assert world.finish(handle.send_packets([packet]))[0] == [result]


@pytest.mark.rule("DM-101")
@pytest.mark.parametrize("delivery", [0, 1])
def test_a_message_arrives_when_it_is_put_into_its_queue(world: World, delivery: int) -> None:
    handle = world.sender()
    message = handle.stamp(Message(body=b"x", delivery=delivery))
    world.advance(30)
    world.finish(handle.send_packets([message.to_packet()]))
    received = world.finish(world.reader().receive(0).completion)
    assert received.arrived_time == message.sent_time + 30


@pytest.mark.rule("REC-08")
def test_what_is_not_overdue_at_the_start_expires_at_its_time(world: World) -> None:
    world.send(b"x", time_to_be_received=60)
    world.advance(30)
    world.crash()
    world.advance(29)
    assert world.manager.find("orders").messages == 1
    world.advance(2)
    assert world.manager.find("orders").messages == 0


@pytest.mark.rule("DM-216")
def test_a_wait_without_time_or_queue_fails_at_once(world: World) -> None:
    handle = world.reader()
    for timeout in (0, -1):
        request = handle.receive(timeout)
        assert request.completion.done
        with pytest.raises(IOTimeout):
            request.completion.result()
    assert world.manager.next_deadline() is None
    world.finish(world.manager.delete_queue("orders"))
    with pytest.raises(QueueNotAvailable):
        handle.receive(1000)


@pytest.mark.rule("DM-231", "DM-217")
@pytest.mark.parametrize(("timeout", "ends"), [(1, True), (5_000, True), (None, False), (INFINITE, False)])
def test_a_waiting_read_ends_when_its_time_is_over(world: World, timeout: int | None, ends: bool) -> None:
    request = world.reader().receive(timeout)
    world.advance((timeout or 0) / 1000 if ends else 0)
    assert not request.completion.done  # never before its time
    world.advance(0.002 if ends else 1e6)
    assert request.completion.done is ends


@pytest.mark.rule("DM-218", "DM-232")
def test_whoever_stops_a_wait_says_how_it_ends(world: World) -> None:
    requests = {error: world.reader().receive(None, tag=7) for error in (None, QueueDeleted("gone"))}
    for error, request in requests.items():
        assert request.cancel(error)
        with pytest.raises(QueueDeleted if error else OperationCancelled):
            request.completion.result()
        assert not request.cancel()
    world.send(b"1")
    assert world.bodies() == [b"1"]  # nobody of them waits any more


@pytest.mark.rule("DM-233")
def test_a_satisfied_wait_ends_with_the_message_and_its_timer_with_it(world: World) -> None:
    request = world.reader().receive(5_000)
    due = world.manager.next_deadline()
    assert due is not None
    world.send(b"1")
    assert body(request.completion.result()) == b"1"
    assert world.manager.next_deadline() != due
    world.advance(10)
    assert body(request.completion.result()) == b"1"


# ---- sending


@pytest.mark.rule("DM-174")
def test_nothing_is_sent_to_a_queue_that_was_deleted(world: World) -> None:
    handle = world.sender()
    world.finish(world.manager.delete_queue("orders"))
    with pytest.raises(QueueDeleted):
        handle.send(Message(body=b"x"))
    with pytest.raises(QueueDeleted):
        handle.send_many([Message(body=b"x")])
    with pytest.raises(QueueDeleted):
        handle.send_packets([Message(body=b"x").to_packet()])


# ---- dispatching


class Transfer:
    """Who transfers messages: takes what it is told of."""

    def __init__(self, world: World) -> None:
        self.told: list[str] = []
        self.taken: list[bytes] = []
        self.room = 100
        tell(world.manager, self)

    def __call__(self, queue: OutgoingQueue) -> None:
        self.told.append(queue.name)
        self.taken += [body(message) for message in queue.core.take(self.room, 1 << 20, 99)]


def post(world: World, text: bytes, name: str = FAR, **values: Any) -> OutgoingQueue:
    handle = world.manager.open(name, Access.SEND)
    handle.send(Message(body=text, delivery=1, **values))
    queue = handle.queue
    assert isinstance(queue, OutgoingQueue)
    return queue


@pytest.mark.rule("DM-177", "DM-208")
def test_an_outgoing_message_is_dispatched_when_it_is_available(world: World) -> None:
    transfer = Transfer(world)
    post(world, b"1")
    world.manager.ledger.serve()
    assert transfer.told == []  # not durable yet
    world.run()
    assert transfer.taken == [b"1"]
    queue = post(world, b"2")
    world.finish(world.manager.pause(queue))
    post(world, b"3")
    world.run()
    assert transfer.taken == [b"1"]


@pytest.mark.rule("DM-178")
def test_what_is_gone_is_not_dispatched_and_the_next_one_is(world: World) -> None:
    transfer = Transfer(world)
    transfer.room = 1
    queue = post(world, b"1")
    world.run()
    post(world, b"2", time_to_reach_queue=10)
    post(world, b"3")
    transfer.room = 0
    world.run()
    world.advance(11)  # 2 expires before anybody has taken it
    transfer.room = 1
    first = queue.core.positions.keys()[0]
    queue.core.acked(array("Q", [first]), 99)
    queue.core.nudge()
    world.run()
    assert transfer.taken == [b"1", b"3"]


@pytest.mark.rule("DM-200", "DM-210")
def test_a_paused_queue_has_nothing_to_dispatch_until_it_is_resumed(world: World) -> None:
    transfer = Transfer(world)
    transfer.room = 0
    queue = post(world, b"1")
    post(world, b"2")
    world.run()
    world.finish(world.manager.pause(queue))
    transfer.room, transfer.told = 100, []
    post(world, b"3")
    queue.core.nudge()
    world.run()
    assert (transfer.told, transfer.taken) == ([], [])
    assert queue.outgoing_state is OutgoingState.ON_HOLD
    world.finish(world.manager.resume(queue))
    assert queue.outgoing_state is OutgoingState.INACTIVE
    world.run()
    assert transfer.taken == [b"1", b"2", b"3"]


@pytest.mark.rule("DM-241")
def test_queues_are_dispatched_beside_each_other_each_in_its_order(world: World) -> None:
    transfer = Transfer(world)
    transfer.room = 1
    others = r"DIRECT=OS:OTHER\private$\far"
    for text, priority in ((b"1", 3), (b"2", 7), (b"3", 7), (b"4", 0)):
        post(world, text, priority=priority)
        post(world, b"o" + text, others, priority=priority)
    world.run()
    assert set(transfer.told) == {world.manager.find(FAR).name, world.manager.find(others).name}
    # Nothing was acknowledged: what one queue has under way holds up neither it nor the other one.
    for _ in range(4):
        for name in (FAR, others):
            world.manager.find(name).core.nudge()
        world.run()
    assert [text for text in transfer.taken if text[:1] != b"o"] == [b"2", b"3", b"1", b"4"]
    assert [text for text in transfer.taken if text[:1] == b"o"] == [b"o2", b"o3", b"o1", b"o4"]


# ---- start and stop


@pytest.mark.rule("DM-021")
def test_a_stop_ends_what_waits_takes_nothing_more_and_keeps_what_is_under_way(world: World) -> None:
    waiting = world.reader().receive(None)
    sender, reader = world.sender(), world.reader()
    sent = world.manager.open(FAR, Access.SEND).send(Message(body=b"x", delivery=1))
    world.manager.stop()
    assert world.manager.state is State.STOPPING
    with pytest.raises(OperationCancelled):
        waiting.completion.result()
    attempts: list[tuple[type[Exception], Callable[[], object]]] = [
        (ServiceNotAvailable, lambda: world.manager.open("orders", Access.SEND)),
        (ServiceNotAvailable, lambda: world.manager.create_queue("more")),
        (ServiceNotAvailable, lambda: world.manager.delete_queue("orders")),
        (InvalidHandle, lambda: sender.send(Message(body=b"x"))),
        (InvalidHandle, lambda: reader.receive(0, peek=True)),
    ]
    for error, attempt in attempts:
        with pytest.raises(error):
            attempt()
    assert not sent.done
    world.store.close(world.manager.counters())
    assert sent.result().lookup_id
    assert world.store.meta(MetaName.CLEAN) is True
    world.crash()
    assert world.store.was_clean
    assert world.bodies(FAR) == [b"x"]


@pytest.mark.rule("DM-043")
def test_an_offline_queue_manager_sends_nothing_until_it_is_online(world: World) -> None:
    transfer = Transfer(world)
    assert world.manager.outgoing_queues.connection_active
    post(world, b"0")
    world.run()
    assert transfer.taken == [b"0"]
    transfer.told.clear()
    world.manager.outgoing_queues.bring_online(False)
    assert not world.manager.outgoing_queues.connection_active
    post(world, b"1")
    world.run()
    post(world, b"2", r"DIRECT=OS:OTHER\private$\far")
    world.run()
    assert transfer.told == []
    world.manager.outgoing_queues.bring_online()
    world.run()
    assert world.manager.outgoing_queues.connection_active
    assert sorted(transfer.taken) == [b"0", b"1", b"2"]
