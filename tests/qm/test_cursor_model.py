"""Cursors against a list of keys: random reads, removals by others, aborts, purges, priorities."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from msmq_fast.protocol import errors
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.reading.cursor import Cursor, CursorState
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.qm.reading.readers import ReadRequest
from tests.support.worlds.queue_manager import World

UNREAD, WAIT_RECEIVE, WAIT_PEEK, READ = CursorState


@dataclass(eq=False)
class Model:
    """What a cursor should be."""

    cursor: Cursor
    key: int = 0
    state: CursorState = UNREAD
    waiting: ReadRequest | None = None


class Cursors(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World(cache_bytes=800, purge_batch=3)
        self.world.create()
        self.reader = self.world.reader()
        self.available: set[int] = set()
        self.locked: dict[int, OpenQueue] = {}
        self.purged: set[int] = set()  # locked ones that do not come back
        self.models: list[Model] = []
        self.waits: list[Model] = []  # in the order in which they began

    # ---- the naive side

    def behind(self, key: int) -> int | None:
        return min((other for other in self.available if other > key), default=None)

    def came(self, key: int) -> None:
        """A message became available: those who wait are served in their order, peeks first."""
        self.available.add(key)
        for state in (WAIT_PEEK, WAIT_RECEIVE):
            for model in self.waits:
                if model in self.models and model.state is state and key in self.available:
                    model.key = key
                    model.state = READ if state is WAIT_PEEK else UNREAD
                    assert model.waiting is not None
                    assert model.waiting.completion.result().lookup_id == key
                    model.waiting = None
                    if state is WAIT_RECEIVE:
                        self.available.remove(key)

    def got(
        self, model: Model, request: ReadRequest, key: int | None, wait: CursorState, found: CursorState
    ) -> None:
        """What a read must have led to, `key` being the message that was there for it."""
        if key is None:
            assert not request.completion.done
            model.state, model.waiting = wait, request
            self.waits = [other for other in self.waits if other is not model] + [model]
            return
        assert self.world.finish(request.completion).lookup_id == key
        model.key, model.state = key, found

    # ---- others

    @rule(priority=st.integers(0, 7), recoverable=st.booleans())
    def send(self, priority: int, recoverable: bool) -> None:
        self.came(self.world.send(b"x", priority=priority, delivery=int(recoverable)))

    @precondition(lambda self: self.available)
    @rule(data=st.data())
    def take(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.available)))
        reader = self.world.reader()
        self.world.finish(reader.lookup(key, Lookup.CURRENT))
        reader.close()
        self.available.remove(key)

    @precondition(lambda self: self.available)
    @rule(data=st.data())
    def lock(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.available)))
        reader = self.world.reader()
        self.world.finish(reader.lookup(key, Lookup.CURRENT, hold=reader.two_phase.begin()))
        self.available.remove(key)
        self.locked[key] = reader

    @precondition(lambda self: self.locked)
    @rule(data=st.data(), delete=st.booleans())
    def end(self, data: st.DataObject, delete: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.locked)))
        reader = self.locked.pop(key)
        if delete:
            self.world.finish(reader.end(key, delete=True))
        reader.close()
        self.world.run()
        if not delete and key not in self.purged:
            self.came(key)

    @rule()
    def purge(self) -> None:
        self.world.finish(self.reader.purge())
        self.available.clear()
        self.purged.update(self.locked)

    # ---- cursors

    @precondition(lambda self: len(self.models) < 5)
    @rule()
    def open(self) -> None:
        self.models.append(Model(self.reader.open_cursor()))

    @precondition(lambda self: self.models)
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        model = self.pick(data)
        model.cursor.close()
        self.models.remove(model)
        if model.waiting is not None:
            assert isinstance(model.waiting.completion.exception(), errors.OperationCancelled)

    def pick(self, data: st.DataObject) -> Model:
        return self.models[data.draw(st.integers(0, len(self.models) - 1))]

    @precondition(lambda self: self.models)
    @rule(data=st.data())
    def peek(self, data: st.DataObject) -> None:
        model = self.pick(data)
        if model.state in (WAIT_PEEK, WAIT_RECEIVE):
            self.refused(lambda: model.cursor.peek(None), errors.IllegalCursorAction)
        elif model.state is READ and model.key not in self.available:
            self.refused(lambda: model.cursor.peek(None), errors.MessageAlreadyReceived)
        else:
            key = model.key if model.state is READ else self.behind(model.key)
            request = model.cursor.peek(None)
            self.world.run()
            self.got(model, request, key, WAIT_PEEK, READ)

    @precondition(lambda self: self.models)
    @rule(data=st.data())
    def peek_next(self, data: st.DataObject) -> None:
        model = self.pick(data)
        if model.state is not READ:
            self.refused(lambda: model.cursor.peek_next(None), errors.IllegalCursorAction)
            return
        key = self.behind(model.key)
        request = model.cursor.peek_next(None)
        self.world.run()
        self.got(model, request, key, WAIT_PEEK, READ)

    @precondition(lambda self: self.models)
    @rule(data=st.data(), wait=st.booleans(), back=st.booleans())
    def receive(self, data: st.DataObject, wait: bool, back: bool) -> None:
        model = self.pick(data)
        timeout = None if wait else 0
        if model.state in (WAIT_PEEK, WAIT_RECEIVE):
            self.refused(lambda: model.cursor.receive(timeout), errors.IllegalCursorAction)
            return
        if model.state is READ and model.key not in self.available:
            self.refused(lambda: model.cursor.receive(timeout), errors.MessageAlreadyReceived)
            return
        key = model.key if model.state is READ else self.behind(model.key)
        if key is None and not wait:
            self.refused(lambda: model.cursor.receive(0), errors.MessageNotFound)
            return
        request = model.cursor.receive(timeout)
        self.world.run()
        self.got(model, request, key, WAIT_RECEIVE, UNREAD)
        if key is not None:
            self.available.remove(key)
            if back:  # its client was gone
                self.reader.queue.core.requeue([request.completion.result()])
                self.world.run()
                self.came(key)

    @rule()
    def time_passes(self) -> None:
        """Every cursor that waits gives up."""
        for model in self.models:
            if model.waiting is not None:
                model.waiting.cancel(errors.IOTimeout())
                model.state, model.waiting = UNREAD, None
        self.world.run()

    def refused(self, call: object, error: type[errors.MSMQError]) -> None:
        try:
            call()  # type: ignore[operator]
        except error:
            return
        raise AssertionError(f"no {error.__name__}")

    @invariant()
    def same(self) -> None:
        self.world.run()
        for model in self.models:
            assert (model.cursor.state, model.cursor.key) == (model.state, model.key)
            assert model.waiting is None or not model.waiting.completion.done
        core = self.reader.queue.core
        assert core.positions.keys() == sorted(self.available | set(self.locked))
        assert core.positions.available == len(self.available)


TestCursors = Cursors.TestCase
TestCursors.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
