"""Leases among other readers, transactions, purges, crashes and time against lists: nobody gets what another
one has, every message is acknowledged, received or purged once, and numbers say what they said before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest

from msmq_fast.packet import Message
from msmq_fast.qm.bulk import leases as module
from msmq_fast.qm.bulk.leases import LeaseLost, Settled
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.qm.transactions.transaction import Transaction
from tests.support.worlds.queue_manager import World, body

SUBSCRIPTIONS = ("spark", "lake")
LEASE = 100
AVAILABLE = 1


@dataclass
class Entry:
    text: bytes
    place: tuple[int, int]
    express: bool
    holder: object = None
    purged: bool = False


@dataclass
class LeaseHolder:
    start: int = 1
    next: int = 1
    void: set[int] = field(default_factory=set)
    entries: dict[int, Entry] = field(default_factory=dict)
    due: float = 0.0

    @property
    def held(self) -> int:
        return self.next - self.start


class Leasing:
    def __init__(self, seed: int, *, transactional: bool) -> None:
        self.random = Random(seed)
        self.transactional = transactional
        self.world = World(cache_bytes=1500, purge_batch=2, transaction_idle=1e9)
        self.queue = self.world.create(journaling=True, transactional=self.transactional)
        self.entries: list[Entry] = []
        self.holders = {name: LeaseHolder() for name in SUBSCRIPTIONS}
        self.received: list[bytes] = []
        self.sent = 0
        self.transaction: Transaction | None = None
        self.taken: list[Entry] = []

    def step(self) -> str:
        """Something happens; what."""
        random = self.random
        name = random.choice(SUBSCRIPTIONS)
        kind = random.choices(
            ("send", "lease", "ack", "release", "receive", "take", "end", "purge", "crash", "wait"),
            (30, 14, 16, 4, 6, 6, 4, 1, 3, 5),
        )[0]
        if kind == "send":
            self.send(random.choice((0, 3, 7)), express=random.random() < 0.3)
        elif kind == "lease":
            self.lease(name, random.choice((1, 2, 3, 5, 100)))
        elif kind == "ack":
            self.acknowledge(name, random.choice((-1, 0, 0, 0, 1, 1, 2, 3, 4)))
        elif kind == "release":
            self.release(name, random.randrange(-1, 4))
        elif kind == "receive":
            self.receive()
        elif kind == "take" and self.transactional:
            self.receive_in_a_transaction()
        elif kind == "end" and self.transaction is not None:
            self.end_transaction(commit=random.random() < 0.5)
        elif kind == "purge":
            self.purge()
        elif kind == "crash":
            self.crash()
        elif kind == "wait":
            self.wait(random.choice((1, 30, LEASE - 1, LEASE, 3 * LEASE)))
        return kind

    # ---- the model

    def first(self) -> Entry | None:
        free = [entry for entry in self.entries if entry.holder is None]
        return min(free, key=lambda entry: entry.place, default=None)

    def end(self, holder: LeaseHolder) -> None:
        for number, entry in holder.entries.items():
            entry.holder = None
            holder.void.add(number)
        holder.void.update(range(holder.start, holder.next))
        holder.entries.clear()
        holder.start = holder.next

    def touched(self, name: str) -> None:
        holder = self.holders[name]
        holder.due = self.world.clock.seconds + LEASE

    # ---- what happens

    def send(self, priority: int, *, express: bool) -> None:
        self.sent += 1
        text = b"%d" % self.sent
        if self.transactional:
            transaction = self.world.manager.transactions.begin()
            TransactedQueue(self.world.sender(), transaction).send(Message(body=text))
            self.world.finish(transaction.commit())
            priority, express = 0, False
        else:
            self.world.send(text, priority=priority, delivery=0 if express else 1)
        self.entries.append(Entry(text, (-priority, self.sent), express))

    def lease(self, name: str, rows: int) -> None:
        holder = self.holders[name]
        leases = self.world.manager.leases
        given = self.world.finish(leases.lease(name, self.queue, rows, 1 << 30, LEASE))
        assert given.start == holder.next
        for _ in range(rows):
            entry = self.first()
            if entry is None:
                break
            entry.holder = name
            holder.entries[holder.next] = entry
            holder.next += 1
        assert given.stop == holder.next
        self.touched(name)

    def acknowledge(self, name: str, back: int) -> None:
        holder = self.holders[name]
        upto = max(holder.next - back, 0)
        done = self.world.manager.leases.ack(name, self.queue, upto)
        self.world.run()
        if holder.next == 1 or holder.due:
            self.touched(name)
        if upto > holder.next or upto - 1 in holder.void:
            assert isinstance(done.exception(), LeaseLost)
            return
        result = Settled(0, 0)
        for number in range(holder.start, upto):
            entry = holder.entries.pop(number, None)
            if entry is None:
                result = result._replace(gone=result.gone + 1)
            else:
                self.entries.remove(entry)
                self.received.append(entry.text)
                result = result._replace(removed=result.removed + 1)
        holder.start = max(holder.start, upto)
        assert done.result() == result

    def release(self, name: str, back: int) -> None:
        holder = self.holders[name]
        upto = max(min(holder.next - back, holder.next), holder.start)
        result = self.world.finish(self.world.manager.leases.release(name, self.queue, holder.next - back))
        there = [
            holder.entries.pop(number) for number in range(holder.start, upto) if number in holder.entries
        ]
        for entry in there:
            entry.holder = None
        holder.void.update(range(holder.start, upto))
        assert result == Settled(len(there), upto - holder.start - len(there))
        holder.start = upto
        self.touched(name)

    def receive(self) -> None:
        handle = self.world.reader()
        request = handle.receive(0)
        self.world.run()
        entry = self.first()
        if entry is None:
            assert request.completion.exception() is not None
        else:
            assert body(request.completion.result()) == entry.text
            self.entries.remove(entry)
            self.received.append(entry.text)
        handle.close()

    def receive_in_a_transaction(self) -> None:
        if self.transaction is None:
            self.transaction = self.world.manager.transactions.begin()
        handle = self.world.reader()
        request = TransactedQueue(handle, self.transaction).receive(0)
        self.world.run()
        entry = self.first()
        if entry is None:
            assert request.completion.exception() is not None
        else:
            assert body(request.completion.result()) == entry.text
            entry.holder = "transaction"
            self.taken.append(entry)

    def end_transaction(self, *, commit: bool) -> None:
        assert self.transaction is not None
        self.world.finish(self.transaction.commit() if commit else self.transaction.abort())
        for entry in self.taken:
            if commit:
                self.entries.remove(entry)
                self.received.append(entry.text)
            elif entry.purged:
                self.entries.remove(entry)
            else:
                entry.holder = None
        self.taken.clear()
        self.transaction = None

    def purge(self) -> None:
        self.world.finish(self.world.manager.purge(self.queue))
        self.entries = list(self.taken)  # a transaction may still commit what it has
        for entry in self.taken:
            entry.purged = True
        for holder in self.holders.values():
            holder.entries.clear()

    def crash(self) -> None:
        self.world.crash()
        queue = self.world.manager.find("orders")
        self.queue = queue
        self.transaction = None
        for entry in self.taken:
            entry.holder = None
        self.taken.clear()
        self.entries = [entry for entry in self.entries if not entry.express and not entry.purged]
        for holder in self.holders.values():
            holder.entries = {n: entry for n, entry in holder.entries.items() if not entry.express}
            holder.due = self.world.clock.seconds + LEASE
        # Copies of express messages are express, and nobody has them after a crash.
        self.received = [text for text in self.received if text not in self.lost()]

    def lost(self) -> set[bytes]:
        return set(self.received) - set(self.journal())

    def wait(self, seconds: int) -> None:
        self.world.advance(seconds)
        for holder in self.holders.values():
            if holder.held and holder.due <= self.world.clock.seconds:
                self.end(holder)

    # ---- what is always true

    def journal(self) -> list[bytes]:
        return self.world.bodies("orders;journal")

    def others_see_what_is_free(self) -> None:
        core = self.queue.core
        keys = core.positions.keys()
        free = [key for key in keys if core.positions.state(key) == AVAILABLE]
        model = sorted((entry for entry in self.entries if entry.holder is None), key=lambda e: e.place)
        assert len(free) == len(model)
        assert [self.text(key) for key in free] == [entry.text for entry in model]
        assert len(keys) == len(self.entries)

    def subscriptions_have_what_they_were_given(self) -> None:
        for name, holder in self.holders.items():
            # `rows` renews a lease, so the store behind it is looked at.
            found = self.world.manager.leases._holders.get(self.queue.ordinal, {}).get(name)
            if found is None:
                assert holder.next == 1
                continue
            assert (found.start, found.next) == (holder.start, holder.next)
            keys, numbers = found.still(holder.start, holder.next)
            assert dict(zip(numbers, map(self.text, keys), strict=True)) == {
                number: entry.text for number, entry in holder.entries.items()
            }

    def what_was_received_is_in_the_journal_once(self) -> None:
        assert sorted(self.journal()) == sorted(self.received)

    def text(self, key: int) -> bytes:
        found: list[bytes] = []
        self.queue.core.peek(
            key, lambda message, _status: found.append(Message.from_packet(message.packet).body)
        )
        self.world.store.reader.complete()
        return found[0]


def play(seed: int, *, transactional: bool, steps: int) -> None:
    leasing = Leasing(seed, transactional=transactional)
    done: list[str] = []
    try:
        for _ in range(steps):
            done.append(leasing.step())
            leasing.others_see_what_is_free()
            leasing.subscriptions_have_what_they_were_given()
            leasing.what_was_received_is_in_the_journal_once()
    except BaseException as error:
        error.add_note(f"seed {seed}, {'transactional, ' * transactional}step {len(done)}: {done[-12:]}")
        raise


@pytest.fixture
def small_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of two messages, units of two removals: what is long for others."""
    monkeypatch.setattr(module, "CHUNK", 2)
    monkeypatch.setattr(module, "ACK_STEP", 2)


@pytest.mark.usefixtures("small_stretches")
@pytest.mark.parametrize("transactional", [False, True])
def test_leases_do_as_lists_do(transactional: bool) -> None:
    for seed in range(12):
        play(seed, transactional=transactional, steps=80)


@pytest.mark.long(seconds=60)
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("small_stretches")
@pytest.mark.parametrize("transactional", [False, True])
def test_leases_do_as_lists_do_for_long(transactional: bool) -> None:
    for seed in range(1000, 1040):
        play(seed, transactional=transactional, steps=200)
