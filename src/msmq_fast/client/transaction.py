"""Transactions: sends and receives on several queues, all of which take effect or none."""

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
    """The type of SINGLE_MESSAGE, which stands for a transaction of one message."""

    MESSAGE = "single message"


SINGLE_MESSAGE: Final = Single.MESSAGE


class Transaction:
    """A transaction. Made by `Connection.transaction()`: `async with connection.transaction() as
    transaction`.

    It commits at the end of the block, and aborts if an exception leaves the block. Pass it to `send`,
    `receive`, `lookup`, `subscribe`, `sender` of queues of the same connection. An abort returns the received
    messages to their queues. The loss of the connection also aborts the transaction: it does not continue on
    a new connection. Calls after the end of the transaction raise TransactionSequence.
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
        """Begin the transaction, if `async with` is not used. Raises InsufficientResources."""
        link = await self._channel.live()
        (self.identifier,) = await link.request(Frame.BEGIN, [self.number])
        self._link = link

    async def prepare(self) -> None:
        """Prepare a two-phase commit: returns when the operations of the transaction are stored so that they
        survive a crash.

        A prepared transaction accepts no further operations; end it with `commit` or `abort`. If the
        connection ends before that, the messages of the transaction stay locked until an operator commits or
        aborts it with `connection.admin.transactions`. If this call raises, nothing is prepared.
        """
        await self.link().request(Frame.PREPARE, [self.number])

    async def commit(self) -> None:
        """Commit; returns when all operations have taken durable effect. CommitInDoubt means that the
        connection ended before the answer; any other exception means that no operation has taken effect.
        """
        request = self.link().request(Frame.COMMIT, [self.number])
        self._over = True
        try:
            await request
        except ConnectionLost as error:
            raise CommitInDoubt(self.identifier, error.detail) from error

    async def abort(self) -> None:
        """Abort: discard the sent messages and return the received ones to their queues."""
        link = self.link()
        self._over = True
        await link.request(Frame.ABORT, [self.number])

    def link(self) -> Link:
        """The link on which the transaction is open. Raises TransactionSequence; ConnectionLost if the loss
        of the connection aborted it.
        """
        if self._link is None:
            raise TransactionSequence("the transaction has not begun: use `async with`, or begin()")
        if self._link.lost is not None:
            raise ConnectionLost(f"the transaction was aborted: {self._link.lost.detail}")
        return self._link


def number_of(transaction: Transaction | None, limits: MessageSizes | None = None) -> list[Any]:
    """Return the optional last values in the payload of a request: the number of the transaction and the size
    limits.

    Raises ConnectionLost; TransactionSequence if the transaction is not open.
    """
    if transaction is None:
        return [] if limits is None else [None, list(limits)]
    transaction.link()
    return [transaction.number] if limits is None else [transaction.number, list(limits)]
