"""The client without asyncio: the same names, calls that block. See `msmq_fast.client.blocking`.

Made by tools/syncclient.py of the modules beside it: do not edit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msmq_fast.client import cursor as _cursor
from msmq_fast.client import queue as _queue
from msmq_fast.client import sender as _sender
from msmq_fast.client import subscription as _subscription
from msmq_fast.client import transaction as _transaction
from msmq_fast.client.blocking import ClosingWrapper, iterate, on_loop, run, unwrap
from msmq_fast.client.errors import Refusal
from msmq_fast.client.message import Message, ReceivedMessage
from msmq_fast.client.transaction import Single
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.frames import Frame, Lookup, MessageSizes


class Transaction(ClosingWrapper[_transaction.Transaction]):
    """Made by `Connection.transaction()`: `with connection.transaction() as transaction`.

    Commits at the end of the block, aborts when an exception leaves it. Pass it to `send`, `receive`,
    `lookup`, `subscribe`, `sender` of queues of the same connection. What was received comes back when it is
    aborted, also by the end of the connection: it is not taken up again when the connection is. Its calls
    raise TransactionSequence once it is over.
    """

    @property
    def identifier(self) -> str:
        """See the client with asyncio."""
        return self._inner.identifier

    def begin(self) -> None:
        """Open it, where no `with` does. Raises InsufficientResources."""
        run(self._inner.begin())

    def prepare(self) -> None:
        """Vote for a commit in two phases: returns when a crash can no longer forget the transaction.

        It takes no more operations then. `commit` or `abort` decides; if the connection ends before that,
        the messages stay locked until `Connection.end_transaction` decides. When this raises, nothing is
        prepared.
        """
        run(self._inner.prepare())

    def commit(self) -> None:
        """Returns when everything has happened, durably. What it raises means that nothing has, but for
        CommitInDoubt: the connection ended before the answer.
        """
        run(self._inner.commit())

    def abort(self) -> None:
        """Forget what was sent, put back what was received."""
        run(self._inner.abort())


class Subscription(ClosingWrapper[_subscription.Subscription]):
    """Made by `Queue.subscribe()`: `with queue.subscribe() as messages: for message in
    messages`.

    Credit is renewed as messages are taken from the iterator (plain) or acknowledged or released
    (acknowledging).

    With a connection that reconnects it goes on after a lost link. An acknowledging one then gets all
    messages again that were not acknowledged, also those whose acknowledgment was under way: a message may
    come twice, and none is missed. A plain one misses those that were under way, since they are removed
    before. One in a transaction ends, as the transaction does.
    """

    @property
    def credit(self) -> int:
        """See the client with asyncio."""
        return self._inner.credit

    def __iter__(self) -> Iterator[ReceivedMessage]:
        while messages := self.batch():  # one hand-over between the threads for all that are here
            yield from messages

    def batch(self, limit: int = 1024) -> list[ReceivedMessage]:
        """All messages that are here, at least one and at most `limit`; empty when the subscription is
        over.
        """
        return run(self._inner.batch(limit))

    def acknowledge(self, first: ReceivedMessage, last: ReceivedMessage | None = None) -> None:
        """Remove `first` (or all delivered from `first` to `last`) from the queue; returns when that is
        durable.

        Raises ConnectionLost for messages of a lost link: they come again.
        """
        run(self._inner.acknowledge(first, last))

    def acknowledge_soon(self, message: ReceivedMessage) -> None:
        """Like `acknowledge` without waiting; those of one turn of the loop travel together."""
        on_loop(lambda: self._inner.acknowledge_soon(message))

    def release(self, first: ReceivedMessage, last: ReceivedMessage | None = None) -> None:
        """Put `first` (or all delivered from `first` to `last`) back in its place. Raises as
        `acknowledge`.
        """
        run(self._inner.release(first, last))


class Cursor(ClosingWrapper[_cursor.Cursor]):
    """Made by `Queue.cursor()`, closed by `close()`, `with` or with its queue. It begins before the
    first message; a queue has as many as wanted.

    `for message in cursor` peeks every message once, until none is left. One call at a time: a second
    one while the first waits raises IllegalCursorAction.
    """

    def close(self) -> None:
        """Close it; a waiting call raises OperationCancelled. Raises InvalidHandle if it is closed."""
        run(self._inner.close())

    def peek(self, timeout: float | None = None, *, limits: MessageSizes | None = None) -> ReceivedMessage:
        """The message it stands on, or the next one if it stands on none; waits up to `timeout` seconds.

        Raises IOTimeout, MessageAlreadyReceived; BufferTooSmall, but stands on the message then.
        """
        return run(self._inner.peek(timeout, limits=limits))

    def peek_next(
        self, timeout: float | None = None, *, limits: MessageSizes | None = None
    ) -> ReceivedMessage:
        """The message behind the one peeked last. Raises IOTimeout, IllegalCursorAction if none was;
        BufferTooSmall, but stands on the message then: `peek` with more room returns it.
        """
        return run(self._inner.peek_next(timeout, limits=limits))

    def receive(
        self,
        timeout: float | None = None,
        *,
        transaction: Transaction | None = None,
        limits: MessageSizes | None = None,
    ) -> ReceivedMessage:
        """Remove and return the message it stands on, or the next one if it stands on none.

        Raises MessageAlreadyReceived; MessageNotFound with a `timeout` of 0; IOTimeout; BufferTooSmall for a
        message that does not fit into `limits`: it stays, and the cursor where it was.
        """
        return run(self._inner.receive(timeout, transaction=unwrap(transaction), limits=limits))

    def __iter__(self) -> Iterator[ReceivedMessage]:
        return iterate(self._inner)


class Sender(ClosingWrapper[_sender.Sender]):
    """Made by `Queue.sender()`; `with queue.sender() as sender:` ends with everything acknowledged.

    `post` never waits; `send` waits while `window` messages are not acknowledged yet. Refusals
    (BatchRefused, with indices counted from the first message of the sender) and a lost connection are
    raised by the next call. `acknowledged` counts messages that are kept.

    Messages that were on their way when a connection was lost are named by SendInDoubt, once. In its block,
    with a connection that reconnects, the sender then goes on: messages that had not left are sent on the
    next link, and `send` waits for it once the window is full.
    """

    @property
    def posted(self) -> int:
        """See the client with asyncio."""
        return self._inner.posted

    @property
    def acknowledged(self) -> int:
        """See the client with asyncio."""
        return self._inner.acknowledged

    @property
    def refusals(self) -> list[Refusal]:
        """See the client with asyncio."""
        return self._inner.refusals

    @property
    def unacknowledged(self) -> int:
        """Messages posted and not answered yet."""
        return self._inner.unacknowledged

    @property
    def unsent(self) -> list[Message]:
        """Messages posted that have not left: after a lost connection, those that were certainly not sent."""
        return self._inner.unsent

    def post(self, message: Message) -> None:
        """Queue one message; it leaves with the others of this turn of the loop.

        Raises what went wrong before; then this message was not queued.
        """
        on_loop(lambda: self._inner.post(message))

    def send(self, message: Message) -> None:
        """Queue one message once there is room in the window; returns before it is acknowledged.

        What it raises is about messages before: this one was not queued.
        """
        run(self._inner.send(message))

    def flush(self) -> None:
        """Send what is queued and wait until all of it is acknowledged.

        Raises BatchRefused, ConnectionLost; SendInDoubt for messages whose answer did not come.
        """
        run(self._inner.flush())


class Queue(ClosingWrapper[_queue.Queue]):
    """An open queue of a connection, opened again with it. Close it with `close()` or `with`.

    `for message in queue` receives for ever: each message is removed when the loop asks for the next
    one, so that a loop that ends early leaves what it did not finish.
    """

    @property
    def name(self) -> str:
        """See the client with asyncio."""
        return self._inner.name

    @property
    def ended(self) -> MSMQError | None:
        """See the client with asyncio."""
        return self._inner.ended

    def request(self, kind: Frame) -> Any:
        """One request about this queue, for parts of the protocol that have no method here."""
        return run(self._inner.request(kind))

    def close(self) -> None:
        """Close the queue; its waiting calls raise OperationCancelled.

        Raises InvalidHandle if it is closed already.
        """
        run(self._inner.close())

    def send(
        self, message: Message | bytes, *, transaction: Transaction | Single | None = None, **properties: Any
    ) -> str:
        """Send one message; returns its message id when it is kept (recoverable) or in memory (express).

        `message` may be a body. Keywords are properties of Message, and win over those of a `message`. In a
        `transaction` it is sent with the commit; SINGLE_MESSAGE stands for one of its own. Raises what the
        queue manager refuses it with: LabelTooLong, InsufficientResources, IllegalFormatName, AccessDenied,
        TransactionUsage.
        """
        return run(self._inner.send(message, transaction=unwrap(transaction), **properties))

    def send_many(
        self, messages: Iterable[Message], *, transaction: Transaction | Single | None = None
    ) -> list[str]:
        """Send messages in order, as few frames; returns their ids when all are kept, or in a `transaction`
        when it has taken them up.

        Raises BatchRefused if some were refused (a lone message raises the refusal itself); the others are
        kept. InsufficientResources for one that fits into no packet: then none is sent. SendInDoubt if the
        connection is lost before the answer.
        """
        return run(self._inner.send_many(list(messages), transaction=unwrap(transaction)))

    def sender(
        self, *, window: int = 8192, batch: int = 256, transaction: Transaction | Single | None = None
    ) -> Sender:
        """A sender that batches by itself, for throughput: see Sender."""
        inner = on_loop(
            lambda: self._inner.sender(window=window, batch=batch, transaction=unwrap(transaction))
        )
        return Sender(inner)

    def receive(
        self,
        timeout: float | None = None,
        *,
        transaction: Transaction | None = None,
        limits: MessageSizes | None = None,
    ) -> ReceivedMessage:
        """Remove and return the first message, waiting for one up to `timeout` seconds (None: for ever). In a
        `transaction` it is removed with the commit. One that does not fit into `limits` stays, and raises
        BufferTooSmall with the sizes that it needs.

        Raises IOTimeout. If the call is cancelled, a message that was on its way goes back only if the
        server still had it; use an acknowledging subscription where that matters.
        """
        return run(self._inner.receive(timeout, transaction=unwrap(transaction), limits=limits))

    def peek(self, timeout: float | None = None, *, limits: MessageSizes | None = None) -> ReceivedMessage:
        """The first message, which stays in the queue; waits like `receive`. Raises IOTimeout,
        BufferTooSmall.
        """
        return run(self._inner.peek(timeout, limits=limits))

    def lookup(
        self,
        lookup_id: int = 0,
        operation: Lookup = Lookup.CURRENT,
        *,
        receive: bool = False,
        transaction: Transaction | None = None,
        limits: MessageSizes | None = None,
    ) -> ReceivedMessage:
        """The message with a lookup id, or the one next to it, or the first or last; `receive` removes it, in
        a `transaction` with the commit.

        Raises MessageNotFound, BufferTooSmall.
        """
        return run(
            self._inner.lookup(
                lookup_id, operation, receive=receive, transaction=unwrap(transaction), limits=limits
            )
        )

    def cursor(self) -> Cursor:
        """A cursor before the first message: see Cursor. Raises AccessDenied."""
        return Cursor(run(self._inner.cursor()))

    def move(
        self, message: ReceivedMessage | int, target: Queue, *, transaction: Transaction | None = None
    ) -> None:
        """Move a message, or the one with a lookup id, to `target`, which is open with Access.MOVE: a
        subqueue of this queue (`orders;later`), or the queue of this subqueue. It keeps its lookup id.

        Raises MessageNotFound, MessageLocked, InvalidParameter for queues of different families.
        """
        run(self._inner.move(message, unwrap(target), transaction=unwrap(transaction)))

    def reject(self, message: ReceivedMessage | int, *, transaction: Transaction) -> None:
        """Reject a message, or the one with a lookup id, that was received in `transaction`: with the commit
        it leaves the queue, its sender gets a negative acknowledgment (MessageClass.NACK_RECEIVE_REJECTED),
        and it becomes a dead letter if the sender asked for that. Raises MessageNotFound.
        """
        run(self._inner.reject(message, transaction=unwrap(transaction)))

    def subscribe(
        self, credit: int = 256, *, acknowledge: bool = True, transaction: Transaction | None = None
    ) -> Subscription:
        """Messages as they come, at most `credit` ahead of what this program has dealt with.

        With `acknowledge` messages stay locked in the queue until they are acknowledged, else they are
        removed before they are delivered. In a `transaction` the commit removes them.
        """
        inner = on_loop(
            lambda: self._inner.subscribe(credit, acknowledge=acknowledge, transaction=unwrap(transaction))
        )
        return Subscription(inner)

    def __iter__(self) -> Iterator[ReceivedMessage]:
        return iterate(self._inner)

    def purge(self) -> int | None:
        """Remove all messages; their number, None for a queue of another computer, which does not tell it."""
        return run(self._inner.purge())
