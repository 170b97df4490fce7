"""Transactions: sends and receives of several queues that happen together or not at all."""

from __future__ import annotations

from enum import Enum
from types import TracebackType
from typing import Any, Final

from msmq_fast.client.channel import Channel
from msmq_fast.client.errors import CommitInDoubt, ConnectionLost
from msmq_fast.client.transport import Link
from msmq_fast.protocol.errors import TransactionSequence
from msmq_fast.protocol.frames import Frame, MessageSizes


class Single(Enum):
    """What stands for a transaction of one message."""

    MESSAGE = "single message"


SINGLE_MESSAGE: Final = Single.MESSAGE


class Transaction:
    """Made by `Connection.transaction()`: `async with connection.transaction() as transaction`.

    Commits at the end of the block, aborts when an exception leaves it. Pass it to `send`, `receive`,
    `lookup`, `subscribe`, `sender` of queues of the same connection. What was received comes back when it is
    aborted, also by the end of the connection: it is not taken up again when the connection is. Its calls
    raise TransactionSequence once it is over.
    """

    def __init__(self, channel: Channel, number: int) -> None:
        self.number = number
        self.identifier = ""
        self._channel = channel
        self._link: Link | None = None  # the one on which it is open
        self._over = False

    async def __aenter__(self) -> Transaction:
        await self.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._over:
            return
        if kind is None:
            await self.commit()  # raises where the connection was lost: nothing has happened
        elif self._link is not None and self._link.lost is None:
            await self.abort()

    async def begin(self) -> None:
        """Open it, where no `async with` does. Raises InsufficientResources."""
        link = await self._channel.live()
        (self.identifier,) = await link.request(Frame.BEGIN, [self.number])
        self._link = link

    async def prepare(self) -> None:
        """Vote for a commit in two phases: returns when a crash can no longer forget the transaction.

        It takes no more operations then. `commit` or `abort` decides; if the connection ends before that,
        the messages stay locked until `Connection.end_transaction` decides. When this raises, nothing is
        prepared.
        """
        await self.link().request(Frame.PREPARE, [self.number])

    async def commit(self) -> None:
        """Returns when everything has happened, durably. What it raises means that nothing has, but for
        CommitInDoubt: the connection ended before the answer.
        """
        request = self.link().request(Frame.COMMIT, [self.number])
        self._over = True
        try:
            await request
        except ConnectionLost as error:
            raise CommitInDoubt(self.identifier, error.detail) from error

    async def abort(self) -> None:
        """Forget what was sent, put back what was received."""
        link = self.link()
        self._over = True
        await link.request(Frame.ABORT, [self.number])

    def link(self) -> Link:
        """The link on which it is open. Raises TransactionSequence, ConnectionLost if it was aborted."""
        if self._link is None:
            raise TransactionSequence("the transaction has not begun: use `async with`, or begin()")
        if self._link.lost is not None:
            raise ConnectionLost(f"the transaction was aborted: {self._link.lost.detail}")
        return self._link


def number_of(transaction: Transaction | None, limits: MessageSizes | None = None) -> list[Any]:
    """The last values of a request that may name a transaction and limits.

    Raises ConnectionLost, TransactionSequence if the transaction is not open any more.
    """
    if transaction is None:
        return [] if limits is None else [None, list(limits)]
    transaction.link()
    return [transaction.number] if limits is None else [transaction.number, list(limits)]
