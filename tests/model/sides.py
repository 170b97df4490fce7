"""The two sides, a queue manager and the model: the same queues, commits, restarts, and the comparison."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from random import Random
from typing import Any

from msmq_fast._native.queuebase import Received
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.qm.access import Access
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.queues.queue import Queue as RealQueue
from msmq_fast.qm.reading.cursor import Cursor as RealCursor
from msmq_fast.qm.reading.readers import ReadRequest
from msmq_fast.store.completion import Completion
from msmq_fast.store.schema import Table
from msmq_fast.store.store import Store
from tests.support.clocks import WALL
from tests.support.worlds.queue_manager import World

from .model import LOCKED, Cursor, Message, Model, Queue, Refused, Transaction, Waiter
from .visible import Disagreement, ident, outcome, path

USER = ("plain", "jour", "tx", "txj", "admin")
SUB = ("plain;a", "tx;a", "txj;poison")
DERIVED = {"journal", "deadletter", "deadxact", "jour;journal", "txj;journal", "admin"}


class Sides:
    """A queue manager and the model of it, in step."""

    def __init__(self, seed: int, kept: int = 40) -> None:
        self.random = Random(seed)
        cache = self.random.choice([0, 3000, 1 << 20])
        self.world = World(
            cache_bytes=cache,
            purge_batch=self.random.choice([2, 1000]),
            expire_batch=self.random.choice([2, 1000]),
            transaction_idle=1e9,
            feed=self.random.random() < 0.3,
        )
        self.model = Model()
        self.model.now = WALL
        self.count = 0
        self.done: Counter[str] = Counter()
        self.log: deque[str] = deque(maxlen=kept)
        self.open: list[tuple[str, Completion[Any], object]] = []
        self.bodies = 0
        self._compared = 0
        self._doomed = False  # nothing of this round will be kept
        self._queues()
        self._handles()

    def _queues(self) -> None:
        quotas = {"plain": 16, "jour": 0xFFFFFFFF, "tx": 16, "txj": 0xFFFFFFFF, "admin": 0xFFFFFFFF}
        for name in USER:
            values: dict[str, object] = {"quota_kb": quotas[name], "transactional": name.startswith("tx")}
            if name in ("jour", "txj"):
                values |= {"journaling": True, "journal_quota_kb": 8}
            if name == "txj":
                values["poison_after"] = 2
            self.world.create(path(name), **values)
            queue = self.model.add(Queue(name, transactional=name.startswith("tx")))
            queue.quota = None if quotas[name] == 0xFFFFFFFF else quotas[name] * 1024
            queue.poison_after = int(values.get("poison_after", 0))  # type: ignore[call-overload]
            if "journaling" in values:
                queue.journaling = True
                queue.journal = self.model.add(Queue(name + ";journal", timeless=True, quota=8192))
        for name in SUB:
            parent = self.model.queues[name.split(";")[0]]
            self.model.add(Queue(name, parent=parent, transactional=parent.transactional))
        for name in ("journal", "deadletter", "deadxact"):
            self.model.add(Queue(name, timeless=True))

    def _handles(self) -> None:
        manager = self.world.manager
        self.senders = {name: manager.open(path(name), Access.SEND) for name in USER}
        self.readers = {
            name: [manager.open(path(name), Access.RECEIVE) for _ in range(2)] for name in self.model.queues
        }
        self.movers = {name: manager.open(path(name), Access.MOVE) for name in (*USER, *SUB)}
        self.real: dict[str, RealQueue] = {name: manager.find(path(name)) for name in self.model.queues}
        self.holds: list[tuple[str, OpenQueue, int, object]] = []  # two-phase reads
        self.cursors: list[tuple[str, RealCursor, Cursor]] = []
        self.requests: list[tuple[str, ReadRequest, Waiter]] = []
        self.transactions = [
            (manager.transactions.find(real.identifier), tx)
            for real, tx in getattr(self, "transactions", [])
            if tx.state == "prepared"
        ]

    def stop(self) -> None:
        """A clean stop, and a start with what it left."""
        world = self.world
        for queue in self.model.queues.values():
            queue.waiters.clear()
            for message in list(queue.messages):
                if message.state == LOCKED and not isinstance(message.owner, Transaction | str):
                    self.model.unlock(queue, message)
        self.model.settle()
        world.manager.stop()
        world.run()
        tables = world.writer.tables
        world.store.close(world.manager.counters())
        world.store = Store.in_memory(now_s=WALL, random=world.random, tables=tables)
        world._begin()

    def restart(self, how: Callable[[], None]) -> None:
        self.done["restart"] += 1
        self.open.clear()
        how()
        self.model.restart()
        self._handles()
        self.done["prepared at a restart"] += len(self.transactions)
        self.settle()
        self.compare()

    def pump(self) -> None:
        """A turn of the loop without a commit: packets are read from the disk, readers are served."""
        ledger, reader = self.world.manager.ledger, self.world.store.reader
        ledger.serve()
        while reader.complete():
            ledger.serve()
        ledger.serve()
        self.model.serve()

    def settle(self) -> None:
        """The store commits until nothing is left to do, also of what goes in batches of few."""
        ledger = self.world.manager.ledger
        self.world.run()
        while ledger.pending_deletes or ledger.reaping:
            self.world.run()
        self.model.settle()
        self.adopt()
        for what, completion, expected in self.open:
            self.same(what, outcome(completion), expected)
        self.open.clear()
        waiting: list[tuple[str, ReadRequest, Waiter]] = []
        for name, request, waiter in self.requests:
            if waiter.result is None:
                if request.completion.done:
                    self.fail(f"a read of {name} that should wait ended: {outcome(request.completion)}")
                waiting.append((name, request, waiter))
            else:
                self.same(f"waiting read of {name}", outcome(request.completion), waiter.result)
        self.requests = waiting

    def adopt(self) -> None:
        """Learn the keys that were given with a commit.

        In which order it brought what followed from it no rule tells.
        """
        news = sorted(self.model.news, key=lambda queue: queue.name)
        self.model.news.clear()
        for queue in news:
            name = queue.name
            unknown = [message for message in queue.messages if message.key is None]
            if not unknown:
                continue
            known = {message.key for message in queue.messages}
            entries = [entry for entry in self.entries(name) if entry.lookup_id not in known]
            if name in DERIVED:
                entries.sort(key=lambda entry: (repr(ident(entry)), entry.lookup_id))
                unknown.sort(key=lambda message: (repr(message.ident), message.serial))
            else:
                unknown.sort(key=lambda message: message.place)
            if [ident(entry) for entry in entries] != [message.ident for message in unknown]:
                self.fail(f"{name} got {[ident(e) for e in entries]} instead of {[m.ident for m in unknown]}")
            for message, entry in zip(unknown, entries, strict=True):
                message.key = entry.lookup_id
                message.size = len(entry.packet)
                if name in DERIVED:
                    message.serial = entry.lookup_id & 0xFF_FFFF_FFFF_FFFF
                    message.priority = 7 - (entry.lookup_id >> 56)
                if message.reason is not None and entry.reason != message.reason:
                    self.fail(f"{name}: the reason of {message.ident} is {entry.reason:#x}")

    def entries(self, name: str) -> list[Received]:
        found: list[Received] = []
        core = self.real[name].core
        for key in core.positions.keys():  # noqa: SIM118 - no mapping
            if not core.peek(key, lambda message, _: found.append(message) if message else None):
                self.fail(f"{name}: {key:#x} is still on its way after the commit")
            self.world.store.reader.complete()
        return found

    def compare(self) -> None:
        """Everything that can be seen, and the invariants I6 and I7."""
        self._compared = self.count
        total = stored = 0
        for name, queue in self.model.queues.items():
            real = self.real[name]
            seen = [(ident(e), e.lookup_id, e.abort_count, e.move_count) for e in self.entries(name)]
            expected = [message.seen for message in queue.sorted()]
            if seen != expected:
                self.fail(f"{name} holds\n  {seen}\ninstead of\n  {expected}")
            keys = [entry[1] for entry in seen]
            assert keys == sorted(set(keys))
            states = [real.core.positions.state(key) for key in keys]
            wanted = [(4 if m.purged else 2) if m.state == LOCKED else 1 for m in queue.sorted()]
            self.same(f"states of {name}", states, wanted)
            size = sum(message.size for message in queue.messages)
            self.same(f"TotalBytes of {name}", real.bytes, size)
            self.same(f"count of {name}", real.messages, len(queue.messages))
            self.same(f"used bytes of {name}", real.core.used_bytes, size + queue.reserved)
            total += size + queue.reserved
            stored += sum(message.recoverable for message in queue.messages)
        self.same("bytes of the queue manager", self.world.manager.ledger.bytes, total)
        self.same("stored positions", self.world.store.tables.count(Table.POSITION), stored)
        if not self.transactions:
            self.same("stored packets", self.world.store.tables.count(Table.CONTENT), stored)

    def note(self, text: str) -> None:
        self.log.append(f"{self.count:6} {text}")

    def fail(self, text: str) -> None:
        raise Disagreement(text)

    def same(self, what: str, real: object, expected: object) -> None:
        if isinstance(real, tuple) and isinstance(expected, tuple) and expected[1] is None:
            expected = (expected[0], real[1], *expected[2:])  # taken before its key was learned
        if real != expected:
            self.fail(f"{what}: {real} instead of {expected}")

    def both(self, what: str, real: Callable[[], object], model: Callable[[], object]) -> None:
        """Do something on both sides; what completes later is compared by `settle`."""
        self.note(what)
        got: object
        expected: object
        try:
            got = real()
        except MSMQError as error:
            got = type(error).__name__
        try:
            expected = model()
        except Refused as refused:
            expected = str(refused)
        if isinstance(expected, Message):
            expected = expected.seen
        if isinstance(got, ReadRequest):
            got = got.completion
        if isinstance(got, Completion):
            self.open.append((what, got, expected))
        else:
            self.same(what, got, expected)
