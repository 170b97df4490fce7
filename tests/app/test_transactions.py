"""Transactions over the application protocol."""

from __future__ import annotations

import pytest

from msmq_fast.packet import Message
from msmq_fast.protocol.frames import Frame, In, SendFlag
from tests.support.worlds.app import Client, World

BODY, FLAGS, ABORTS = int(In.BODY), int(In.FLAGS), int(In.ABORT_COUNT)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client(world: World) -> Client:
    return world.client()


def bodies(client: Client, handle: int, count: int) -> list[bytes]:
    found = [client.ok(Frame.RECEIVE, [handle, 0])[BODY] for _ in range(count)]
    assert client.refused(Frame.RECEIVE, [handle, 0]) == "MQ_ERROR_IO_TIMEOUT"
    return found


@pytest.mark.rule("DM-103", "DM-027")
def test_begin_send_commit_in_one_go(world: World, client: Client) -> None:
    handle = client.queue(transactional=True)
    client.send(Frame.BEGIN, [1])
    client.send(Frame.SEND, [handle, 0, [[b"1"], [b"2"]], 1])
    commit = client.send(Frame.COMMIT, [1])
    kinds = [kind for kind, _, _ in client.read()]
    assert kinds == [Frame.REPLY, Frame.SENT]
    world.commit()
    assert [number for _, number, _ in client.read()] == [commit]
    message = client.ok(Frame.RECEIVE, [handle, 0, True])
    assert (message[BODY], message[FLAGS], message[int(In.DELIVERY)], message[int(In.PRIORITY)]) == (
        b"1",
        1,
        1,
        0,
    )
    assert bodies(client, handle, 2) == [b"1", b"2"]
    assert client.refused(Frame.COMMIT, [1]) == "MQ_ERROR_TRANSACTION_SEQUENCE"


@pytest.mark.rule("DM-034", "DM-115")
def test_receive_lookup_and_subscribe_in_a_transaction(client: Client, world: World) -> None:
    handle = client.queue(transactional=True)
    client.ok(Frame.SEND, [handle, int(SendFlag.SINGLE), [[b"%d" % number] for number in range(6)]])
    client.ok(Frame.BEGIN, [5])
    assert client.ok(Frame.RECEIVE, [handle, 0, False, 5])[BODY] == b"0"
    assert client.ok(Frame.LOOKUP, [handle, 0, 8, False, 5])[BODY] == b"5"
    subscription = client.send(Frame.SUBSCRIBE, [handle, 2, False, 5])
    world.commit()
    delivered = [value for kind, number, value in client.read() if kind == Frame.DELIVERY]
    assert [message[BODY] for _, batch in delivered for message in batch] == [b"1", b"2"]
    assert client.refused(Frame.RECEIVE, [handle, 0, True, 5]) == "MQ_ERROR_INVALID_PARAMETER"
    client.send(Frame.ABORT, [5])
    world.commit()
    ended = [number for kind, number, _ in client.read() if kind == Frame.ENDED]
    assert ended == [subscription]
    seen = [client.ok(Frame.RECEIVE, [handle, 0]) for _ in range(6)]
    assert [message[BODY] for message in seen] == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert [message[ABORTS] for message in seen] == [1, 1, 1, 0, 0, 1]


@pytest.mark.rule("DM-107")
def test_usage(client: Client) -> None:
    transactional = client.queue("tx", transactional=True)
    plain = client.queue("plain")
    client.ok(Frame.BEGIN, [1])
    usage = "MQ_ERROR_TRANSACTION_USAGE"
    assert client.refused(Frame.SEND, [transactional, 0, [[b"x"]]]) == usage
    assert client.refused(Frame.SEND, [plain, 0, [[b"x"]], 1]) == usage
    assert client.refused(Frame.SEND, [plain, int(SendFlag.SINGLE), [[b"x"]]]) == usage
    assert client.refused(Frame.RECEIVE, [plain, 0, False, 1]) == usage
    assert client.refused(Frame.BEGIN, [1]) == "MQ_ERROR_TRANSACTION_SEQUENCE"
    assert client.refused(Frame.SEND, [transactional, 0, [[b"x"]], 2]) == "MQ_ERROR_TRANSACTION_SEQUENCE"
    assert client.refused(Frame.SEND, [transactional, 0, [[b"x"]], 0]) == "MQ_ERROR_INVALID_PARAMETER"


def test_as_many_transactions_as_the_hello_says(world: World) -> None:
    world = World(max_transactions=2)
    client = world.client()
    for number in (1, 2):
        client.ok(Frame.BEGIN, [number])
    assert client.refused(Frame.BEGIN, [3]) == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    client.ok(Frame.ABORT, [1])
    client.ok(Frame.BEGIN, [3])


@pytest.mark.parametrize(
    "flags", [SendFlag.SINGLE, SendFlag.SINGLE | SendFlag.IDS, SendFlag.SINGLE | SendFlag.EACH]
)
def test_transactions_of_one_message(client: Client, world: World, flags: SendFlag) -> None:
    """The plain path takes them, and Python those with SENT_ONE frames; both build the same packets."""
    handle = client.queue(transactional=True)
    session = client.engine._session
    assert session is not None
    before = session.lane.frames
    client.ok(Frame.SEND, [handle, int(flags), [[b"1", "", 0, 7], [b"2"]]])
    assert session.lane.frames - before == (0 if flags & SendFlag.EACH else 1)
    core = world.manager.find("orders").core
    headers = []
    for key in core.positions.keys():  # noqa: SIM118
        core.peek(key, lambda found, _: headers.append(Message.from_packet(found.packet).transaction))
    assert [(header.first, header.last) for header in headers] == [(True, True)] * 2
    assert headers[1].transaction_id == headers[0].transaction_id + 1
    assert bodies(client, handle, 2) == [b"1", b"2"]


def test_the_plain_path_is_not_for_queues_of_the_other_kind(client: Client) -> None:
    plain = client.queue("plain")
    transactional = client.queue("tx", transactional=True)
    session = client.engine._session
    assert session is not None
    client.refused(Frame.SEND, [plain, int(SendFlag.SINGLE), [[b"x"]]])
    client.refused(Frame.SEND, [transactional, 0, [[b"x"]]])
    assert session.lane.frames == 0


def test_a_message_in_a_transaction_may_go_to_another_computer(client: Client) -> None:
    client.ok(Frame.BEGIN, [1])
    handle = client.open("DIRECT=OS:elsewhere\\private$\\q", 2)
    client.ok(Frame.SEND, [handle, 0, [[b"x"]], 1])
    client.ok(Frame.COMMIT, [1])
    client.ok(Frame.SEND, [handle, int(SendFlag.SINGLE), [[b"y"]]])
    (queue,) = client.ok(Frame.LIST_OUTGOING, [])
    assert queue["messages"] == 2


@pytest.mark.rule("DM-032", "DM-036")
def test_the_end_of_a_connection_aborts(world: World, client: Client) -> None:
    handle = client.queue(transactional=True)
    client.ok(Frame.SEND, [handle, int(SendFlag.SINGLE), [[b"1"]]])
    other = world.client()
    mine = other.open()
    other.ok(Frame.BEGIN, [1])
    other.ok(Frame.SEND, [mine, 0, [[b"2"]], 1])
    assert other.ok(Frame.RECEIVE, [mine, 0, False, 1])[BODY] == b"1"
    other.engine.connection_lost()
    world.commit()
    assert client.ok(Frame.RECEIVE, [handle, 0])[ABORTS] == 1
    assert client.refused(Frame.RECEIVE, [handle, 0]) == "MQ_ERROR_IO_TIMEOUT"
    assert len(world.manager.transactions) == 0
    assert world.manager.find("orders").core.reserved_bytes == 0


def test_a_refused_message_is_told_and_the_others_are_in_the_transaction(client: Client) -> None:
    handle = client.queue(transactional=True)
    client.ok(Frame.BEGIN, [1])
    answer = client.ok(Frame.SEND, [handle, 0, [[b"1"], [b"x", "l" * 300], [b"2"]], 1])
    assert (answer[0], [refusal[0] for refusal in answer[1]]) == (2, [1])
    client.ok(Frame.COMMIT, [1])
    assert bodies(client, handle, 2) == [b"1", b"2"]


def test_operators_see_and_end_transactions(client: Client, world: World) -> None:
    handle = client.queue(transactional=True)
    (identifier,) = client.ok(Frame.BEGIN, [1])
    client.ok(Frame.SEND, [handle, 0, [[b"1"]], 1])
    (shown,) = client.ok(Frame.LIST_TRANSACTIONS, [])
    assert shown == {
        "identifier": identifier,
        "state": "active",
        "user": "tester",
        "began": 1_700_000_000,
        "sent": 1,
        "received": 0,
        "moved": 0,
    }
    assert client.refused(Frame.END_TRANSACTION, [identifier, "commit"]) == "MQ_ERROR_TRANSACTION_SEQUENCE"
    assert client.refused(Frame.END_TRANSACTION, ["x", "abort"]) == "MQ_ERROR_INVALID_PARAMETER"
    client.ok(Frame.END_TRANSACTION, [identifier, "abort"])
    assert client.ok(Frame.LIST_TRANSACTIONS, []) == []
    assert client.refused(Frame.COMMIT, [1]) == "MQ_ERROR_TRANSACTION_SEQUENCE"
    client.ok(Frame.BEGIN, [1])


@pytest.mark.rule("DM-022", "DM-025", "DU-06")
@pytest.mark.parametrize("outcome", [Frame.COMMIT, Frame.ABORT])
def test_a_program_votes_and_decides(client: Client, world: World, outcome: Frame) -> None:
    handle = client.queue(transactional=True)
    client.ok(Frame.BEGIN, [1])
    client.ok(Frame.SEND, [handle, 0, [[b"1"]], 1])
    vote = client.send(Frame.PREPARE, [1])
    assert client.read() == []
    world.commit()
    assert [(kind, number) for kind, number, _ in client.read()] == [(Frame.REPLY, vote)]
    assert client.refused(Frame.PREPARE, [1]) == "MQ_ERROR_TRANSACTION_SEQUENCE"
    client.send(Frame.SEND, [handle, 0, [[b"2"]], 1])
    assert [kind for kind, _, _ in client.read()] == [Frame.ERROR]
    client.ok(outcome, [1])
    assert bodies(client, handle, outcome is Frame.COMMIT) == [b"1"] * (outcome is Frame.COMMIT)


@pytest.mark.rule("REC-05", "DM-040", "DM-041")
@pytest.mark.parametrize("outcome", ["commit", "abort"])
def test_a_prepared_transaction_outlives_its_connection(client: Client, world: World, outcome: str) -> None:
    handle = client.queue(transactional=True)
    other = world.client()
    mine = other.open()
    (identifier,) = other.ok(Frame.BEGIN, [1])
    other.ok(Frame.SEND, [mine, 0, [[b"1"]], 1])
    other.ok(Frame.PREPARE, [1])
    other.engine.connection_lost()
    world.commit()
    (shown,) = client.ok(Frame.LIST_TRANSACTIONS, [])
    assert (shown["identifier"], shown["state"]) == (identifier, "prepared")
    client.ok(Frame.END_TRANSACTION, [identifier, outcome])
    assert bodies(client, handle, outcome == "commit") == [b"1"] * (outcome == "commit")


def test_who_sends_faster_than_the_disk_is_not_read_meanwhile() -> None:
    world = World(max_sending=3_000_000)
    client = world.client()
    handle = client.queue(transactional=True)
    client.ok(Frame.BEGIN, [1])
    for _ in range(5):
        client.send(Frame.SEND, [handle, 0, [[bytes(1_000_000)]], 1])
    assert not client.engine.reading
    client.read()
    wakes = client.wakes
    world.commit()
    assert client.engine.reading
    assert client.wakes > wakes  # the adapter hears of it, or it would never read again
    client.ok(Frame.COMMIT, [1])
    assert len(bodies(client, handle, 5)) == 5
