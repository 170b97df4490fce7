"""Subqueues: they come with the first open, go when they are empty, and have nothing of their own."""

from __future__ import annotations

import itertools

import pytest

from msmq_fast.packet import Message
from msmq_fast.packet.fields import DIRECT
from msmq_fast.protocol import errors
from msmq_fast.qm.access import Access, Share, excludes
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.queues.queue import NOBODY, Queue, QueueKind
from tests.support.worlds.queue_manager import World

PATH = ".\\private$\\orders;Later"


@pytest.fixture
def world() -> World:
    world = World()
    world.create()
    return world


def mover(world: World, name: str = PATH) -> OpenQueue:
    return world.manager.open(name, Access.MOVE)


def fill(world: World, *texts: bytes, delivery: int = 1, name: str = PATH) -> Queue:
    """Messages in a subqueue."""
    target = mover(world, name)
    source = world.reader()
    for text in texts:
        world.finish(source.move(world.send(text, delivery=delivery), target))
    queue = target.queue
    source.close()
    target.close()
    return queue


def exists(world: World) -> bool:
    return bool(world.manager.find("orders").subqueues)


@pytest.mark.rule("DM-087", "X-51", "ST-5")
@pytest.mark.parametrize("access", [Access.RECEIVE, Access.PEEK, Access.MOVE])
def test_opening_a_subqueue_creates_it(world: World, access: Access) -> None:
    with pytest.raises(errors.QueueNotFound):
        world.manager.find(PATH)
    handle = world.manager.open(PATH, access)
    queue = world.manager.find(PATH.upper())
    assert queue is handle.queue
    assert queue.name == "HOST\\private$\\orders;Later"
    assert world.manager.open("DIRECT=OS:HOST\\private$\\orders;later", access).queue is queue
    assert world.manager.find("orders").subqueues == {"later": queue}


@pytest.mark.rule("DM-087", "X-51", "X-50")
@pytest.mark.parametrize(
    ("name", "error"),
    [
        (".\\system$;deadletter;x", errors.IllegalQueuePathName),
        (".\\private$\\orders;journal;x", errors.IllegalQueuePathName),
        (".\\private$\\orders;x;y", errors.IllegalQueuePathName),
        (f".\\private$\\orders;{'x' * 33}", errors.IllegalQueuePathName),
        (".\\private$\\orders;", errors.IllegalQueuePathName),
        (".\\private$\\orders;deadletter", errors.IllegalQueuePathName),
        (".\\private$\\orders;DEADXACT", errors.IllegalQueuePathName),
        (".\\private$\\order_queue$;x", errors.UnsupportedAccessMode),
        (".\\private$\\nobody;x", errors.QueueNotFound),
        ("PRIVATE=00000000-0000-0000-0000-000000000001\\00000010;x", errors.IllegalFormatName),
    ],
)
def test_where_there_are_no_subqueues(world: World, name: str, error: type[errors.MSMQError]) -> None:
    with pytest.raises(error):
        world.manager.open(name, Access.RECEIVE)
    assert not exists(world)


@pytest.mark.rule("X-50")
def test_a_subqueue_with_the_longest_name(world: World) -> None:
    handle = world.manager.open(f"DIRECT=OS:.\\private$\\orders;{'x' * 32}", Access.RECEIVE)
    assert handle.queue.kind is QueueKind.SUBQUEUE
    assert str(handle.queue.format_name(world.manager.guid)).startswith("DIRECT=")


@pytest.mark.rule("X-52", "DM-055")
def test_applications_do_not_create_subqueues_as_queues(world: World) -> None:
    with pytest.raises(errors.IllegalQueuePathName):
        world.manager.create_queue(PATH)
    mover(world)
    with pytest.raises(errors.UnsupportedFormatNameOperation):
        world.manager.delete_queue(PATH)
    with pytest.raises(errors.UnsupportedFormatNameOperation):
        world.manager.set_properties(world.manager.find(PATH), label="x")


@pytest.mark.rule("DM-086", "X-51", "DM-107")
def test_nothing_is_sent_to_a_subqueue(world: World) -> None:
    for _ in range(2):
        with pytest.raises(errors.UnsupportedAccessMode):
            world.manager.open(PATH, Access.SEND)
        handle = mover(world)
    with pytest.raises(errors.AccessDenied):
        handle.send(Message(body=b"x"))
    with pytest.raises(errors.UnsupportedFormatNameOperation):
        world.manager.open("DIRECT=OS:elsewhere\\private$\\orders;x", Access.SEND)
    wire = "OS:HOST\\private$\\orders;later\0".encode("utf-16-le")
    found = world.manager.find_field(DIRECT, wire)
    assert found is None or found.kind is QueueKind.SUBQUEUE


@pytest.mark.rule("X-51", "DM-091", "ST-5")
@pytest.mark.parametrize("crash", [False, True])
def test_an_empty_subqueue_goes_with_its_last_handle(world: World, crash: bool) -> None:
    first, second = mover(world), mover(world)
    world.run()
    first.close()
    world.run()
    assert exists(world)
    if crash:
        world.crash()
    else:
        second.close()
        world.run()
    assert not exists(world)
    with pytest.raises(errors.QueueNotFound):
        world.manager.find(PATH)
    records = len(world.store.tables.tables[5])
    mover(world).close()
    world.run()
    assert len(world.store.tables.tables[5]) == records


@pytest.mark.rule("X-51", "DM-017", "DM-091")
def test_a_subqueue_stays_until_it_is_empty(world: World) -> None:
    queue = fill(world, b"one", b"two")
    assert queue.messages == 2
    for _ in range(2):
        world.crash()
        assert world.bodies(PATH) == [b"one", b"two"]
        assert world.bodies() == []
    reader = world.reader(PATH)
    for text in (b"one", b"two"):
        assert world.receive(PATH) == text
    world.advance(20)
    assert exists(world)
    reader.close()
    world.run()
    assert not exists(world)


@pytest.mark.rule("X-51")
def test_a_subqueue_that_nobody_has_open_goes_when_its_messages_expire(world: World) -> None:
    target, source = mover(world), world.reader()
    world.finish(source.move(world.send(b"one", time_to_be_received=60), target))
    target.close()
    world.advance(30)
    assert exists(world)
    world.advance(60)
    world.advance(20)
    assert not exists(world)


@pytest.mark.rule("X-34", "X-30")
@pytest.mark.parametrize("delivery", [0, 1])
def test_the_family_has_one_quota(world: World, delivery: int) -> None:
    world.finish(world.manager.set_properties(world.manager.find("orders"), quota_kb=10))
    target, source = mover(world), world.reader()
    keys = [world.send(bytes(2000), delivery=delivery) for _ in range(4)]
    queue = world.manager.find("orders")
    total = queue.core.used_bytes
    for key in keys:
        moved = source.move(key, target)
        with pytest.raises(errors.InsufficientResources):
            world.sender().send(Message(body=bytes(2000), delivery=delivery))
        world.finish(moved)
        assert queue.core.used_bytes + queue.core.sub_bytes == total == world.manager.ledger.bytes
    assert (queue.core.used_bytes, queue.messages) == (0, 0)
    assert queue.core.moving_bytes == 0
    world.receive(PATH)
    world.send(bytes(2000), delivery=delivery)
    back = mover(world, "orders")
    for key in keys[1:]:
        world.finish(world.reader(PATH).move(key, back))
    assert queue.core.used_bytes == total
    assert queue.core.sub_bytes == 0


@pytest.mark.rule("X-34")
def test_a_message_on_its_way_within_the_family_counts_once(world: World) -> None:
    """In both queues until the move is durable, and yet there is room for a fourth message."""
    queue = world.manager.find("orders")
    world.finish(world.manager.set_properties(queue, quota_kb=10))
    target, source, sender = mover(world), world.reader(), world.sender()
    keys = [world.send(bytes(2000)) for _ in range(3)]
    moved = source.move(keys[0], target)
    assert queue.core.moving_bytes > 2000
    total = world.manager.ledger.bytes
    sent = sender.send(Message(body=bytes(2000), delivery=1))
    assert not moved.done
    world.finish(moved)
    sent.result()
    assert (queue.messages, target.queue.messages, queue.core.moving_bytes) == (3, 1, 0)
    assert world.manager.ledger.bytes == total // 3 * 4


@pytest.mark.rule("DM-094", "DM-092", "X-51")
def test_a_subqueue_is_purged_by_itself(world: World) -> None:
    fill(world, b"one", b"two")
    world.send(b"three")
    assert world.finish(world.reader().purge()) == 1
    assert world.bodies(PATH) == [b"one", b"two"]
    world.send(b"four")
    assert world.finish(world.reader(PATH).purge()) == 2
    assert world.bodies() == [b"four"]
    queue = world.manager.find("orders")
    assert queue.core.sub_bytes == 0
    assert world.manager.ledger.bytes == queue.bytes
    world.crash()
    assert world.bodies() == [b"four"]


@pytest.mark.rule("DM-068", "DU-09", "ST-5")
@pytest.mark.parametrize("crash", [False, True])
def test_subqueues_go_with_their_queue(world: World, crash: bool) -> None:
    fill(world, b"one", b"two")
    world.send(b"three")
    handle = world.reader(PATH)
    waiting = world.reader(".\\private$\\orders;other").receive(None)
    done = world.manager.delete_queue("orders")
    with pytest.raises(errors.QueueDeleted):
        waiting.completion.result()
    with pytest.raises(errors.QueueNotAvailable):
        handle.receive(0)
    if crash:
        world.writer.submit()
        world.writer.complete_all()
        world.crash()
    else:
        world.finish(done)
    world.run()
    assert world.manager.ledger.bytes == 0
    assert world.store.tables.tables[1] == world.store.tables.tables[2] == {}
    ordinals = {queue.ordinal for queue in world.manager.queues()}
    assert {int.from_bytes(key, "big") for key in world.store.tables.tables[5]} == ordinals
    world.create()
    assert not exists(world)


@pytest.mark.rule("X-51")
def test_a_subqueue_has_the_properties_and_rights_of_its_queue(world: World) -> None:
    parent = world.create("parent", transactional=True)
    sub = mover(world, ".\\private$\\parent;x").queue
    assert sub.transactional
    assert sub.security is parent.security
    world.finish(world.manager.set_properties(parent, label="label", privacy=2))
    assert sub.properties.label == "label"
    assert parent.security != NOBODY
    world.finish(world.manager.changes.apply(parent, {}, NOBODY))
    assert sub.security is parent.security is NOBODY


@pytest.mark.rule("DM-081", "DM-082", "DM-083", "DM-084")
def test_a_subqueue_is_shared_by_itself(world: World) -> None:
    world.manager.open(PATH, Access.RECEIVE, Share.DENY_RECEIVE)
    with pytest.raises(errors.SharingViolation):
        world.manager.open(PATH, Access.RECEIVE)
    world.reader()
    mover(world)


# ---- ST-6, spelt out: rows are open, columns are requested, x is a sharing violation.

MODES = [
    (access, share)
    for share in Share
    for access in (
        Access.RECEIVE,
        Access.PEEK,
        Access.SEND,
        Access.MOVE,
        Access.RECEIVE_ADMIN,
        Access.PEEK_ADMIN,
    )
]
MATRIX = """
      R P S M A B  r p s m a b
R     . . . . . .  x x x x x x
P     . . . . . .  . . . . . .
S     . . . . . .  . . . . . .
M     . . . . . .  . . . . . .
A     . . . . . .  x x x x x x
B     . . . . . .  . . . . . .
r     x . . . x .  x x x x x x
p     x . . . x .  x . . . x .
s     . . . . . .  . . . . . .
m     . . . . . .  . . . . . .
a     x . . . x .  x x x x x x
b     x . . . x .  x . . . x .
"""


@pytest.mark.rule("ST-6", "DM-081", "DM-082", "DM-083")
def test_the_whole_sharing_matrix() -> None:
    """Capitals deny nothing, small letters deny receiving; A and B are the administrator's R and P."""
    rows = [line.split()[1:] for line in MATRIX.strip().splitlines()[1:]]
    assert [len(row) for row in rows] == [12] * 12
    for (old, row), (new, column) in itertools.product(
        zip(MODES, rows, strict=True), zip(MODES, range(12), strict=True)
    ):
        assert excludes(*old, *new) is (row[column] == "x"), (old, new)


@pytest.mark.rule("ST-6", "DM-083", "DM-086")
def test_the_sharing_matrix_at_work(world: World) -> None:
    """Every pair that a queue can be opened with, and for outgoing queues the administrator's."""
    for names, modes in (
        (
            "orders",
            [mode for mode in MODES if not mode[0].admin and mode != (Access.SEND, Share.DENY_RECEIVE)],
        ),
        ("DIRECT=OS:far\\private$\\q", [mode for mode in MODES if mode[0].admin]),
    ):
        world.manager.open(names, Access.SEND).close() if names == "orders" else world.manager.open(
            names, Access.SEND
        )
        for old, new in itertools.product(modes, modes):
            first = world.manager.open(names, *old)
            try:
                world.manager.open(names, *new).close()
                refused = False
            except errors.SharingViolation:
                refused = True
            first.close()
            assert refused is excludes(*old, *new), (names, old, new)


@pytest.mark.rule("DM-086", "DM-075")
@pytest.mark.parametrize(
    ("name", "access", "error"),
    [
        (".\\system$;deadletter", Access.MOVE, errors.UnsupportedAccessMode),
        (".\\system$;journal", Access.MOVE, errors.UnsupportedAccessMode),
        (".\\system$;deadletter", Access.SEND, errors.UnsupportedAccessMode),
        ("DIRECT=OS:far\\private$\\q", Access.MOVE, errors.QueueNotFound),
        ("DIRECT=OS:far\\private$\\q", Access.RECEIVE, errors.QueueNotFound),
        ("orders", Access.RECEIVE_ADMIN, errors.QueueNotFound),
        ("orders", Access.PEEK_ADMIN, errors.QueueNotFound),
    ],
)
def test_access_modes_that_a_queue_does_not_have(
    world: World, name: str, access: Access, error: type[errors.MSMQError]
) -> None:
    with pytest.raises(error):
        world.manager.open(name, access)


@pytest.mark.rule("DM-081", "DM-085")
def test_an_administrator_reads_an_outgoing_queue(world: World) -> None:
    name = "DIRECT=OS:far\\private$\\q"
    sender = world.manager.open(name, Access.SEND)
    world.finish(sender.send(Message(body=b"one", delivery=1)))
    peeker, reader = (world.manager.open(name, mode) for mode in (Access.PEEK_ADMIN, Access.RECEIVE_ADMIN))
    assert world.finish(peeker.receive(0, peek=True).completion).packet
    with pytest.raises(errors.AccessDenied):
        peeker.receive(0)
    assert world.finish(peeker.open_cursor().peek(0).completion).packet
    assert world.finish(reader.receive(0).completion).packet
    assert world.finish(reader.purge()) == 0
