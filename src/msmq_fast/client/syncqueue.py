"""The client without asyncio: the same names, calls that block. See `msmq_fast.client.blocking`.

Made by tools/syncclient.py of the modules beside it: do not edit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
    """A transaction. Made by `Connection.transaction()`: `with connection.transaction() as
    transaction`.

    It commits at the end of the block, and aborts if an exception leaves the block. Pass it to `send`,
    `receive`, `lookup`, `subscribe`, `sender` of queues of the same connection. An abort returns the received
    messages to their queues. The loss of the connection also aborts the transaction: it does not continue on
    a new connection. Calls after the end of the transaction raise TransactionSequence.
    """

    @property
    def identifier(self) -> str:
        """See the client with asyncio."""
        return self._inner.identifier

    def begin(self) -> None:
        """Begin the transaction, if `with` is not used. Raises InsufficientResources."""
        run(self._inner.begin())

    def prepare(self) -> None:
        """Prepare a two-phase commit: returns when the operations of the transaction are stored so that they
        survive a crash.

        A prepared transaction accepts no further operations; end it with `commit` or `abort`. If the
        connection ends before that, the messages of the transaction stay locked until an operator commits or
        aborts it with `connection.admin.transactions`. If this call raises, nothing is prepared.
        """
        run(self._inner.prepare())

    def commit(self) -> None:
        """Commit; returns when all operations have taken durable effect. CommitInDoubt means that the
        connection ended before the answer; any other exception means that no operation has taken effect.
        """
        run(self._inner.commit())

    def abort(self) -> None:
        """Abort: discard the sent messages and return the received ones to their queues."""
        run(self._inner.abort())


class Subscription(ClosingWrapper[_subscription.Subscription]):
    """A stream of messages. Made by `Queue.subscribe()`: `with queue.subscribe() as messages: for
    message in messages`.

    Credit is renewed when messages are taken from the iterator (plain subscription), or acknowledged or
    released (acknowledging subscription).

    With a connection that reconnects, the subscription continues after a lost link. An acknowledging
    subscription then receives every unacknowledged message again, including those whose acknowledgment was in
    flight: a message may arrive twice, but none is missed. A plain subscription loses the messages in flight,
    since the server removed them before sending. A subscription in a transaction ends, because the loss of
    the link aborts the transaction.
    """

    @property
    def credit(self) -> int:
        """See the client with asyncio."""
        return self._inner.credit

    def __iter__(self) -> Iterator[ReceivedMessage]:
        while messages := self.batch():  # one hand-over between the threads for all that are here
            yield from messages

    def batch(self, limit: int = 1024) -> list[ReceivedMessage]:
        """Wait for a message, then return all messages that have arrived, at most `limit`. The list is empty
        when the subscription has ended.
        """
        return run(self._inner.batch(limit))

    def acknowledge(self, first: ReceivedMessage, last: ReceivedMessage | None = None) -> None:
        """Remove `first`, or all messages delivered from `first` to `last`, from the queue; returns when the
        removal is durable.

        Raises ConnectionLost if the messages were delivered on a link that was lost: they will be
        redelivered.
        """
        run(self._inner.acknowledge(first, last))

    def acknowledge_soon(self, message: ReceivedMessage) -> None:
        """Acknowledge a message without waiting; the acknowledgments of one turn of the event loop share a
        frame.
        """
        on_loop(lambda: self._inner.acknowledge_soon(message))

    def release(self, first: ReceivedMessage, last: ReceivedMessage | None = None) -> None:
        """Return `first`, or all messages delivered from `first` to `last`, to their places in the queue.
        Raises as `acknowledge`.
        """
        run(self._inner.release(first, last))


class Cursor(ClosingWrapper[_cursor.Cursor]):
    """A position in a queue, initially before the first message. A queue may have any number of cursors.

    `Queue.cursor()` makes a cursor; `close()`, the end of `with`, or the close of the queue ends it.

    `for message in cursor` peeks every message once and ends after the last. Make one call at a time: a
    second call while the first waits raises IllegalCursorAction.
    """

    def close(self) -> None:
        """Close the cursor; a waiting call raises OperationCancelled. Raises InvalidHandle if it is closed
        already.
        """
        run(self._inner.close())

    def peek(self, timeout: float | None = None, *, limits: MessageSizes | None = None) -> ReceivedMessage:
        """Return the message at the cursor, or the next message if there is none at it; waits up to `timeout`
        seconds.

        Raises IOTimeout; MessageAlreadyReceived; BufferTooSmall: the cursor is then at the message that is
        too large.
        """
        return run(self._inner.peek(timeout, limits=limits))

    def peek_next(
        self, timeout: float | None = None, *, limits: MessageSizes | None = None
    ) -> ReceivedMessage:
        """Return the message after the one that was peeked last.

        Raises IOTimeout; IllegalCursorAction if no message was peeked; BufferTooSmall: the cursor is then at
        the message that is too large, and `peek` with larger limits returns it.
        """
        return run(self._inner.peek_next(timeout, limits=limits))

    def receive(
        self,
        timeout: float | None = None,
        *,
        transaction: Transaction | None = None,
        limits: MessageSizes | None = None,
    ) -> ReceivedMessage:
        """Remove and return the message at the cursor, or the next message if there is none at it.

        Raises MessageAlreadyReceived; MessageNotFound with a `timeout` of 0; IOTimeout; BufferTooSmall for a
        message that does not fit into `limits`: the message stays, and the cursor does not move.
        """
        return run(self._inner.receive(timeout, transaction=unwrap(transaction), limits=limits))

    def __iter__(self) -> Iterator[ReceivedMessage]:
        return iterate(self._inner)


class Sender(ClosingWrapper[_sender.Sender]):
    """A sender that forms batches. Made by `Queue.sender()`; the end of `with queue.sender() as
    sender:` waits until all messages are acknowledged.

    `post` never waits; `send` waits while `window` messages are unacknowledged. If earlier messages failed,
    the next call raises their error: BatchRefused (with indices counted from the first message of the
    sender), or ConnectionLost. `acknowledged` counts the messages that are stored.

    SendInDoubt is raised once for each lost connection and holds the messages that were in flight on it. With
    a connection that reconnects, the sender can still be used after that: messages that were not sent yet are
    sent on the next link, and `send` waits for that link once the window is full.
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
        """Number of posted messages that the server has neither accepted nor refused yet."""
        return self._inner.unacknowledged

    @property
    def unsent(self) -> list[Message]:
        """Posted messages that are still queued. After a lost connection, these were certainly not sent."""
        return self._inner.unsent

    def post(self, message: Message) -> None:
        """Queue one message; it is sent together with the other messages that are posted in this turn of the
        event loop.

        Raises the errors of earlier messages; `message` is then not queued.
        """
        on_loop(lambda: self._inner.post(message))

    def send(self, message: Message) -> None:
        """Queue one message once there is room in the window; returns before the message is acknowledged.

        Raises the errors of earlier messages; `message` is then not queued.
        """
        run(self._inner.send(message))

    def flush(self) -> None:
        """Send the queued messages and wait until all messages are acknowledged.

        Raises BatchRefused, ConnectionLost; SendInDoubt for messages that were not answered.
        """
        run(self._inner.flush())


class Queue(ClosingWrapper[_queue.Queue]):
    """An open queue of a connection; after a lost connection, it is opened again. Close it with `close()` or
    `with`.

    `for message in queue` receives without end. A message is removed when the loop asks for the next
    one: if the loop ends while it processes a message, that message stays in the queue.
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
        """Make one request about this queue for which the client has no method; returns the payload of the
        reply.
        """
        return run(self._inner.request(kind))

    def close(self) -> None:
        """Close the queue; its waiting calls raise OperationCancelled.

        Raises InvalidHandle if it is closed already.
        """
        run(self._inner.close())

    def send(
        self, message: Message | bytes, *, transaction: Transaction | Single | None = None, **properties: Any
    ) -> str:
        """Send one message; returns its message id when the server has stored the message on disk
        (recoverable) or in memory (express).

        `message` may also be a body. Keyword arguments are properties of Message and take precedence over
        those of `message`. In a `transaction`, the message is sent at the commit; SINGLE_MESSAGE sends it in
        a transaction of its own. If the queue manager refuses the message, raises the error that the queue
        manager reports: LabelTooLong, InsufficientResources, IllegalFormatName, AccessDenied,
        TransactionUsage.
        """
        return run(self._inner.send(message, transaction=unwrap(transaction), **properties))

    def send_many(
        self, messages: Iterable[Message], *, transaction: Transaction | Single | None = None
    ) -> list[str]:
        """Send messages in order, in as few frames as possible; returns their ids when all messages are
        stored or, in a `transaction`, when the transaction has accepted them.

        Raises BatchRefused if the server refused some messages and stored the others (a single message raises
        its own error); InsufficientResources if a message does not fit into a packet: then none is sent;
        SendInDoubt if the connection is lost before the answer.
        """
        return run(self._inner.send_many(list(messages), transaction=unwrap(transaction)))

    def sender(
        self, *, window: int = 8192, batch: int = 256, transaction: Transaction | Single | None = None
    ) -> Sender:
        """Return a sender that combines messages into batches, for high throughput: see Sender."""
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
        """Remove and return the first message. If the queue is empty, wait up to `timeout` seconds for a
        message (None: without limit).

        In a `transaction`, the commit removes the message. A message that is larger than `limits` stays in
        the queue; the call raises BufferTooSmall with the sizes of the message. Raises IOTimeout if no
        message arrives in time.

        If the call is cancelled, a message returns to the queue only if the server has not sent it yet; a
        message in flight is lost. Use an acknowledging subscription if this matters.
        """
        return run(self._inner.receive(timeout, transaction=unwrap(transaction), limits=limits))

    def peek(self, timeout: float | None = None, *, limits: MessageSizes | None = None) -> ReceivedMessage:
        """Return the first message without removing it; waits like `receive`. Raises IOTimeout,
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
        """Return the message with a lookup id, a neighbour of that message, or the first or last message.

        `receive` removes the message; in a `transaction`, the commit removes it. Raises MessageNotFound,
        BufferTooSmall.
        """
        return run(
            self._inner.lookup(
                lookup_id, operation, receive=receive, transaction=unwrap(transaction), limits=limits
            )
        )

    def cursor(self, *, after: ReceivedMessage | int | None = None) -> Cursor:
        """Return a cursor before the first message, or after the place of `after`, a message or a lookup id:
        see Cursor. The message need not be in the queue any more, so that a program can continue where an
        earlier cursor was when its connection was lost.

        Raises AccessDenied; UnsupportedOperation for `after` in a queue of another computer.
        """
        return Cursor(run(self._inner.cursor(after=after)))

    def move(
        self, message: ReceivedMessage | int, target: Queue, *, transaction: Transaction | None = None
    ) -> None:
        """Move a message, given as a message or its lookup id, to `target`. The lookup id does not change.

        `target` must be open with Access.MOVE. It must be a subqueue of this queue (`orders;later`), or, if
        this queue is a subqueue, the queue to which it belongs. Raises MessageNotFound, MessageLocked;
        InvalidParameter if neither queue is a subqueue of the other.
        """
        run(self._inner.move(message, unwrap(target), transaction=unwrap(transaction)))

    def reject(self, message: ReceivedMessage | int, *, transaction: Transaction) -> None:
        """Reject a message, given as a message or its lookup id, that was received in `transaction`.

        At the commit the message leaves the queue, its sender gets a negative acknowledgment
        (MessageClass.NACK_RECEIVE_REJECTED), and it becomes a dead letter if the sender requested that.
        Raises MessageNotFound.
        """
        run(self._inner.reject(message, transaction=unwrap(transaction)))

    def subscribe(
        self, credit: int = 256, *, acknowledge: bool = True, transaction: Transaction | None = None
    ) -> Subscription:
        """Return a stream of messages; the server sends at most `credit` messages ahead of those that this
        program has processed.

        With `acknowledge`, messages stay locked in the queue until they are acknowledged; without it, they
        are removed before delivery. In a `transaction`, the commit removes them.
        """
        inner = on_loop(
            lambda: self._inner.subscribe(credit, acknowledge=acknowledge, transaction=unwrap(transaction))
        )
        return Subscription(inner)

    def __iter__(self) -> Iterator[ReceivedMessage]:
        return iterate(self._inner)

    def purge(self, expected: Sequence[str] | None = None) -> int | None:
        """Remove all messages; returns their number, or None for a queue of another computer, because that
        computer does not report the number. With `expected`, raises Changed as `connection.admin.queues.set`.
        """
        return run(self._inner.purge(expected))
