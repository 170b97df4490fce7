"""Drives a queue manager and the model with the same random operations and compares what can be seen.

Operations come in rounds of a few. Within a round nothing becomes durable; at its end the store commits and
everything must agree, or the queue manager crashes with or without the commit, or stops and starts.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from functools import lru_cache
from random import Random
from typing import Any

from msmq_fast._native.queuebase import Received
from msmq_fast.packet.message import Message as Sent
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.properties import Acknowledge, Delivery, Journal
from msmq_fast.qm.access import Access
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.queues.queue import Queue as RealQueue
from msmq_fast.qm.reading.cursor import Cursor as RealCursor
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.qm.reading.readers import ReadRequest
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.qm.transactions.transaction import Transaction as RealTransaction
from msmq_fast.store.completion import Completion
from msmq_fast.store.schema import Table
from msmq_fast.store.store import Store
from tests.support.clocks import WALL
from tests.support.worlds.queue_manager import World

from .model import LOCKED, Cursor, Ident, Message, Model, Queue, Refused, Transaction, Waiter

USER = ("plain", "jour", "tx", "txj", "admin")
SUB = ("plain;a", "tx;a", "txj;poison")
MOVED = (*USER[:4], *SUB)
DERIVED = {"journal", "deadletter", "deadxact", "jour;journal", "txj;journal", "admin"}
KINDS = ["send"] * 6 + ["receive"] * 6 + ["lookup", "move", "move", "wait", "end", "end"]
SENT_TO = ("plain", "plain", "jour", "tx", "txj")
ADMIN = parse_format_name(r"DIRECT=OS:HOST\private$\admin")
FULL = 50  # operations between two comparisons of everything
MOST = 40  # messages of a queue before it is emptied rather than filled


WEIGHTS = {
    "send": 30,
    "receive": 14,
    "peek": 5,
    "wait": 4,
    "lookup": 12,
    "begin": 4,
    "end": 5,
    "cursor": 12,
    "transaction": 30,
    "move": 8,
    "purge": 0.7,
    "time": 3,
    "close": 1,
}


class Disagreement(AssertionError):
    """The queue manager and the model do not say the same."""


class Driver:
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

    # ---- the same queues on both sides

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

    # ---- running

    def run(self, operations: int) -> None:
        """Raises Disagreement."""
        while self.count < operations:
            self.round()
        self.settle()
        self.compare()

    def round(self) -> None:
        self._doomed = self.random.random() < 0.01
        restore = self.model.snapshot() if self._doomed else None
        for _ in range(self.random.choice([1, 2, 4, 8, 12])):
            self.operation()
            self.pump()
        if restore is not None:
            self.note("crash: nothing of this round was kept")
            restore()
            self.restart(self.world.crash)
            return
        ending = self.random.random()
        if ending < 0.005 and not any(queue.waiters for queue in self.model.queues.values()):
            self.note("commit, crash")
            self.world.manager.before_submit()
            self.world.writer.complete_all()
            self.model.settle()
            self.restart(self.world.crash)
        elif ending < 0.01:
            self.note("stop, start")
            self.settle()
            for _, tx in self.transactions:
                if tx.state == "active":
                    self.model.abort(tx)
            self.restart(self.stop)
        else:
            self.settle()
            if self.count - self._compared >= FULL:
                self.compare()

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

    # ---- comparing

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

    # ---- operations

    def operation(self) -> None:
        self.count += 1
        kind = self.random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        self.done[kind] += 1
        getattr(self, "_do_" + kind)()

    def _queue(self) -> tuple[str, Queue]:
        names = list(self.model.queues)
        if self._dirty():
            names = [name for name in names if name not in DERIVED]
        name = self.random.choice(names)
        return name, self.model.queues[name]

    def _dirty(self) -> bool:
        """Whether a derived queue got something whose key is not known yet."""
        return any(queue.name in DERIVED for queue in self.model.news)

    def _message(self) -> tuple[Sent, int | None]:
        random = self.random
        self.bodies += 1
        lifetime = random.choice([None, None, None, 4, 30])
        message = Sent(
            body=body_of(self.bodies, random.choice([0, 0, 10, 300, 1500])),
            priority=random.randrange(8),
            delivery=Delivery(random.randrange(2)),
            journal=Journal(random.choice([0, 0, 0, 1, 2, 3])),
        )
        if random.random() < 0.2:
            message.acknowledge = Acknowledge(random.choice([1, 2, 8, 15]))
            message.admin_queue = ADMIN
        if lifetime is not None:
            message.time_to_be_received = lifetime
        return message, lifetime

    def _as_model(self, sent: Sent, lifetime: int | None, transactional: bool) -> Message:
        return Message(
            (0, int(sent.body.split(b":")[0])),
            0 if transactional else sent.priority,
            0,
            bool(sent.delivery) or transactional,
            transactional,
            len(sent.to_packet()),
            sent.message_id,
            deadline=None if lifetime is None else self.model.now + lifetime,
            acknowledge=int(sent.acknowledge),
            journal=int(sent.journal),
        )

    def _do_send(self) -> None:
        name = self.random.choice(SENT_TO)
        queue = self.model.queues[name]
        if len(queue.messages) > MOST:
            self._do_receive(name)
            return
        sent, lifetime = self._message()
        self.note(f"send to {name}: {sent.body[:8]!r} p{sent.priority} {sent.delivery!s} ttl {lifetime}")
        try:
            completion = self.senders[name].send(sent)
        except MSMQError as error:
            self.same("send", type(error).__name__, self._refused(queue, sent, lifetime))
            return
        message = self._as_model(sent, lifetime, False)
        try:
            self.model.send(queue, message)
        except Refused as refused:
            self.fail(f"send to {name} was taken instead of {refused}")
        self.open.append(("send", _key(completion, message), True))

    def _refused(self, queue: Queue, sent: Sent, lifetime: int | None) -> str:
        try:
            self.model.send(queue, self._as_model(sent, lifetime, False))
        except Refused as refused:
            return str(refused)
        return "taken"

    def _do_receive(self, name: str | None = None) -> None:
        if name is None or (name in DERIVED and self._dirty()):
            name, queue = self._queue()
        else:
            queue = self.model.queues[name]
        handle = self.random.choice(self.readers[name])
        if self._waited(queue):
            return
        self.both(f"receive {name}", lambda: handle.receive(0), lambda: self.model.receive(queue))

    def _waited(self, queue: Queue) -> bool:
        return bool(queue.waiters)

    def _do_peek(self) -> None:
        name, queue = self._queue()
        handle = self.random.choice(self.readers[name])
        self.both(
            f"peek {name}",
            lambda: handle.receive(0, peek=True),
            lambda: self.model.receive(queue, peek=True),
        )

    def _do_wait(self) -> None:
        name = self.random.choice(MOVED)
        queue = self.model.queues[name]
        peek, timeout = self.random.random() < 0.3, self.random.choice([None, 1500, 20500])
        due = None if timeout is None else int(self.world.clock.seconds * 1000) + timeout + 1
        self.note(f"wait on {name} peek={peek} timeout={timeout}")
        waiter = self.model.wait(queue, Waiter(peek, due=due))
        request = self.random.choice(self.readers[name]).receive(timeout, peek=peek)
        self.requests.append((name, request, waiter))

    def _do_lookup(self) -> None:
        name, queue = self._queue()
        key = self._key(queue)
        operation, peek = self.random.choice(list(Lookup)), self.random.random() < 0.6
        handle = self.random.choice(self.readers[name])
        self.both(
            f"lookup {name} {key:#x} {operation.name} peek={peek}",
            lambda: handle.lookup(key, operation, peek=peek),
            lambda: self.model.lookup(queue, key, operation.name, peek=peek),
        )

    def _key(self, queue: Queue) -> int:
        keys = [message.key for message in queue.messages if message.key is not None]
        if not keys or self.random.random() < 0.1:
            return self.random.choice([0, 5, (4 << 56) + self.random.randrange(1, 200), (1 << 64) - 1])
        return self.random.choice(keys)

    def _do_begin(self) -> None:
        name, queue = self._queue()
        handle = self.random.choice(self.readers[name])
        owner = handle
        if self._waited(queue):
            return
        got: list[int | None] = []

        def begin() -> Message:
            message = self.model.receive(queue, owner=owner)
            got.append(message.key)
            return message

        self.both(f"begin {name}", lambda: handle.begin(0), begin)
        if got and got[0] is not None:
            self.holds.append((name, handle, got[0], owner))

    def _do_end(self) -> None:
        if not self.holds:
            return
        name, handle, key, owner = self.random.choice(self.holds)
        queue = self.model.queues[name]
        other = self.random.random() < 0.1
        if other:
            handle = next(reader for reader in self.readers[name] if reader is not handle)
            owner = handle
        if name in DERIVED and self._dirty():
            return
        delete = self.random.random() < 0.5
        if not other and self.random.random() < 0.8:
            self.holds.remove((name, handle, key, owner))
        self.both(
            f"end {name} {key:#x} delete={delete}",
            lambda: handle.end(key, delete=delete),
            lambda: self.model.finish(queue, key, owner, delete=delete),
        )

    def _do_cursor(self) -> None:
        if len(self.cursors) < 6 and self.random.random() < 0.2:
            name, queue = self._queue()
            cursor = Cursor()
            self.note(f"open cursor {name}")
            self.cursors.append((name, self.random.choice(self.readers[name]).open_cursor(), cursor))
            self.model.cursors.setdefault(queue, []).append(cursor)
            return
        if not self.cursors:
            return
        name, real, cursor = self.random.choice(self.cursors)
        queue = self.model.queues[name]
        if name in DERIVED and self._dirty():
            return
        kind = self.random.choice(["peek", "next", "next", "next", "receive", "close"])
        what = f"cursor {real.number} of {name}: {kind}"
        if kind == "peek":
            self.both(what, lambda: real.peek(0), lambda: self.model.cursor_peek(queue, cursor))
        elif kind == "next":
            self.both(what, lambda: real.peek_next(0), lambda: self.model.cursor_next(queue, cursor))
        elif kind == "receive":
            active = [each for each in self.transactions if each[1].state == "active"]
            if queue.transactional and active and self.random.random() < 0.5:
                hold, tx = self.random.choice(active)
                self.both(
                    f"{what} in transaction {tx.number}",
                    lambda: real.receive(0, hold=hold),
                    lambda: self.model.cursor_receive(queue, cursor, tx),
                )
                return
            self.both(what, lambda: real.receive(0), lambda: self.model.cursor_receive(queue, cursor))
        elif self.random.random() < 0.5:
            self.note(what)
            real.close()
            self.cursors.remove((name, real, cursor))
            self.model.cursors[queue].remove(cursor)

    def _do_close(self) -> None:
        """A reader goes: its cursors close, its waiting reads end, what it has locked is back."""
        name, queue = self._queue()
        at = self.random.randrange(2)
        handle = self.readers[name][at]
        self.note(f"close a reader of {name}")
        mine = [request for request in self.requests if request[1] in handle._requests]
        if any(not completion.done for _, completion, _ in self.open) or any(w.result for _, _, w in mine):
            return  # a read that is under way would have to be given back
        for _, _, waiter in mine:
            self.model.end(queue, waiter, "OperationCancelled")
        for entry in [entry for entry in self.cursors if entry[1].number in handle.cursors]:
            self.cursors.remove(entry)
            self.model.cursors[queue].remove(entry[2])
        for hold in [hold for hold in self.holds if hold[1] is handle]:
            self.holds.remove(hold)
            message = queue.find(hold[2])
            if message is not None and message.owner is hold[3]:
                self.model.unlock(queue, message)
        handle.close()
        self.readers[name][at] = self.world.manager.open(path(name), Access.RECEIVE)

    def _do_move(self) -> None:
        name = self.random.choice(MOVED)
        target = self.random.choice(MOVED)
        if self.random.random() < 0.8:
            family = [other for other in MOVED if other.split(";")[0] == name.split(";")[0]]
            target = self.random.choice(family)
        queue, goal = self.model.queues[name], self.model.queues[target]
        key = self._key(queue)
        handle = self.random.choice(self.readers[name])
        self.both(
            f"move {key:#x} from {name} to {target}",
            lambda: handle.move(key, self.movers[target]),
            lambda: self.model.move(queue, key, goal),
        )

    def _do_purge(self) -> None:
        name, queue = self._queue()
        handle = self.random.choice(self.readers[name])
        self.both(f"purge {name}", handle.purge, lambda: self.model.purge(queue))

    def _do_time(self) -> None:
        if self._doomed:
            return
        self.settle()
        seconds = self.random.choice([1, 3, 11])
        self.note(f"{seconds} s pass")
        self.world.advance(seconds)
        self.model.pass_time(seconds)
        self.model.settle()
        self.model.time_out(int(self.world.clock.seconds * 1000))
        self.settle()

    # ---- transactions

    def _do_transaction(self) -> None:
        random = self.random
        if not self.transactions or (len(self.transactions) < 4 and random.random() < 0.15):
            real, tx = self.world.manager.transactions.begin("tester"), Transaction(self.count)
            self.note(f"begin transaction {tx.number}")
            if random.random() < 0.2:
                real.operations.limit_bytes = 500
            self.transactions.append((real, tx))
            self.model.transactions[tx.number] = tx
            return
        real, tx = random.choice(self.transactions)
        kind = random.choice(KINDS)
        if tx.state == "prepared" and random.random() < 0.9:
            return  # it shall see purges, expiry and restarts
        if kind == "end" or tx.state == "prepared":
            self._end_transaction(real, tx)
            return
        name = random.choice(["tx", "txj", "tx", "txj", "tx;a", "txj;poison"])
        queue = self.model.queues[name]
        what = f"transaction {tx.number}: {kind} {name}"
        if kind == "send":
            name = name.split(";")[0]
            queue = self.model.queues[name]
            if len(queue.messages) > MOST:
                return
            sent, lifetime = self._message()
            self.note(f"{what}: {sent.body[:8]!r}")
            got = "taken"
            try:
                TransactedQueue(self.senders[name], real).send(sent)
            except MSMQError as error:
                got = type(error).__name__
            expected = "taken"
            try:
                self.model.tx_send(tx, queue, self._as_model(sent, lifetime, True))
            except Refused as refused:
                expected = str(refused)
            self.same(what, got, expected)
            return
        reading = TransactedQueue(random.choice(self.readers[name]), real)
        if kind == "receive":
            if not self._waited(queue):
                self.both(what, lambda: reading.receive(0), lambda: self.model.receive(queue, owner=tx))
        elif kind == "wait":
            self.note(what)
            waiter = self.model.wait(queue, Waiter(False, owner=tx))
            self.requests.append((name, reading.receive(None), waiter))
        elif kind == "lookup":
            key, operation = self._key(queue), random.choice(list(Lookup))
            self.both(
                f"{what} {key:#x} {operation.name}",
                lambda: reading.lookup(key, operation),
                lambda: self.model.lookup(queue, key, operation.name, peek=False, owner=tx),
            )
        else:
            family = name.split(";")[0]
            target = random.choice([family, "tx;a" if family == "tx" else "txj;poison"])
            key = self._key(queue)
            self.both(
                f"{what} {key:#x} to {target}",
                lambda: reading.move(key, self.movers[target]),
                lambda: self.model.move(queue, key, self.model.queues[target], tx),
            )

    def _end_transaction(self, real: RealTransaction, tx: Transaction) -> None:
        how = self.random.choice(["commit", "commit", "abort", "abort", "prepare"])
        what = f"{how} transaction {tx.number} ({tx.state})"
        staged = real.operations.limit_bytes == 500 or tx.state == "prepared"
        if self._doomed and (staged or how == "prepare"):
            return
        if staged or how == "prepare":
            self.settle()  # what is written ahead puts the commit behind what comes after it
        if how == "commit":
            self.both(what, real.commit, lambda: self.model.commit(tx))
        elif how == "abort":
            self.both(what, real.abort, lambda: self.model.abort(tx))
        else:
            self.both(what, real.prepare, lambda: self.model.prepare(tx))
        if tx.state == "gone":
            self.transactions.remove((real, tx))
        if staged or how == "prepare":
            self.settle()


def path(name: str) -> str:
    if name in ("journal", "deadletter", "deadxact"):
        return rf".\system$;{name}"
    return rf".\private$\{name}"


def ident(received: Received) -> Ident:
    """By which both sides know a message."""
    return _ident(received.packet)


@lru_cache(maxsize=4096)
def _ident(packet: bytes) -> Ident:
    message = Sent.from_packet(packet)
    if message.message_class:
        return (int(message.message_class), int.from_bytes(message.correlation_id[16:], "little"))
    number, size = message.body.split(b":", 2)[:2]
    if message.body != body_of(int(number), int(size)):
        raise Disagreement(f"the body of message {int(number)} changed")
    return (0, int(number))


def body_of(number: int, size: int) -> bytes:
    return b"%d:%d:" % (number, size) + bytes(size)


def outcome(completion: Completion[Any]) -> object:
    """What a caller got."""
    if not completion.done:
        return "nothing yet"
    error = completion.exception()
    if error is not None:
        return type(error).__name__
    result = completion.result()
    if isinstance(result, Received):
        return (ident(result), result.lookup_id, result.abort_count, result.move_count)
    return result


def _key(sent: Completion[Any], message: Message) -> Completion[Any]:
    """Resolved with True when the message is kept; it learns its key."""
    done: Completion[Any] = Completion()

    def kept(sent: Completion[Any]) -> None:
        error = sent.exception()
        if error is not None:
            done.fail(error)
            return
        message.key = sent.result().lookup_id
        done.resolve(message.key >> 56 == 7 - message.priority)

    sent.add_done_callback(kept)
    return done
