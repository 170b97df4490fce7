"""Receiving through the engine: RECEIVE, LOOKUP, CANCEL, subscriptions, and clients that leave."""

from __future__ import annotations

from typing import Any

import pytest

from msmq_fast.protocol.frames import Frame, In, Lookup
from tests.support.worlds.app import Client, World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client(world: World) -> Client:
    return world.client()


def bodies(frames: list[tuple[int, int, Any]]) -> list[bytes]:
    return [m[In.BODY] for kind, _, value in frames if kind == Frame.DELIVERY for m in value[1]]


# ------------------------------------------------------------------------------------------------ one message


@pytest.mark.parametrize("recoverable", [False, True])
def test_peek_and_receive(client: Client, recoverable: bool) -> None:
    handle = client.queue()
    client.put(handle, b"one", b"two", recoverable=recoverable)
    assert client.ok(Frame.RECEIVE, [handle, 0, True])[In.BODY] == b"one"
    assert client.ok(Frame.RECEIVE, [handle, 0])[In.BODY] == b"one"
    assert client.ok(Frame.RECEIVE, [handle, None])[In.BODY] == b"two"
    assert client.refused(Frame.RECEIVE, [handle, 0]) == "MQ_ERROR_IO_TIMEOUT"


@pytest.mark.rule("DM-119")
def test_a_receive_is_answered_when_the_removal_is_durable(world: World, client: Client) -> None:
    handle = client.queue()
    client.put(handle, b"one")
    client.send(Frame.RECEIVE, [handle, 0])
    world.turn()
    assert client.read() == []
    world.commit()
    assert [kind for kind, _, _ in client.read()] == [Frame.MESSAGE]


def test_a_waiting_receive(world: World, client: Client) -> None:
    handle = client.queue()
    number = client.send(Frame.RECEIVE, [handle, 2000])
    world.sleep(1.5)
    assert client.read() == []
    client.send(Frame.SEND, [handle, 0, [[b"late", "", 1]]])
    world.commit()
    assert [
        value[In.BODY] for kind, got, value in client.read() if got == number and kind == Frame.MESSAGE
    ] == [b"late"]


def test_a_waiting_receive_times_out(world: World, client: Client) -> None:
    handle = client.queue()
    number = client.send(Frame.RECEIVE, [handle, 2000])
    world.sleep(2.5)
    ((kind, got, error),) = client.read()
    assert (kind, got, error[1]) == (Frame.ERROR, number, "MQ_ERROR_IO_TIMEOUT")


def test_cancel(world: World, client: Client) -> None:
    handle = client.queue()
    waiting = client.send(Frame.RECEIVE, [handle, None])
    number = client.send(Frame.CANCEL, [waiting])
    frames = client.read()
    assert [(kind, got) for kind, got, _ in frames] == [(Frame.ERROR, waiting), (Frame.REPLY, number)]
    assert frames[0][2][1] == "MQ_ERROR_OPERATION_CANCELLED"
    assert frames[1][2] is True
    client.put(handle, b"stays")
    assert world.manager.find("orders").messages == 1
    assert client.ok(Frame.CANCEL, [waiting]) is False


@pytest.mark.rule("DM-119")
def test_a_message_on_its_way_to_a_client_that_left_goes_back(world: World, client: Client) -> None:
    handle = client.queue()
    client.put(handle, b"one")
    client.send(Frame.RECEIVE, [handle, 0])
    world.turn()  # the removal is on its way to the disk
    client.engine.connection_lost()
    world.commit()
    other = world.client()
    assert other.ok(Frame.RECEIVE, [other.open(), 0])[In.BODY] == b"one"


def test_waiting_receives_are_limited(client: Client) -> None:
    handle = client.queue()
    for _ in range(256):
        client.send(Frame.RECEIVE, [handle, None])
    assert client.refused(Frame.RECEIVE, [handle, None]) == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    assert client.ok(Frame.CANCEL, [10]) is True


def test_close_cancels_what_waits(client: Client) -> None:
    handle = client.queue()
    waiting = client.send(Frame.RECEIVE, [handle, None])
    number = client.send(Frame.CLOSE, [handle])
    frames = client.read()
    assert [(kind, got) for kind, got, _ in frames] == [(Frame.ERROR, waiting), (Frame.REPLY, number)]


def test_lookup(client: Client) -> None:
    handle = client.queue()
    for priority in (3, 7, 3):
        client.ok(Frame.SEND, [handle, 0, [[b"p%d" % priority, "", 1, priority]]])
    first = client.ok(Frame.LOOKUP, [handle, 0, Lookup.FIRST, True])
    assert first[In.PRIORITY] == 7
    second = client.ok(Frame.LOOKUP, [handle, first[In.LOOKUP_ID], Lookup.NEXT, True])
    last = client.ok(Frame.LOOKUP, [handle, 0, Lookup.LAST, True])
    assert first[In.LOOKUP_ID] < second[In.LOOKUP_ID] < last[In.LOOKUP_ID]
    assert client.ok(Frame.LOOKUP, [handle, last[In.LOOKUP_ID], Lookup.PREV, True]) == second
    assert client.ok(Frame.LOOKUP, [handle, second[In.LOOKUP_ID], Lookup.CURRENT]) == second
    gone = [handle, second[In.LOOKUP_ID], Lookup.CURRENT]
    assert client.refused(Frame.LOOKUP, gone) == "MQ_ERROR_MESSAGE_NOT_FOUND"
    assert (
        client.refused(Frame.LOOKUP, [handle, last[In.LOOKUP_ID], Lookup.NEXT])
        == "MQ_ERROR_MESSAGE_NOT_FOUND"
    )


def test_purge(client: Client) -> None:
    handle = client.queue()
    client.put(handle, b"1", b"2", b"3")
    assert client.ok(Frame.PURGE, [handle]) == 3
    assert client.refused(Frame.RECEIVE, [handle, 0]) == "MQ_ERROR_IO_TIMEOUT"


def test_reading_needs_the_access(client: Client) -> None:
    sender = client.queue(access=2)
    for kind, payload in (
        (Frame.RECEIVE, [sender, 0]),
        (Frame.LOOKUP, [sender, 0, 4]),
        (Frame.SUBSCRIBE, [sender, 1, True]),
        (Frame.PURGE, [sender]),
    ):
        assert client.refused(kind, payload) == "MQ_ERROR_UNSUPPORTED_ACCESS_MODE"
    peeker = client.open(access=0x20)
    assert client.refused(Frame.RECEIVE, [peeker, 0]) == "MQ_ERROR_ACCESS_DENIED"
    assert client.refused(Frame.SUBSCRIBE, [peeker, 1, True]) == "MQ_ERROR_ACCESS_DENIED"


# ---------------------------------------------------------------------------------------------- subscriptions


@pytest.mark.parametrize("acknowledge", [False, True])
def test_credit_bounds_what_is_delivered(world: World, client: Client, acknowledge: bool) -> None:
    handle = client.queue()
    client.put(handle, *[b"%d" % n for n in range(10)])
    number = client.send(Frame.SUBSCRIBE, [handle, 4, acknowledge])
    world.commit()
    assert bodies(client.read()) == [b"0", b"1", b"2", b"3"]
    client.send(Frame.CREDIT, [number, 3], 0)
    world.commit()
    assert bodies(client.read()) == [b"4", b"5", b"6"]
    client.send(Frame.CREDIT, [number, 100], 0)
    world.commit()
    assert bodies(client.read()) == [b"7", b"8", b"9"]
    tags = [value[0] for kind, _, value in client.frames if kind == Frame.DELIVERY]
    assert tags[0] == 1


@pytest.mark.rule("DM-119")
def test_plain_messages_are_removed_before_they_are_delivered(world: World, client: Client) -> None:
    handle = client.queue()
    client.put(handle, b"one")
    client.send(Frame.SUBSCRIBE, [handle, 4, False])
    world.turn()
    assert bodies(client.read()) == []
    world.commit()
    assert bodies(client.read()) == [b"one"]
    assert world.manager.find("orders").messages == 0


def test_acknowledged_messages_are_locked_then_gone(world: World, client: Client) -> None:
    handle = client.queue()
    client.put(handle, b"1", b"2", b"3", b"4")
    number = client.send(Frame.SUBSCRIBE, [handle, 4, True])
    world.commit()
    assert bodies(client.read()) == [b"1", b"2", b"3", b"4"]
    other = world.client()
    theirs = other.open()
    assert other.refused(Frame.RECEIVE, [theirs, 0]) == "MQ_ERROR_IO_TIMEOUT"
    client.send(Frame.ACKNOWLEDGE, [number, 1, 2])
    assert [kind for kind, _, _ in client.read()] == []
    world.commit()
    assert [kind for kind, _, _ in client.read()] == [Frame.REPLY]
    assert client.ok(Frame.RELEASE, [number, 4, 4]) is None
    assert other.ok(Frame.RECEIVE, [theirs, 0])[In.BODY] == b"4"
    client.engine.connection_lost()
    world.commit()
    assert other.ok(Frame.RECEIVE, [theirs, 0])[In.BODY] == b"3"
    assert other.refused(Frame.RECEIVE, [theirs, 0]) == "MQ_ERROR_IO_TIMEOUT"


def test_unacknowledged_messages_survive_a_crash(world: World, client: Client) -> None:
    handle = client.queue()
    client.put(handle, b"1", b"2")
    number = client.send(Frame.SUBSCRIBE, [handle, 4, True])
    world.commit()
    client.ok(Frame.ACKNOWLEDGE, [number, 1, 1])
    after = World(world.writer.crash())
    other = after.client()
    handle = other.open()
    assert other.ok(Frame.RECEIVE, [handle, 0])[In.BODY] == b"2"
    assert other.refused(Frame.RECEIVE, [handle, 0]) == "MQ_ERROR_IO_TIMEOUT"


@pytest.mark.parametrize("tags", [(0, 0), (2, 1), (1, 3), (3, 3), (1, 1 << 60)])
def test_tags_that_are_not_outstanding(world: World, client: Client, tags: tuple[int, int]) -> None:
    handle = client.queue()
    client.put(handle, b"1", b"2")
    number = client.send(Frame.SUBSCRIBE, [handle, 4, True])
    world.commit()
    client.read()
    assert client.refused(Frame.ACKNOWLEDGE, [number, *tags]) == "MQ_ERROR_INVALID_PARAMETER"
    assert client.refused(Frame.RELEASE, [number, *tags]) == "MQ_ERROR_INVALID_PARAMETER"
    assert client.ok(Frame.ACKNOWLEDGE, [number, 1, 2]) is None
    assert client.refused(Frame.ACKNOWLEDGE, [number, 1, 1]) == "MQ_ERROR_INVALID_PARAMETER"


def test_acknowledging_a_plain_subscription(world: World, client: Client) -> None:
    handle = client.queue()
    client.put(handle, b"1")
    number = client.send(Frame.SUBSCRIBE, [handle, 4, False])
    world.commit()
    client.read()
    assert client.refused(Frame.ACKNOWLEDGE, [number, 1, 1]) == "MQ_ERROR_INVALID_PARAMETER"


def test_credit_has_a_limit() -> None:
    world = World(max_credit=10)
    client = world.client()
    handle = client.queue()
    client.put(handle, *[b""] * 6)
    number = client.send(Frame.SUBSCRIBE, [handle, 6, True])
    world.commit()
    client.read()
    assert client.refused(Frame.CREDIT, [number, 5]) == "MQ_ERROR_INVALID_PARAMETER"
    assert client.ok(Frame.CREDIT, [number, 4]) is None


def test_unsubscribe_ends_and_releases(world: World, client: Client) -> None:
    handle = client.queue()
    client.put(handle, b"1", b"2")
    number = client.send(Frame.SUBSCRIBE, [handle, 1, True])
    world.commit()
    client.read()
    last = client.send(Frame.UNSUBSCRIBE, [number])
    assert [(kind, got) for kind, got, _ in client.read()] == [(Frame.ENDED, number), (Frame.REPLY, last)]
    world.commit()
    assert client.read() == []
    assert client.ok(Frame.RECEIVE, [handle, 0])[In.BODY] == b"1"
    assert client.refused(Frame.UNSUBSCRIBE, [number]) == "MQ_ERROR_INVALID_HANDLE"
    client.send(Frame.ACKNOWLEDGE, [number, 1, 1], 0)  # too late, and nobody to tell
    assert client.ok(Frame.PING, []) is None


def test_close_ends_the_subscriptions_of_the_handle(client: Client) -> None:
    handle = client.queue()
    number = client.send(Frame.SUBSCRIBE, [handle, 1, True])
    client.read()
    client.send(Frame.CLOSE, [handle])
    assert client.read()[0][:2] == (Frame.ENDED, number)


def test_a_deleted_queue_ends_its_subscriptions(client: Client) -> None:
    handle = client.queue()
    number = client.send(Frame.SUBSCRIBE, [handle, 1, True])
    waiting = client.send(Frame.RECEIVE, [handle, None])
    client.read()
    client.ok(Frame.DELETE_QUEUE, ["orders"])
    ended = {number: value for kind, number, value in client.frames if kind in (Frame.ENDED, Frame.ERROR)}
    assert ended[number][1] == "MQ_ERROR_QUEUE_DELETED"
    assert ended[waiting][1] == "MQ_ERROR_QUEUE_DELETED"


def test_nothing_is_delivered_while_the_client_does_not_read(world: World, client: Client) -> None:
    handle = client.queue()
    client.send(Frame.SUBSCRIBE, [handle, 60_000, False])
    client.engine.pause_writing()
    assert not client.engine.reading
    other = world.client()
    theirs = other.open()
    for _ in range(40):
        other.put(theirs, *[b"x" * 1000] * 100)
    held = sum(map(len, client.engine.take_output()))
    assert held < 2_500_000
    left = world.manager.find("orders").messages
    assert left > 1000
    client.engine.resume_writing()
    world.commit()
    got = len(bodies(client.read()))
    assert got == left


def test_large_messages_are_bounded_in_bytes(world: World, client: Client) -> None:
    handle = client.queue()
    for _ in range(30):
        client.put(handle, b"x" * 1_000_000)
    client.send(Frame.SUBSCRIBE, [handle, 1000, False])
    for _ in range(60):
        world.commit()
        if client.engine.congested:
            break
    assert client.engine.congested
    assert sum(map(len, client.engine._output)) < 9_000_000
    received = 0
    while batch := len(bodies(client.read())):
        received += batch
        client.engine.resume_writing()
        world.commit()
    assert received == 30


@pytest.mark.parametrize("subscribed", [False, True])
def test_a_message_to_a_waiting_reader_costs_one_commit(
    world: World, client: Client, subscribed: bool
) -> None:
    handle = client.queue()
    if subscribed:
        client.send(Frame.SUBSCRIBE, [handle, 10, False])
    else:
        client.send(Frame.RECEIVE, [handle, None])
    world.commit()
    client.read()
    client.send(Frame.SEND, [handle, 0, [[b"quick", "", 1]]])
    before = world.writer.statistics()["batches"]
    world.writer.submit()
    assert client.read() == []
    world.writer.complete_one()
    kinds = {kind for kind, _, _ in client.read()}
    assert kinds == {Frame.SENT, Frame.DELIVERY if subscribed else Frame.MESSAGE}
    assert world.writer.statistics()["batches"] - before == 1


# -------------------------------------------------------------------------------- many reads, large messages

LARGE = 1 << 20


@pytest.mark.parametrize("peek", [False, True])
@pytest.mark.parametrize("waiting", [False, True])
def test_large_messages_for_many_receives_come_as_the_client_reads(
    world: World, client: Client, waiting: bool, peek: bool
) -> None:
    handle = client.queue()
    sender = world.client()
    target = sender.open()
    numbers = []
    if not waiting:
        for n in range(40):
            sender.put(target, bytes([n]) * LARGE)
        numbers = [client.send(Frame.RECEIVE, [handle, None, peek]) for _ in range(40)]
    else:
        numbers = [client.send(Frame.RECEIVE, [handle, None, peek]) for _ in range(40)]
        for n in range(40):
            sender.put(target, bytes([n]) * LARGE)
    received: list[tuple[int, bytes]] = []
    for _ in range(200):
        world.commit()
        held = client.engine._output_bytes
        assert held <= 14 * LARGE  # what was under way, and what may wait for the transport
        frames = client.read()
        received += [(got, value[In.BODY][:1]) for kind, got, value in frames if kind == Frame.MESSAGE]
        if len(received) == 40:
            break
    assert [number for number, _ in received] == numbers
    assert [first for _, first in received] == [bytes([0 if peek else n]) for n in range(40)]


def test_a_client_that_does_not_read_delays_nobody_else(world: World, client: Client) -> None:
    handle = client.queue()
    for _ in range(40):
        client.send(Frame.RECEIVE, [handle, None])
    other = world.client()
    target = other.open()
    for n in range(20):
        other.put(target, bytes([n]) * LARGE)
    number = other.send(Frame.RECEIVE, [target, 0])
    world.commit()
    (first,) = [value[In.BODY][:1] for kind, got, value in other.read() if got == number]
    taken = 20 - other.ok(Frame.GET_QUEUE, ["orders"])["messages"] - 1
    assert 0 < taken < 16
    assert first == bytes([taken])


def test_lookups_of_large_messages_wait_for_the_client_too(world: World, client: Client) -> None:
    handle = client.queue()
    sender = world.client()
    target = sender.open()
    for n in range(40):
        sender.put(target, bytes([n]) * LARGE)
    numbers = [client.send(Frame.LOOKUP, [handle, 0, Lookup.FIRST, True]) for _ in range(40)]
    received: list[int] = []
    for _ in range(200):
        world.commit()
        assert client.engine._output_bytes <= 14 * LARGE
        received += [got for kind, got, _ in client.read() if kind == Frame.MESSAGE]
        if len(received) == 40:
            break
    assert received == numbers
