"""A queue, its cursors and transactions with spans: see the text of the package."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.trace import Link, SpanKind

from msmq_fast.client.channel import Channel
from msmq_fast.client.cursor import Cursor
from msmq_fast.client.message import Message, ReceivedMessage
from msmq_fast.client.queue import Queue
from msmq_fast.client.sender import Sender
from msmq_fast.client.subscription import Subscription
from msmq_fast.client.telemetry.scope import Scope, error_type, link_sent, sizes, stamped
from msmq_fast.client.telemetry.streams import TracedSender, TracedSubscription
from msmq_fast.client.transaction import Single, Transaction
from msmq_fast.protocol.frames import Access, CursorRead, Lookup, MessageSizes, Share


class TracedQueue(Queue):
    """A queue whose operations have spans."""

    def __init__(self, channel: Channel, name: str, access: Access, share: Share, scope: Scope) -> None:
        super().__init__(channel, name, access, share)
        self._scope = scope.of(name)

    async def send_many(
        self, messages: Iterable[Message], *, transaction: Transaction | Single | None = None
    ) -> list[str]:
        """Send inside a `send` span. One message carries the context of this span, each message of a batch
        that of a `create` span of its own.
        """
        scope = self._scope
        outgoing = list(messages)
        links: list[Link] = []
        attributes = sizes(outgoing[0]) if len(outgoing) == 1 else {}
        alone = len(outgoing) == 1 and scope.can_carry(outgoing[0])
        if len(outgoing) != 1:
            attributes["messaging.batch.message_count"] = len(outgoing)
            created = [scope.created(message) for message in outgoing]
            outgoing = [message for message, _ in created]
            links = [link for _, link in created if link is not None]
        attributes["messaging.msmq.transactional"] = transaction is not None
        kind = SpanKind.PRODUCER if alone else SpanKind.CLIENT
        with scope.operation("send", kind, type="send", attributes=attributes, links=links) as span:
            if alone:
                outgoing = [stamped(outgoing[0], span)]
            try:
                ids = await super().send_many(outgoing, transaction=transaction)
            except BaseException as error:
                scope.count_sent(len(outgoing), error_type(error))
                raise
            scope.count_sent(len(ids))
            link_sent(span, ids)
        return ids

    def sender(
        self, *, window: int = 8192, batch: int = 256, transaction: Transaction | Single | None = None
    ) -> Sender:
        """Return a sender whose batches have spans."""
        return TracedSender(self._channel, self, window, batch, transaction, scope=self._scope)

    def subscribe(
        self, credit: int = 256, *, acknowledge: bool = True, transaction: Transaction | None = None
    ) -> Subscription:
        """Return a subscription whose deliveries have spans."""
        return TracedSubscription(
            self._channel,
            self,
            min(credit, self._channel.hello["max_credit"]),
            acknowledge=acknowledge and transaction is None,
            transaction=transaction,
            scope=self._scope,
        )

    async def lookup(
        self,
        lookup_id: int = 0,
        operation: Lookup = Lookup.CURRENT,
        *,
        receive: bool = False,
        transaction: Transaction | None = None,
        limits: MessageSizes | None = None,
    ) -> ReceivedMessage:
        """Look up inside a `receive` or `peek` span."""
        name = "receive" if receive else "peek"
        with self._scope.operation(name, SpanKind.CONSUMER, type="receive") as span:
            message = await super().lookup(
                lookup_id, operation, receive=receive, transaction=transaction, limits=limits
            )
            self._scope.received(span, [message], name)
        return message

    async def reject(self, message: ReceivedMessage | int, *, transaction: Transaction) -> None:
        """Reject inside a `settle` span."""
        with self._scope.operation("reject", SpanKind.CLIENT, type="settle", title="settle"):
            await super().reject(message, transaction=transaction)

    async def _read(
        self,
        timeout: float | None,  # noqa: ASYNC109 - the server waits
        peek: bool,
        transaction: Transaction | None,
        limits: MessageSizes | None,
    ) -> ReceivedMessage:
        name = "peek" if peek else "receive"
        with self._scope.operation(name, SpanKind.CONSUMER, type="receive") as span:
            message = await super()._read(timeout, peek, transaction, limits)
            self._scope.received(span, [message], name)
        return message

    async def _cursor(self, after: ReceivedMessage | int | None) -> Cursor:
        return TracedCursor(await super()._cursor(after), self._scope)


class TracedCursor(Cursor):
    """A cursor whose reads have spans."""

    def __init__(self, opened: Cursor, scope: Scope) -> None:
        super().__init__(opened._link, opened._number)
        self._scope = scope

    async def _read(
        self,
        action: CursorRead,
        timeout: float | None,  # noqa: ASYNC109 - the server waits
        transaction: Transaction | None = None,
        limits: MessageSizes | None = None,
    ) -> ReceivedMessage:
        name = "receive" if action == CursorRead.RECEIVE else "peek"
        with self._scope.operation(name, SpanKind.CONSUMER, type="receive") as span:
            message = await super()._read(action, timeout, transaction, limits)
            self._scope.received(span, [message], name)
        return message


class TracedTransaction(Transaction):
    """A transaction whose end has a span."""

    def __init__(self, channel: Channel, number: int, scope: Scope) -> None:
        super().__init__(channel, number)
        self._scope = scope

    async def commit(self) -> None:
        """Commit inside a `settle` span."""
        with self._scope.operation("commit", SpanKind.CLIENT, type="settle", title="settle"):
            await super().commit()

    async def abort(self) -> None:
        """Abort inside a `settle` span."""
        with self._scope.operation("abort", SpanKind.CLIENT, type="settle", title="settle"):
            await super().abort()
