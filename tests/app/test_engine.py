"""The engine over a real queue manager: hello, requests, pipelining, order, errors."""

from __future__ import annotations

from typing import Any

import pytest

from msmq_fast.protocol.frames import HEADER, MAX_HELLO, Frame, In, SendFlag, pack_frame
from tests.support.worlds.app import Client, World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client(world: World) -> Client:
    return world.client()


# ------------------------------------------------------------------------------------------------ hello


def test_hello_tells_the_limits(world: World) -> None:
    client = world.client(hello=False)
    hello = client.ok(Frame.HELLO, {"version": 99, "client": "later", "unknown": [1, 2]})
    assert hello["version"] == 1
    assert hello["name"] == "here"
    assert hello["guid"] == world.manager.guid.bytes_le
    assert {"max_frame", "max_message", "max_batch", "max_credit", "max_pending", "max_handles"} < set(hello)


@pytest.mark.parametrize("payload", [{}, {"version": 0}, {"version": "1"}, [], None, 1])
def test_a_bad_hello_ends_the_connection(world: World, payload: Any) -> None:
    client = world.client(hello=False)
    client.send(Frame.HELLO, payload)
    ((kind, _, error),) = client.read()
    assert kind == Frame.ERROR
    assert error[1] == "MQ_ERROR_INVALID_PARAMETER"
    assert client.engine.closing


def test_a_request_before_the_hello_ends_the_connection(world: World) -> None:
    client = world.client(hello=False)
    client.send(Frame.PING, [])
    client.send(Frame.HELLO, {"version": 1})
    assert [kind for kind, _, _ in client.read()] == [Frame.ERROR]
    assert client.engine.closing


def test_a_large_frame_before_the_hello_is_refused(world: World) -> None:
    client = world.client(hello=False)
    client.write(HEADER.pack(MAX_HELLO + 1, Frame.HELLO, 1))
    ((kind, number, _),) = client.read()
    assert (kind, number) == (Frame.ERROR, 0)
    assert client.engine.closing


@pytest.mark.parametrize("token", [None, "", "wrong", "secret ", 7])
def test_a_wrong_token_is_refused(world: World, token: Any) -> None:
    world.tokens(someone="secret")
    client = world.client(hello=False, identity=False)
    client.send(Frame.HELLO, {"version": 1, "token": token})
    ((kind, _, error),) = client.read()
    assert kind == Frame.ERROR
    assert error[1] == "MQ_ERROR_ACCESS_DENIED"
    assert client.engine.closing


def test_the_right_token_is_an_identity(world: World) -> None:
    world.tokens(someone="secret", other="other secret")
    client = world.client(token="other secret", identity=False)  # noqa: S106
    assert client.engine.identity is not None
    assert client.engine.identity.name == "other"


def test_an_empty_token_cannot_be_configured(world: World) -> None:
    with pytest.raises(ValueError, match="empty"):
        world.tokens(someone="")


# ------------------------------------------------------------------------------------------------ framing


@pytest.mark.parametrize("length", [0, 4, 0xFFFFFFFF])
def test_a_broken_length_ends_the_connection_and_no_other(world: World, client: Client, length: int) -> None:
    other = world.client()
    client.write(HEADER.pack(length, Frame.PING, 1))
    ((kind, number, error),) = client.read()
    assert (kind, number) == (Frame.ERROR, 0)
    assert "a length of" in error[2]
    assert client.engine.closing
    assert not client.engine.reading
    assert other.ok(Frame.PING, []) is None
    assert world.service.counters.broken == 1


def test_a_payload_that_is_no_msgpack_ends_the_connection(client: Client) -> None:
    client.write(HEADER.pack(7, Frame.PING, 1) + b"\xc1\xc1")
    ((kind, number, _),) = client.read()
    assert (kind, number) == (Frame.ERROR, 0)
    assert client.engine.closing


def test_one_byte_at_a_time(client: Client) -> None:
    for byte in pack_frame(Frame.PING, 5, []) + pack_frame(Frame.PING, 6, []):
        client.write(bytes([byte]))
    assert client.read() == [(Frame.REPLY, 5, None), (Frame.REPLY, 6, None)]


def test_an_unknown_request_is_an_error_and_no_more(client: Client) -> None:
    assert client.refused(0x7F, []) == "MQ_ERROR_INVALID_PARAMETER"  # type: ignore[arg-type]
    assert client.refused(Frame.REPLY, []) == "MQ_ERROR_INVALID_PARAMETER"
    assert client.ok(Frame.PING, []) is None


def test_a_request_id_that_waits_cannot_be_used_again(client: Client) -> None:
    handle = client.queue()
    client.send(Frame.RECEIVE, [handle, None], 77)
    client.send(Frame.PING, [], 77)
    assert client.read()[-1][:2] == (Frame.ERROR, 0)
    assert client.engine.closing


def test_request_id_zero(client: Client) -> None:
    client.send(Frame.PING, [], 0)
    assert client.read()[-1][:2] == (Frame.ERROR, 0)
    assert client.engine.closing


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (Frame.PING, [1]),
        (Frame.OPEN, []),
        (Frame.OPEN, ["orders"]),
        (Frame.OPEN, [b"orders", 1]),
        (Frame.OPEN, ["orders", 1, 2]),
        (Frame.OPEN, ["orders", True]),
        (Frame.OPEN, {"name": "orders"}),
        (Frame.RECEIVE, [1, -1]),
        (Frame.RECEIVE, [1, 1 << 32]),
        (Frame.RECEIVE, [1, 0, 1]),
        (Frame.LOOKUP, [1, -1, 0]),
        (Frame.LOOKUP, [1, 1, 3]),
        (Frame.CREATE_QUEUE, ["orders", []]),
        (Frame.SEND, [1, 0, []]),
        (Frame.SEND, [1, 0, ["no array"]]),
        (Frame.SEND, "nothing of the kind"),
        (Frame.SUBSCRIBE, [1, 65_537, True]),
        (Frame.SUBSCRIBE, [1, 1, 1]),
        (Frame.LIST_QUEUES, ["strange"]),
    ],
)
def test_a_wrong_payload_is_an_error_and_no_more(client: Client, kind: Frame, payload: Any) -> None:
    client.queue()
    assert client.refused(kind, payload) == "MQ_ERROR_INVALID_PARAMETER"
    assert client.ok(Frame.PING, []) is None


# ------------------------------------------------------------------------------------------------ queues


def test_queue_administration(client: Client) -> None:
    made = client.ok(Frame.CREATE_QUEUE, ["orders", {"label": "Orders", "journal": True, "quota_kb": 100}])
    assert made["name"].lower() == r"here\private$\orders"
    assert (made["label"], made["journal"], made["quota_kb"], made["kind"]) == ("Orders", True, 100, "queue")
    assert client.refused(Frame.CREATE_QUEUE, ["ORDERS", {}]) == "MQ_ERROR_QUEUE_EXISTS"
    assert client.ok(Frame.GET_QUEUE, [made["format_name"]]) == made
    assert client.ok(Frame.SET_QUEUE, ["orders", {"label": "New", "privacy_level": 0}])["label"] == "New"
    assert [queue["name"] for queue in client.ok(Frame.LIST_QUEUES, [])] == [made["name"]]
    assert {queue["kind"] for queue in client.ok(Frame.LIST_QUEUES, ["system"])} >= {"deadletter", "journal"}
    assert client.ok(Frame.DELETE_QUEUE, ["orders"]) is None
    assert client.refused(Frame.GET_QUEUE, ["orders"]) == "MQ_ERROR_QUEUE_NOT_FOUND"


def test_creation_is_answered_when_it_is_durable(world: World, client: Client) -> None:
    client.send(Frame.CREATE_QUEUE, ["orders", {}])
    world.turn()
    assert client.read() == []
    world.commit()
    assert [kind for kind, _, _ in client.read()] == [Frame.REPLY]


@pytest.mark.parametrize(
    ("name", "properties", "error"),
    [
        ("a;b;c", {}, "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        ("x" * 125, {}, "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        ("", {}, "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        ("orders", {"colour": "red"}, "MQ_ERROR_PROPERTY"),
        ("orders", {"type": "no GUID"}, "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        ("orders", {"multicast_address": 5}, "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        ("orders", {"label": 7}, "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        ("orders", {"quota_kb": -1}, "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
    ],
)
def test_bad_creations(client: Client, name: str, properties: dict[str, Any], error: str) -> None:
    assert client.refused(Frame.CREATE_QUEUE, [name, properties]) == error


def test_open_and_close(client: Client) -> None:
    assert client.refused(Frame.OPEN, ["orders", 3]) == "MQ_ERROR_QUEUE_NOT_FOUND"
    assert client.refused(Frame.OPEN, ["DIRECT=nonsense", 3]) == "MQ_ERROR_ILLEGAL_FORMATNAME"
    handle = client.queue()
    assert client.refused(Frame.OPEN, ["orders", 0]) == "MQ_ERROR_UNSUPPORTED_ACCESS_MODE"
    assert client.refused(Frame.OPEN, ["orders", 8]) == "MQ_ERROR_UNSUPPORTED_ACCESS_MODE"
    assert client.refused(Frame.OPEN, ["orders", 1, 1]) == "MQ_ERROR_SHARING_VIOLATION"
    assert client.ok(Frame.CLOSE, [handle]) is None
    assert client.refused(Frame.CLOSE, [handle]) == "MQ_ERROR_INVALID_HANDLE"
    assert client.ok(Frame.OPEN, ["orders", 1, 1]) == [handle + 1]
    assert client.refused(Frame.OPEN, ["orders", 1]) == "MQ_ERROR_SHARING_VIOLATION"


def test_handles_are_limited_and_given_back_with_the_connection() -> None:
    world = World(max_handles=3)
    client = world.client()
    client.queue(access=1)
    client.open(access=1)
    client.open(access=1)
    assert client.refused(Frame.OPEN, ["orders", 1]) == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    client.engine.connection_lost()
    assert not world.manager.find("orders").descriptors


def test_outgoing_queues(client: Client) -> None:
    name = r"DIRECT=TCP:10.0.0.7\private$\orders"
    handle = client.open(name, access=2)
    client.put(handle, b"one", b"two")
    (shown,) = client.ok(Frame.LIST_OUTGOING, [])
    assert (shown["name"], shown["kind"], shown["messages"]) == (name, "outgoing", 2)
    client.ok(Frame.PAUSE_OUTGOING, [name])
    assert client.refused(Frame.KICK_OUTGOING, [name]) == "MQ_ERROR_QUEUE_NOT_ACTIVE"
    assert client.ok(Frame.SHOW_OUTGOING, [name])["state"] == "on_hold"
    client.ok(Frame.RESUME_OUTGOING, [name])
    assert client.ok(Frame.SHOW_OUTGOING, [name])["state"] == "inactive"
    assert client.ok(Frame.KICK_OUTGOING, [name])["messages"] == 2
    assert client.ok(Frame.PURGE_OUTGOING, [name]) == 2
    assert client.ok(Frame.LIST_QUEUES, ["outgoing"])[0]["messages"] == 0
    client.queue("local")
    assert client.refused(Frame.PAUSE_OUTGOING, ["local"]) == "MQ_ERROR_QUEUE_NOT_FOUND"


def test_statistics(client: Client) -> None:
    client.put(client.queue(), b"1", b"2")
    statistics = client.ok(Frame.STATS, [])
    assert statistics["app_sent"] == 2
    assert statistics["extra"] == 1


# ------------------------------------------------------------------------------------------------ sending


@pytest.mark.rule("DM-106")
def test_a_recoverable_message_is_answered_when_it_is_durable(world: World, client: Client) -> None:
    handle = client.queue()
    client.send(Frame.SEND, [handle, 0, [[b"kept", "", 1]]])
    world.turn()
    assert client.read() == []
    world.commit()
    ((kind, _, value),) = client.read()
    assert (kind, value) == (Frame.SENT, [1, []])


def test_express_messages_are_answered_at_once(client: Client) -> None:
    handle = client.queue()
    client.send(Frame.SEND, [handle, 0, [[b"quick"], [b"quicker"]]])
    ((kind, _, value),) = client.read()
    assert (kind, value) == (Frame.SENT, [2, []])


def test_ids_and_single_answers(world: World, client: Client) -> None:
    handle = client.queue()
    number = client.send(
        Frame.SEND, [handle, SendFlag.IDS | SendFlag.EACH, [[b"1"], [b"", "x" * 250], [b"3"]]]
    )
    frames = client.read()
    assert [(kind, got) for kind, got, _ in frames] == [(Frame.SENT_ONE, number)] * 3 + [(Frame.SENT, number)]
    count, refusals, ordinals = frames[-1][2]
    assert (count, [(r[0], r[2]) for r in refusals]) == (2, [(1, "MQ_ERROR_LABEL_TOO_LONG")])
    assert ordinals[1] == 0
    assert [frame[2] for frame in frames[:3]] == [
        [0, 0, ordinals[0]],
        [1, 0xC00E005D, 0],
        [2, 0, ordinals[2]],
    ]
    fields = client.ok(Frame.RECEIVE, [handle, 0])
    assert fields[In.MESSAGE_ID] == world.manager.guid.bytes_le + ordinals[0].to_bytes(4, "little")


def test_a_full_queue_refuses_and_keeps_the_rest(client: Client) -> None:
    handle = client.queue(quota_kb=1)
    count, refusals = client.ok(Frame.SEND, [handle, 0, [[b"x" * 300, "", 1]] * 6])
    assert 0 < count < 6
    assert [index for index, *_ in refusals] == list(range(count, 6))
    assert {name for _, _, name, _ in refusals} == {"MQ_ERROR_INSUFFICIENT_RESOURCES"}


def test_a_failed_commit_is_a_refusal(world: World, client: Client) -> None:
    handle = client.queue()
    client.send(Frame.SEND, [handle, 0, [[b"lost", "", 1], [b"", "x" * 250]]])
    world.turn()
    world.writer.complete_all(-5)
    ((kind, _, (count, refusals)),) = client.read()
    assert (kind, count) == (Frame.SENT, 0)
    assert [(r[0], r[2]) for r in refusals] == [
        (0, "MQ_ERROR_MESSAGE_STORAGE_FAILED"),
        (1, "MQ_ERROR_LABEL_TOO_LONG"),
    ]


def test_sending_where_it_is_not_possible(client: Client) -> None:
    reader = client.queue(access=1)
    assert client.refused(Frame.SEND, [reader, 0, [[b""]]]) == "MQ_ERROR_UNSUPPORTED_ACCESS_MODE"
    assert client.refused(Frame.SEND, [99, 0, [[b""]]]) == "MQ_ERROR_INVALID_HANDLE"
    transactional = client.queue("exact", transactional=True)
    assert client.refused(Frame.SEND, [transactional, 0, [[b""]]]) == "MQ_ERROR_TRANSACTION_USAGE"


def test_a_batch_has_a_limit() -> None:
    client = World(max_batch=3).client()
    handle = client.queue()
    client.put(handle, b"", b"", b"")
    assert client.refused(Frame.SEND, [handle, 0, [[b""]] * 4]) == "MQ_ERROR_INVALID_PARAMETER"


def test_pipelined_frames_keep_their_order(world: World, client: Client) -> None:
    handle = client.queue()
    data = b"".join(pack_frame(Frame.SEND, 100 + n, [handle, 0, [[b"%d" % n, "", 1]]]) for n in range(50))
    client.write(data)
    world.commit()
    assert [number for _, number, _ in client.read()] == list(range(100, 150))
    assert [client.ok(Frame.RECEIVE, [handle, 0])[In.BODY] for _ in range(50)] == [
        b"%d" % n for n in range(50)
    ]


def test_reading_stops_at_max_pending() -> None:
    world = World(max_pending=4)
    client = world.client()
    handle = client.queue()
    frames = b"".join(pack_frame(Frame.SEND, 100 + n, [handle, 0, [[b"%d" % n, "", 1]]]) for n in range(10))
    client.write(frames)
    assert not client.engine.reading
    assert world.manager.ledger.writer.pending_units == 4
    world.commit()
    assert client.engine.reading
    assert len(client.read()) == 10


def test_a_client_that_leaves_in_the_middle_of_a_frame_loses_nothing_that_was_answered(
    world: World, client: Client
) -> None:
    handle = client.queue()
    client.put(handle, b"kept")
    cut = pack_frame(Frame.SEND, 500, [handle, 0, [[b"cut" * 1000, "", 1]]])
    client.write(cut[:-1])
    client.engine.connection_lost()
    world.commit()
    other = world.client()
    handle = other.open()
    assert other.ok(Frame.RECEIVE, [handle, 0])[In.BODY] == b"kept"
    assert other.refused(Frame.RECEIVE, [handle, 0]) == "MQ_ERROR_IO_TIMEOUT"


def test_a_client_that_leaves_before_the_answer(world: World, client: Client) -> None:
    handle = client.queue()
    client.send(Frame.SEND, [handle, 0, [[b"on its way", "", 1]]])
    client.engine.connection_lost()
    world.commit()
    assert client.read() == []
    assert world.manager.find("orders").messages == 1


def test_an_error_inside_is_reported_and_harms_nobody(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(world.service, "statistics", broken)
    assert client.refused(Frame.STATS, []) == "MQ_ERROR"
    assert client.ok(Frame.PING, []) is None
