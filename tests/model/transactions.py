"""The random operations in transactions, each done on both sides."""

from __future__ import annotations

from msmq_fast.protocol.errors import MSMQError
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.qm.transactions.transaction import Transaction as RealTransaction

from .model import Refused, Transaction, Waiter
from .operations import MOST, Operations

KINDS = ["send"] * 6 + ["receive"] * 6 + ["lookup", "move", "move", "wait", "end", "end"]


class TransactionOperations(Operations):
    """Operations in transactions, and how these end."""

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
