"""The whole queue manager against a list of tuples, with crashes."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from msmq_fast.packet import Message
from msmq_fast.protocol import errors
from msmq_fast.qm.reading.lookup import Lookup
from tests.support.clocks import WALL
from tests.support.worlds.queue_manager import World, body

BODIES = st.binary(max_size=64)


class Entry:
    """One message of the model."""

    def __init__(self, key: int, text: bytes, recoverable: bool, expires: int | None) -> None:
        self.key, self.text, self.recoverable, self.expires = key, text, recoverable, expires


class AgainstModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        # A cache of three messages, so that most packets are read back from the store.
        self.world = World(cache_bytes=1000, purge_batch=3, expire_batch=2)
        self.world.create("orders")
        self.model: list[Entry] = []

    def _sorted(self) -> list[Entry]:
        return sorted(self.model, key=lambda entry: entry.key)

    def _now(self) -> int:
        return self.world.clock.wall // 1_000_000

    @rule(
        text=BODIES,
        priority=st.integers(0, 7),
        recoverable=st.booleans(),
        lifetime=st.sampled_from([None, None, 5, 30]),
    )
    def send(self, text: bytes, priority: int, recoverable: bool, lifetime: int | None) -> None:
        values = {} if lifetime is None else {"time_to_be_received": lifetime}
        key = self.world.send(text, priority=priority, delivery=int(recoverable), **values)
        self.model.append(Entry(key, text, recoverable, None if lifetime is None else self._now() + lifetime))

    @rule(peek=st.booleans())
    def receive(self, peek: bool) -> None:
        ordered = self._sorted()
        try:
            found = self.world.receive(peek=peek)
        except errors.IOTimeout:
            assert not ordered
            return
        assert found == ordered[0].text
        if not peek:
            self.model.remove(ordered[0])

    @precondition(lambda self: self.model)
    @rule(data=st.data(), operation=st.sampled_from(Lookup), peek=st.booleans())
    def lookup(self, data: st.DataObject, operation: Lookup, peek: bool) -> None:
        ordered = self._sorted()
        place = data.draw(st.integers(0, len(ordered) - 1))
        wanted = {
            Lookup.CURRENT: place,
            Lookup.NEXT: place + 1,
            Lookup.PREVIOUS: place - 1,
            Lookup.FIRST: 0,
            Lookup.LAST: len(ordered) - 1,
        }[operation]
        reader = self.world.reader()
        try:
            found = self.world.finish(reader.lookup(ordered[place].key, operation, peek=peek))
        except errors.MessageNotFound:
            assert not 0 <= wanted < len(ordered)
            return
        finally:
            reader.close()
        assert body(found) == ordered[wanted].text
        if not peek:
            self.model.remove(ordered[wanted])

    @rule(count=st.integers(1, 6), keep=st.integers(0, 6))
    def subscribe(self, count: int, keep: int) -> None:
        got: list[tuple[int, bytes]] = []
        reader = self.world.reader()
        subscription = reader.subscribe(
            lambda batch: got.extend((message.lookup_id, body(message)) for message in batch),
            count,
            acknowledge=True,
        )
        self.world.run()
        expected = self._sorted()[:count]
        assert got == [(entry.key, entry.text) for entry in expected]
        removed = expected[keep:]
        assert self.world.finish(subscription.ack([entry.key for entry in removed])) == len(removed)
        for entry in removed:
            self.model.remove(entry)
        reader.close()

    @rule(seconds=st.sampled_from([1, 5, 20]))
    def time_passes(self, seconds: int) -> None:
        self.world.advance(seconds)
        self.model = [entry for entry in self.model if entry.expires is None or entry.expires > self._now()]

    @rule()
    def purge(self) -> None:
        reader = self.world.reader()
        assert self.world.finish(reader.purge()) == len(self.model)
        reader.close()
        self.model.clear()

    @rule(text=BODIES)
    def crash(self, text: bytes) -> None:
        self.world.sender().send(Message(body=text, delivery=1))  # nobody was told that it is kept
        self.world.crash()
        self.model = [entry for entry in self.model if entry.recoverable]

    @rule()
    def fused(self) -> None:
        if self.model:
            return
        reader, sender = self.world.reader(), self.world.sender()
        request = reader.receive(None)
        sender.send(Message(body=b"fused", delivery=1))
        self.world.run()
        assert body(request.completion.result()) == b"fused"
        reader.close()

    @invariant()
    def same(self) -> None:
        self.world.run()
        queue = self.world.manager.find("orders")
        ordered = self._sorted()
        assert queue.core.positions.keys() == [entry.key for entry in ordered]
        assert queue.messages == len(ordered)
        assert queue.bytes == queue.core.used_bytes == self.world.manager.ledger.bytes
        assert self._now() >= WALL

    def teardown(self) -> None:
        assert self.world.bodies() == [entry.text for entry in self._sorted()]
        sizes = [len(value) - 1 for value in self.world.store.tables.tables[2].values()]
        assert len(sizes) == sum(entry.recoverable for entry in self.model)


TestAgainstModel = AgainstModel.TestCase
TestAgainstModel.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
