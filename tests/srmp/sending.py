"""A queue manager that posts SRMP messages, in memory."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from msmq_fast.packet.message import Message
from msmq_fast.qm.access import Access
from msmq_fast.qm.outgoing.resending import OutgoingSequences
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.srmp.channel import ChannelContext, HttpChannel, Place
from msmq_fast.srmp.sending import Report, StreamReceipts
from msmq_fast.srmp.transfer import Effect, Reach, Timers, Transfer
from msmq_fast.srmp.urls import Url
from tests.support.clocks import WALL
from tests.support.worlds.queue_manager import World, carry

NAME = "DIRECT=HTTP://server.test/msmq/private$/orders"
LADDER = (30.0, 30.0, 30.0, 300.0, 300.0, 300.0, 1800.0, 1800.0, 1800.0, 21600.0)
POSITIVE, PURGED = 0x4000, 0xC001


@dataclass
class Post:
    """One request."""

    place: Place
    body: bytes
    ordinal: int
    sent_time: int

    @property
    def number(self) -> tuple[int, int]:
        return self.place[1:]


def encode(packet: bytes, url: Url, place: Place) -> Post:
    message = Message.from_packet(packet)
    if message.label == "unspeakable":
        raise ValueError("a label that XML cannot hold")
    return Post(place, message.body, message.message_id, message.sent_time)


class Station:
    def __init__(self, report: Report | None = None, **settings: object) -> None:
        self.report = report
        self.world = World(http=True, **settings)
        self.refused: list[str] = []
        self.restart()

    def restart(self) -> None:
        """Everything above the queue manager, new."""
        manager = self.manager = self.world.manager
        self.effects: list[Effect] = []
        self.sequences = OutgoingSequences(manager.guid, manager.ledger, LADDER)
        self.receipts = StreamReceipts(manager.guid, self.sequences)
        self.transfer: Transfer[Post] = Transfer(self.effects.append, Timers())
        of_channels = ChannelContext(
            self.transfer,
            manager,
            self.sequences,
            encode,
            lambda url: url,
            lambda: self.now,
            lambda: WALL,
            lambda: None,
            lambda why, what, fields: self.refused.append(what),
            self.report,
        )
        self.number = 0
        carry(manager, lambda queue: HttpChannel(queue, of_channels))
        self.world.run()

    def crash(self) -> None:
        self.world.crash()
        self.restart()

    @property
    def now(self) -> float:
        return self.world.clock.seconds

    @property
    def queue(self) -> OutgoingQueue:
        queue = self.manager.find(NAME)
        assert isinstance(queue, OutgoingQueue)
        return queue

    def send(self, *bodies: bytes, **values: object) -> None:
        """One transaction."""
        transaction = self.manager.transactions.begin()
        handle = self.manager.open(NAME, Access.SEND)
        for body in bodies:
            TransactedQueue(handle, transaction).send(Message(body=body, **values))  # type: ignore[arg-type]
        self.world.finish(transaction.commit())
        handle.close()

    def post(self) -> Post | None:
        """The next request; None: nothing is sent now."""
        self.settle()
        while self.effects:
            effect = self.effects.pop(0)
            if not isinstance(effect, Reach):
                continue
            self.number = effect.number
            post = self.transfer.opened(self.number, "10.0.0.8", self.now)
            if post is not None:
                return post
            self.settle()
        return None

    def settle(self) -> None:
        """All that is due now."""
        for _ in range(3):
            self.world.run()
            due = min(
                (
                    each
                    for each in (self.transfer.next_deadline(), self.sequences.next_deadline())
                    if each is not None
                ),
                default=self.now + 1,
            )
            if due <= self.now:
                self.sequences.expire(self.now)
                self.transfer.expire(self.now)

    def answer(self, status: int = 200) -> None:
        self.transfer.answered(self.number, status, self.now)
        self.transfer.proceed(self.number, self.now)
        self.settle()

    def exchange(self, status: int = 200) -> list[Post]:
        """Answer everything that is sent."""
        posts: list[Post] = []
        while (post := self.post()) is not None:
            posts.append(post)
            self.answer(status)
        return posts

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while True:
            dues = (self.transfer.next_deadline(), self.sequences.next_deadline(), end)
            due = min(due for due in dues if due is not None)
            self.world.advance(max(0.0, min(due, end) - self.now))
            self.sequences.expire(self.now)
            self.transfer.expire(self.now)
            self.world.run()
            if self.now >= end:
                return

    def receipt(self, post: Post, last: int | None = None, *, sender: UUID | None = None) -> None:
        last = post.place[1] if last is None else last
        self.receipts.stream_receipt(sender or self.manager.guid, post.place[0], last, self.now)
        self.settle()

    def final(self, post: Post, kind: int = POSITIVE, *, message: int | None = None) -> None:
        ordinal = post.ordinal if message is None else message
        self.receipts.final_receipt(self.manager.guid, post.place[0], post.place[1], ordinal, kind, self.now)
        self.settle()

    def there(self, name: str) -> list[bytes]:
        return self.world.bodies(name)
