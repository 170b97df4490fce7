"""Names of several queues: what opens them, and what becomes of the copies."""

from __future__ import annotations

from functools import partial
from uuid import UUID

import pytest

from msmq_fast._native.framing import parse
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import not_found
from msmq_fast.packet import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.packet.user import TransactionHeader
from msmq_fast.packet.user_message import UserMessagePacket
from msmq_fast.protocol import errors
from msmq_fast.qm.access import Access, Share
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.transactions.multiple import MultipleQueue
from msmq_fast.store.completion import Completion
from tests.support.worlds.queue_manager import World

LIST = UUID("11111111-0000-0000-0000-000000000001")
REMOTE = r"DIRECT=TCP:10.0.0.9\private$\far"
LOCAL_A, LOCAL_B = (rf"DIRECT=OS:HOST\private$\{name}" for name in "ab")


def made(**settings: object) -> World:
    world = World(**settings)
    for name in "abc":
        world.create(name)
    return world


def opened(world: World, name: str) -> MultipleQueue:
    handle = world.manager.open_destinations(name, Access.SEND)
    assert isinstance(handle, MultipleQueue)
    return handle


def packets(world: World, name: str) -> list[bytes]:
    queue = world.manager.find(name)
    found: list[bytes] = []
    for key in queue.core.positions.keys():  # noqa: SIM118 - no mapping
        queue.core.peek(key, lambda message, _status: found.append(message.packet))
        world.store.reader.complete()
    return found


@pytest.mark.rule("DM-070", "DM-071")
def test_a_descriptor_of_several_queues_has_children_and_no_queue_of_its_own() -> None:
    world = made()
    handle = opened(world, f"b,{REMOTE},a")
    assert handle.names == tuple(parse_format_name(name) for name in sorted((LOCAL_A, LOCAL_B, REMOTE)))
    assert handle.format_name == ",".join(str(name) for name in handle.names)
    assert not hasattr(handle, "queue")
    assert handle.handle not in [child.handle for child in handle.children]
    assert all(child.access is Access.SEND and child.share is Share.DENY_NONE for child in handle.children)
    assert [child.queue.descriptors for child in handle.children] == [[child] for child in handle.children]


@pytest.mark.rule("DM-070", "DM-086")
def test_several_queues_are_opened_for_sending_and_shared_with_everybody_only() -> None:
    world = made()
    for access in (Access.RECEIVE, Access.PEEK, Access.MOVE):
        with pytest.raises(errors.UnsupportedFormatNameOperation):
            world.manager.open_destinations("a,b", access)
        with pytest.raises(errors.UnsupportedFormatNameOperation):
            world.manager.open(f"{LOCAL_A},{LOCAL_B}", access)
    with pytest.raises(errors.UnsupportedAccessMode):
        world.manager.open_destinations("a,b", Access.SEND, Share.DENY_RECEIVE)
    assert not any(queue.descriptors for queue in world.manager.queues())


@pytest.mark.rule("DM-071")
@pytest.mark.parametrize("name", ["a,nowhere,b", "a,b,b;sub", rf"a,b,MULTICAST=234.1.1.1:8001,{REMOTE}"])
def test_the_first_failure_closes_what_was_opened(name: str) -> None:
    world = made()
    with pytest.raises(errors.MSMQError):
        world.manager.open_destinations(name, Access.SEND)
    assert not any(queue.descriptors for queue in world.manager.queues())


@pytest.mark.rule("DM-069", "DM-237", "DM-238")
def test_one_name_in_the_end_is_an_ordinary_descriptor() -> None:
    world = made()
    assert isinstance(world.manager.open_destinations("a", Access.RECEIVE), OpenQueue)
    twice = world.manager.open_destinations(f"a,{LOCAL_A}", Access.SEND)
    assert isinstance(twice, OpenQueue)
    assert twice.queue.name == world.manager.find("a").name


@pytest.mark.rule("DM-069", "DM-236")
def test_distribution_lists_are_expanded_however_they_are_nested() -> None:
    world = made()
    inner = UUID(int=2)
    members = {LIST: (LOCAL_A, f"DL={inner}", REMOTE), inner: (LOCAL_B, f"DL={LIST}", LOCAL_A)}
    provide(world, members)
    handle = opened(world, f"DL={LIST}")
    assert [str(name) for name in handle.names] == sorted((LOCAL_A, LOCAL_B, REMOTE))
    assert len(opened(world, f"DL={LIST},c").names) == 4
    provide(world, {LIST: (LOCAL_A,)})
    assert isinstance(world.manager.open_destinations(f"DL={LIST}", Access.RECEIVE), OpenQueue)
    with pytest.raises(errors.IllegalFormatName):
        world.manager.open_destinations(f"DL={inner}", Access.SEND)


def provide(world: World, members: dict[UUID, tuple[str, ...]]) -> None:
    """The directory has these distribution lists."""

    def resolve_list(guid: UUID, domain: str) -> Completion[tuple[str, ...]]:
        if guid in members:
            return Completion.of(members[guid])
        failed: Completion[tuple[str, ...]] = Completion()
        failed.fail(not_found(ObjectType.DISTRIBUTION_LIST, "there is none"))
        return failed

    world.manager.directory.events.provider.resolve_list = resolve_list  # type: ignore[method-assign]


@pytest.mark.rule("DM-088")
def test_closing_it_closes_every_child_also_of_a_deleted_queue() -> None:
    world = made()
    handle = opened(world, "a,b,c")
    world.finish(world.manager.delete_queue("b"))
    handle.close()
    handle.close()
    assert all(child.closed for child in handle.children)
    assert not any(queue.descriptors for queue in world.manager.queues())
    with pytest.raises(errors.InvalidHandle):
        handle.send(Message())


@pytest.mark.rule("DM-175", "DM-182")
@pytest.mark.parametrize("delivery", [0, 1])
def test_every_queue_gets_a_copy_that_names_all_destinations(delivery: int) -> None:
    world = made()
    handle = opened(world, f"a,b,{REMOTE}")
    done = handle.send(Message(body=b"news", label="l", delivery=delivery))
    assert done.done is (delivery == 0)
    sent = world.finish(done)
    numbers = []
    for child, copy in zip(handle.children, sent, strict=True):
        (packet,) = packets(world, str(child.format_name))
        message = Message.from_packet(packet)
        assert (message.body, message.label, message.destination) == (b"news", "l", child.format_name)
        assert message.destinations == handle.names
        assert message.source_machine == world.manager.guid
        assert message.message_id == copy.message_id
        header = UserMessagePacket.decode(packet)[0].multi
        assert header is not None
        assert [element.kind for element in header.destination.elements] == [3, 3, 3]
        numbers.append(copy.message_id)
    assert numbers == list(range(numbers[0], numbers[0] + 3))


@pytest.mark.rule("DM-175")
def test_copies_have_one_identifier_where_that_is_configured() -> None:
    world = made(own_copy_ids=False)
    first, second = (world.finish(opened(world, "a,b").send(Message())) for _ in range(2))
    assert {copy.message_id for copy in first} == {first[0].message_id}
    assert second[0].message_id == first[0].message_id + 1


@pytest.mark.rule("DM-175")
def test_a_private_destination_names_its_queue_manager() -> None:
    world = made()
    other = UUID(int=77)
    handle = opened(world, rf"PRIVATE={other}\00000005,a")
    world.finish(handle.send(Message()))
    (packet,) = packets(world, rf"PRIVATE={other}\00000005")
    assert UUID(bytes_le=parse(packet).destination_manager) == other


@pytest.mark.rule("DM-176")
def test_the_first_queue_that_refuses_decides_and_copies_before_it_stay() -> None:
    world = made()
    world.create("full", quota_kb=0)
    world.create("z")
    handle = opened(world, "a,full,z")
    with pytest.raises(errors.InsufficientResources):
        handle.send(Message(delivery=1))
    world.run()
    assert [world.manager.find(name).messages for name in ("a", "full", "z")] == [1, 0, 0]


@pytest.mark.rule("DM-176")
def test_a_transactional_destination_refuses_a_plain_message_before_there_is_any_copy() -> None:
    world = made()
    world.create("tx", transactional=True)
    with pytest.raises(errors.TransactionUsage):
        opened(world, "a,tx").send(Message())
    assert world.manager.find("a").messages == 0
    transaction = world.manager.transactions.begin()
    with pytest.raises(errors.TransactionUsage):
        opened(world, "a,tx").send_in(transaction, Message())
    assert transaction.operations.enqueued == 0


@pytest.mark.rule("DM-175", "DM-176", "DM-024")
@pytest.mark.parametrize("commit", [True, False])
def test_in_a_transaction_the_copies_come_with_the_commit_or_not_at_all(commit: bool) -> None:
    world = made()
    for name in ("tx1", "tx2"):
        world.create(name, transactional=True)
    handle = opened(world, f"tx1,tx2,{REMOTE}")
    transaction = world.manager.transactions.begin()
    handle.send_in(transaction, Message(body=b"1"))
    handle.send_in(transaction, Message(body=b"2"))
    world.run()
    names = [str(child.format_name) for child in handle.children]
    assert [world.manager.find(name).messages for name in names] == [0, 0, 0]
    world.finish(transaction.commit() if commit else transaction.abort())
    assert [world.bodies(name) for name in names] == [[b"1", b"2"] if commit else []] * 3
    for name in names if commit else []:
        headers = [UserMessagePacket.decode(packet)[0].transaction for packet in packets(world, name)]
        assert [(h.first, h.last) for h in headers if h is not None] == [(True, False), (False, True)]


@pytest.mark.rule("DM-176")
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("what", ["queue quota", "computer quota"])
def test_a_copy_without_room_leaves_no_other_in_the_transaction(alone: bool, what: str) -> None:
    world = made()
    for name in ("tx1", "tx2"):
        world.create(name, transactional=True)
    handle = opened(world, "tx1,tx2")
    message = Message(body=bytes(600))
    size = len(Message(body=bytes(600), destinations=handle.names, destination=handle.names[0]).to_packet())
    if what == "queue quota":
        world.finish(world.manager.set_properties(world.manager.find("tx2"), quota_kb=0))
    else:
        world.manager.ledger.quota_bytes = world.manager.ledger.bytes + 2 * size
    transaction = world.manager.transactions.begin()
    send = handle.send_alone if alone else partial(handle.send_in, transaction)
    with pytest.raises(errors.InsufficientResources):
        send(message)
    world.run()
    assert transaction.operations.enqueued == 0
    world.finish(transaction.commit())
    assert [world.manager.find(name).messages for name in ("tx1", "tx2")] == [0, 0]
    assert world.manager.ledger.bytes == 0


@pytest.mark.rule("DM-175", "DM-176")
def test_a_transaction_takes_copies_up_to_the_last_byte_of_the_quotas_and_until_it_ends() -> None:
    world = made()
    names = (r"DIRECT=OS:HOST\private$\tx", r"DIRECT=TCP:10.0.0.7\private$\tx")  # one queue by two names
    queue = world.create("tx", transactional=True)
    handle = opened(world, ",".join(names))
    sizes = [
        len(
            Message(
                body=bytes(600), destinations=handle.names, destination=name, transaction=header
            ).to_packet()
        )
        for name in handle.names
        if (header := TransactionHeader(0, 0, 0))
    ]
    world.manager.ledger.quota_bytes = sum(sizes)
    queue.core.quota_bytes = sum(sizes)
    transaction = world.manager.transactions.begin()
    handle.send_in(transaction, Message(body=bytes(600)))
    with pytest.raises(errors.InsufficientResources):
        handle.send_in(transaction, Message())
    world.finish(transaction.commit())
    headers = [UserMessagePacket.decode(packet)[0].transaction for packet in packets(world, "tx")]
    assert [(h.first, h.last) for h in headers if h is not None] == [(True, False), (False, True)]
    with pytest.raises(errors.TransactionSequence):
        handle.send_in(transaction, Message())


@pytest.mark.rule("DM-176")
def test_subqueues_count_in_the_room_for_copies() -> None:
    world = made()
    queue = world.create("tx", transactional=True)
    world.create("tx2", transactional=True)
    handle = opened(world, "tx,tx2")
    world.finish(handle.send_alone(Message(body=bytes(600))))
    mover = world.manager.open("tx;aside", Access.MOVE)
    (key,) = queue.core.positions.keys()
    world.finish(world.reader("tx").move(key, mover))
    assert queue.core.used_bytes == 0
    queue.core.quota_bytes = queue.core.sub_bytes
    with pytest.raises(errors.InsufficientResources):
        handle.send_alone(Message(body=bytes(600)))
    assert world.manager.find("tx2").messages == 1
    assert len(world.manager.transactions) == 0


@pytest.mark.rule("DM-175")
def test_copies_are_kept_when_the_last_of_them_is() -> None:
    world = made()
    done = opened(world, "a,b,c").send(Message(body=bytes(700_000), delivery=1))
    world.manager.before_submit()
    world.writer.submit()
    while world.writer.complete_one():
        kept = [world.manager.find(name).messages for name in "abc"]
        assert done.done is (kept == [1, 1, 1])
        world.writer.submit()
    assert len(done.result()) == 3


@pytest.mark.rule("DM-175")
def test_copies_that_the_disk_does_not_keep() -> None:
    world = made()
    done = opened(world, "a,b").send(Message(delivery=1))
    world.writer.fail_commit(1, 28)
    world.run()
    with pytest.raises(errors.MessageStorageFailed):
        done.result()


@pytest.mark.rule("DM-176", "DM-024")
def test_a_message_alone_in_its_transaction_is_first_and_last() -> None:
    world = made()
    for name in ("tx1", "tx2"):
        world.create(name, transactional=True)
    done = opened(world, "tx1,tx2").send_alone(Message(body=b"x"))
    assert not done.done
    ordinals = world.finish(done)
    assert len(ordinals) == 2
    for name in ("tx1", "tx2"):
        (packet,) = packets(world, name)
        header = UserMessagePacket.decode(packet)[0].transaction
        assert header is not None
        assert (header.first, header.last) == (True, True)
    world.crash()
    assert world.bodies("tx1") == world.bodies("tx2") == [b"x"]


# ------------------------------------------------------------------------------------------ opening rules

HTTP = "DIRECT=HTTP://far.example.net/msmq/private$/q"


@pytest.mark.rule("DM-072", "DM-073", "DM-074")
@pytest.mark.parametrize(
    ("name", "send", "receive"),
    [
        (HTTP, "sending by HTTP is disabled", "for sending only"),
        (HTTP.replace("HTTP:", "HTTPS:"), "sending by HTTP is disabled", "for sending only"),
        ("MULTICAST=234.1.1.1:8001", "sending by multicast is disabled", "for sending only"),
    ],
)
def test_names_without_a_transport(name: str, send: str, receive: str) -> None:
    world = made()
    with pytest.raises(errors.UnsupportedFormatNameOperation, match=send):
        world.manager.open(name, Access.SEND)
    for access in (Access.RECEIVE, Access.PEEK, Access.MOVE, Access.RECEIVE_ADMIN):
        with pytest.raises(errors.UnsupportedFormatNameOperation, match=receive):
            world.manager.open(name, access)
    with pytest.raises(errors.UnsupportedFormatNameOperation):
        world.manager.destinations.of_answer(parse_format_name(name))
    assert list(world.manager.outgoing()) == []


@pytest.mark.rule("DM-073")
@pytest.mark.parametrize("own", [True, False])
def test_nothing_is_sent_to_the_queues_of_a_machine_name(own: bool) -> None:
    world = made()
    guid = world.manager.guid if own else UUID(int=5)
    with pytest.raises(errors.UnsupportedFormatNameOperation):
        world.manager.open(f"MACHINE={guid};DEADLETTER", Access.SEND)
    if own:
        assert world.manager.open(f"MACHINE={guid};DEADLETTER", Access.RECEIVE).queue.name


def test_as_many_queues_as_copies_fit_into_memory() -> None:
    world = made()
    names = ",".join(rf"DIRECT=OS:far{number}\private$\q" for number in range(1001))
    with pytest.raises(errors.InsufficientResources):
        world.manager.open_destinations(names, Access.SEND)
    assert list(world.manager.outgoing()) == []
