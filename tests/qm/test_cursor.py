"""Cursors: the machine of ST-2, row by row, and against a list of keys."""

from __future__ import annotations

import errno

import pytest

from msmq_fast.protocol import errors
from msmq_fast.qm.access import Access
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.reading.cursor import Cursor, CursorState
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.qm.reading.readers import Readers, ReadRequest
from tests.support.worlds.queue_manager import World, body


@pytest.fixture
def world() -> World:
    world = World()
    world.create()
    return world


def get(world: World, request: ReadRequest) -> bytes:
    return body(world.finish(request.completion))


def lock(world: World, key: int) -> OpenQueue:
    """Another reader holds the message."""
    handle = world.reader()
    world.finish(handle.lookup(key, Lookup.CURRENT, hold=handle.two_phase.begin()))
    return handle


@pytest.mark.rule("DM-242", "DM-243", "DM-244", "DM-137", "ST-2")
def test_peek_current_stays_on_its_message(world: World) -> None:
    world.send(b"one")
    world.send(b"two")
    cursor = world.reader().open_cursor()
    assert cursor.state is CursorState.UNREAD
    assert get(world, cursor.peek(0)) == b"one"
    assert cursor.state is CursorState.READ
    assert get(world, cursor.peek(0)) == b"one"
    assert world.bodies() == [b"one", b"two"]


@pytest.mark.rule("DM-245", "DM-134", "ST-2")
def test_peek_next_needs_a_peek_before(world: World) -> None:
    world.send(b"one")
    cursor = world.reader().open_cursor()
    with pytest.raises(errors.IllegalCursorAction):
        cursor.peek_next(0)
    assert cursor.state is CursorState.UNREAD
    assert get(world, cursor.peek(0)) == b"one"


@pytest.mark.rule("DM-246", "DM-133", "ST-2")
def test_peek_next_walks_in_the_order_of_the_queue(world: World) -> None:
    for priority, text in ((1, b"low"), (7, b"high"), (1, b"lower")):
        world.send(text, priority=priority)
    cursor = world.reader().open_cursor()
    seen = [get(world, cursor.peek(0)), get(world, cursor.peek_next(0)), get(world, cursor.peek_next(0))]
    assert seen == [b"high", b"low", b"lower"]
    with pytest.raises(errors.IOTimeout):
        cursor.peek_next(0).completion.result()
    assert len(world.bodies()) == 3
    world.send(b"last", priority=0)
    assert get(world, cursor.peek(0)) == b"last"
    world.finish(world.manager.delete_queue("orders"))
    with pytest.raises(errors.QueueNotAvailable):
        cursor.peek_next(0)


@pytest.mark.rule("DM-248", "DM-110", "ST-2")
def test_receive_takes_the_message_the_cursor_stands_on(world: World) -> None:
    for text in (b"one", b"two", b"three"):
        world.send(text)
    cursor = world.reader().open_cursor()
    get(world, cursor.peek(0))
    assert get(world, cursor.peek_next(0)) == b"two"
    assert get(world, cursor.receive(0)) == b"two"
    assert cursor.state is CursorState.UNREAD
    assert world.bodies() == [b"one", b"three"]
    with pytest.raises(errors.IllegalCursorAction):
        cursor.peek_next(0)
    assert get(world, cursor.peek(0)) == b"three"


@pytest.mark.rule("DM-247", "DM-110", "ST-2")
def test_receive_without_a_peek_goes_on_to_the_next(world: World) -> None:
    for text in (b"one", b"two"):
        world.send(text)
    cursor = world.reader().open_cursor()
    assert get(world, cursor.receive(0)) == b"one"
    assert get(world, cursor.receive(0)) == b"two"
    with pytest.raises(errors.MessageNotFound):
        cursor.receive(0)
    assert cursor.state is CursorState.UNREAD


@pytest.mark.rule("DM-244", "DM-248", "DM-110", "DM-137", "ST-2")
@pytest.mark.parametrize("gone", ["received", "locked", "purged", "expired"])
def test_a_message_that_is_gone_was_received_already(world: World, gone: str) -> None:
    key = world.send(b"one", time_to_be_received=60)
    cursor = world.reader().open_cursor()
    get(world, cursor.peek(0))
    if gone == "received":
        world.receive()
    elif gone == "locked":
        lock(world, key)
    elif gone == "purged":
        world.finish(world.reader().purge())
    else:
        world.advance(120)
    for call in (cursor.peek, cursor.receive):
        with pytest.raises(errors.MessageAlreadyReceived):
            call(0)
    assert cursor.state is CursorState.READ


@pytest.mark.rule("DM-244")
def test_a_message_that_was_put_back_is_under_the_cursor_again(world: World) -> None:
    key = world.send(b"one")
    cursor = world.reader().open_cursor()
    get(world, cursor.peek(0))
    other = lock(world, key)
    with pytest.raises(errors.MessageAlreadyReceived):
        cursor.peek(0)
    other.close()
    assert get(world, cursor.peek(0)) == b"one"


@pytest.mark.rule("DM-135", "DM-138", "DM-140", "DM-243", "DM-249", "DM-217", "DM-218", "ST-2")
def test_a_waiting_peek_gets_what_comes(world: World) -> None:
    cursor = world.reader().open_cursor()
    first = cursor.peek(None)
    assert cursor.state is CursorState.WAIT_PEEK
    world.send(b"one")
    assert body(first.completion.result()) == b"one"
    assert cursor.state is CursorState.READ
    second = cursor.peek_next(None)
    assert cursor.state is CursorState.WAIT_PEEK
    world.send(b"two")
    assert body(second.completion.result()) == b"two"
    assert world.bodies() == [b"one", b"two"]


@pytest.mark.rule("DM-111", "DM-247", "DM-249", "DM-217", "ST-2")
@pytest.mark.parametrize("delivery", [0, 1])
def test_a_waiting_receive_takes_what_comes(world: World, delivery: int) -> None:
    world.send(b"old")
    cursor = world.reader().open_cursor()
    get(world, cursor.peek(0))
    get(world, cursor.receive(0))
    waiting = cursor.receive(None)
    assert cursor.state is CursorState.WAIT_RECEIVE
    world.send(b"new", delivery=delivery)
    assert body(waiting.completion.result()) == b"new"
    assert cursor.state is CursorState.UNREAD
    assert world.bodies() == []


@pytest.mark.rule("DM-135", "DM-205", "DM-207", "DM-234")
def test_cursors_that_peek_let_the_others_have_it(world: World) -> None:
    cursors = [world.reader().open_cursor() for _ in range(3)]
    peeks = [cursor.peek(None) for cursor in cursors]
    plain, taker = world.reader().receive(None, peek=True), world.reader().open_cursor().receive(None)
    other = world.reader().open_cursor().receive(None)
    world.send(b"one")
    assert [body(peek.completion.result()) for peek in (*peeks, plain, taker)] == [b"one"] * 5
    assert not other.completion.done
    world.send(b"two")
    assert body(other.completion.result()) == b"two"


class Shut:
    """A gate that lets no message through."""

    def begin(self) -> None:
        raise AssertionError("a read that waits")

    def enter(self, readers: Readers) -> bool:
        return False

    def leave(self, size: int) -> None:
        raise AssertionError("a message was taken")


@pytest.mark.rule("DM-207")
def test_a_peeker_whose_gate_is_shut_does_not_stop_the_others(world: World) -> None:
    shut = world.reader().receive(None, peek=True, gate=Shut())
    peeks = [world.reader().receive(None, peek=True), world.reader().open_cursor().peek(None)]
    world.send(b"one")
    assert [body(peek.completion.result()) for peek in peeks] == [b"one"] * 2
    assert not shut.completion.done


@pytest.mark.rule("DM-249")
def test_a_waiting_cursor_goes_back_to_what_becomes_available_before_it(world: World) -> None:
    low = world.send(b"low", priority=0)
    cursor = world.reader().open_cursor()
    get(world, cursor.peek(0))
    waiting = cursor.peek_next(None)
    high = world.send(b"high", priority=7)
    assert body(waiting.completion.result()) == b"high"
    assert cursor.key == high < low
    assert get(world, cursor.peek_next(0)) == b"low"


@pytest.mark.rule("DM-249", "DM-125")
def test_a_waiting_cursor_gets_a_message_that_is_put_back(world: World) -> None:
    key = world.send(b"one")
    cursor = world.reader().open_cursor()
    get(world, cursor.peek(0))
    waiting = cursor.peek_next(None)
    world.run()
    assert not waiting.completion.done
    lock(world, key).close()
    world.run()
    assert body(waiting.completion.result()) == b"one"


@pytest.mark.rule("DM-250", "DM-111", "DM-136", "DM-138", "DM-252", "ST-2")
@pytest.mark.parametrize("peek", [False, True])
def test_after_a_time_out_nothing_is_missed(world: World, peek: bool) -> None:
    world.send(b"one")
    cursor = world.reader().open_cursor()
    get(world, cursor.peek(0))
    if not peek:
        get(world, cursor.receive(0))
    waiting = cursor.peek_next(1000) if peek else cursor.receive(1000)
    world.advance(2)
    with pytest.raises(errors.IOTimeout):
        waiting.completion.result()
    assert cursor.state is CursorState.UNREAD
    world.send(b"two")
    assert get(world, cursor.peek(0) if peek else cursor.receive(0)) == b"two"


@pytest.mark.rule("DM-251")
def test_a_cursor_that_waits_does_nothing_else(world: World) -> None:
    cursor = world.reader().open_cursor()
    for start in (cursor.receive, cursor.peek):
        waiting = start(None)
        state = cursor.state
        for call in (cursor.peek, cursor.peek_next, cursor.receive):
            with pytest.raises(errors.IllegalCursorAction):
                call(0)
        assert cursor.state is state
        waiting.cancel()
        assert cursor.state is CursorState.UNREAD


@pytest.mark.rule("DM-054", "DM-090", "DM-219")
def test_closing_a_cursor_ends_its_read(world: World) -> None:
    handle = world.reader()
    cursor, other = handle.open_cursor(), handle.open_cursor()
    waiting, standing = cursor.receive(5000), other.receive(5000)
    cursor.close()
    cursor.close()
    with pytest.raises(errors.OperationCancelled):
        waiting.completion.result()
    assert handle.cursors == {other.number: other}
    with pytest.raises(errors.InvalidHandle):
        cursor.peek(0)
    handle.close()
    with pytest.raises(errors.OperationCancelled):
        standing.completion.result()
    assert handle.cursors == {}
    assert world.manager.next_deadline() is None
    world.send(b"one")
    assert world.bodies() == [b"one"]


@pytest.mark.rule("DM-053", "DM-242")
def test_cursors_are_numbered_and_need_a_queue(world: World) -> None:
    handles = [world.reader(), world.reader()]
    cursors = [handle.open_cursor() for handle in handles for _ in range(2)]
    assert len({cursor.number for cursor in cursors}) == 4
    world.finish(world.manager.delete_queue("orders"))
    with pytest.raises(errors.QueueNotAvailable):
        handles[0].open_cursor()
    for call in (cursors[0].peek, cursors[0].peek_next, cursors[0].receive):
        with pytest.raises(errors.QueueNotAvailable):
            call(0)


def test_a_cursor_does_what_its_handle_may(world: World) -> None:
    world.send(b"one")
    with pytest.raises(errors.AccessDenied):
        world.sender().open_cursor()
    cursor = world.manager.open("orders", Access.PEEK).open_cursor()
    assert get(world, cursor.peek(0)) == b"one"
    with pytest.raises(errors.AccessDenied):
        cursor.receive(0)


def test_cursors_of_one_handle_are_independent(world: World) -> None:
    for number in range(4):
        world.send(b"%d" % number)
    handle = world.reader()
    left, right = handle.open_cursor(), handle.open_cursor()
    assert get(world, left.peek(0)) == b"0"
    assert get(world, left.peek_next(0)) == b"1"
    assert get(world, right.peek(0)) == b"0"
    assert get(world, left.receive(0)) == b"1"
    assert get(world, right.peek_next(0)) == b"2"


@pytest.mark.rule("DM-230")
def test_a_message_is_remembered_while_a_cursor_stands_on_it(world: World) -> None:
    first, second, third = (world.send(text) for text in (b"one", b"two", b"three"))
    reader = world.reader()
    cursor: Cursor = reader.open_cursor()
    get(world, cursor.peek(0))
    get(world, cursor.peek_next(0))
    world.finish(world.reader().lookup(second, Lookup.CURRENT))
    for peek in (False, True):
        with pytest.raises(errors.MessageAlreadyReceived):
            world.reader().lookup(second, Lookup.CURRENT, peek=peek)
    assert body(world.finish(reader.lookup(second, Lookup.NEXT, peek=True))) == b"three"
    assert body(world.finish(reader.lookup(second, Lookup.PREVIOUS, peek=True))) == b"one"
    cursor.close()
    with pytest.raises(errors.MessageNotFound):
        reader.lookup(second, Lookup.CURRENT)
    assert first < second < third


@pytest.mark.rule("DM-119")
def test_a_receive_that_the_store_does_not_keep_can_be_repeated(world: World) -> None:
    world.send(b"one")
    cursor = world.reader().open_cursor()
    get(world, cursor.peek(0))
    request = cursor.receive(0)
    world.writer.fail_commit(1, errno.ENOSPC)
    world.run()
    with pytest.raises(errors.MessageStorageFailed):
        request.completion.result()
    assert get(world, cursor.receive(0)) == b"one"


def test_packets_on_the_disk_are_read_for_a_cursor() -> None:
    world = World(cache_bytes=0)
    world.create()
    for number in range(5):
        world.send(b"%d" % number)
    cursor = world.reader().open_cursor()
    assert get(world, cursor.peek(0)) == b"0"
    assert get(world, cursor.peek_next(0)) == b"1"
    assert get(world, cursor.receive(0)) == b"1"
    assert world.bodies() == [b"0", b"2", b"3", b"4"]
