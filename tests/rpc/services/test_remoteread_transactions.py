"""RemoteRead: receives in transactions, rejected messages, moves."""

from __future__ import annotations

from itertools import pairwise
from uuid import UUID

import pytest

from msmq_fast.packet.message import Message
from msmq_fast.protocol.properties import Journal
from msmq_fast.qm.access import Access
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.qm.transactions.transaction import State, Transaction
from msmq_fast.rpc.services.reads import Ack, Action
from tests.support.rpc.peers import RemoteWorld, result
from tests.support.rpc.remotereader import ORDERS, RemoteReader, body, opening, remote_peer

OK = 0
INVALID_PARAMETER = 0xC00E0006
INVALID_HANDLE = 0xC00E0007
OPERATION_CANCELLED = 0xC00E0008
IO_TIMEOUT = 0xC00E001B
DTC_CONNECT = 0xC00E004C
TRANSACTION_USAGE = 0xC00E0050
TRANSACTION_SEQUENCE = 0xC00E0051
NOT_FOUND = 0xC00E0088
LOCKED = 0xC00E009C
STATUS_INVALID_HANDLE = 0xC0000008
STATUS_INVALID_PARAMETER = 0xC000000D

UNKNOWN = UUID("99999999-8888-7777-6666-555555555555")


@pytest.fixture
def remote() -> RemoteWorld:
    return RemoteWorld(transactional=True)


@pytest.fixture
def reader(remote: RemoteWorld) -> RemoteReader:
    return RemoteReader(remote_peer(remote))


def fill(remote: RemoteWorld, *texts: bytes) -> list[int]:
    """Put messages into a transactional queue; their lookup identifiers."""
    world = remote.world
    transaction = world.manager.transactions.begin()
    sender = world.sender()
    queue = TransactedQueue(sender, transaction)
    for text in texts:
        queue.send(Message(body=text))
    world.finish(transaction.commit())
    sender.close()
    return list(world.manager.find("orders").core.positions.keys())


def known(remote: RemoteWorld) -> Transaction:
    return remote.world.manager.transactions.begin("somebody")


def available(remote: RemoteWorld) -> int:
    return int(remote.world.manager.find("orders").core.positions.available)


# ---- receiving


@pytest.mark.rule("RR-071")
def test_without_a_transaction_it_is_an_ordinary_read(remote: RemoteWorld, reader: RemoteReader) -> None:
    fill(remote, b"one", b"two")
    assert body(reader.start(Action.PEEK_CURRENT, transaction=bytes(16))) == b"one"
    assert body(reader.start(transaction=bytes(16))) == b"one"
    assert len(remote.world.manager.transactions) == 0
    assert reader.end(transactional=True) == OK
    assert body(reader.start(transaction=bytes(16))) == b"two"
    assert reader.end(1, Ack.NACK, transactional=True) == OK
    assert remote.world.bodies() == [b"two"]


@pytest.mark.rule("RR-024", "RR-025")
@pytest.mark.parametrize("transaction", [bytes(16), UNKNOWN])
def test_a_read_in_a_transaction_is_checked_as_any(
    remote: RemoteWorld, reader: RemoteReader, transaction: bytes | UUID
) -> None:
    (key,) = fill(remote, b"one")
    cursor = reader.cursor()
    invalid = [
        reader.start(Action.RECEIVE, key, transaction=transaction),
        reader.start(0x40000020, transaction=transaction),
        reader.start(0x40000020, key, cursor=cursor, transaction=transaction),
        reader.start(0x40000020, key, timeout=1, transaction=transaction),
    ]
    assert [result(call) for call in invalid] == [INVALID_PARAMETER] * 4
    assert result(reader.start(cursor=cursor ^ 1, transaction=transaction)) == STATUS_INVALID_HANDLE
    assert remote.world.receive(peek=True) == b"one"


@pytest.mark.rule("RR-072")
def test_a_queue_that_takes_part_in_no_transaction() -> None:
    remote = RemoteWorld()
    remote.world.send(b"one")
    reader = RemoteReader(remote_peer(remote))
    assert result(reader.start(transaction=known(remote).identifier)) == TRANSACTION_USAGE
    assert result(reader.start(transaction=UNKNOWN)) == TRANSACTION_USAGE
    assert remote.world.receive() == b"one"


@pytest.mark.rule("RR-073")
def test_nothing_is_peeked_in_a_transaction(remote: RemoteWorld, reader: RemoteReader) -> None:
    (key,) = fill(remote, b"one")
    cursor = reader.cursor()
    calls = [
        reader.start(Action.PEEK_CURRENT, transaction=UNKNOWN),
        reader.start(Action.PEEK_NEXT, transaction=UNKNOWN, cursor=cursor),
        *(reader.start(action, key, transaction=UNKNOWN) for action in range(0x40000010, 0x40000013)),
    ]
    assert [result(call) for call in calls] == [TRANSACTION_USAGE] * 5
    assert len(remote.world.manager.transactions) == 0


@pytest.mark.rule("RR-074", "RR-079")
@pytest.mark.parametrize("lookup", [False, True])
@pytest.mark.parametrize("commit", [False, True])
def test_a_known_transaction_decides(
    remote: RemoteWorld, reader: RemoteReader, commit: bool, lookup: bool
) -> None:
    keys = fill(remote, b"one", b"two", b"three")
    transaction = known(remote)
    for number, text in enumerate((b"one", b"two")):
        where = (0x40000020, keys[number]) if lookup else (0, 0)
        assert body(reader.start(*where, request=number, transaction=transaction.identifier)) == text
        assert reader.end(number, transactional=True) == OK
    assert remote.world.manager.find("orders").messages == 3
    assert available(remote) == 1
    remote.world.finish(transaction.commit() if commit else transaction.abort())
    assert remote.world.bodies() == ([b"three"] if commit else [b"one", b"two", b"three"])


@pytest.mark.rule("RR-079")
def test_what_did_not_arrive_is_not_in_the_transaction(remote: RemoteWorld, reader: RemoteReader) -> None:
    fill(remote, b"one", b"two")
    transaction = known(remote)
    assert body(reader.start(transaction=transaction.identifier)) == b"one"
    assert reader.end(1, Ack.NACK, transactional=True) == OK
    assert available(remote) == 2
    remote.world.finish(transaction.commit())
    assert remote.world.bodies() == [b"one", b"two"]


@pytest.mark.rule("RR-074")
def test_a_read_in_a_transaction_waits_and_ends_with_it(remote: RemoteWorld, reader: RemoteReader) -> None:
    transaction = known(remote)
    first = reader.start(timeout=60_000, transaction=transaction.identifier)
    second = reader.start(timeout=60_000, request=2, transaction=transaction.identifier)
    fill(remote, b"one")
    assert body(first) == b"one"
    remote.world.finish(transaction.abort())
    assert result(second) == OPERATION_CANCELLED
    assert remote.world.bodies() == [b"one"]


@pytest.mark.rule("RR-074")
def test_a_read_that_fails_leaves_a_known_transaction_alone(
    remote: RemoteWorld, reader: RemoteReader
) -> None:
    transaction = known(remote)
    assert result(reader.start(0x40000020, 5, transaction=transaction.identifier)) == NOT_FOUND
    assert transaction.state is State.ACTIVE


@pytest.mark.rule("RR-074")
def test_it_is_not_ended_as_if_there_were_no_transaction(remote: RemoteWorld, reader: RemoteReader) -> None:
    fill(remote, b"one")
    transaction = known(remote)
    assert body(reader.start(transaction=transaction.identifier)) == b"one"
    assert reader.end() == INVALID_PARAMETER
    assert reader.end(transactional=True) == OK
    remote.world.finish(transaction.abort())
    assert remote.world.bodies() == [b"one"]


@pytest.mark.rule("RR-079")
@pytest.mark.parametrize("ack", [Ack.ACK, Ack.NACK])
@pytest.mark.parametrize("commit", [False, True])
def test_what_a_transaction_has_decided_cannot_be_ended(
    remote: RemoteWorld, reader: RemoteReader, ack: int, commit: bool
) -> None:
    fill(remote, b"one")
    transaction = known(remote)
    assert body(reader.start(transaction=transaction.identifier)) == b"one"
    remote.world.finish(transaction.commit() if commit else transaction.abort())
    assert reader.end(1, ack, transactional=True) == TRANSACTION_SEQUENCE
    assert remote.world.bodies() == ([] if commit else [b"one"])


@pytest.mark.rule("RR-041", "RR-075")
def test_a_message_that_is_refused_too_often_is_poison() -> None:
    remote = RemoteWorld(transactional=True, poison_after=2)
    reader = RemoteReader(remote_peer(remote))
    fill(remote, b"one")
    for aborts in range(2):
        call = reader.start(transaction=UNKNOWN)
        assert body(call) == b"one"
        packet = bytes(call.results.ppPacketSections[0].pSectionBuffer)
        tail = packet[int.from_bytes(packet[8:12], "little") :]
        assert int.from_bytes(tail[20:24], "little") == aborts  # SubqueueHeader.AbortCounter
        assert reader.end(1, Ack.NACK, transactional=True) == OK
    assert remote.world.bodies() == []
    assert remote.world.bodies("orders;poison") == [b"one"]


@pytest.mark.rule("RR-075")
@pytest.mark.parametrize("ack", [Ack.ACK, Ack.NACK])
@pytest.mark.parametrize("lookup", [False, True])
def test_an_unknown_transaction_is_one_of_the_read_alone(
    remote: RemoteWorld, reader: RemoteReader, ack: int, lookup: bool
) -> None:
    keys = fill(remote, b"one", b"two")
    where = (0x40000020, keys[0]) if lookup else (0, 0)
    assert body(reader.start(*where, transaction=UNKNOWN)) == b"one"
    assert body(reader.start(transaction=UNKNOWN, request=2)) == b"two"
    assert len(remote.world.manager.transactions) == 2
    assert reader.end(1, ack, transactional=True) == OK
    assert reader.end(2, Ack.NACK, transactional=True) == OK
    assert len(remote.world.manager.transactions) == 0
    remote.world.crash()
    assert remote.world.bodies() == ([b"two"] if ack == Ack.ACK else [b"one", b"two"])


@pytest.mark.rule("RR-075")
def test_its_commit_is_durable_before_the_answer(remote: RemoteWorld, reader: RemoteReader) -> None:
    fill(remote, b"one")
    assert body(reader.start(transaction=UNKNOWN)) == b"one"
    run, remote.world.run = remote.world.run, lambda: None  # type: ignore[method-assign]
    call = reader.peer.begin("end_transactional_receive", phContext=reader.context, dwAck=2, dwRequestId=1)
    remote.world.manager.before_submit()
    assert not call.done
    run()
    assert result(call) == OK


@pytest.mark.rule("RR-075")
@pytest.mark.parametrize("end", ["time-out", "cancel", "close", "lost", "error"])
def test_a_transaction_of_a_read_that_gets_nothing_ends_with_it(
    remote: RemoteWorld, reader: RemoteReader, end: str
) -> None:
    transactions = remote.world.manager.transactions
    if end == "error":
        assert result(reader.start(0x40000020, 5, transaction=UNKNOWN)) == NOT_FOUND
    else:
        reader.start(timeout=1000, transaction=UNKNOWN)
        assert len(transactions) == 1
    match end:
        case "time-out":
            remote.world.advance(2)
        case "cancel":
            assert reader.cancel() == OK
        case "close":
            assert reader.close() == OK
        case "lost":
            reader.peer.lose()
    assert len(transactions) == 0


@pytest.mark.rule("RR-075")
def test_a_transaction_of_a_read_waits_as_long_as_the_read(remote: RemoteWorld, reader: RemoteReader) -> None:
    waiting = reader.start(timeout=0xFFFFFFFF, transaction=UNKNOWN)
    remote.world.advance(100_000)
    fill(remote, b"one")
    assert body(waiting) == b"one"
    assert reader.end(transactional=True) == OK
    assert remote.world.bodies() == []


@pytest.mark.rule("RR-080", "RR-082")
@pytest.mark.parametrize("end", ["time", "close", "lost", "reply"])
@pytest.mark.parametrize("own", [False, True])
def test_what_is_not_ended_is_in_no_transaction(
    remote: RemoteWorld, reader: RemoteReader, end: str, own: bool
) -> None:
    fill(remote, b"one", b"two")
    transaction = known(remote)
    identifier = UNKNOWN if own else transaction.identifier
    assert body(reader.start(transaction=transaction.identifier)) == b"one"
    assert reader.end(transactional=True) == OK
    call = reader.start(request=2, transaction=identifier)
    assert body(call) == b"two"
    assert available(remote) == 0
    match end:
        case "time":
            remote.world.clock.advance(301)
            remote.remote_read.expire(remote.world.clock.monotonic())
        case "close":
            assert reader.close() == OK
        case "lost":
            reader.peer.lose()
        case "reply":
            call.deliver(False)
    remote.world.run()
    assert available(remote) == 1
    if transaction.state is State.ACTIVE:
        remote.world.finish(transaction.commit())
        assert remote.world.bodies() == [b"two"]


@pytest.mark.rule("RR-070", "RR-083")
def test_without_a_coordinator_only_what_is_known_can_be_enlisted_in(
    remote: RemoteWorld, reader: RemoteReader
) -> None:
    def enlist(identifier: UUID) -> int:
        token = bytes(100)
        results = reader.peer.call(
            "enlist_remote_transaction",
            pTransactionId=identifier.bytes_le,
            cbPropagationToken=len(token),
            pbPropagationToken=token,
            pQueueFormat=opening()["pQueueFormat"],
        )
        return int(results.result)

    assert enlist(UNKNOWN) == DTC_CONNECT
    assert enlist(known(remote).identifier) == OK


# ---- rejecting


@pytest.mark.rule("RR-076", "RR-077")
def test_what_cannot_be_rejected(remote: RemoteWorld, reader: RemoteReader) -> None:
    keys = fill(remote, b"one", b"two")
    assert reader.reject(12345) == NOT_FOUND
    assert reader.reject(keys[0]) == TRANSACTION_USAGE
    assert body(reader.start()) == b"one"
    assert reader.reject(keys[0]) == TRANSACTION_USAGE
    assert reader.reject(keys[0], 0xC003) == INVALID_PARAMETER


@pytest.mark.rule("RR-077")
@pytest.mark.parametrize("number", [0, 0xC004])
def test_a_rejected_message_is_a_dead_letter(remote: RemoteWorld, number: int) -> None:
    world = remote.world
    transaction = world.manager.transactions.begin()
    sender = world.sender()
    TransactedQueue(sender, transaction).send(Message(body=b"one", journal=Journal.DEADLETTER))
    world.finish(transaction.commit())
    (key,) = world.manager.find("orders").core.positions.keys()
    reader = RemoteReader(remote_peer(remote))
    receiving = known(remote)
    assert body(reader.start(transaction=receiving.identifier)) == b"one"
    assert reader.end(transactional=True) == OK
    assert reader.reject(key & 0x00FFFFFFFFFFFFFF, number) == OK
    world.finish(receiving.commit())
    assert world.bodies() == []
    assert world.bodies(r".\system$;deadxact") == ([b"one"] if number else [])


# ---- moving


def open_for_move(reader: RemoteReader, name: str = ORDERS + ";retry", access: int = Access.MOVE) -> int:
    """R_OpenQueueForMove; the number, or the status of the fault."""
    call = reader.peer.begin("open_queue_for_move", **opening(name, access))
    if call.fault_status is not None:
        return call.fault_status
    reader.peer.moving = call.results.pphContext  # type: ignore[attr-defined]
    return int(call.results.pMoveContext)


@pytest.mark.rule("RR-066")
def test_a_queue_is_opened_for_moving(remote: RemoteWorld, reader: RemoteReader) -> None:
    for access in (Access.RECEIVE, Access.PEEK, Access.SEND):
        assert open_for_move(reader, access=access) == INVALID_PARAMETER
    numbers = {open_for_move(reader) for _ in range(50)}
    assert len(numbers) == 50
    assert all(number >> 40 for number in numbers)
    assert all(after - before > 1 for before, after in pairwise(sorted(numbers)))
    assert open_for_move(reader, ORDERS + "x") == 0xC00E0003


@pytest.mark.rule("RR-060", "RR-067")
def test_numbers_of_no_use(remote: RemoteWorld, reader: RemoteReader) -> None:
    (key,) = fill(remote, b"one")
    other = RemoteReader(remote_peer(remote))
    number = open_for_move(other)
    for target in (0, number ^ 1, number):
        assert reader.move(key, target) == INVALID_HANDLE
    mine = open_for_move(reader)
    reader.peer.call("close_queue", pphContext=reader.peer.moving)  # type: ignore[attr-defined]
    assert reader.move(key, mine) == INVALID_HANDLE
    other.peer.lose()
    assert remote.world.bodies() == [b"one"]


@pytest.mark.rule("RR-061")
def test_queues_that_do_not_belong_together(remote: RemoteWorld, reader: RemoteReader) -> None:
    (key,) = fill(remote, b"one")
    remote.world.create("others")
    number = open_for_move(reader, r"DIRECT=OS:HOST\private$\others")
    assert reader.move(key, number) == STATUS_INVALID_PARAMETER
    assert reader.move(key, number, UNKNOWN) == STATUS_INVALID_PARAMETER


@pytest.mark.rule("RR-062")
def test_a_move_in_a_transaction_to_a_queue_that_takes_part_in_none() -> None:
    remote = RemoteWorld()
    key = remote.world.send(b"one")
    reader = RemoteReader(remote_peer(remote))
    number = open_for_move(reader)
    for transaction in (known(remote).identifier, UNKNOWN):
        assert reader.move(key, number, transaction) == TRANSACTION_USAGE
    assert reader.move(key, number) == OK
    assert remote.world.bodies("orders;retry") == [b"one"]


@pytest.mark.rule("RR-063")
@pytest.mark.parametrize("transactional", [False, True])
def test_messages_that_cannot_be_moved(
    remote: RemoteWorld, reader: RemoteReader, transactional: bool
) -> None:
    keys = fill(remote, b"one", b"two")
    number = open_for_move(reader)
    identifier = known(remote).identifier if transactional else None
    assert reader.move(12345, number, identifier) == NOT_FOUND
    assert body(reader.start()) == b"one"
    assert reader.move(keys[0], number, identifier) == LOCKED


@pytest.mark.rule("RR-064")
@pytest.mark.parametrize("commit", [False, True])
def test_a_move_in_a_transaction(remote: RemoteWorld, reader: RemoteReader, commit: bool) -> None:
    keys = fill(remote, b"one", b"two")
    number = open_for_move(reader)
    assert reader.move(keys[0], number, UNKNOWN) == TRANSACTION_SEQUENCE
    transaction = known(remote)
    assert reader.move(keys[0], number, transaction.identifier) == OK
    assert available(remote) == 1
    remote.world.finish(transaction.commit() if commit else transaction.abort())
    assert remote.world.bodies() == ([b"two"] if commit else [b"one", b"two"])
    assert remote.world.bodies("orders;retry") == ([b"one"] if commit else [])


@pytest.mark.rule("RR-065")
def test_a_move_without_a_transaction_is_durable(remote: RemoteWorld, reader: RemoteReader) -> None:
    keys = fill(remote, b"one", b"two")
    number = open_for_move(reader)
    assert reader.move(keys[0] & 0x00FFFFFFFFFFFFFF, number) == OK
    remote.world.crash()
    assert remote.world.bodies() == [b"two"]
    assert remote.world.bodies("orders;retry") == [b"one"]


@pytest.mark.rule("RR-065")
def test_the_answer_to_a_move_waits_for_the_disk(remote: RemoteWorld, reader: RemoteReader) -> None:
    (key,) = fill(remote, b"one")
    number = open_for_move(reader)
    run, remote.world.run = remote.world.run, lambda: None  # type: ignore[method-assign]
    moving = {"phContextFrom": reader.context, "ullContextTo": number, "LookupId": key}
    call = reader.peer.begin("move_message", **moving, pTransactionId=bytes(16))
    remote.world.manager.before_submit()
    assert not call.done
    run()
    assert result(call) == OK


def test_who_opened_a_queue_for_moving_reads_nothing(remote: RemoteWorld, reader: RemoteReader) -> None:
    fill(remote, b"one")
    open_for_move(reader, ORDERS)
    reader.context = reader.peer.moving  # type: ignore[attr-defined]
    assert result(reader.start()) == 0xC00E0025
