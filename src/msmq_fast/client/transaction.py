"""Transactions: sends and receives of several queues that happen together or not at all."""

from __future__ import annotations

from enum import Enum
from types import TracebackType
from typing import Any, Final

from msmq_fast.client.transport import Link
from msmq_fast.protocol.frames import Frame


class Single(Enum):
    """What stands for a transaction of one message."""

    MESSAGE = "single message"


SINGLE_MESSAGE: Final = Single.MESSAGE


class Transaction:
    """Made by `Connection.transaction()`: `async with connection.transaction() as transaction`.

    Commits at the end of the block, aborts when an exception leaves it. Pass it to `send`, `receive`,
    `lookup`, `subscribe`, `sender` of queues of the same connection. What was received comes back when it is
    aborted, also by the end of the connection. Its calls raise TransactionSequence once it is over.
    """

    def __init__(self, link: Link, number: int) -> None:
        self.number = number
        self.identifier = ""
        self._link = link
        self._over = False

    async def __aenter__(self) -> Transaction:
        await self.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._over or self._link.lost is not None:
            return
        if kind is None:
            await self.commit()
        else:
            await self.abort()

    async def begin(self) -> None:
        """Open it, where no `async with` does. Raises InsufficientResources."""
        (self.identifier,) = await self._link.request(Frame.BEGIN, [self.number])

    async def prepare(self) -> None:
        """Vote for a commit in two phases: returns when a crash can no longer forget the transaction.

        It takes no more operations then. `commit` or `abort` decides; if the connection ends before that,
        the messages stay locked until `Connection.end_transaction` decides. When this raises, nothing is
        prepared.
        """
        await self._link.request(Frame.PREPARE, [self.number])

    async def commit(self) -> None:
        """Returns when everything has happened, durably. What it raises means that nothing has."""
        self._over = True
        await self._link.request(Frame.COMMIT, [self.number])

    async def abort(self) -> None:
        """Forget what was sent, put back what was received."""
        self._over = True
        await self._link.request(Frame.ABORT, [self.number])


def number_of(transaction: Transaction | None) -> list[Any]:
    """The last value of a request that may name a transaction."""
    return [] if transaction is None else [transaction.number]
