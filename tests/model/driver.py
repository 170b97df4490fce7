"""Drives a queue manager and the model with the same random operations and compares what can be seen.

Operations come in rounds of a few. Within a round nothing becomes durable; at its end the store commits and
everything must agree, or the queue manager crashes with or without the commit, or stops and starts.
"""

from __future__ import annotations

from .transactions import TransactionOperations

FULL = 50  # operations between two comparisons of everything

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


class Driver(TransactionOperations):
    """Runs operations in rounds."""

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

    def operation(self) -> None:
        self.count += 1
        kind = self.random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        self.done[kind] += 1
        getattr(self, "_do_" + kind)()
