"""SEND frames for several queues, and messages that name several response or admin queues."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from msmq_fast.packet import Message
from msmq_fast.packet.names import FormatName, parse_format_names
from msmq_fast.protocol.frames import Access, Frame, In, SendFlag
from tests.support.worlds.app import Client, World

BODY, CODE = int(In.BODY), 1
REMOTE = r"DIRECT=TCP:10.0.0.9\private$\far"
IDS = int(SendFlag.IDS)
SINGLE = int(SendFlag.SINGLE)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client(world: World) -> Client:
    client = world.client()
    for name, properties in (("a", {}), ("b", {}), ("full", {"quota_kb": 0}), ("z", {})):
        client.ok(Frame.CREATE_QUEUE, [name, properties])
    for name in ("t1", "t2"):
        client.ok(Frame.CREATE_QUEUE, [name, {"transactional": True}])
    return client


def opened(client: Client, name: str) -> int:
    return int(client.ok(Frame.OPEN, [name, int(Access.SEND)])[0])


def kept(world: World, name: str) -> list[Message]:
    queue = world.manager.find(name)
    found: list[Message] = []
    for key in queue.core.positions.keys():  # noqa: SIM118 - no mapping
        queue.core.peek(key, lambda message, _status: found.append(Message.from_packet(message.packet)))
        world.reader.complete()
    return found


def bodies(world: World, *names: str) -> list[list[bytes]]:
    return [[message.body for message in kept(world, name)] for name in names]


@pytest.mark.rule("DM-175")
@pytest.mark.parametrize("delivery", [0, 1])
def test_each_queue_gets_each_message(world: World, client: Client, delivery: int) -> None:
    handle = opened(client, f"b,{REMOTE},a")
    number = client.send(Frame.SEND, [handle, IDS, [[b"1", "", delivery], [b"2", "", delivery]]])
    world.turn()
    assert [got for _, got, _ in client.read()] == [number] * (delivery == 0)  # kept before it is answered
    world.commit()
    if delivery:
        client.read()
    kind, got, (count, refusals, ordinals) = client.frames[-1]
    assert (kind, got, count, refusals) == (Frame.SENT, number, 2, [])
    assert bodies(world, "a", "b", REMOTE) == [[b"1", b"2"]] * 3
    assert [message.message_id for message in kept(world, r"DIRECT=OS:here\private$\a")] == ordinals
    assert ordinals[1] == ordinals[0] + 3
    client.ok(Frame.CLOSE, [handle])
    assert not any(queue.descriptors for queue in world.manager.queues())


@pytest.mark.rule("DM-176")
def test_a_refused_copy_is_a_refused_message(world: World, client: Client) -> None:
    handle = opened(client, "a,full,z")
    count, refusals, ordinals = client.ok(Frame.SEND, [handle, IDS, [[b"1"], [b"x", "", 0, 9], [b"2"]]])
    assert count == 0
    assert ordinals == [0, 0, 0]
    assert [entry[0] for entry in refusals] == [0, 1, 2]
    assert [entry[2] for entry in refusals] == [
        "MQ_ERROR_INSUFFICIENT_RESOURCES",
        "MQ_ERROR_ILLEGAL_PROPERTY_VALUE",
        "MQ_ERROR_INSUFFICIENT_RESOURCES",
    ]
    assert bodies(world, "a", "full", "z") == [[b"1", b"2"], [], []]


@pytest.mark.rule("DM-176")
def test_a_message_that_is_a_transaction_of_its_own_goes_to_all_or_none(world: World, client: Client) -> None:
    handle = opened(client, f"t1,t2,{REMOTE}")
    assert client.ok(Frame.SEND, [handle, SINGLE, [[b"1"], [b"2"]]]) == [2, []]
    assert bodies(world, "t1", "t2", REMOTE) == [[b"1", b"2"]] * 3
    client.ok(Frame.SET_QUEUE, ["t2", {"quota_kb": 0}])
    count, refusals = client.ok(Frame.SEND, [handle, SINGLE, [[b"3"]]])
    assert (count, refusals[0][2]) == (0, "MQ_ERROR_INSUFFICIENT_RESOURCES")
    assert bodies(world, "t1", "t2", REMOTE) == [[b"1", b"2"]] * 3
    count, refusals = client.ok(Frame.SEND, [handle, 0, [[b"4"]]])
    assert (count, refusals[0][2]) == (0, "MQ_ERROR_TRANSACTION_USAGE")
    assert len(world.manager.transactions) == 0


@pytest.mark.rule("DM-175", "DM-176")
@pytest.mark.parametrize("end", [Frame.COMMIT, Frame.ABORT])
def test_copies_in_a_transaction(world: World, client: Client, end: Frame) -> None:
    handle = opened(client, "t1,t2")
    client.ok(Frame.BEGIN, [1])
    assert client.ok(Frame.SEND, [handle, 0, [[b"1"], [b"2"]], 1]) == [2, []]
    assert bodies(world, "t1", "t2") == [[], []]
    client.ok(end, [1])
    assert bodies(world, "t1", "t2") == [[b"1", b"2"] if end is Frame.COMMIT else []] * 2
    assert client.refused(Frame.SEND, [handle, 0, [[b"3"]], 1]) == "MQ_ERROR_TRANSACTION_SEQUENCE"


def test_a_commit_that_fails_is_a_refusal(world: World, client: Client) -> None:
    handle = opened(client, "a,b")
    number = client.send(Frame.SEND, [handle, 0, [[b"1", "", 1]]])
    world.writer.fail_commit(1, 28)
    world.commit()
    (answer,) = [value for _, got, value in client.read() if got == number]
    assert (answer[0], answer[1][0][2]) == (0, "MQ_ERROR_MESSAGE_STORAGE_FAILED")
    assert bodies(world, "a", "b") == [[], []]


@pytest.mark.parametrize("access", [int(Access.RECEIVE), int(Access.SEND | Access.RECEIVE), int(Access.PEEK)])
@pytest.mark.rule("DM-070")
def test_several_queues_are_opened_for_sending_only(client: Client, world: World, access: int) -> None:
    assert (
        client.refused(Frame.OPEN, [f"{DIRECT},{REMOTE}", access])
        == "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"
    )
    assert not any(queue.descriptors for queue in world.manager.queues())


def test_a_copy_of_messages_needs_one_target(client: Client) -> None:
    several = opened(client, "a,b")
    source = client.ok(Frame.OPEN, ["z", int(Access.RECEIVE)])[0]
    assert client.refused(Frame.RELOCATE, [source, several, True]) == "MQ_ERROR_UNSUPPORTED_ACCESS_MODE"


OTHER = rf"PRIVATE={UUID(int=9)}\00000007"
DIRECT = r"DIRECT=OS:here\private$\b"


def names(*texts: str) -> tuple[FormatName, ...]:
    return parse_format_names(",".join(texts))


@pytest.mark.rule("DM-182")
@pytest.mark.parametrize("destination", ["a", f"a,{REMOTE}"])
def test_several_response_and_admin_queues_travel_in_the_multi_header(
    world: World, client: Client, destination: str
) -> None:
    handle = opened(client, destination)
    plain: list[object] = [b"plain", "", 0, 3, 0, 0, b"", b"", REMOTE]
    listed: list[object] = [b"listed", "", 0, 3, 0, 0, b"", b"", f"b,{OTHER}", f"{REMOTE},b", 1]
    unasked: list[object] = [b"unasked", "", 0, 3, 0, 0, b"", b"", None, f"{REMOTE},b", 0]
    assert client.ok(Frame.SEND, [handle, 0, [plain, listed, unasked]])[0] == 3
    first, second, third = kept(world, "a")
    several = "," in destination
    assert (first.response_queue, first.response_queues) == (names(REMOTE)[0], ())
    assert bool(first.destinations) is several
    assert second.response_queues == names(DIRECT, OTHER)
    assert second.response_queue == names(DIRECT)[0]
    assert second.admin_queues == names(REMOTE, DIRECT)
    assert second.admin_queue == names(REMOTE)[0]
    assert third.admin_queues == ()
    assert third.admin_queue is None


def test_a_bad_list_of_response_queues_refuses_its_message_alone(world: World, client: Client) -> None:
    handle = opened(client, "a")
    bad: list[object] = [b"x", "", 0, 3, 0, 0, b"", b"", "b,DIRECT=nonsense"]
    multicast: list[object] = [b"x", "", 0, 3, 0, 0, b"", b"", "b,MULTICAST=234.1.1.1:8001"]
    count, refusals = client.ok(Frame.SEND, [handle, 0, [bad, [b"good"], multicast]])
    assert count == 1
    assert [(entry[0], entry[2]) for entry in refusals] == [
        (0, "MQ_ERROR_ILLEGAL_FORMATNAME"),
        (2, "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"),
    ]
    assert bodies(world, "a") == [[b"good"]]


@pytest.mark.rule("X-77")
@pytest.mark.parametrize(
    ("given", "kept_as"), [(None, 77), (0xFFFFFFFE, 77), (5, 5), (0xFFFFFFFF, 0xFFFFFFFF)]
)
def test_a_message_without_a_time_to_reach_its_queue_gets_the_one_of_the_queue_manager(
    given: int | None, kept_as: int
) -> None:
    world = World()
    world.manager.settings = replace(world.manager.settings, long_lived=77)
    client = world.client()
    for recipients in (REMOTE, rf"{REMOTE},DIRECT=TCP:10.0.0.8\private$\far"):
        handle = opened(client, recipients)
        client.ok(Frame.SEND, [handle, 0, [[b"x", "", 0, *[None] * 9, given]]])
    assert [message.time_to_reach_queue for message in kept(world, REMOTE)] == [kept_as] * 2
