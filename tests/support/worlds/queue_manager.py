"""A queue manager over a store in memory, with clocks that stand still until they are moved."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from msmq_fast._native.memorystore import MemoryWriter
from msmq_fast._native.queuebase import Received
from msmq_fast.directory.provider import DirectoryProvider
from msmq_fast.packet import Message
from msmq_fast.qm.access import Access, Share
from msmq_fast.qm.faults import Faults
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.queues.outgoing import Channel, OutgoingQueue
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.qm.queues.stall import FLOWING, Stall
from msmq_fast.qm.settings import QueueManagerSettings
from msmq_fast.store.completion import Completion
from msmq_fast.store.store import Store
from tests.support.clocks import WALL, StillClock


class Unexpected(Faults):
    """Raises what a server would count: no test passes over a fault that it has not asked for."""

    def note(self, where: str, error: BaseException) -> None:
        raise error


class Told:
    """A channel that passes on what its outgoing queue tells."""

    def __init__(
        self,
        queue: OutgoingQueue,
        work: Callable[[OutgoingQueue], object],
        held: Callable[[OutgoingQueue, bool], object],
    ) -> None:
        self._queue = queue
        self._work = work
        self._held = held

    def has_work(self) -> None:
        self._work(self._queue)

    def held(self, on_hold: bool) -> None:
        self._held(self._queue, on_hold)

    def kick(self) -> None:
        self._work(self._queue)

    def obstacle(self) -> Stall:
        return FLOWING


def carry(manager: QueueManager, channel_of: Callable[[OutgoingQueue], Channel]) -> None:
    """All outgoing queues tell a channel, as the server arranges it."""

    def added(queue: OutgoingQueue) -> None:
        queue.connect(channel_of(queue))

    manager.outgoing_queues.opened.connect(added)
    for queue in manager.outgoing():
        added(queue)


def tell(
    manager: QueueManager,
    work: Callable[[OutgoingQueue], object] = lambda _queue: None,
    held: Callable[[OutgoingQueue, bool], object] = lambda _queue, _on_hold: None,
) -> None:
    """`work` is told of messages of outgoing queues, `held` of pauses."""
    carry(manager, lambda queue: Told(queue, work, held))


class World:
    def __init__(
        self,
        *,
        clock: StillClock | None = None,
        seed: int = 7,
        faults: type[Faults] = Unexpected,
        provider: DirectoryProvider | None = None,
        **settings: object,
    ) -> None:
        self.faults = faults
        self.provider = provider
        values: dict[str, object] = {
            "computer_name": "HOST",
            "domain": "example.net",
            "addresses": frozenset({"10.0.0.7"}),
        }
        self.settings = QueueManagerSettings(**(values | settings))  # type: ignore[arg-type]
        self.clock = clock or StillClock()
        self.random = Random(seed)
        self.store = Store.in_memory(now_s=WALL, random=self.random)
        self._begin()

    def _begin(self) -> None:
        self.manager = QueueManager(
            self.store,
            self.settings,
            self.clock,
            self.random,
            faults=self.faults(),
            directory=self.provider,
        )
        self.writer.before_seal.connect(lambda: self.manager.before_submit())
        self.manager.start()
        self.run()

    @property
    def writer(self) -> MemoryWriter:
        writer = self.store.writer
        assert isinstance(writer, MemoryWriter)
        return writer

    def run(self) -> None:
        """Turn the loop until nothing is left to do."""
        quiet = 0
        while quiet < 3:
            self.manager.tick()
            self.manager.before_submit()
            quiet = 0 if self.writer.needs_commit else quiet + 1
            self.writer.complete_all()
            self.store.reader.complete()
            due = self.manager.next_deadline()
            if due is not None and due <= self.clock.seconds:
                self.manager.expire(self.manager.monotonic())

    def crash(self) -> None:
        """The process dies: what is not durable is lost."""
        tables = self.writer.crash()
        self.store = Store.in_memory(now_s=WALL, random=self.random, tables=tables)
        self._begin()

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.manager.tick()
        due = self.manager.next_deadline()
        if due is not None and due <= self.clock.seconds:
            self.manager.expire(self.manager.monotonic())
        self.run()

    def create(self, name: str = "orders", **properties: object) -> Queue:
        return self.finish(self.manager.create_queue(name, **properties))

    def finish(self, completion: Completion):  # type: ignore[type-arg,no-untyped-def]
        self.run()
        return completion.result()

    def sender(self, name: str = "orders") -> OpenQueue:
        return self.manager.open(name, Access.SEND)

    def reader(self, name: str = "orders", share: Share = Share.DENY_NONE) -> OpenQueue:
        return self.manager.open(name, Access.RECEIVE, share)

    def send(self, body: bytes, name: str = "orders", **values: object) -> int:
        """Send one message; its lookup id."""
        values.setdefault("delivery", 1)
        handle = self.sender(name)
        try:
            sent = self.finish(handle.send(Message(body=body, **values)))  # type: ignore[arg-type]
        finally:
            handle.close()
        return int(sent.lookup_id)

    def receive(self, name: str = "orders", *, peek: bool = False) -> bytes:
        """Receive the first message; its body."""
        handle = self.reader(name)
        request = handle.receive(0, peek=peek)
        received = self.finish(request.completion)
        handle.close()
        return body(received)

    def bodies(self, name: str = "orders") -> list[bytes]:
        """All bodies of a queue, in order, without taking anything."""
        queue = self.manager.find(name)
        found: list[bytes] = []
        for key in queue.core.positions.keys():  # noqa: SIM118 - no mapping
            queue.core.peek(key, lambda message, _status: found.append(body(message)))
            self.store.reader.complete()
        return found


def body(received: Received) -> bytes:
    return Message.from_packet(received.packet).body
