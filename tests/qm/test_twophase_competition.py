"""Many readers of every kind compete for the messages of one queue."""

from __future__ import annotations

from random import Random

import pytest

from msmq_fast.packet import Message
from msmq_fast.protocol import errors
from msmq_fast.qm.reading.cursor import Cursor
from msmq_fast.qm.reading.readers import ReadRequest
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.qm.transactions.transaction import Transaction
from tests.support.worlds.queue_manager import World, body

READERS = 64
KINDS = ("plain", "cursor", "twophase", "transaction")


class Contest:
    """What was sent, and how often each message was received for good."""

    def __init__(self, seed: int, total: int) -> None:
        self.random = Random(seed)
        self.world = World(cache_bytes=60_000, expire_batch=100)
        self.queue = self.world.create(transactional=True)
        self.total = total
        self.sent = 0
        self.received = [0] * total
        self.gone = 0  # of those that have been received
        self.ended: dict[str, int] = dict.fromkeys((*KINDS, "kept", "aborted", "late", "disconnected"), 0)

    def send(self) -> None:
        transaction = self.world.manager.transactions.begin("sender")
        handle = self.world.sender()
        queue = TransactedQueue(handle, transaction)
        for _ in range(min(self.random.randint(1, 150), self.total - self.sent)):
            queue.send(Message(body=self.sent.to_bytes(4, "big")))
            self.sent += 1
        transaction.commit()
        handle.close()

    def count(self, kind: str, *messages: bytes) -> None:
        self.ended[kind] += 1
        for text in messages:
            self.received[int.from_bytes(text, "big")] += 1
            self.gone += 1


class Reader:
    """One program: it reads in its own way, gives up, puts back, aborts, disconnects."""

    def __init__(self, contest: Contest) -> None:
        self.contest = contest
        self._connect()

    def _connect(self) -> None:
        self.kind = self.contest.random.choice(KINDS)
        self.handle = self.contest.world.reader()
        self.cursor: Cursor | None = self.handle.open_cursor() if self.kind == "cursor" else None
        self.transaction: Transaction | None = None
        self.taken: list[bytes] = []  # in the transaction
        self.request: ReadRequest | None = None

    def act(self) -> None:
        random = self.contest.random
        if random.random() < 0.01:
            self._disconnect()
        elif self.request is None:
            self._begin()
        elif self.request.completion.done:
            request, self.request = self.request, None
            self._ended(request)

    def _begin(self) -> None:
        timeout = self.contest.random.choice((0, 5, 50, None))
        try:
            match self.kind:
                case "plain":
                    self.request = self.handle.receive(timeout)
                case "cursor":
                    assert self.cursor is not None
                    self.request = self.cursor.receive(timeout)
                case "twophase":
                    self.request = self.handle.begin(timeout)
                case _:
                    if self.transaction is None:
                        self.transaction = self.contest.world.manager.transactions.begin("reader")
                    self.request = TransactedQueue(self.handle, self.transaction).receive(timeout)
        except errors.MessageNotFound:
            # The cursor is at the end; what others have put back is before it.
            assert self.cursor is not None
            self.cursor.close()
            self.cursor = self.handle.open_cursor()

    def _ended(self, request: ReadRequest) -> None:
        contest = self.contest
        error = request.completion.exception()
        if error is not None:
            assert isinstance(error, errors.IOTimeout), error
            contest.ended["late"] += 1
            if self.kind == "transaction" and contest.random.random() < 0.5:
                self._decide()
            return
        message = request.completion.result()
        match self.kind:
            case "twophase":
                if contest.random.random() < 0.3:
                    self.handle.end(message.lookup_id, delete=False)
                    contest.ended["kept"] += 1
                else:
                    text = body(message)
                    done = self.handle.end(message.lookup_id, delete=True)
                    done.add_done_callback(lambda done: contest.count("twophase", text))
            case "transaction":
                self.taken.append(body(message))
                if contest.random.random() < 0.3:
                    self._decide()
            case _:
                contest.count(self.kind, body(message))

    def _decide(self) -> None:
        contest, transaction, taken = self.contest, self.transaction, self.taken
        assert transaction is not None
        self.transaction, self.taken = None, []
        if contest.random.random() < 0.3:
            transaction.abort()
            contest.ended["aborted"] += 1
        else:
            transaction.commit().add_done_callback(lambda done: contest.count("transaction", *taken))

    def _disconnect(self) -> None:
        """What the program was told, it has; what is under way goes back."""
        request = self.request
        if request is not None and request.completion.done and request.completion.exception() is None:
            self._ended(request)
        if self.transaction is not None:
            self.transaction.abort()
        self.handle.close()
        self.contest.ended["disconnected"] += 1
        self._connect()


def compete(seed: int, total: int) -> Contest:
    contest = Contest(seed, total)
    random, world = contest.random, contest.world
    readers = [Reader(contest) for _ in range(READERS)]
    turns = 0
    while contest.gone < total:
        turns += 1
        assert turns < 100 * total, f"{total - contest.gone} messages are never received"
        if contest.sent < total and contest.sent - contest.gone < 500:
            contest.send()
        for reader in random.sample(readers, random.randint(1, READERS)):
            reader.act()
        if random.random() < 0.5:
            world.advance(random.choice((0.0, 0.001, 0.02)))
    for reader in readers:
        reader._disconnect()
        reader.handle.close()
    world.run()
    return contest


def check(contest: Contest) -> None:
    assert contest.received == [1] * contest.total
    core = contest.queue.core
    assert core.positions.live == 0
    assert (contest.queue.messages, contest.queue.bytes, core.used_bytes) == (0, 0, 0)
    assert contest.world.manager.ledger.bytes == contest.world.manager.ledger.cached_bytes == 0
    contest.world.run()
    assert contest.world.store.tables.tables[1] == contest.world.store.tables.tables[2] == {}
    assert all(contest.ended.values()), contest.ended
    assert len(contest.world.manager.transactions) == 0


@pytest.mark.rule("DM-114", "DM-122", "DM-126", "DM-220", "ST-9")
@pytest.mark.parametrize("seed", [1, 2])
def test_each_message_is_received_exactly_once(seed: int) -> None:
    check(compete(seed, 2500))


@pytest.mark.long
def test_each_of_200_000_messages_is_received_exactly_once() -> None:
    check(compete(3, 200_000))
