"""Reads with limits: a message that does not fit stays in its queue, and the answer says what it needs."""

from __future__ import annotations

from typing import Any

import pytest

from msmq_fast.protocol.frames import INFINITE, CursorRead, Frame, In, Lookup
from tests.support.worlds.app import Client, World

pytestmark = pytest.mark.smoke

ANY = INFINITE
FORMAT = "DIRECT=OS:other\\private$\\answers"
MESSAGE = [b"0123456789", "lab\U0001f600", 1, 3, 0, 0, bytes(20), b"ext", FORMAT, FORMAT, 8]
NEEDED = [10, 5, 3, len(FORMAT), len(FORMAT)]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client(world: World) -> Client:
    return world.client()


def _put(world: World, client: Client, **properties: Any) -> int:
    handle = client.queue(**properties)
    flags = 4 if properties.get("transactional") else 0
    client.send(Frame.SEND, [handle, flags, [MESSAGE]])
    world.commit()
    client.read()
    return handle


def _overflow(client: Client, kind: Frame, payload: list[Any]) -> tuple[str, list[int]]:
    """Name and needed sizes of the refusal."""
    answer, value = client.call(kind, payload)
    assert answer == Frame.ERROR
    _, name, text, needed = value
    assert "\n" not in text
    assert needed[:5] == NEEDED
    return name, needed


@pytest.mark.parametrize(
    "action", ["receive", "peek", "lookup", "lookup-peek", "cursor-receive", "cursor-peek"]
)
def test_what_does_not_fit_stays_and_what_fits_comes(world: World, client: Client, action: str) -> None:
    handle = _put(world, client)
    (cursor,) = client.ok(Frame.CURSOR_OPEN, [handle])
    kind, head = {
        "receive": (Frame.RECEIVE, [handle, 0, False]),
        "peek": (Frame.RECEIVE, [handle, 0, True]),
        "lookup": (Frame.LOOKUP, [handle, 0, Lookup.FIRST, False]),
        "lookup-peek": (Frame.LOOKUP, [handle, 0, Lookup.FIRST, True]),
        "cursor-receive": (Frame.CURSOR_READ, [cursor, 0, CursorRead.RECEIVE]),
        "cursor-peek": (Frame.CURSOR_READ, [cursor, 0, CursorRead.PEEK]),
    }[action]
    for limits, name in (
        ([9], "MQ_ERROR_BUFFER_OVERFLOW"),
        ([10, 4], "MQ_ERROR_LABEL_BUFFER_TOO_SMALL"),
        ([ANY, ANY, 2], "MQ_ERROR_BUFFER_OVERFLOW"),
        ([ANY, ANY, ANY, 1], "MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL"),
        ([ANY, ANY, ANY, ANY, 0], "MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL"),
        ([ANY] * 5 + [0], "MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL"),
    ):
        assert _overflow(client, kind, [*head, None, limits])[0] == name
        assert client.ok(Frame.GET_QUEUE, ["orders"])["messages"] == 1
    found = client.ok(kind, [*head, None, NEEDED])
    assert (found[In.BODY], found[In.LABEL]) == (MESSAGE[0], MESSAGE[1])
    assert found[In.ABORT_COUNT] == found[In.MOVE_COUNT] == 0
    assert client.ok(Frame.GET_QUEUE, ["orders"])["messages"] == int("peek" in action)


def test_the_needed_sizes_are_enough(world: World, client: Client) -> None:
    handle = _put(world, client)
    _, needed = _overflow(client, Frame.RECEIVE, [handle, 0, False, None, [0] * 7])
    assert client.ok(Frame.RECEIVE, [handle, 0, False, None, needed])[In.BODY] == MESSAGE[0]


def test_the_removal_is_durable_before_the_answer(world: World, client: Client) -> None:
    handle = _put(world, client)
    client.send(Frame.RECEIVE, [handle, 0, False, None, [10]])
    world.turn()
    assert client.read() == []
    world.commit()
    ((kind, _, value),) = client.read()
    assert (kind, value[In.BODY]) == (Frame.MESSAGE, MESSAGE[0])


def test_a_waiting_read_checks_what_comes_and_can_be_cancelled(world: World, client: Client) -> None:
    handle = client.queue()
    waiting = client.send(Frame.RECEIVE, [handle, None, False, None, [1]])
    assert client.read() == []
    client.send(Frame.SEND, [handle, 0, [[b"large", "", 1]]])
    world.commit()
    assert [value[1] for _, number, value in client.read() if number == waiting] == [
        "MQ_ERROR_BUFFER_OVERFLOW"
    ]
    assert client.ok(Frame.RECEIVE, [handle, 0])[In.BODY] == b"large"
    waiting = client.send(Frame.RECEIVE, [handle, None, False, None, [1]])
    assert client.ok(Frame.CANCEL, [waiting]) is True


def test_a_message_that_does_not_fit_goes_to_the_next_reader(world: World, client: Client) -> None:
    handle = client.queue()
    first = client.send(Frame.RECEIVE, [handle, None, False, None, [1]])
    second = client.send(Frame.RECEIVE, [client.open(), None])
    client.send(Frame.SEND, [handle, 0, [MESSAGE]])
    world.commit()
    client.read()
    found = {number: (kind, value) for kind, number, value in client.frames}
    assert found[first][1][1] == "MQ_ERROR_BUFFER_OVERFLOW"
    assert (found[second][0], found[second][1][In.BODY]) == (Frame.MESSAGE, MESSAGE[0])


def test_a_cursor_has_advanced_after_a_peek_and_stands_still_after_a_receive(
    world: World, client: Client
) -> None:
    handle = client.queue()
    client.put(handle, b"1", b"large", b"3")
    (cursor,) = client.ok(Frame.CURSOR_OPEN, [handle])
    read = Frame.CURSOR_READ
    assert client.ok(read, [cursor, 0, CursorRead.PEEK, None, [1]])[In.BODY] == b"1"
    assert client.call(read, [cursor, 0, CursorRead.PEEK_NEXT, None, [1]])[1][3][0] == 5
    assert client.ok(read, [cursor, 0, CursorRead.PEEK, None, [5]])[In.BODY] == b"large"
    assert client.call(read, [cursor, 0, CursorRead.RECEIVE, None, [1]])[1][3][0] == 5
    assert client.ok(read, [cursor, 0, CursorRead.RECEIVE, None, [5]])[In.BODY] == b"large"
    assert client.ok(read, [cursor, 0, CursorRead.PEEK])[In.BODY] == b"3"


@pytest.mark.parametrize("commit", [True, False])
def test_in_a_transaction(world: World, client: Client, commit: bool) -> None:
    handle = _put(world, client, transactional=True)
    (cursor,) = client.ok(Frame.CURSOR_OPEN, [handle])
    client.ok(Frame.BEGIN, [1])
    for kind, payload in (
        (Frame.RECEIVE, [handle, 0, False, 1, [9]]),
        (Frame.LOOKUP, [handle, 0, Lookup.FIRST, False, 1, [9]]),
        (Frame.CURSOR_READ, [cursor, 0, CursorRead.RECEIVE, 1, [9]]),
    ):
        assert _overflow(client, kind, payload)[0] == "MQ_ERROR_BUFFER_OVERFLOW"
        assert client.ok(Frame.RECEIVE, [handle, 0, True])[In.BODY] == MESSAGE[0]  # not locked
    client.ok(Frame.COMMIT if commit else Frame.ABORT, [1])
    found = client.ok(Frame.RECEIVE, [handle, 0, True])
    assert (found[In.BODY], found[In.ABORT_COUNT]) == (MESSAGE[0], 0)
    client.ok(Frame.BEGIN, [2])
    assert client.ok(Frame.RECEIVE, [handle, 0, False, 2, [10]])[In.BODY] == MESSAGE[0]
    client.ok(Frame.COMMIT, [2])
    assert client.refused(Frame.RECEIVE, [handle, 0]) == "MQ_ERROR_IO_TIMEOUT"


@pytest.mark.parametrize("limits", [[-1], ["1"], [INFINITE + 1], [True], [0] * 8, 5, {}])
def test_wrong_limits_are_refused(world: World, client: Client, limits: Any) -> None:
    handle = _put(world, client)
    for kind, head in ((Frame.RECEIVE, [handle, 0, False]), (Frame.LOOKUP, [handle, 0, Lookup.FIRST, False])):
        assert client.refused(kind, [*head, None, limits]) == "MQ_ERROR_INVALID_PARAMETER"
