"""Two-phase transactions: votes, outcomes, and what is in doubt after a crash."""

from __future__ import annotations

import errno
from uuid import UUID

import pytest

from msmq_fast.packet import Message
from msmq_fast.protocol import errors
from msmq_fast.qm.access import Access
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.qm.transactions.transaction import State, Transaction
from msmq_fast.store.completion import Completion
from msmq_fast.store.schema import Table
from tests.qm.transactions import _header, aborts, accounts, fill, made, reading, send, take
from tests.support.worlds.queue_manager import World

ID = UUID(int=0x1234)


class Coordinator:
    """Prepares and ends transactions, and writes down what it hears of them."""

    def __init__(self, world: World) -> None:
        self.transactions = world.manager.transactions
        self.heard: list[str] = []

    def prepare(self, identifier: UUID) -> None:
        transaction = self.transactions.find(identifier)

        def voted(done: Completion[None]) -> None:
            if done.exception() is None:
                self.heard.append("prepared")
            else:
                transaction.abort().add_done_callback(lambda _: self.heard.append("refused"))

        transaction.prepare().add_done_callback(voted)

    def commit(self, identifier: UUID) -> None:
        self._end(self.transactions.find(identifier).commit(), "committed", identifier)

    def abort(self, identifier: UUID) -> None:
        self._end(self.transactions.find(identifier).abort(), "aborted", identifier)

    def _end(self, done: Completion[None], outcome: str, identifier: UUID) -> None:
        def ended(done: Completion[None]) -> None:
            if done.exception() is None:
                self.heard.append(outcome)
            elif all(item.identifier != identifier for item in self.transactions):
                self.heard.append("refused")

        done.add_done_callback(ended)

    def in_doubt(self) -> list[UUID]:
        return [item.identifier for item in self.transactions if item.state is State.PREPARED]


class Case:
    """A queue with two messages; a transaction that received one and sent three to another queue."""

    def __init__(self, world: World | None = None) -> None:
        self.world = world or made()
        fill(self.world, b"1", b"2")
        self.coordinator = Coordinator(self.world)
        self.transaction = self.world.manager.transactions.begin("tester", ID)
        assert take(self.world, self.transaction) == b"1"
        send(self.world, self.transaction, b"3", b"4", b"5", name="bills")

    def prepare(self) -> None:
        self.coordinator.prepare(ID)
        self.world.run()

    def crash(self) -> None:
        self.world.crash()
        self.coordinator.transactions = self.world.manager.transactions

    def check_locked(self) -> None:
        core = self.world.manager.find("orders").core
        assert [core.positions.state(key) for key in core.positions.keys()] == [2, 1]  # noqa: SIM118
        assert self.world.bodies("bills") == []
        assert self.world.manager.find("bills").core.used_bytes > 0

    def check(self, outcome: str) -> None:
        committed = outcome == "committed"
        for _ in range(2):
            assert self.world.bodies() == ([b"2"] if committed else [b"1", b"2"])
            assert self.world.bodies("bills") == ([b"3", b"4", b"5"] if committed else [])
            assert accounts(self.world)[2] == 0
            tables = self.world.store.tables.tables
            assert len(tables[Table.CONTENT]) == len(tables[Table.POSITION]) == (4 if committed else 2)
            assert not [key for key in tables[Table.META] if key.startswith(b"txn")]
            assert len(self.world.manager.transactions) == 0
            self.world.crash()


@pytest.mark.rule("DM-022", "DM-023", "DM-025", "DM-037", "DU-06")
def test_the_vote_comes_when_it_is_durable() -> None:
    case = Case()
    case.coordinator.prepare(ID)
    assert case.coordinator.heard == []
    case.world.run()
    assert case.coordinator.heard == ["prepared"]
    assert case.transaction.state is State.PREPARED
    case.check_locked()
    with pytest.raises(errors.TransactionSequence):
        send(case.world, case.transaction, b"x")
    with pytest.raises(errors.TransactionSequence):
        case.coordinator.prepare(ID)
    with pytest.raises(errors.TransactionSequence):
        case.coordinator.prepare(UUID(int=1))


@pytest.mark.rule("DU-06", "REC-05")
def test_what_went_back_before_the_vote_is_not_locked_after_a_crash() -> None:
    case = Case()
    core = case.world.manager.find("orders").core
    locked = [key for key in core.positions.keys() if core.positions.state(key) == 2]  # noqa: SIM118
    case.transaction.unlocked(core, *locked)
    case.prepare()
    case.crash()
    assert case.world.bodies() == [b"1", b"2"]


@pytest.mark.rule("DM-038", "DM-039", "DU-07")
@pytest.mark.parametrize("outcome", ["committed", "aborted"])
def test_an_outcome_is_answered_when_it_is_durable(outcome: str) -> None:
    case = Case()
    case.prepare()
    (case.coordinator.commit if outcome == "committed" else case.coordinator.abort)(ID)
    assert case.coordinator.heard == ["prepared"]
    case.check_locked()
    case.world.run()
    assert case.coordinator.heard == ["prepared", outcome]
    if outcome == "committed":
        keys = case.world.manager.find("bills").core.positions.keys()
        headers = [_header(case.world, "bills", key) for key in keys]
        assert [(header.first, header.last) for header in headers] == [
            (True, False),
            (False, False),
            (False, True),
        ]
    else:
        assert aborts(case.world) == [1, 0]
    case.check(outcome)


@pytest.mark.rule("DU-07", "X-72", "DM-034")
def test_the_abort_of_what_was_prepared_brings_its_counts_in_the_same_commit() -> None:
    case = Case()
    case.prepare()
    case.transaction.abort()
    case.world.writer.submit()
    case.crash()
    transaction = case.world.manager.transactions.find(ID)
    assert (transaction.state, aborts(case.world)) == (State.PREPARED, [0, 0])
    transaction.abort()
    case.world.writer.submit()
    case.world.writer.complete_one()  # nothing but this commit is durable
    case.crash()
    assert aborts(case.world) == [1, 0]


@pytest.mark.rule("DM-037")
def test_a_vote_that_cannot_be_kept_is_no() -> None:
    case = Case()
    case.coordinator.prepare(ID)
    case.world.writer.submit()
    case.world.writer.complete_one(28)
    case.world.run()
    assert case.coordinator.heard == ["refused"]
    case.check("aborted")


@pytest.mark.rule("ST-3", "DM-014", "DM-040", "DM-041", "REC-05", "REC-11", "DM-017", "KV-07")
@pytest.mark.parametrize("outcome", ["committed", "aborted"])
def test_what_is_in_doubt_stays_locked_until_its_outcome(outcome: str) -> None:
    case = Case()
    case.prepare()
    for _ in range(2):
        case.crash()
        case.check_locked()
        assert case.coordinator.in_doubt() == [ID]
    (case.coordinator.commit if outcome == "committed" else case.coordinator.abort)(ID)
    case.world.run()
    assert case.coordinator.heard[-1] == outcome
    case.check(outcome)


@pytest.mark.rule("DM-042")
def test_a_lost_coordinator_stops_nothing_else() -> None:
    case = Case()
    case.prepare()
    case.crash()
    case.check_locked()
    assert case.world.receive() == b"2"
    case.world.finish(case.world.manager.transactions.find(ID).commit())
    assert (case.world.bodies(), case.world.bodies("bills")) == ([], [b"3", b"4", b"5"])


@pytest.mark.rule("REC-07", "DM-033", "DM-093")
@pytest.mark.parametrize("outcome", ["committed", "aborted"])
@pytest.mark.parametrize("crash", [False, True])
def test_purge_waits_for_what_is_prepared(outcome: str, crash: bool) -> None:
    case = Case()
    case.prepare()
    case.world.finish(case.world.reader().purge())
    if crash:
        case.crash()
    core = case.world.manager.find("orders").core
    assert core.positions.purge_pending == 1
    (case.coordinator.commit if outcome == "committed" else case.coordinator.abort)(ID)
    case.world.run()
    assert core.removed_total >= 1
    assert case.world.bodies() == []
    assert case.world.bodies("bills") == ([b"3", b"4", b"5"] if outcome == "committed" else [])
    case.world.crash()
    assert case.world.bodies() == []


@pytest.mark.rule("DU-05")
@pytest.mark.parametrize("outcome", ["committed", "aborted"])
def test_an_outcome_that_is_not_kept_leaves_it_prepared(outcome: str) -> None:
    case = Case()
    case.prepare()
    before = accounts(case.world)
    act = case.coordinator.commit if outcome == "committed" else case.coordinator.abort
    act(ID)
    case.world.writer.submit()
    case.world.writer.complete_one(28)
    case.world.run()
    assert case.coordinator.heard == ["prepared"]
    case.check_locked()
    assert accounts(case.world) == before
    act(ID)
    case.world.run()
    assert case.coordinator.heard[-1] == outcome
    case.check(outcome)


@pytest.mark.rule("DM-040", "REC-05", "DM-145")
@pytest.mark.parametrize("outcome", ["committed", "aborted"])
def test_a_move_is_prepared_too(outcome: str) -> None:
    world = made()
    fill(world, b"1", b"2")
    coordinator = Coordinator(world)
    transaction = world.manager.transactions.begin(identifier=ID)
    key = world.manager.find("orders").core.positions.keys()[0]
    target = world.manager.open("orders;later", Access.MOVE)
    TransactedQueue(world.reader(), transaction).move(key, target)
    coordinator.prepare(ID)
    world.run()
    world.crash()
    coordinator.transactions = world.manager.transactions
    assert world.bodies("orders;later") == []
    (coordinator.commit if outcome == "committed" else coordinator.abort)(ID)
    world.run()
    moved = outcome == "committed"
    assert world.bodies("orders;later") == ([b"1"] if moved else [])
    assert world.bodies() == ([b"2"] if moved else [b"1", b"2"])


@pytest.mark.rule("DU-06", "DU-07", "DU-05", "REC-05")
@pytest.mark.parametrize("step", ["prepare", "commit", "abort"])
def test_a_fault_at_any_call_of_the_store_and_a_crash(step: str) -> None:
    call = 0
    while True:
        call += 1
        case = Case()
        if step != "prepare":
            case.prepare()
        case.world.writer.fail_call(call)
        ended = {
            "prepare": case.coordinator.prepare,
            "commit": case.coordinator.commit,
            "abort": case.coordinator.abort,
        }
        ended[step](ID)
        case.world.writer.fail_call(1 << 40)
        case.world.run()
        last = case.coordinator.heard[-1]
        case.crash()
        if last == "prepared":
            case.check_locked()
            case.coordinator.abort(ID)
            case.world.run()
        case.check("committed" if last == "committed" else "aborted")
        if last == {"prepare": "prepared", "commit": "committed", "abort": "aborted"}[step]:
            break
    assert call > 3


def test_a_damaged_record_is_set_aside() -> None:
    case = Case()
    case.prepare()
    tables = case.world.store.tables.tables
    for key in [key for key in tables[Table.META] if key.startswith(b"txn")]:
        tables[Table.META][key] = tables[Table.META][key][:20]
    case.crash()
    assert case.world.manager.damage["transaction"] == 1
    assert case.world.bodies()[1:] == [b"2"]


def test_reading_ends_with_the_vote() -> None:
    case = Case()
    request = reading(case.world, case.transaction, "bills").receive(None)
    case.prepare()
    assert isinstance(case.transaction, Transaction)
    with pytest.raises(errors.OperationCancelled):
        request.completion.result()


@pytest.mark.rule("KV-07")
def test_a_large_prepared_transaction() -> None:
    world = made()
    coordinator = Coordinator(world)
    transaction = world.manager.transactions.begin(identifier=ID)
    transaction.operations.limit_bytes = 3_000
    bodies = [b"%d" % number * 1000 for number in range(10)]
    queue = TransactedQueue(world.sender(), transaction)
    for text in bodies:
        queue.send(Message(body=text))
    coordinator.prepare(ID)
    world.run()
    world.crash()
    coordinator.transactions = world.manager.transactions
    coordinator.commit(ID)
    world.run()
    assert world.bodies() == bodies
    keys = world.manager.find("orders").core.positions.keys()
    assert [_header(world, "orders", key).last for key in keys] == [False] * 9 + [True]


@pytest.mark.rule("DM-024", "DU-06", "DU-07")
@pytest.mark.parametrize("outcome", ["committed", "aborted"])
def test_an_empty_transaction_votes_and_ends(outcome: str) -> None:
    world = made()
    coordinator = Coordinator(world)
    world.manager.transactions.begin(identifier=ID)
    coordinator.prepare(ID)
    world.run()
    (coordinator.commit if outcome == "committed" else coordinator.abort)(ID)
    world.run()
    assert coordinator.heard == ["prepared", outcome]
    world.crash()
    assert len(world.manager.transactions) == 0


def test_a_vote_that_was_not_kept_leaves_nothing_locked_for_ever() -> None:
    """Its program may be gone, and nobody else ends it."""
    case = Case()
    transaction = case.world.manager.transactions.find(ID)
    done = transaction.prepare()
    transaction.leave()
    case.world.writer.submit()
    case.world.writer.complete_one(errno.ENOSPC)
    assert done.exception() is not None
    case.world.advance(case.world.settings.transaction_idle + 1)
    assert transaction.state is State.GONE
    assert case.world.bodies() == [b"1", b"2"]


def test_prepared_transactions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msmq_fast.qm.transactions.transaction.PREPARED_LIMIT", 2)
    world = made()
    transactions = world.manager.transactions
    first, second, third = (transactions.begin() for _ in range(3))
    world.finish(first.prepare())
    world.finish(second.prepare())
    with pytest.raises(errors.InsufficientResources):
        third.prepare()
    assert third.state is State.ACTIVE
    world.finish(first.abort())
    world.finish(third.prepare())
