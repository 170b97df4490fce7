"""Senders and subscriptions with spans: one span for each frame that is sent or taken, not for each call."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from opentelemetry.trace import Link, Span, SpanKind, StatusCode

from msmq_fast.client.channel import Channel, OpenQueue
from msmq_fast.client.errors import from_wire
from msmq_fast.client.message import Message, ReceivedMessage
from msmq_fast.client.sender import Sender
from msmq_fast.client.subscription import Subscription
from msmq_fast.client.telemetry.scope import Scope
from msmq_fast.client.transaction import Single, Transaction
from msmq_fast.protocol.frames import Frame


class TracedSender(Sender):
    """A sender with a `send` span for each of its frames."""

    def __init__(
        self,
        channel: Channel,
        queue: OpenQueue,
        window: int,
        batch: int,
        transaction: Transaction | Single | None = None,
        *,
        scope: Scope,
    ) -> None:
        super().__init__(channel, queue, window, batch, transaction)
        self._scope = scope
        self._links: dict[int, Link] = {}  # to the `create` spans of queued messages, by their id()
        self._spans: dict[int, tuple[Span, float]] = {}  # of unanswered frames, by their first message

    def post(self, message: Message) -> None:
        """Queue one message, with the context of its `create` span if it carries one."""
        if self._scope.carry:
            message, link = self._scope.created(message)
            if link is not None:
                self._links[id(message)] = link
        try:
            super().post(message)
        except BaseException:
            self._links.pop(id(message), None)
            raise

    def _write(self, messages: list[Message]) -> None:
        found = (self._links.pop(id(message), None) for message in messages)
        links = [link for link in found if link is not None]
        attributes = {
            "messaging.batch.message_count": len(messages),
            "messaging.msmq.transactional": bool(self._transaction or self._flags),
        }
        span = self._scope.begin("send", SpanKind.CLIENT, type="send", attributes=attributes, links=links)
        self._spans[self._next] = span, perf_counter()
        super()._write(messages)

    def _answer(self, request_id: int, kind: int, value: Any, first: int, messages: list[Message]) -> None:
        super()._answer(request_id, kind, value, first, messages)
        span, started = self._spans.pop(first)
        failure, text, taken = "", "", 0
        if kind == Frame.SENT:
            taken, refused = value[0], value[1]
            if refused:
                _, code, _, text = refused[0]
                failure = from_wire(code, text).name
        elif kind == Frame.ENDED:
            failure, text = "SendInDoubt", "the connection ended before the answer"
        else:
            code, _, text = value
            failure = from_wire(code, text).name
        if failure:
            span.set_attribute("error.type", failure)
            span.set_status(StatusCode.ERROR, text)
        self._scope.count_sent(taken)
        self._scope.count_sent(len(messages) - taken, failure)
        self._scope.record("send", started, failure)
        span.end()


class TracedSubscription(Subscription):
    """A subscription with a `receive` span for each message or batch that the program takes, without the time
    that it waited, and with `settle` spans.
    """

    def __init__(
        self,
        channel: Channel,
        queue: OpenQueue,
        credit: int,
        *,
        acknowledge: bool,
        transaction: Transaction | None = None,
        scope: Scope,
    ) -> None:
        super().__init__(channel, queue, credit, acknowledge=acknowledge, transaction=transaction)
        self._scope = scope

    async def __anext__(self) -> ReceivedMessage:
        """Return the next message; see Subscription."""
        message = await super().__anext__()
        self._taken([message])
        return message

    async def batch(self, limit: int = 1024) -> list[ReceivedMessage]:
        """Return the messages that have arrived; see Subscription."""
        messages = await super().batch(limit)
        if messages:
            self._taken(messages)
        return messages

    def _taken(self, messages: list[ReceivedMessage]) -> None:
        span = self._scope.begin("receive", SpanKind.CONSUMER, type="receive")
        self._scope.received(span, messages)
        span.end()

    async def _settle(self, kind: Frame, first: ReceivedMessage, last: ReceivedMessage) -> None:
        name = "acknowledge" if kind == Frame.ACKNOWLEDGE else "release"
        attributes = {"messaging.batch.message_count": last.tag - first.tag + 1}
        with self._scope.operation(
            name, SpanKind.CLIENT, type="settle", title="settle", attributes=attributes
        ):
            await super()._settle(kind, first, last)

    def _acknowledge_now(self) -> None:
        if self._soon:
            attributes = {"messaging.batch.message_count": len(self._soon)}
            self._scope.begin(
                "acknowledge", SpanKind.CLIENT, type="settle", title="settle", attributes=attributes
            ).end()
        super()._acknowledge_now()
