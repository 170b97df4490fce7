"""Transactions inside one queue manager: all or nothing, in order, isolated, bounded in memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from msmq_fast._native.queuebase import Received
from msmq_fast.packet import Message
from msmq_fast.packet.base import INFINITE
from msmq_fast.packet.user import TransactionHeader
from msmq_fast.protocol import errors
from msmq_fast.qm.access import Access
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.qm.transactions.transaction import State, Transaction
from msmq_fast.store.completion import Completion
from msmq_fast.store.schema import Table
from tests.qm.transactions import _header, aborts, accounts, begin, fill, made, reading, send, take
from tests.support.worlds.queue_manager import World, body, tell


@pytest.fixture
def world() -> World:
    return made()


# ---- sending


@pytest.mark.rule("DM-103", "X-54", "DM-027", "DM-030", "DU-05")
def test_nothing_is_seen_before_the_commit_is_durable_and_all_of_it_then(world: World) -> None:
    transaction = begin(world)
    send(world, transaction, b"1", b"2")
    send(world, transaction, b"3", name="bills")
    world.run()
    assert world.bodies() == world.bodies("bills") == []
    with pytest.raises(errors.IOTimeout):
        world.reader().receive(0, peek=True).completion.result()
    done = transaction.commit()
    assert not done.done
    assert world.manager.find("orders").messages == 0
    with pytest.raises(errors.IOTimeout):
        world.reader().receive(0, peek=True).completion.result()
    world.finish(done)
    assert (world.bodies(), world.bodies("bills")) == ([b"1", b"2"], [b"3"])
    assert len(world.manager.transactions) == 0


@pytest.mark.rule("DM-035", "DM-036", "X-33", "ST-1", "ST-3")
def test_an_aborted_send_leaves_nothing(world: World) -> None:
    before = accounts(world)
    transaction = begin(world)
    send(world, transaction, b"1", b"2", time_to_be_received=5)
    assert accounts(world)[2] > 0
    world.finish(transaction.abort())
    assert (world.bodies(), accounts(world), transaction.state) == ([], before, State.GONE)
    assert world.manager.ledger.next_deadline() is None


@pytest.mark.rule("DM-036", "X-33")
def test_what_is_not_committed_counts_for_the_quota_and_not_for_the_size(world: World) -> None:
    queue = world.manager.find("orders")
    first = begin(world)
    send(world, first, b"x" * 100)
    size = queue.core.reserved_bytes
    assert (queue.bytes, queue.core.used_bytes) == (0, size)
    queue.core.quota_bytes = 2 * size - 1
    second = begin(world)
    with pytest.raises(errors.InsufficientResources):
        send(world, second, b"x" * 100)
    first.abort()
    send(world, second, b"x" * 100)
    world.finish(second.commit())
    assert (queue.bytes, queue.core.reserved_bytes) == (size, 0)


@pytest.mark.rule("DM-100")
def test_keys_are_given_at_the_commit_so_transactions_do_not_mingle(world: World) -> None:
    early, late = begin(world), begin(world)
    for number in range(3):
        send(world, early, b"early %d" % number, priority=7)
        send(world, late, b"late %d" % number)
    world.finish(late.commit())
    world.finish(early.commit())
    assert world.bodies() == [b"late 0", b"late 1", b"late 2", b"early 0", b"early 1", b"early 2"]


@pytest.mark.rule("DM-100", "X-54")
def test_a_priority_in_the_packet_of_a_transaction_counts_for_nothing(world: World) -> None:
    core = world.manager.find("orders").core
    message = Message(transaction=TransactionHeader(1, 1, 1), time_to_reach_queue=INFINITE)
    packet = bytearray(message.to_packet())
    packet[2] |= 7  # BaseHeader.Flags.PR, as others may send it
    _, (key,) = core.enqueue_packets([bytes(packet)])
    assert key >> 56 == 7
    assert not core.peek(key, lambda _message, _status: None), "it is not durable"
    world.run()
    assert core.peek(key, lambda _message, _status: None)


@pytest.mark.rule("DM-024", "DM-031", "DM-180")
def test_first_and_last_are_marked_once_for_each_queue_over_what_is_sent(world: World) -> None:
    fill(world, b"0", name="bills")
    transaction = begin(world)
    send(world, transaction, b"1", b"2", b"3")
    assert take(world, transaction, "bills") == b"0"
    send(world, transaction, b"4", b"5", b"6", name="bills")
    world.finish(transaction.commit())
    assert 0 < transaction.number < 1 << 20
    for name in ("orders", "bills"):
        headers = [_header(world, name, key) for key in world.manager.find(name).core.positions.keys()]  # noqa: SIM118
        assert [(header.first, header.last) for header in headers] == [
            (True, False),
            (False, False),
            (False, True),
        ]
        assert {header.transaction_id for header in headers} == {transaction.number}
        assert {header.sequence_number for header in headers} == {0}


@pytest.mark.rule("DM-107")
def test_transactional_queues_take_part_and_the_others_do_not(world: World) -> None:
    world.create("plain")
    transaction = begin(world)
    for handle in (world.sender("plain"), world.reader("plain")):
        with pytest.raises(errors.TransactionUsage):
            TransactedQueue(handle, transaction)
    with pytest.raises(errors.TransactionUsage):
        world.sender().send(Message(body=b"x"))
    with pytest.raises(errors.AccessDenied):
        TransactedQueue(world.reader(), transaction).send(Message(body=b"x"))


def test_a_message_to_another_computer_waits_in_its_outgoing_queue(world: World) -> None:
    name = "DIRECT=OS:elsewhere\\private$\\q"
    transaction = begin(world)
    send(world, transaction, b"1", name=name)
    outgoing = world.manager.find(name)
    assert outgoing.messages == 0
    world.finish(transaction.commit())
    assert (outgoing.messages, world.bodies(name)) == (1, [b"1"])
    told: list[str] = []
    tell(world.manager, lambda queue: told.append(queue.name))
    world.run()
    assert told[:1] == [name]
    world.send(b"plain", name, priority=3)
    assert [body(message) for message in outgoing.core.take(10, 1 << 20, 99)] == [b"plain", b"1"]


# ---- receiving


@pytest.mark.rule("DM-115", "DM-028", "X-56", "DU-05", "DM-026", "ST-1", "ST-3")
def test_a_received_message_is_locked_until_the_commit_removes_it(world: World) -> None:
    fill(world, b"1", b"2")
    transaction = begin(world)
    assert take(world, transaction) == b"1"
    key = world.manager.find("orders").core.positions.keys()[0]
    with pytest.raises(errors.MessageLocked):
        world.reader().lookup(key, Lookup.CURRENT)
    with pytest.raises(errors.TransactionUsage):
        world.reader().lookup(key, Lookup.CURRENT, peek=True)
    assert world.receive(peek=True) == b"2"
    done = transaction.commit()
    assert not done.done
    world.finish(done)
    assert world.bodies() == [b"2"]
    assert len(world.store.tables.tables[Table.POSITION]) == 1
    with pytest.raises(errors.TransactionSequence):
        world.manager.transactions.find(transaction.identifier).commit()
    with pytest.raises(errors.TransactionSequence):
        transaction.commit()


@pytest.mark.rule("DM-034", "DM-032", "ST-1", "ST-3")
def test_an_aborted_receive_is_back_in_its_place_with_its_count(world: World) -> None:
    fill(world, b"1", b"2", b"3")
    queue = world.manager.find("orders")
    before = (queue.core.positions.keys(), queue.bytes, accounts(world))
    waiting = world.reader("orders")
    for round_ in range(1, 4):
        transaction = begin(world)
        assert [take(world, transaction) for _ in range(3)] == [b"1", b"2", b"3"]
        request = waiting.receive(None, peek=True)
        world.run()
        assert not request.completion.done
        world.finish(transaction.abort())
        assert body(request.completion.result()) == b"1"
        assert (queue.core.positions.keys(), queue.bytes, accounts(world)) == before
        assert aborts(world) == [round_] * 3
    with pytest.raises(errors.TransactionSequence):
        world.manager.transactions.find(transaction.identifier).abort()
    world.crash()
    assert (world.bodies(), aborts(world)) == ([b"1", b"2", b"3"], [3, 3, 3])


@pytest.mark.rule("DM-034", "DM-214")
def test_what_expired_while_it_was_locked_goes_when_it_is_released(world: World) -> None:
    fill(world, b"1", time_to_be_received=5)
    transaction = begin(world)
    take(world, transaction)
    world.advance(10)
    assert world.bodies() == [b"1"]
    world.finish(transaction.abort())
    assert world.bodies() == []
    assert world.manager.find("orders").core.expired_total == 1


@pytest.mark.rule("X-54", "DM-214")
def test_what_is_sent_expires_at_the_commit_and_not_before(world: World) -> None:
    transaction = begin(world)
    send(world, transaction, b"1", time_to_be_received=5)
    world.advance(10)
    world.finish(transaction.commit())
    world.advance(1)
    assert world.bodies() == []
    assert world.manager.find("orders").core.expired_total == 1


@pytest.mark.rule("DM-033", "DM-093", "DM-094", "X-57")
def test_purge_spares_what_is_sent_and_takes_what_comes_back(world: World) -> None:
    fill(world, b"1", b"2", b"3")
    keeps, releases = begin(world), begin(world)
    assert take(world, keeps) == b"1"
    assert take(world, releases) == b"2"
    send(world, keeps, b"4")
    world.finish(world.reader().purge())
    assert world.manager.find("orders").core.reserved_bytes > 0
    world.finish(releases.abort())
    world.finish(keeps.commit())
    assert world.bodies() == [b"4"]
    world.crash()
    assert world.bodies() == [b"4"]
    assert accounts(world)[2] == 0


@pytest.mark.rule("X-56", "X-54", "DM-068")
def test_a_deleted_queue_takes_its_operations_along(world: World) -> None:
    fill(world, b"1")
    fill(world, b"2", name="bills")
    transaction = begin(world)
    take(world, transaction)
    take(world, transaction, "bills")
    send(world, transaction, b"3")
    send(world, transaction, b"4", name="bills")
    world.finish(world.manager.delete_queue("orders"))
    world.finish(transaction.commit())
    assert world.bodies("bills") == [b"4"]
    assert world.manager.ledger.bytes == world.manager.find("bills").core.used_bytes


@pytest.mark.rule("DM-130", "DM-132")
@pytest.mark.parametrize("commit", [True, False])
def test_lookup_in_a_transaction(world: World, commit: bool) -> None:
    fill(world, b"1", b"2", b"3")
    second = world.manager.find("orders").core.positions.keys()[1]
    transaction = begin(world)
    queue = reading(world, transaction)
    assert body(world.finish(queue.lookup(second, Lookup.CURRENT))) == b"2"
    with pytest.raises(errors.InvalidParameter):
        queue.lookup(second, Lookup.NEXT, peek=True)
    assert body(world.finish(queue.lookup(second, Lookup.NEXT))) == b"3"
    world.finish(transaction.commit() if commit else transaction.abort())
    assert world.bodies() == ([b"1"] if commit else [b"1", b"2", b"3"])


@pytest.mark.rule("DM-114")
def test_two_transactions_never_get_the_same_message(world: World) -> None:
    fill(world, b"1", b"2")
    first, second = begin(world), begin(world)
    assert {take(world, first), take(world, second)} == {b"1", b"2"}
    with pytest.raises(errors.IOTimeout):
        take(world, begin(world))


def test_a_subscription_inside_a_transaction(world: World) -> None:
    fill(world, *(b"%d" % number for number in range(10)))
    transaction = begin(world)
    got: list[bytes] = []
    reading(world, transaction).subscribe(lambda batch: got.extend(map(body, batch)), 4)
    world.run()
    assert got == [b"0", b"1", b"2", b"3"]
    world.finish(transaction.abort())
    assert aborts(world) == [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    transaction = begin(world)
    got.clear()
    reading(world, transaction).subscribe(lambda batch: got.extend(map(body, batch)), 6)
    world.run()
    world.finish(transaction.commit())
    assert (got[0], len(got), world.bodies()[0]) == (b"0", 6, b"6")


def test_a_waiting_receive_ends_with_its_transaction(world: World) -> None:
    transaction = begin(world)
    request = reading(world, transaction).receive(None)
    transaction.abort()
    with pytest.raises(errors.OperationCancelled):
        request.completion.result()
    with pytest.raises(errors.TransactionSequence):
        reading(world, transaction).receive(0)
    fill(world, b"1")
    assert world.bodies() == [b"1"]


def test_a_waiting_receive_gets_what_is_committed_later(world: World) -> None:
    transaction = begin(world)
    request = reading(world, transaction).receive(None)
    fill(world, b"1")
    assert body(world.finish(request.completion)) == b"1"
    world.finish(transaction.abort())
    assert (world.bodies(), aborts(world)) == ([b"1"], [1])


@pytest.mark.rule("DM-145", "DM-029", "X-71")
def test_a_move_happens_with_the_commit(world: World) -> None:
    fill(world, b"1", b"2")
    queue = world.manager.find("orders")
    first, second = queue.core.positions.keys()
    target = world.manager.open("orders;retry", Access.MOVE)
    before = accounts(world)
    transaction = begin(world)
    take(world, transaction)
    transaction.abort()
    for commit in (False, True):
        transaction = begin(world)
        reading(world, transaction).move(first, target)
        assert (world.bodies("orders;retry"), world.receive(peek=True)) == ([], b"2")
        world.finish(transaction.commit() if commit else transaction.abort())
        if not commit:
            assert (queue.core.positions.keys(), aborts(world)) == ([first, second], [2, 0])
    assert (world.bodies("orders;retry"), world.bodies()) == ([b"1"], [b"2"])
    received = world.finish(world.reader("orders;retry").receive(0, peek=True).completion)
    assert (received.lookup_id, received.abort_count, received.move_count) == (first, 0, 1)
    assert accounts(world) == before


# ---- failure


@pytest.mark.rule("DM-015", "DM-018")
def test_a_crash_forgets_an_open_transaction(world: World) -> None:
    fill(world, b"1", b"2")
    transaction = begin(world)
    take(world, transaction)
    send(world, transaction, b"3")
    world.run()
    world.crash()
    assert world.bodies() == [b"1", b"2"]
    assert len(world.manager.transactions) == 0


@pytest.mark.rule("ST-3")
@pytest.mark.parametrize("end", [Transaction.commit, Transaction.abort])
def test_a_transaction_that_commits_cannot_be_ended_again(
    world: World, end: Callable[[Transaction], object]
) -> None:
    transaction = begin(world)
    send(world, transaction, b"1")
    done = transaction.commit()
    assert not done.done
    with pytest.raises(errors.TransactionSequence):
        end(transaction)
    world.finish(done)
    assert world.bodies() == [b"1"]


@pytest.mark.rule("DU-05", "DM-030", "ST-3")
def test_a_commit_that_is_not_kept_is_an_abort(world: World) -> None:
    fill(world, b"1")
    transaction = begin(world)
    take(world, transaction)
    send(world, transaction, b"2", b"3", name="bills")
    done = transaction.commit()
    world.writer.submit()
    world.writer.complete_one(28)
    world.run()
    with pytest.raises(errors.MessageStorageFailed):
        done.result()
    assert (world.bodies(), aborts(world), world.bodies("bills")) == ([b"1"], [1], [])
    assert accounts(world)[2] == 0
    world.crash()
    assert (world.bodies(), world.bodies("bills")) == ([b"1"], [])


@pytest.mark.rule("DU-05")
def test_a_fault_at_any_call_of_the_store_leaves_all_or_nothing() -> None:
    call = 0
    while True:
        call += 1
        world = made()
        fill(world, b"1", b"2")
        transaction = begin(world)
        take(world, transaction)
        send(world, transaction, b"3", b"4", name="bills")
        world.writer.fail_call(call)
        done = transaction.commit()
        failed = done.exception() is not None
        world.writer.fail_call(1 << 40)
        world.run()
        expected = ([b"1", b"2"], []) if failed else ([b"2"], [b"3", b"4"])
        assert (world.bodies(), world.bodies("bills")) == expected
        assert accounts(world)[2] == 0
        world.crash()
        assert (world.bodies(), world.bodies("bills")) == expected
        if not failed:
            break
    assert call > 8


def test_an_idle_transaction_is_aborted() -> None:
    world = made(transaction_idle=30.0)
    fill(world, b"1")
    transaction = begin(world)
    take(world, transaction)
    world.advance(29)
    send(world, transaction, b"2")
    world.advance(29)
    assert transaction.state is State.ACTIVE
    world.advance(2)
    assert (transaction.state, world.bodies(), aborts(world)) == (State.GONE, [b"1"], [1])


@pytest.mark.rule("DM-095")
def test_identifiers_and_numbers_are_unique(world: World) -> None:
    transactions = world.manager.transactions
    transaction = begin(world)
    with pytest.raises(errors.TransactionSequence):
        transactions.begin("", transaction.identifier)
    numbers = {begin(world).number for _ in range(100)}
    assert len(numbers) == 100


def test_an_empty_transaction_commits_at_once(world: World) -> None:
    assert begin(world).commit().done
    assert begin(world).abort().done


# ---- large transactions


@pytest.mark.rule("KV-07", "REC-06", "DM-015")
def test_what_is_large_is_written_ahead_and_dropped_after_a_crash(world: World) -> None:
    fill(world, b"0")
    contents = len(world.store.tables.tables[Table.CONTENT])
    transaction = begin(world)
    transaction.operations.limit_bytes = 5_000
    send(world, transaction, *(b"%d" % number * 1000 for number in range(10)))
    world.run()
    assert transaction.operations.held_bytes < 10_000
    assert len(world.store.tables.tables[Table.CONTENT]) > contents
    assert world.bodies() == [b"0"]
    world.crash()
    world.run()
    assert len(world.store.tables.tables[Table.CONTENT]) == contents
    assert not [key for key in world.store.tables.tables[Table.META] if key.startswith(b"txn")]
    assert world.bodies() == [b"0"]


@pytest.mark.rule("DM-024")
def test_the_last_message_is_marked_where_it_was_written_ahead(world: World) -> None:
    transaction = begin(world)
    transaction.operations.limit_bytes = 1
    send(world, transaction, b"1", b"2")
    world.run()
    assert transaction.operations.held_bytes == 0
    world.finish(transaction.commit())
    keys = list(world.manager.find("orders").core.positions.keys())
    assert [_header(world, "orders", key).last for key in keys] == [False, True]


@pytest.mark.rule("KV-07", "DU-05", "DM-024", "REC-06")
@pytest.mark.parametrize("end", ["commit", "abort", "full"])
def test_the_end_of_a_large_transaction(world: World, end: str) -> None:
    transaction = begin(world)
    transaction.operations.limit_bytes = 3_000
    bodies = [b"%d" % number * 1000 for number in range(10)]
    send(world, transaction, *bodies)
    done = transaction.abort() if end == "abort" else transaction.commit()
    assert not done.done
    if end == "full":
        world.writer.submit()
        world.writer.complete_one(28)
        world.run()
        with pytest.raises(errors.MessageStorageFailed):
            done.result()
    else:
        world.finish(done)
    world.run()
    kept = bodies if end == "commit" else []
    for _ in range(2):
        assert world.bodies() == kept
        assert len(world.store.tables.tables[Table.CONTENT]) == len(kept)
        assert not [key for key in world.store.tables.tables[Table.META] if key.startswith(b"txn")]
        if kept:
            keys = world.manager.find("orders").core.positions.keys()
            assert [_header(world, "orders", key).last for key in keys] == [False] * 9 + [True]
        world.crash()


@pytest.mark.rule("DM-034", "DM-018")
@pytest.mark.parametrize("crash", [False, True])
def test_ten_thousand_received_messages_come_back_in_order(world: World, crash: bool) -> None:
    bodies = [b"%d" % number for number in range(10_000)]
    fill(world, *bodies)
    transaction = begin(world)
    got: list[bytes] = []
    reading(world, transaction).subscribe(lambda batch: got.extend(map(body, batch)), 10_000)
    world.run()
    assert got == bodies
    done = transaction.abort()
    if crash:
        world.writer.submit()
        world.crash()
    else:
        world.finish(done)
        assert set(aborts(world)) == {1}
        world.crash()
        assert set(aborts(world)) == {1}
    assert world.bodies() == bodies


# ---- an end while a message is read from the disk


def by_cursor(handle: OpenQueue, queue: TransactedQueue, _: int) -> Completion[Received]:
    return queue.receive(0, cursor=handle.open_cursor()).completion


def by_lookup(_: OpenQueue, queue: TransactedQueue, key: int) -> Completion[Received]:
    return queue.lookup(key, Lookup.CURRENT)


@pytest.mark.parametrize(("prepare", "crash"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("read", [by_cursor, by_lookup])
def test_a_commit_receives_nothing_that_nobody_was_given(
    read: Callable[[OpenQueue, TransactedQueue, int], Completion[Received]], prepare: bool, crash: bool
) -> None:
    world = made()
    fill(world, b"1", b"2")
    (key, _) = world.manager.find("orders").core.positions.keys()
    world.crash()
    handle, transaction = world.reader("orders"), world.manager.transactions.begin()
    done = read(handle, TransactedQueue(handle, transaction), key)
    assert not done.done  # its packet is on the disk
    if prepare:
        transaction.prepare()
        world.run()
    if crash:
        world.crash()
        world.finish(world.manager.transactions.find(transaction.identifier).commit())
    else:
        world.finish(transaction.commit())
    assert isinstance(done.exception(), errors.OperationCancelled)
    assert world.bodies("orders") == [b"1", b"2"]
    world.crash()
    assert world.bodies("orders") == [b"1", b"2"]
