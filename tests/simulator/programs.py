"""Programs on the computers: each is a generator that yields seconds to sleep or a Completion to wait for."""

from __future__ import annotations

from collections.abc import Generator
from functools import cache
from random import Random
from typing import Any
from uuid import UUID

from msmq_fast._native.framing import parse
from msmq_fast._native.queuebase import Received
from msmq_fast.packet.message import Message
from msmq_fast.protocol.errors import (
    InsufficientResources,
    MessageStorageFailed,
    MSMQError,
)
from msmq_fast.protocol.properties import Delivery
from msmq_fast.qm.access import Access
from msmq_fast.qm.handles.handle import OpenQueue, SentMessage
from msmq_fast.qm.reading.readers import Subscription
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.store.completion import Completion
from tests.support.mqqb.wire import ordinal

from .account import Account, Fate, Key, Kind, Stream, body
from .computer import Computer

Steps = Generator[Any, Any, None]

PATIENCE = 3.0  # seconds between tries of what was refused


class Program:
    """Runs a generator on a computer until that crashes."""

    def __init__(self, computer: Computer, steps: Steps) -> None:
        self._computer = computer
        self._loop = computer.loop
        self._steps = steps
        self.ended = False
        self._loop.call_soon(self._step)

    def _step(self, value: object = None, error: Exception | None = None) -> None:
        while not self.ended:
            try:
                waits = self._steps.throw(error) if error is not None else self._steps.send(value)
            except StopIteration:
                self.ended = True
                return
            finally:
                if not self._loop.dead:
                    self._computer.touch()
            if not isinstance(waits, Completion):
                self._loop.call_later(waits, self._step)
                return
            if not waits.done:
                waits.add_done_callback(self._resume)
                return
            error = waits.exception()
            value = None if error is not None else waits.result()

    def _resume(self, done: Completion[Any]) -> None:
        self._loop.call_soon(self._completed, done)

    def _completed(self, done: Completion[Any]) -> None:
        error = done.exception()
        self._step(None if error is not None else done.result(), error)

    def end(self) -> None:
        """Its computer crashed."""
        self.ended = True
        self._steps.close()


# ------------------------------------------------------------------------------------------------ senders


def size_of(random: Random) -> int:
    """Ballast of a message: mostly little, now and then a lot."""
    return random.choice([0, 0, 10, 100, 100, 1000, 3000] if random.random() < 0.99 else [20_000, 70_000])


def message(stream: Stream, number: int, random: Random, **more: Any) -> Message:
    """The next message of a stream."""
    made = Message(body=body(stream.number, number, size_of(random)), journal=stream.journal, **more)
    if stream.reach is not None:
        made.time_to_reach_queue = stream.reach
    if stream.receive is not None:
        made.time_to_be_received = stream.receive
    return made


def sender(
    computer: Computer, account: Account, stream: Stream, name: str, count: int, span: float, random: Random
) -> Steps:
    """Sends up to `count` messages, the last ones after about `span` seconds."""
    delivery = Delivery.EXPRESS if stream.kind is Kind.EXPRESS else Delivery.RECOVERABLE
    handle = computer.manager.open(name, Access.SEND)
    while stream.last < count:
        burst = min(count - stream.last, random.choice([1, 1, 5, 30, 120]))
        numbers = account.offer(stream, burst, computer.timeline.now)
        messages = [
            message(
                stream,
                number,
                random,
                delivery=delivery,
                priority=3 if stream.number % 2 else random.randrange(8),
            )
            for number in numbers
        ]
        try:
            outcomes: list[SentMessage | MSMQError] = yield handle.send_many(messages)
        except (InsufficientResources, MessageStorageFailed):
            account.settle(stream, numbers, Fate.REFUSED)
            yield PATIENCE
            continue
        for number, outcome in zip(numbers, outcomes, strict=True):
            kept = isinstance(outcome, SentMessage)
            account.settle(stream, [number], Fate.KEPT if kept else Fate.REFUSED)
            if isinstance(outcome, SentMessage):
                account.name(stream, number, f"{{{computer.guid}}}\\{outcome.message_id}")
        yield random.expovariate(count / max(span, 1e-3) / burst)


def transactional_sender(
    computer: Computer,
    account: Account,
    streams: list[tuple[Stream, str]],
    count: int,
    span: float,
    random: Random,
) -> Steps:
    """Transactions over some of the streams, up to `count` messages in each; several commits may be under
    way.
    """
    handles = {name: computer.manager.open(name, Access.SEND) for _, name in streams}
    ahead = random.choice([1, 1, 4])
    open_commits: list[Completion[None]] = []
    while any(stream.last < count for stream, _ in streams):
        chosen = [entry for entry in streams if entry[0].last < count]
        chosen = random.sample(chosen, random.randint(1, len(chosen)))
        unit = account.unit()
        transaction = computer.manager.transactions.begin(f"sender of stream {streams[0][0].number}")
        members: list[tuple[Stream, int]] = []
        refused = False
        for _ in range(random.choice([1, 1, 2, 5, 20])):
            stream, name = random.choice(chosen)
            if stream.last >= count:
                continue
            (number,) = account.offer(stream, 1, computer.timeline.now, unit)
            members.append((stream, number))
            try:
                TransactedQueue(handles[name], transaction).send(message(stream, number, random))
            except InsufficientResources:
                refused = True
                break
            if random.random() < 0.05:
                yield random.uniform(0.0, 2.0)
        if refused or random.random() < 0.1:
            account.close(unit, members, Fate.REFUSED)
            yield transaction.abort()
            yield PATIENCE if refused else 0.0
            continue
        account.close(unit, members, Fate.OFFERED)
        done = transaction.commit()
        done.add_done_callback(committed(account, unit, members))
        open_commits.append(done)
        if len(open_commits) >= ahead:
            try:
                yield open_commits.pop(0)
            except (InsufficientResources, MessageStorageFailed):
                yield PATIENCE
        yield random.expovariate(count / max(span, 1e-3) / 5)
    for done in open_commits:
        try:
            yield done
        except MSMQError:
            continue


def committed(account: Account, unit: int, members: list[tuple[Stream, int]]) -> Any:
    def ended(done: Completion[None]) -> None:
        account.close(unit, members, Fate.KEPT if done.exception() is None else Fate.REFUSED)

    return ended


# ------------------------------------------------------------------------------------------------ readers


@cache
def guid_text(guid: bytes) -> str:
    """As in a message identifier."""
    return f"{{{UUID(bytes_le=guid)}}}"


class Reader:
    """What programs that read a queue have in common."""

    def __init__(self, computer: Computer, account: Account, queue: str, random: Random) -> None:
        self.computer = computer
        self.account = account
        self.where = f"{computer.name}/{queue}"
        self.random = random
        self.handle: OpenQueue = computer.manager.open(rf".\private$\{queue}", Access.RECEIVE)
        self.unsure: list[Key] = []

    def seen(self, received: Received) -> Key:
        parsed = parse(received.packet)
        identifier = rf"{guid_text(parsed.source)}\{ordinal(received.packet)}"
        now = self.computer.timeline.now
        return self.account.seen(self.where, bytes(parsed.body), received.lookup_id, identifier, now)

    def crashed(self) -> None:
        """What was being taken when the computer crashed."""
        for key in self.unsure:
            self.account.doubt(key)
        self.unsure.clear()


class PlainReader(Reader):
    """Receives one message after the other; a crash may lose the one that was on its way to it."""

    waiting = False

    def steps(self) -> Steps:
        while True:
            self.waiting = True
            try:
                received: Received = yield self.handle.receive(None).completion
            except MessageStorageFailed:
                yield PATIENCE
                continue
            self.waiting = False
            self.account.read(self.seen(received))
            if self.random.random() < 0.05:
                yield self.random.uniform(0.0, 1.0)

    def crashed(self) -> None:
        if self.waiting:
            self.account.slack[self.where] += 1


class SubscribedReader(Reader):
    """A subscription whose messages are acknowledged in batches, or put back."""

    def steps(self) -> Steps:
        arrived: list[Received] = []
        idle = 0.02
        credit = self.random.choice([1, 16, 200])
        subscription: Subscription = self.handle.subscribe(arrived.extend, credit, acknowledge=True)
        while True:
            if not arrived:
                yield idle
                idle = min(idle * 1.5, 20.0)
                continue
            idle = 0.02
            batch = arrived[: self.random.choice([1, 10, 200])]
            del arrived[: len(batch)]
            keys = [self.seen(received) for received in batch]
            ids = [received.lookup_id for received in batch]
            if self.random.random() < 0.1:
                yield self.random.uniform(0.0, 2.0)
                subscription.release(ids)
            else:
                self.unsure = keys
                try:
                    yield subscription.ack(ids)
                except MessageStorageFailed:
                    self.crashed()  # they go when there is room again, unless it crashes before
                    yield PATIENCE
                    subscription.grant(len(batch))
                    continue
                self.unsure = []
                for key in keys:
                    self.account.read(key)
            subscription.grant(len(batch))


class TwoPhaseReader(Reader):
    """Begins a read, and ends it with or without removing the message."""

    def steps(self) -> Steps:
        while True:
            received: Received = yield self.handle.begin(None).completion
            key = self.seen(received)
            if self.random.random() < 0.05:
                yield self.random.uniform(0.0, 1.0)
            delete = self.random.random() < 0.9
            if delete:
                self.unsure = [key]
            try:
                yield self.handle.end(received.lookup_id, delete=delete)
            except MessageStorageFailed:
                self.crashed()  # it goes when there is room again, unless it crashes before
                yield PATIENCE
                continue
            self.unsure = []
            if delete:
                self.account.read(key)


class TransactedReader(Reader):
    """Receives some messages in a transaction, and commits or aborts it."""

    def steps(self) -> Steps:
        while True:
            transaction = self.computer.manager.transactions.begin(f"reader of {self.where}")
            reading = TransactedQueue(self.handle, transaction)
            keys: list[Key] = []
            for _ in range(self.random.choice([1, 1, 5, 30])):
                try:
                    received: Received = yield reading.receive(100 if keys else 60_000).completion
                except MSMQError:
                    break  # nothing came in time
                keys.append(self.seen(received))
            if self.random.random() < 0.05:
                yield self.random.uniform(0.0, 2.0)
            if not keys or self.random.random() < 0.15:
                yield transaction.abort()
                continue
            self.unsure = keys
            try:
                yield transaction.commit()
            except MSMQError:
                self.unsure = []
                yield PATIENCE
                continue
            self.unsure = []
            for key in keys:
                self.account.read(key)


READERS = {
    "plain": PlainReader,
    "subscribed": SubscribedReader,
    "two-phase": TwoPhaseReader,
    "transacted": TransactedReader,
}
