"""Interleaved transactions, prepared ones and crashes against lists: whatever the order of the steps, each
queue is what the committed transactions make of it one after the other.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from msmq_fast.packet import Message
from msmq_fast.protocol import errors
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.qm.transactions.transaction import State, Transaction
from msmq_fast.store.schema import Table
from tests.support.worlds.queue_manager import World, body

QUEUES = ("orders", "bills")


class Entry:
    """One committed message of the model."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.aborts = 0
        self.holder: Open | None = None
        self.purged = False


class Open:
    """One open transaction of the model."""

    def __init__(self, transaction: Transaction) -> None:
        self.identifier = transaction.identifier
        self.prepared = False
        self.sent: list[tuple[str, bytes]] = []


class Interleaved(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World(cache_bytes=2000, purge_batch=3)
        for name in QUEUES:
            self.world.create(name, transactional=True)
        self.queues: dict[str, list[Entry]] = {name: [] for name in QUEUES}
        self.open: list[Open] = []

    def _real(self, model: Open) -> Transaction:
        return self.world.manager.transactions.find(model.identifier)

    def _active(self) -> list[Open]:
        return [model for model in self.open if not model.prepared]

    @precondition(lambda self: len(self.open) < 4)
    @rule(limit=st.sampled_from([1 << 20, 400]))
    def begin(self, limit: int) -> None:
        transaction = self.world.manager.transactions.begin()
        transaction.operations.limit_bytes = limit
        self.open.append(Open(transaction))

    @precondition(lambda self: self._active())
    @rule(data=st.data(), name=st.sampled_from(QUEUES), text=st.binary(max_size=200))
    def send(self, data: st.DataObject, name: str, text: bytes) -> None:
        model = data.draw(st.sampled_from(self._active()))
        handle = self.world.sender(name)
        TransactedQueue(handle, self._real(model)).send(Message(body=text))
        handle.close()
        model.sent.append((name, text))

    @precondition(lambda self: self._active())
    @rule(data=st.data(), name=st.sampled_from(QUEUES))
    def receive(self, data: st.DataObject, name: str) -> None:
        model = data.draw(st.sampled_from(self._active()))
        handle = self.world.reader(name)
        request = TransactedQueue(handle, self._real(model)).receive(0)
        first = next((entry for entry in self.queues[name] if entry.holder is None), None)
        if first is None:
            with pytest.raises(errors.IOTimeout):
                self.world.finish(request.completion)
        else:
            assert body(self.world.finish(request.completion)) == first.text
            first.holder = model
        handle.close()

    @rule(name=st.sampled_from(QUEUES))
    def plain_receive(self, name: str) -> None:
        first = next((entry for entry in self.queues[name] if entry.holder is None), None)
        if first is not None:
            assert self.world.receive(name) == first.text
            self.queues[name].remove(first)

    @precondition(lambda self: self._active())
    @rule(data=st.data())
    def prepare(self, data: st.DataObject) -> None:
        model = data.draw(st.sampled_from(self._active()))
        self.world.finish(self._real(model).prepare())
        model.prepared = True

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        model = data.draw(st.sampled_from(self.open))
        self.world.finish(self._real(model).commit())
        for name in QUEUES:
            self.queues[name] = [entry for entry in self.queues[name] if entry.holder is not model]
        for name, text in model.sent:
            self.queues[name].append(Entry(text))
        self.open.remove(model)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        self._abort(data.draw(st.sampled_from(self.open)))

    def _abort(self, model: Open) -> None:
        self.world.finish(self._real(model).abort())
        self._released(model, 1)

    def _released(self, model: Open, aborts: int) -> None:
        for name in QUEUES:
            for entry in self.queues[name]:
                if entry.holder is model:
                    entry.holder = None
                    entry.aborts += aborts
            self.queues[name] = [
                entry for entry in self.queues[name] if entry.holder is not None or not entry.purged
            ]
        self.open.remove(model)

    @rule(name=st.sampled_from(QUEUES))
    def purge(self, name: str) -> None:
        handle = self.world.reader(name)
        self.world.finish(handle.purge())
        handle.close()
        self.queues[name] = [entry for entry in self.queues[name] if entry.holder is not None]
        for entry in self.queues[name]:
            entry.purged = True

    @rule()
    def crash(self) -> None:
        self.world.run()
        self.world.crash()
        for model in self._active():
            self._released(model, 0)
        assert {item.identifier for item in self.world.manager.transactions} == {
            model.identifier for model in self.open
        }

    @invariant()
    def same(self) -> None:
        self.world.run()
        for name in QUEUES:
            assert self.world.bodies(name) == [entry.text for entry in self.queues[name]]
            core = self.world.manager.find(name).core
            counts: list[int] = []
            for key in core.positions.keys():  # noqa: SIM118
                core.peek(key, lambda found, _: counts.append(found.abort_count))  # noqa: B023
                self.world.store.reader.complete()
            assert counts == [entry.aborts for entry in self.queues[name]]
            assert (core.reserved_bytes > 0) == any(
                queue == name for model in self.open for queue, _ in model.sent
            )
        cores = [queue.core for queue in self.world.manager.queues()]
        assert self.world.manager.ledger.bytes == sum(core.used_bytes for core in cores)

    def teardown(self) -> None:
        for model in list(self.open):
            self._abort(model)
        self.world.run()
        tables = self.world.store.tables.tables
        left = sum(len(entries) for entries in self.queues.values())
        assert len(tables[Table.CONTENT]) == len(tables[Table.POSITION]) == left
        assert not [key for key in tables[Table.META] if key.startswith(b"txn")]
        assert all(item.state is not State.ACTIVE for item in self.world.manager.transactions)


TestInterleaved = Interleaved.TestCase
TestInterleaved.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
TestInterleaved.pytestmark = [pytest.mark.rule("DU-05", "DU-06", "DU-07", "DM-034", "ST-3", "X-33")]
