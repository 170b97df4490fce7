"""Creating, finding, opening, purging and deleting queues."""

from __future__ import annotations

import gc
import itertools
import weakref
from dataclasses import asdict
from uuid import UUID

import pytest

from msmq_fast.packet import Message
from msmq_fast.protocol import errors
from msmq_fast.qm.access import Access, Share, excludes
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.queues.outgoing import ConnectionStatus, OutgoingQueue, OutgoingState
from msmq_fast.qm.queues.queue import Privacy, QueueKind
from msmq_fast.qm.services import State
from tests.support.clocks import WALL
from tests.support.worlds.queue_manager import World, body, tell


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.rule("DM-057", "DM-058", "DM-061", "KV-06")
def test_a_created_queue_has_its_properties(world: World) -> None:
    queue = world.create(r".\private$\Orders", label="new orders", quota_kb=9, base_priority=-3)
    assert world.manager.find("orders") is queue
    assert world.manager.find(str(queue.format_name(world.manager.guid))) is queue
    assert queue.name == r"HOST\private$\Orders"
    assert (queue.kind, queue.created, queue.modified) == (QueueKind.PRIVATE, WALL, WALL)
    assert (queue.properties.label, queue.properties.quota_kb, queue.properties.base_priority) == (
        "new orders",
        9,
        -3,
    )
    assert (queue.active, queue.bytes) == (False, 0)
    news = world.create(r".\news")
    assert news.kind is QueueKind.PUBLIC
    assert world.manager.find(f"PUBLIC={news.guid}") is news


@pytest.mark.rule("DM-057")
def test_every_property_is_as_it_was_given(world: World) -> None:
    values: dict[str, object] = {
        "label": "all of them",
        "type": UUID(int=77),
        "journaling": True,
        "quota_kb": 9,
        "journal_quota_kb": 8,
        "authenticated": True,
        "privacy": Privacy.BODY,
        "transactional": False,
        "multicast_address": "234.1.1.1:8001",
        "base_priority": -3,
        "poison_after": 5,
    }
    assert asdict(world.create("all", **values).properties) == values
    assert world.create("strict", transactional=True).transactional
    world.crash()
    assert asdict(world.manager.find("all").properties) == values
    assert world.manager.find("strict").transactional


@pytest.mark.rule("DM-199", "KV-06")
def test_a_queue_without_properties_has_the_defaults(world: World) -> None:
    queue = world.create()
    properties = queue.properties
    assert (properties.label, properties.type) == ("", UUID(int=0))
    assert (properties.journaling, properties.authenticated, properties.transactional) == (
        False,
        False,
        False,
    )
    assert properties.quota_kb == properties.journal_quota_kb == 0xFFFFFFFF
    assert (properties.privacy, properties.multicast_address) == (Privacy.OPTIONAL, "")
    assert (properties.base_priority, properties.poison_after) == (0, 0)
    assert queue.security == world.manager.guard.new_descriptor(None, None)
    assert queue.security.dacl is not None
    for _ in range(30):
        world.send(bytes(1 << 16))  # no quota refuses anything
    assert queue.messages == 30
    world.crash()
    again = world.manager.find("orders")
    assert (again.properties, again.security) == (properties, queue.security)


@pytest.mark.rule("DM-090")
@pytest.mark.parametrize("deleted", [False, True])
def test_a_closed_handle_leaves_nothing_behind(world: World, deleted: bool) -> None:
    queue = world.create()
    handles: list[weakref.ref[OpenQueue]] = []
    for _ in range(2_000):
        handle = world.reader()
        first, second = handle.open_cursor(), handle.open_cursor()
        waiting = first.receive(None)
        if deleted and not handles:
            world.finish(world.manager.delete_queue("orders"))
            world.create()
        handle.close()
        assert isinstance(waiting.completion.exception(), (errors.OperationCancelled, errors.QueueDeleted))
        for cursor in (first, second):
            with pytest.raises(errors.MSMQError):
                cursor.peek(0)
        assert not handle.cursors
        handles.append(weakref.ref(handle))
        del handle, first, second, cursor, waiting
    world.run()
    assert not queue.descriptors
    assert not world.manager.find("orders").descriptors
    gc.collect()
    assert not [handle for handle in handles if handle() is not None]


@pytest.mark.rule("DM-062", "DM-055")
@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("ORDERS", errors.QueueExists),
        (r"other\private$\x", errors.IllegalQueuePathName),
        (r".\private$\a;sub", errors.IllegalQueuePathName),
        (r".\private$\a;JOURNAL", errors.IllegalQueuePathName),
        (r".\system$;journal", errors.IllegalQueuePathName),
        ("a+b", errors.IllegalQueuePathName),
        ("order_queue$", errors.QueueExists),
    ],
)
def test_a_path_that_is_taken_or_not_local_creates_nothing(
    world: World, path: str, error: type[errors.MSMQError]
) -> None:
    world.create("orders")
    before = len(list(world.manager.queues()))
    with pytest.raises(error):
        world.manager.create_queue(path)
    assert len(list(world.manager.queues())) == before


@pytest.mark.rule("DM-063")
@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"colour": "red"}, errors.PropertyError),
        ({"label": "x" * 125}, errors.IllegalPropertyValue),
        ({"quota_kb": -1}, errors.IllegalPropertyValue),
        ({"quota_kb": 1 << 32}, errors.IllegalPropertyValue),
        ({"privacy": 3}, errors.IllegalPropertyValue),
        ({"base_priority": 40_000}, errors.IllegalPropertyValue),
        ({"transactional": 1}, errors.IllegalPropertyValue),
        ({"transactional": True, "multicast_address": "234.1.1.1:8001"}, errors.PropertyError),
    ],
)
def test_a_wrong_property_creates_nothing(
    world: World, values: dict[str, object], error: type[errors.MSMQError]
) -> None:
    with pytest.raises(error):
        world.manager.create_queue("orders", **values)
    with pytest.raises(errors.QueueNotFound):
        world.manager.find("orders")


@pytest.mark.rule("DM-062")
def test_each_queue_has_an_identifier_of_its_own(world: World) -> None:
    guids = {world.create(name).guid for name in ("one", "two", "three")}
    assert len(guids) == 3
    assert {guid.version for guid in guids} == {4}  # random ones


@pytest.mark.rule("DM-059")
def test_private_numbers_are_never_used_again(world: World) -> None:
    seen: set[int] = set()
    for round_ in range(30):
        queue = world.create("churn")
        assert queue.private_number > 15
        assert queue.private_number not in seen
        seen.add(queue.private_number)
        world.finish(world.manager.delete_queue("churn"))
        if round_ % 10 == 9:
            world.crash()


@pytest.mark.rule("DM-063", "DU-10", "REC-03")
def test_a_queue_is_there_after_a_crash_only_once_it_was_reported(world: World) -> None:
    done = world.manager.create_queue("early")
    assert not done.done
    world.crash()
    with pytest.raises(errors.QueueNotFound):
        world.manager.find("early")
    queue = world.create("kept", label="stays", transactional=True)
    number, guid = queue.private_number, queue.guid
    world.crash()
    found = world.manager.find("kept")
    assert (found.label, found.transactional, found.private_number, found.guid) == (
        "stays",
        True,
        number,
        guid,
    )


@pytest.mark.rule("DU-17")
def test_properties_change_and_survive(world: World) -> None:
    queue = world.create("orders")
    world.clock.advance(5)
    world.manager.tick()
    world.finish(world.manager.set_properties(queue, label="changed", quota_kb=1))
    with pytest.raises(errors.PropertyError):
        world.manager.set_properties(queue, transactional=True)
    world.crash()
    queue = world.manager.find("orders")
    assert (queue.label, queue.properties.quota_kb, queue.modified) == ("changed", 1, WALL + 5)
    assert queue.core.quota_bytes == 1024


@pytest.mark.rule("DM-075")
def test_every_name_of_a_queue_finds_it(world: World) -> None:
    private = world.create(r".\private$\Orders")
    public = world.create(r".\news")
    guid = world.manager.guid
    for host in (".", "host", "HOST.example.net", "LocalHost"):
        assert world.manager.find(rf"{host}\PRIVATE$\orders") is private
        assert world.manager.find(rf"DIRECT=OS:{host}\private$\ORDERS") is private
    for address in ("10.0.0.7", "127.0.0.1", "[::1]"):
        assert world.manager.find(rf"direct=tcp:{address}\private$\orders") is private
    assert world.manager.find(rf"PRIVATE={guid}\{private.private_number:x}") is private
    assert world.manager.find(rf"PRIVATE={str(guid).upper()}\{private.private_number:08X}") is private
    assert world.manager.find(f"PUBLIC={public.guid}") is public
    assert world.manager.find(r"DIRECT=OS:.\news") is public


@pytest.mark.rule("DM-076", "DM-077", "DM-079")
def test_names_that_find_nothing(world: World) -> None:
    guid = world.manager.guid
    hosts = ["OS:HOST", "OS:host", "OS:.", "OS:localhost", "TCP:127.0.0.1", "TCP:[::1]", "TCP:10.0.0.7"]
    for name in ("none", rf"PRIVATE={guid}\ff", *(rf"DIRECT={host}\private$\none" for host in hosts)):
        for access in (Access.SEND, Access.RECEIVE):
            with pytest.raises(errors.QueueNotFound):
                world.manager.open(name, access)
    for name in (r"DIRECT=OS:other\private$\q", r"other\q"):
        with pytest.raises(errors.QueueNotFound):
            world.manager.open(name, Access.RECEIVE)
    assert not list(world.manager.outgoing())


@pytest.mark.rule("QB-001")
@pytest.mark.parametrize("address", ["SPX:00000012.123456789abc", "IPX:00000012:123456789abc"])
@pytest.mark.parametrize("access", [Access.SEND, Access.RECEIVE])
def test_there_is_no_transport_for_other_networks_than_tcp(
    world: World, address: str, access: Access
) -> None:
    with pytest.raises(errors.UnsupportedFormatNameOperation):
        world.manager.open(rf"DIRECT={address}\private$\q", access)
    assert not list(world.manager.outgoing())


@pytest.mark.rule("DM-078")
def test_a_public_name_of_an_unknown_queue_needs_a_directory(world: World) -> None:
    with pytest.raises(errors.UnsupportedFormatNameOperation):
        world.manager.open("PUBLIC=00000000-0000-0000-0000-000000000001", Access.SEND)


@pytest.mark.rule("QB-263")
def test_a_packet_field_finds_the_queue_whatever_host_it_names(world: World) -> None:
    queue = world.create("orders")
    name = (r"OS:somewhere\private$\ORDERS" + "\0").encode("utf-16-le")
    wire = len(name).to_bytes(2, "little") + name
    assert world.manager.find_field(7, wire) is queue
    assert world.manager.find_field(3, queue.private_number.to_bytes(4, "little")) is queue
    assert world.manager.find_field(3, (999).to_bytes(4, "little")) is None
    assert world.manager.find_field(5, bytes(16)) is None
    assert world.manager.find_field(7, b"\x02\0\0\0") is None
    assert world.manager.find_field(0, b"") is None


@pytest.mark.rule("DM-011", "X-20", "X-21", "X-22")
def test_system_queues(world: World) -> None:
    guid = world.manager.guid
    for suffix in ("DEADLETTER", "DEADXACT", "JOURNAL"):
        queue = world.manager.find(rf".\system$;{suffix}")
        assert queue is world.manager.find(f"MACHINE={guid};{suffix}")
        assert queue is world.manager.find(rf"DIRECT=OS:HOST\SYSTEM$;{suffix.lower()}")
        assert queue.transactional is (suffix == "DEADXACT")
        world.manager.open(queue.name, Access.RECEIVE).close()
        with pytest.raises(errors.UnsupportedAccessMode):
            world.manager.open(queue.name, Access.SEND)
        with pytest.raises(errors.MSMQError):
            world.manager.delete_queue(queue.name)


@pytest.mark.rule("DM-012", "X-24", "X-25")
def test_internal_queues_are_found_by_number_and_closed_to_applications(world: World) -> None:
    guid = world.manager.guid
    for number, name in ((4, "order_queue$"), (3, "notify_queue$")):
        queue = world.manager.find(rf"PRIVATE={guid}\{number}")
        assert queue is world.manager.find(rf"DIRECT=OS:HOST\private$\{name}")
        for access in (Access.SEND, Access.RECEIVE):
            with pytest.raises(errors.UnsupportedAccessMode):
                world.manager.open(name, access)
        world.manager.open(name, Access.RECEIVE, internal=True).close()


@pytest.mark.rule("REC-10", "DM-001")
def test_a_second_start_makes_nothing_anew(world: World) -> None:
    guid = world.manager.guid
    before = {queue.key: (queue.ordinal, queue.guid) for queue in world.manager.queues()}
    world.crash()
    assert world.manager.guid == guid
    assert {queue.key: (queue.ordinal, queue.guid) for queue in world.manager.queues()} == before


MODES = list(itertools.product(Access, Share))


@pytest.mark.rule("DM-081", "DM-082", "DM-083", "ST-6")
def test_sharing_matrix() -> None:
    """Rows and columns of ST-6, written out by hand."""
    receive, peek = {Access.RECEIVE, Access.RECEIVE_ADMIN}, {Access.PEEK, Access.PEEK_ADMIN}
    for (old, old_share), (new, new_share) in itertools.product(MODES, MODES):
        if old in receive and old_share is Share.DENY_NONE:
            expected = new_share is Share.DENY_RECEIVE
        elif old in receive:
            expected = new_share is Share.DENY_RECEIVE or new in receive
        elif old in peek and old_share is Share.DENY_RECEIVE:
            expected = new in receive
        else:
            expected = False
        assert excludes(old, old_share, new, new_share) is expected, (old, old_share, new, new_share)


@pytest.mark.rule("DM-084")
def test_sharing_looks_at_all_that_are_open_until_they_close(world: World) -> None:
    world.create()
    peeker = world.manager.open("orders", Access.PEEK)
    exclusive = world.reader(share=Share.DENY_RECEIVE)
    with pytest.raises(errors.SharingViolation):
        world.reader()
    world.sender().close()
    exclusive.close()
    exclusive.close()
    reader = world.reader()
    assert len({handle.handle for handle in (peeker, exclusive, reader)}) == 3


@pytest.mark.rule("DM-086")
def test_send_excludes_nobody(world: World) -> None:
    world.create()
    with pytest.raises(errors.UnsupportedAccessMode):
        world.manager.open("orders", Access.SEND, Share.DENY_RECEIVE)


def test_access_mode_limits_what_a_handle_does(world: World) -> None:
    world.create()
    sender, reader, peeker = world.sender(), world.reader(), world.manager.open("orders", Access.PEEK)
    for call in (
        lambda: sender.receive(0),
        lambda: sender.purge(),
        lambda: sender.receive(0, peek=True),
        lambda: reader.send(Message()),
        lambda: reader.send_packets([]),
        lambda: peeker.receive(0),
        lambda: peeker.purge(),
        lambda: peeker.subscribe(lambda _: None, 1, acknowledge=False),
    ):
        with pytest.raises(errors.AccessDenied):
            call()
    reader.close()
    with pytest.raises(errors.InvalidHandle):
        reader.receive(0)


@pytest.mark.rule("DM-064", "DM-065", "DM-066", "DM-108", "DM-127", "DU-09")
def test_a_deleted_queue_is_gone_and_its_handles_are_orphans(world: World) -> None:
    world.create()
    world.send(b"1")
    world.send(b"2", delivery=0)
    reader, sender = world.reader(), world.sender()
    world.finish(world.manager.delete_queue("orders"))
    with pytest.raises(errors.QueueNotFound):
        world.manager.find("orders")
    for call in (lambda: reader.receive(0), lambda: reader.purge(), lambda: reader.lookup(1, 3)):
        with pytest.raises(errors.QueueNotAvailable):
            call()
    with pytest.raises(errors.QueueDeleted):
        sender.send(Message())
    reader.close()
    world.run()
    assert world.manager.ledger.bytes == 0
    assert not world.store.tables.tables[1]
    assert not world.store.tables.tables[2]
    world.crash()
    with pytest.raises(errors.QueueNotFound):
        world.manager.find("orders")


@pytest.mark.rule("DM-068", "ST-5")
def test_deleting_a_queue_ends_waiting_reads(world: World) -> None:
    world.create()
    request = world.reader().receive(None)
    ended: list[errors.MSMQError] = []
    world.reader().subscribe(lambda _: None, 5, acknowledge=True, on_end=ended.append)
    world.manager.delete_queue("orders")
    with pytest.raises(errors.QueueDeleted):
        request.completion.result()
    assert [type(error) for error in ended] == [errors.QueueDeleted]


@pytest.mark.rule("REC-03")
def test_a_crash_while_a_deleted_queue_is_cleared_goes_on_clearing(world: World) -> None:
    world = World(purge_batch=10)
    world.create()
    for number in range(50):
        world.send(b"%d" % number)
    done = world.manager.delete_queue("orders")
    world.writer.complete_all()
    assert done.done
    world.manager.expire(world.manager.monotonic())
    world.writer.complete_all()
    assert len(world.store.tables.tables[1]) == 40
    world.crash()
    world.run()
    assert not world.store.tables.tables[1]
    assert not [1 for ordinal, _ in world.manager.records.queues(pytest.fail) if ordinal > 15]
    world.create()
    assert world.bodies() == []


@pytest.mark.rule("DM-092", "DU-08")
def test_purge_removes_what_is_there_and_nothing_later(world: World) -> None:
    world = World(purge_batch=7)
    world.create()
    for number in range(20):
        world.send(b"%d" % number, delivery=number % 2)
    reader = world.reader()
    done = reader.purge()
    assert world.manager.find("orders").messages == 0
    assert not done.done
    world.writer.complete_all()
    assert done.result() == 20
    sender = world.sender()
    sender.send(Message(body=b"later", delivery=1))
    world.writer.complete_all()
    world.crash()
    world.run()
    assert world.bodies() == [b"later"]
    assert len(world.store.tables.tables[1]) == 1
    assert world.manager.find("orders").purged_to == 0


@pytest.mark.rule("DM-093")
def test_purge_takes_locked_messages_when_they_are_released(world: World) -> None:
    world.create()
    keys = [world.send(b"1"), world.send(b"2")]
    got: list[bytes] = []
    subscription = world.reader().subscribe(lambda batch: got.extend(map(body, batch)), 2, acknowledge=True)
    assert got == [b"1", b"2"]
    assert world.finish(world.reader().purge()) == 0
    acked = subscription.ack(keys[:1])
    assert world.finish(acked) == 1
    assert subscription.release(keys[1:]) == 0
    world.run()
    assert world.bodies() == []
    assert not world.store.tables.tables[1]
    assert world.manager.find("orders").purged_to == 0


@pytest.mark.rule("DM-017", "DM-080", "DU-02", "QB-166")
def test_sending_elsewhere_makes_a_lasting_outgoing_queue(world: World) -> None:
    name = r"DIRECT=OS:other\private$\q"
    world.send(b"away", name)
    (outgoing,) = world.manager.outgoing()
    assert (outgoing.name, outgoing.outgoing_state, outgoing.label) == (name, OutgoingState.INACTIVE, name)
    assert world.sender(name.upper().replace("DIRECT=OS", "Direct=os")).queue is outgoing
    assert world.manager.open(name, Access.PEEK_ADMIN).queue is outgoing
    world.send(b"other name", r"DIRECT=OS:other.example.net\private$\q")
    assert len(list(world.manager.outgoing())) == 2
    world.crash()
    assert world.bodies(name) == [b"away"]
    reader = world.manager.open(name, Access.RECEIVE_ADMIN)
    assert body(world.finish(reader.receive(0).completion)) == b"away"


def test_whoever_transfers_hears_of_outgoing_messages(world: World) -> None:
    name = r"DIRECT=OS:other\private$\q"
    heard: list[tuple[str, list[bytes]]] = []

    def transfer(queue: OutgoingQueue) -> None:
        heard.append((queue.name, [body(message) for message in queue.core.take(10, 1 << 20, 99)]))

    tell(world.manager, transfer)
    for delivery in (0, 1):
        world.send(b"%d" % delivery, name, delivery=delivery)
    assert heard == [(name, [b"0"]), (name, [b"1"])]


@pytest.mark.rule("DM-044", "ST-4", "REC-10")
def test_a_paused_outgoing_queue_stays_paused_over_a_restart(world: World) -> None:
    name = r"DIRECT=OS:other\private$\q"
    heard: list[str] = []
    tell(world.manager, lambda queue: heard.append(queue.name))
    world.sender(name)
    world.finish(world.manager.pause(world.manager.find(name)))  # type: ignore[arg-type]
    world.send(b"1", name)
    world.crash()
    tell(world.manager, lambda queue: heard.append(queue.name))
    world.run()
    (queue,) = world.manager.outgoing()
    queue.set_state(OutgoingState.CONNECTED)
    assert (queue.outgoing_state, heard) == (OutgoingState.ON_HOLD, [])
    world.finish(world.manager.resume(queue))
    assert queue.outgoing_state is OutgoingState.INACTIVE
    assert set(heard) == {name}


def test_connection_history_is_bounded(world: World) -> None:
    world.sender(r"DIRECT=OS:other\private$\q")
    (queue,) = world.manager.outgoing()
    for number in range(25):
        queue.note(ConnectionStatus.SOCKET_CONNECT_FAILURE, WALL + number)
    assert [event.time for event in queue.history] == [WALL + number for number in range(15, 25)]


@pytest.mark.rule("ST-7")
def test_only_a_ready_queue_manager_serves(world: World) -> None:
    world.create()
    world.manager.stop()
    assert world.manager.state is State.STOPPING
    for call in (
        lambda: world.manager.open("orders", Access.SEND),
        lambda: world.manager.create_queue("x"),
        lambda: world.manager.delete_queue("orders"),
    ):
        with pytest.raises(errors.ServiceNotAvailable):
            call()
