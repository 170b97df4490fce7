"""Cursors, subqueues and moves through the engine."""

from __future__ import annotations

import pytest

from msmq_fast.protocol.frames import CursorRead, Frame, In
from tests.support.worlds.app import Client, World

PEEK, NEXT, RECEIVE = CursorRead.PEEK, CursorRead.PEEK_NEXT, CursorRead.RECEIVE
MOVE, TAKE = 4, 1


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client(world: World) -> Client:
    return world.client()


def cursor_of(client: Client, handle: int) -> int:
    (cursor,) = client.ok(Frame.CURSOR_OPEN, [handle])
    return int(cursor)


@pytest.mark.rule("DM-053", "DM-243", "DM-246", "DM-248")
def test_a_cursor_reads_on(client: Client) -> None:
    handle = client.queue()
    client.put(handle, b"one", b"two", b"three")
    cursor = cursor_of(client, handle)
    assert client.refused(Frame.CURSOR_READ, [cursor, 0, NEXT]) == "MQ_ERROR_ILLEGAL_CURSOR_ACTION"
    assert client.ok(Frame.CURSOR_READ, [cursor, 0, PEEK])[In.BODY] == b"one"
    assert client.ok(Frame.CURSOR_READ, [cursor, 0, NEXT])[In.BODY] == b"two"
    assert client.ok(Frame.CURSOR_READ, [cursor, 0, RECEIVE])[In.BODY] == b"two"
    assert client.ok(Frame.CURSOR_READ, [cursor, 0, PEEK])[In.BODY] == b"three"
    assert client.refused(Frame.CURSOR_READ, [cursor, 0, NEXT]) == "MQ_ERROR_IO_TIMEOUT"
    assert client.ok(Frame.RECEIVE, [handle, 0])[In.BODY] == b"one"
    assert client.ok(Frame.RECEIVE, [handle, 0])[In.BODY] == b"three"
    assert client.refused(Frame.CURSOR_READ, [cursor, 0, RECEIVE]) == "MQ_ERROR_MESSAGE_NOT_FOUND"


@pytest.mark.rule("DM-054", "DM-249", "DM-251")
def test_a_cursor_waits_and_is_closed(world: World, client: Client) -> None:
    handle = client.queue()
    cursor = cursor_of(client, handle)
    waiting = client.send(Frame.CURSOR_READ, [cursor, None, PEEK])
    assert client.refused(Frame.CURSOR_READ, [cursor, 0, PEEK]) == "MQ_ERROR_ILLEGAL_CURSOR_ACTION"
    client.send(Frame.SEND, [handle, 0, [[b"late", "", 1]]])
    world.commit()
    found = [value[In.BODY] for kind, got, value in client.read() if (kind, got) == (Frame.MESSAGE, waiting)]
    assert found == [b"late"]
    waiting = client.send(Frame.CURSOR_READ, [cursor, None, NEXT])
    client.send(Frame.CURSOR_CLOSE, [cursor])
    assert [value[1] for kind, got, value in client.read() if got == waiting] == [
        "MQ_ERROR_OPERATION_CANCELLED"
    ]
    assert client.refused(Frame.CURSOR_READ, [cursor, 0, PEEK]) == "MQ_ERROR_INVALID_HANDLE"
    assert client.refused(Frame.CURSOR_CLOSE, [cursor]) == "MQ_ERROR_INVALID_HANDLE"


@pytest.mark.rule("DM-148")
def test_a_waiting_cursor_read_is_cancelled(client: Client) -> None:
    handle = client.queue()
    cursor = cursor_of(client, handle)
    waiting = client.send(Frame.CURSOR_READ, [cursor, None, RECEIVE])
    number = client.send(Frame.CANCEL, [waiting])
    frames = {got: value for _, got, value in client.read()}
    assert frames[waiting][1] == "MQ_ERROR_OPERATION_CANCELLED"
    assert frames[number] is True
    client.put(handle, b"one")
    assert client.ok(Frame.CURSOR_READ, [cursor, 0, RECEIVE])[In.BODY] == b"one"


def test_a_cursor_continues_at_a_place(client: Client) -> None:
    handle = client.queue()
    client.put(handle, b"one", b"two", b"three", b"four")
    ids = [client.ok(Frame.LOOKUP, [handle, 0, 4, True])[In.LOOKUP_ID]]
    for _ in range(3):
        ids.append(client.ok(Frame.LOOKUP, [handle, ids[-1], 1, True])[In.LOOKUP_ID])

    def at(*place: object) -> int:
        (cursor,) = client.ok(Frame.CURSOR_OPEN, [handle, *place])
        return int(cursor)

    assert client.ok(Frame.CURSOR_READ, [at(ids[1], True), 0, PEEK])[In.BODY] == b"two"
    assert client.ok(Frame.CURSOR_READ, [at(ids[1], True), 0, NEXT])[In.BODY] == b"three"
    assert client.ok(Frame.CURSOR_READ, [at(ids[1]), 0, PEEK])[In.BODY] == b"three"
    assert client.refused(Frame.CURSOR_READ, [at(ids[1]), 0, NEXT]) == "MQ_ERROR_ILLEGAL_CURSOR_ACTION"
    assert client.ok(Frame.CURSOR_READ, [at(ids[1], True), 0, RECEIVE])[In.BODY] == b"two"
    # The message at the place is gone: the place stays.
    gone = "MQ_ERROR_MESSAGE_ALREADY_RECEIVED"
    assert client.refused(Frame.CURSOR_READ, [at(ids[1], True), 0, PEEK]) == gone
    assert client.ok(Frame.CURSOR_READ, [at(ids[1], True), 0, NEXT])[In.BODY] == b"three"
    assert client.ok(Frame.CURSOR_READ, [at(ids[1]), 0, RECEIVE])[In.BODY] == b"three"
    assert client.ok(Frame.CURSOR_READ, [at(0, True), 0, PEEK])[In.BODY] == b"one"
    assert client.refused(Frame.CURSOR_OPEN, [handle, -1]) == "MQ_ERROR_INVALID_PARAMETER"
    assert client.refused(Frame.CURSOR_OPEN, [handle, ids[0], 1]) == "MQ_ERROR_INVALID_PARAMETER"


def test_a_cursor_ends_with_its_handle(client: Client) -> None:
    handle = client.queue()
    cursor = cursor_of(client, handle)
    client.ok(Frame.CLOSE, [handle])
    assert client.refused(Frame.CURSOR_READ, [cursor, 0, PEEK]) == "MQ_ERROR_INVALID_HANDLE"


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        ([99, 0, 0], "MQ_ERROR_INVALID_HANDLE"),
        ([1, 0, 3], "MQ_ERROR_INVALID_PARAMETER"),
        ([1, -1, 0], "MQ_ERROR_INVALID_PARAMETER"),
        ([1, 0], "MQ_ERROR_INVALID_PARAMETER"),
        ([1, 0, 0, 1], "MQ_ERROR_INVALID_PARAMETER"),
        ([1, 0, 2, 1], "MQ_ERROR_TRANSACTION_SEQUENCE"),
        ([1, 0, 0, None, 0], "MQ_ERROR_INVALID_PARAMETER"),
    ],
)
def test_reads_that_are_refused(client: Client, payload: list[object], error: str) -> None:
    cursor_of(client, client.queue())
    assert client.refused(Frame.CURSOR_READ, payload) == error


def test_a_connection_has_so_many_cursors(world: World, client: Client) -> None:
    handle = client.queue()
    opened = [cursor_of(client, handle) for _ in range(world.service.limits.max_handles)]
    assert client.refused(Frame.CURSOR_OPEN, [handle]) == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    client.ok(Frame.CURSOR_CLOSE, [opened[0]])
    cursor_of(client, handle)


@pytest.mark.rule("DM-087", "DM-142", "DM-147", "X-53")
def test_a_message_is_moved_to_a_subqueue_and_back(client: Client) -> None:
    handle = client.queue()
    client.put(handle, b"one", b"two")
    first = client.ok(Frame.RECEIVE, [handle, 0, True])
    (later,) = client.ok(Frame.OPEN, ["orders;later", MOVE | TAKE])
    assert client.ok(Frame.MOVE, [handle, later, first[In.LOOKUP_ID]]) is None
    moved = client.ok(Frame.RECEIVE, [later, 0, True])
    assert (moved[In.BODY], moved[In.LOOKUP_ID]) == (b"one", first[In.LOOKUP_ID])
    assert (moved[In.MOVE_COUNT], moved[In.ABORT_COUNT]) == (1, 0)
    shown = client.ok(Frame.GET_QUEUE, ["orders"])
    assert (shown["messages"], shown["subqueues"]) == (1, ["here\\private$\\orders;later"])
    assert client.ok(Frame.GET_QUEUE, ["orders;later"])["kind"] == "subqueue"
    assert client.refused(Frame.SET_QUEUE, ["orders;later", {"label": "x"}]).endswith(
        "UNSUPPORTED_FORMATNAME_OPERATION"
    )
    assert client.refused(Frame.MOVE, [handle, later, 77]) == "MQ_ERROR_MESSAGE_NOT_FOUND"
    assert client.refused(Frame.MOVE, [later, handle, first[In.LOOKUP_ID]]) == "MQ_ERROR_INVALID_PARAMETER"
    (back,) = client.ok(Frame.OPEN, ["orders", MOVE])
    client.ok(Frame.MOVE, [later, back, first[In.LOOKUP_ID]])
    assert client.ok(Frame.RECEIVE, [handle, 0])[In.BODY] == b"one"
    assert client.refused(Frame.OPEN, ["orders;later", 2]) == "MQ_ERROR_UNSUPPORTED_ACCESS_MODE"


@pytest.mark.rule("X-73")
def test_poison_handling_is_a_property(client: Client) -> None:
    client.ok(Frame.CREATE_QUEUE, ["q", {"poison_after": 3}])
    assert client.ok(Frame.GET_QUEUE, ["q"])["poison_after"] == 3
    assert client.ok(Frame.SET_QUEUE, ["q", {"poison_after": 0}])["poison_after"] == 0
    assert (
        client.refused(Frame.SET_QUEUE, ["q", {"poison_after": 65535}]) == "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"
    )
