"""The client without asyncio: the same names, calls that block. See `msmq_fast.client.blocking`.

Made by tools/syncclient.py of the modules beside it: do not edit.
"""

from __future__ import annotations

import ssl
from typing import Any
from uuid import UUID

from msmq_fast.client import connection as _connection
from msmq_fast.client.blocking import ClosingWrapper, on_loop, run
from msmq_fast.client.channel import Reconnect
from msmq_fast.client.syncadmin import AccessAdmin as AccessAdmin
from msmq_fast.client.syncadmin import Admin as Admin
from msmq_fast.client.syncadmin import CertificateAdmin as CertificateAdmin
from msmq_fast.client.syncadmin import DirectoryAdmin as DirectoryAdmin
from msmq_fast.client.syncadmin import Import as Import
from msmq_fast.client.syncadmin import KeyAdmin as KeyAdmin
from msmq_fast.client.syncadmin import MessageAdmin as MessageAdmin
from msmq_fast.client.syncadmin import OutgoingAdmin as OutgoingAdmin
from msmq_fast.client.syncadmin import QueueAdmin as QueueAdmin
from msmq_fast.client.syncadmin import TransactionAdmin as TransactionAdmin
from msmq_fast.client.syncqueue import Cursor as Cursor
from msmq_fast.client.syncqueue import Queue as Queue
from msmq_fast.client.syncqueue import Sender as Sender
from msmq_fast.client.syncqueue import Subscription as Subscription
from msmq_fast.client.syncqueue import Transaction as Transaction
from msmq_fast.client.transaction import SINGLE_MESSAGE as SINGLE_MESSAGE
from msmq_fast.client.transaction import Single
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.frames import Access, Frame, Lookup, MessageSizes, Share
from msmq_fast.protocol.resources import (
    MessageEvent,
    OutgoingQueueInfo,
    QueueInfo,
    QueueProperties,
    SnapshotInfo,
    TransactionInfo,
)
from msmq_fast.protocol.security import AccessDecision, AccessList, CertificateInfo, KeysInfo


class Transaction(ClosingWrapper[_transaction.Transaction]):
    """A transaction. Made by `Connection.transaction()`: `with connection.transaction() as
    transaction`.

    It commits at the end of the block, and aborts if an exception leaves the block. Pass it to `send`,
    `receive`, `lookup`, `subscribe`, `sender` of queues of the same connection. An abort returns the received
    messages to their queues. The loss of the connection also aborts the transaction, and a new connection
    does not continue it. Calls after its end raise TransactionSequence.
    """

    @property
    def identifier(self) -> str:
        """See the client with asyncio."""
        return self._inner.identifier

    def begin(self) -> None:
        """Begin the transaction, if `with` is not used. Raises InsufficientResources."""
        run(self._inner.begin())

    def prepare(self) -> None:
        """Prepare a two-phase commit: returns when the transaction survives a crash.

        A prepared transaction accepts no further operations; `commit` or `abort` decides it. If the
        connection ends before that, its messages stay locked until `connection.admin.transactions` commits or
        aborts it. If this call raises, nothing is prepared.
        """
        run(self._inner.prepare())

    def commit(self) -> None:
        """Commit; returns when all operations have taken durable effect. An exception means that none has,
        except CommitInDoubt: the connection ended before the answer.
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
    flight: a message may arrive twice, but none is missed. A plain subscription misses the messages in
    flight, since the server removed them before sending. A subscription in a transaction ends, as the
    transaction does.
    """

    @property
    def credit(self) -> int:
        """See the client with asyncio."""
        return self._inner.credit

    def __iter__(self) -> Iterator[ReceivedMessage]:
        while messages := self.batch():  # one hand-over between the threads for all that are here
            yield from messages

    def batch(self, limit: int = 1024) -> list[ReceivedMessage]:
        """Wait for a message, then return all that have arrived, at most `limit`. Empty when the subscription
        has ended.
        """
        return run(self._inner.batch(limit))

    def acknowledge(self, first: ReceivedMessage, last: ReceivedMessage | None = None) -> None:
        """Remove `first`, or all messages delivered from `first` to `last`, from the queue; returns when that
        is durable.

        Raises ConnectionLost if the messages were delivered on a link that was lost: they will be
        redelivered.
        """
        run(self._inner.acknowledge(first, last))

    def acknowledge_soon(self, message: ReceivedMessage) -> None:
        """Acknowledge a message without waiting; the acknowledgments of one turn of the loop share
        a frame.
        """
        on_loop(lambda: self._inner.acknowledge_soon(message))

    def release(self, first: ReceivedMessage, last: ReceivedMessage | None = None) -> None:
        """Return `first`, or all messages delivered from `first` to `last`, to their places in the queue.
        Raises as `acknowledge`.
        """
        run(self._inner.release(first, last))


class Cursor(ClosingWrapper[_cursor.Cursor]):
    """A position in a queue, initially before the first message. A queue may have any number of cursors.

    Made by `Queue.cursor()`; ended by `close()`, `with` or the close of its queue.

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

        Raises IOTimeout, MessageAlreadyReceived; BufferTooSmall, with the cursor then at the message.
        """
        return run(self._inner.peek(timeout, limits=limits))

    def peek_next(
        self, timeout: float | None = None, *, limits: MessageSizes | None = None
    ) -> ReceivedMessage:
        """Return the message after the one that was peeked last.

        Raises IOTimeout; IllegalCursorAction if no message was peeked; BufferTooSmall, with the cursor then
        at the message: `peek` with larger limits returns it.
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

    `post` never waits; `send` waits while `window` messages are unacknowledged. The next call raises the
    errors of earlier messages: BatchRefused (with indices counted from the sender's first message), or the
    loss of the connection. `acknowledged` counts the messages that are stored.

    SendInDoubt names, once, the messages that were in flight when a connection was lost. With a connection
    that reconnects, the sender then continues inside its block: messages that were not sent yet are sent on
    the next link, and `send` waits for that link once the window is full.
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
        """Number of posted messages without an answer."""
        return self._inner.unacknowledged

    @property
    def unsent(self) -> list[Message]:
        """Posted messages that are still queued. After a lost connection, these were certainly not sent."""
        return self._inner.unsent

    def post(self, message: Message) -> None:
        """Queue one message; it is sent together with the others of this turn of the loop.

        Raises errors of earlier messages; this message was then not queued.
        """
        on_loop(lambda: self._inner.post(message))

    def send(self, message: Message) -> None:
        """Queue one message once there is room in the window; returns before it is acknowledged.

        Raises errors of earlier messages; this message was then not queued.
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
        """Make one request about this queue, for parts of the protocol that have no method here."""
        return run(self._inner.request(kind))

    def close(self) -> None:
        """Close the queue; its waiting calls raise OperationCancelled.

        Raises InvalidHandle if it is closed already.
        """
        run(self._inner.close())

    def send(
        self, message: Message | bytes, *, transaction: Transaction | Single | None = None, **properties: Any
    ) -> str:
        """Send one message; returns its message id when the message is stored (recoverable) or in memory
        (express).

        `message` may be a body. Keywords are properties of Message and take precedence over those of
        `message`. In a `transaction`, the message is sent at the commit; SINGLE_MESSAGE sends it in a
        transaction of its own. Raises the queue manager's error if it refuses the message: LabelTooLong,
        InsufficientResources, IllegalFormatName, AccessDenied, TransactionUsage.
        """
        return run(self._inner.send(message, transaction=unwrap(transaction), **properties))

    def send_many(
        self, messages: Iterable[Message], *, transaction: Transaction | Single | None = None
    ) -> list[str]:
        """Send messages in order, in as few frames as possible; returns their ids when all are stored or, in
        a `transaction`, when it has accepted them.

        Raises BatchRefused if the server refused some messages and stored the others (a single message raises
        its own error); InsufficientResources if a message does not fit into a packet: then none is sent;
        SendInDoubt if the connection is lost before the answer.
        """
        return run(self._inner.send_many(list(messages), transaction=unwrap(transaction)))

    def sender(
        self, *, window: int = 8192, batch: int = 256, transaction: Transaction | Single | None = None
    ) -> Sender:
        """Return a sender that forms batches itself, for high throughput: see Sender."""
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
        """Remove and return the first message, waiting up to `timeout` seconds for one (None: without limit).

        In a `transaction`, the commit removes the message. A message that does not fit into `limits` stays in
        the queue; the call raises BufferTooSmall with the sizes that the message needs. Raises IOTimeout.

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

    def cursor(self) -> Cursor:
        """Return a cursor before the first message: see Cursor. Raises AccessDenied."""
        return Cursor(run(self._inner.cursor()))

    def move(
        self, message: ReceivedMessage | int, target: Queue, *, transaction: Transaction | None = None
    ) -> None:
        """Move a message, given as a message or its lookup id, to `target`; it keeps its lookup id.

        `target` must be open with Access.MOVE and be a subqueue of this queue (`orders;later`), or the queue
        of this subqueue. Raises MessageNotFound, MessageLocked; InvalidParameter if the queues do not belong
        together.
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

    def purge(self) -> int | None:
        """Remove all messages; returns their number, or None for a queue of another computer, which does not
        report it.
        """
        return run(self._inner.purge())


class MessageAdmin(Wrapper[_exchange.MessageAdmin]):
    """Batch operations on the messages of this connection's queues.

    A batch examines at most `limit` messages that arrived after `after` (0: from the start) and up to `upto`
    (0: the newest message now). Pass `next` and `upto` of its result to the next call.
    """

    def browse(
        self, queue: Queue, wanted: Filter = EVERYTHING, after: int = 0, upto: int = 0, limit: int = 1000
    ) -> Page:
        """Return the next messages of a queue in the order of arrival, without removing them. Raises
        AccessDenied, QueueDeleted.
        """
        return run(self._inner.browse(unwrap(queue), wanted, after, upto, limit))

    def move(
        self,
        source: Queue,
        target: Queue,
        wanted: Filter = EVERYTHING,
        after: int = 0,
        upto: int = 0,
        limit: int = 1000,
    ) -> Done:
        """Move the next batch from one queue to another of the same queue manager. Message identifiers do not
        change.

        Raises the target's error if it refuses the first message.
        """
        return run(self._inner.move(unwrap(source), unwrap(target), wanted, after, upto, limit))

    def copy(
        self,
        source: Queue,
        target: Queue,
        wanted: Filter = EVERYTHING,
        after: int | None = None,
        upto: int = 0,
        limit: int = 1000,
        *,
        job: bytes | None = None,
    ) -> Done:
        """Copy the next batch, like `move`.

        With `job`, 16 bytes that identify the copy operation, the queue manager stores its progress, and
        `after` None continues there, also after a crash.
        """
        return run(self._inner.copy(unwrap(source), unwrap(target), wanted, after, upto, limit, job=job))

    def end_job(self, job: bytes) -> None:
        """Make the queue manager forget the progress of a finished copy; the same `job` then starts a new
        copy.
        """
        run(self._inner.end_job(job))

    def resubmit(
        self,
        dead_letters: Queue,
        wanted: Filter = EVERYTHING,
        after: int = 0,
        upto: int = 0,
        limit: int = 1000,
    ) -> Done:
        """Send the next batch of dead letters to their original destinations again, and remove those that
        were sent.
        """
        return run(self._inner.resubmit(unwrap(dead_letters), wanted, after, upto, limit))

    def open_import(self, job: bytes, *, anew: bool = False) -> Import:
        """Begin or continue the import that `job` (16 bytes) identifies; `anew` discards the progress of an
        earlier attempt.

        Raises AccessDenied; SharingViolation if the import is already running.
        """
        return Import(run(self._inner.open_import(job, anew=anew)))


class Import(Wrapper[_exchange.Import]):
    """An import of the messages of a file. `done` is the number of records that an earlier attempt
    imported.
    """

    @property
    def done(self) -> int:
        """See the client with asyncio."""
        return self._inner.done

    def put(self, name: str, messages: list[Stored], *, skip: bool = False) -> tuple[int, int]:
        """Import the next records into a queue; returns (imported, skipped) when they are durable.

        `skip` skips messages that are in the queue already. Raises the queue's error for the first record
        that it refuses; the records before it are kept.
        """
        return run(self._inner.put(name, messages, skip=skip))

    def end(self) -> None:
        """Finish the import: the queue manager forgets its progress."""
        run(self._inner.end())


class AccessAdmin(Wrapper[_securityadmin.AccessAdmin]):
    """Access control lists of queues, or of the queue manager if the name is None."""

    def get(self, name: str | None) -> AccessList:
        """Return the owner and the entries of an access control list. Raises QueueNotFound, AccessDenied."""
        return run(self._inner.get(name))

    def grant(self, name: str | None, account: str, rights: str) -> AccessList:
        """Grant rights, such as `send,peek`, to an account. Raises QueueNotFound, AccessDenied,
        InvalidParameter.
        """
        return run(self._inner.grant(name, account, rights))

    def deny(self, name: str | None, account: str, rights: str) -> AccessList:
        """Deny rights to an account. Raises QueueNotFound, AccessDenied, InvalidParameter."""
        return run(self._inner.deny(name, account, rights))

    def revoke(self, name: str | None, account: str, rights: str = "") -> AccessList:
        """Remove the entries for `rights` of an account from the list; all of its entries if `rights` is
        empty. Raises as `grant`.
        """
        return run(self._inner.revoke(name, account, rights))

    def set_owner(self, name: str | None, account: str) -> AccessList:
        """Make an account the owner of the queue. Raises as `grant`."""
        return run(self._inner.set_owner(name, account))

    def set(self, name: str | None, descriptor: str) -> AccessList:
        """Replace the owner and the list with those of a security descriptor in SDDL. Raises as `grant`."""
        return run(self._inner.set(name, descriptor))

    def explain(self, name: str | None, account: str, rights: str) -> AccessDecision:
        """Return whether an account ("": the caller) has rights, and which entry decides this. Raises as
        `get`.
        """
        return run(self._inner.explain(name, account, rights))


class CertificateAdmin(Wrapper[_securityadmin.CertificateAdmin]):
    """Certificates that sign the messages of users. The user "" is the caller."""

    def all(self, user: str | None = "") -> list[CertificateInfo]:
        """Return the certificates of a user, or of all users if `user` is None. Raises AccessDenied."""
        return run(self._inner.all(user))

    def create(self, user: str = "") -> CertificateInfo:
        """Make an internal certificate for a user; it replaces the previous one. Raises AccessDenied."""
        return run(self._inner.create(user))

    def add(self, certificate: bytes, private_key: bytes | None = None, user: str = "") -> CertificateInfo:
        """Register an external certificate (PEM or DER). Add its private key (PEM) if the server is to sign
        with it. Raises AccessDenied; MSMQError with INVALID_CERTIFICATE.
        """
        return run(self._inner.add(certificate, private_key, user))

    def remove(self, identifier: str, user: str = "") -> None:
        """Remove a certificate and its private key. Raises AccessDenied."""
        run(self._inner.remove(identifier, user))


class KeyAdmin(Wrapper[_securityadmin.KeyAdmin]):
    """Public keys that encrypt messages for queue managers."""

    def all(self) -> list[KeysInfo]:
        """Return the keys of this queue manager, and the keys of other queue managers that it stores."""
        return run(self._inner.all())

    def add(self, guid: str, keys: bytes) -> None:
        """Store the keys (MQDSPUBLICKEYS) of another queue manager. Raises AccessDenied, InvalidParameter."""
        run(self._inner.add(guid, keys))

    def remove(self, guid: str) -> None:
        """Delete the keys of another queue manager. Raises AccessDenied, InvalidParameter."""
        run(self._inner.remove(guid))


class Admin(Wrapper[_admin.Admin]):
    """The subjects of operators' requests, and the requests that concern the whole queue manager."""

    @property
    def queues(self) -> QueueAdmin:
        """See the client with asyncio."""
        return QueueAdmin(self._inner.queues)

    @property
    def outgoing(self) -> OutgoingAdmin:
        """See the client with asyncio."""
        return OutgoingAdmin(self._inner.outgoing)

    @property
    def transactions(self) -> TransactionAdmin:
        """See the client with asyncio."""
        return TransactionAdmin(self._inner.transactions)

    @property
    def directory(self) -> DirectoryAdmin:
        """See the client with asyncio."""
        return DirectoryAdmin(self._inner.directory)

    @property
    def messages(self) -> MessageAdmin:
        """Browse, move, copy, resubmit and import messages in batches."""
        return MessageAdmin(self._inner.messages)

    @property
    def access(self) -> AccessAdmin:
        """Access control lists."""
        return AccessAdmin(self._inner.access)

    @property
    def certificates(self) -> CertificateAdmin:
        """Certificates that sign the messages of users."""
        return CertificateAdmin(self._inner.certificates)

    @property
    def keys(self) -> KeyAdmin:
        """Public keys that encrypt messages for queue managers."""
        return KeyAdmin(self._inner.keys)

    def stats(self) -> dict[str, Any]:
        """Counters of the queue manager."""
        return run(self._inner.stats())

    def reload(self) -> dict[str, Any]:
        """Make the server read its configuration again, as SIGHUP does.

        The reply lists the keys that changed (`changed`), the changed keys that need a restart (`restart`)
        and the old names of keys in the file (`warnings`).

        Raises InvalidParameter, with one line for each mistake, if the configuration is invalid; the server
        then keeps its old configuration. Raises AccessDenied.
        """
        return run(self._inner.reload())

    def trace(self, message_id: bytes) -> list[MessageEvent]:
        """Return what happened to a message at this queue manager, as far back as the event feed reaches.

        `message_id` has 20 bytes, as `ReceivedMessage.id`. Raises AccessDenied.
        """
        return run(self._inner.trace(message_id))

    def snapshot(self, directory: str, bytes_per_second: int | None = None) -> SnapshotInfo:
        """Copy the running store into a new directory of the server's machine.

        The server cancels the copy if the connection ends before it is complete. Raises InvalidParameter if
        the directory or the rate is invalid or another snapshot is running; AccessDenied, MSMQError.
        """
        return run(self._inner.snapshot(directory, bytes_per_second))

    def snapshot_progress(self) -> tuple[int, int] | None:
        """Return the bytes written and the approximate total; None if no snapshot is running.

        Raises AccessDenied.
        """
        return run(self._inner.snapshot_progress())


class QueueAdmin(Wrapper[_admin.QueueAdmin]):
    """Queues of this queue manager."""

    def create(self, name: str, **properties: Unpack[QueueProperties]) -> QueueInfo:
        """Create a queue: `create("orders", transactional=True, label="Incoming orders")`.

        Raises QueueExists, IllegalQueuePathName, PropertyError.
        """
        return run(self._inner.create(name, **properties))

    def get(self, name: str) -> QueueInfo:
        """Properties and counts of a queue. Raises QueueNotFound."""
        return run(self._inner.get(name))

    def set(self, name: str, **properties: Unpack[QueueProperties]) -> QueueInfo:
        """Change the given properties of a queue. Raises QueueNotFound, PropertyError."""
        return run(self._inner.set(name, **properties))

    def delete(self, name: str) -> None:
        """Delete a queue and its messages. Raises QueueNotFound."""
        run(self._inner.delete(name))

    def all(self, kind: str = "user") -> list[QueueInfo]:
        """Return the queues of a kind: `user` or `system`."""
        return run(self._inner.all(kind))


class OutgoingAdmin(Wrapper[_admin.OutgoingAdmin]):
    """Outgoing queues. Each is named by the format name of its destination."""

    def all(self) -> list[OutgoingQueueInfo]:
        """All outgoing queues."""
        return run(self._inner.all())

    def get(self, name: str) -> OutgoingQueueInfo:
        """One outgoing queue. Raises QueueNotFound."""
        return run(self._inner.get(name))

    def pause(self, name: str) -> None:
        """Stop sending from an outgoing queue until `resume`. Raises QueueNotFound."""
        run(self._inner.pause(name))

    def resume(self, name: str) -> None:
        """Send from a paused outgoing queue again. Raises QueueNotFound."""
        run(self._inner.resume(name))

    def purge(self, name: str) -> int:
        """Remove all messages of an outgoing queue; returns their number. Raises QueueNotFound."""
        return run(self._inner.purge(name))


class TransactionAdmin(Wrapper[_admin.TransactionAdmin]):
    """Transactions of all programs that use this queue manager."""

    def all(self) -> list[TransactionInfo]:
        """Return the open and prepared transactions. Raises AccessDenied."""
        return run(self._inner.all())

    def commit(self, identifier: str) -> None:
        """Commit a prepared transaction whose coordinator is lost. Raises TransactionSequence,
        AccessDenied.
        """
        run(self._inner.commit(identifier))

    def abort(self, identifier: str) -> None:
        """Abort a transaction. Raises TransactionSequence, AccessDenied."""
        run(self._inner.abort(identifier))


class DirectoryAdmin(Wrapper[_admin.DirectoryAdmin]):
    """Objects of the directory. Each object is a map, since its attributes depend on its type."""

    def all(self, kind: str, after: str = "", limit: int = 1000) -> list[dict[str, Any]]:
        """Return up to `limit` objects of a type (`Queue`, `Site`, …) in the order of their GUIDs, starting
        after the GUID `after`.
        """
        return run(self._inner.all(kind, after, limit))

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """Return one object, by its GUID or its unique name."""
        return run(self._inner.get(kind, name))

    def put(self, entry: dict[str, Any], how: str, *, dry_run: bool = False) -> str:
        """Write an object: `how` is `create`, `set` (change attributes of an existing object) or `import`.
        Returns `created`, `changed` or `unchanged`.
        """
        return run(self._inner.put(entry, how, dry_run=dry_run))

    def delete(self, kind: str, name: str) -> None:
        """Delete an object, by its GUID or its unique name."""
        run(self._inner.delete(kind, name))


class Connection(ClosingWrapper[_connection.Connection]):
    """A connection to a queue manager; its requests are pipelined. Made by `connect()`, closed by `close()`
    or `with`.

    `admin` holds the requests of operators. Calls that wait when the connection is lost raise ConnectionLost.
    The argument `reconnect` of `connect()` decides whether the client connects again.
    """

    @property
    def admin(self) -> Admin:
        """The requests of operators, by subject: see Admin."""
        return Admin(self._inner.admin)

    @property
    def connected(self) -> bool:
        """False from the loss of the connection until it is established again."""
        return self._inner.connected

    @property
    def computer_name(self) -> str:
        """Name of the queue manager's computer."""
        return self._inner.computer_name

    @property
    def guid(self) -> UUID:
        """GUID of the queue manager."""
        return self._inner.guid

    def close(self) -> None:
        """Close the connection and all its queues; pending calls raise ConnectionLost."""
        run(self._inner.close())

    def request(self, kind: Frame, payload: Any) -> Any:
        """Make one request, for parts of the protocol that have no method here; returns the payload of the
        reply.
        """
        return run(self._inner.request(kind, payload))

    def ping(self) -> None:
        """Make one round trip to the server."""
        run(self._inner.ping())

    def open(
        self, name: str, access: Access = Access.SEND | Access.RECEIVE, share: Share = Share.DENY_NONE
    ) -> Queue:
        """Open a queue by name: `connection.open(…)`, or `with connection.open(…) as queue`.

        The name is a path (`.\\private$\\orders`, `orders`) or a format name
        (`DIRECT=TCP:10.0.0.7\\private$\\orders`). For sending it may be several with commas between them, or
        a distribution list: each message goes to all of them.

        Raises QueueNotFound, IllegalFormatName, SharingViolation, AccessDenied, UnsupportedAccessMode.
        """
        return Queue(run(self._inner.open(name, access, share)))

    def transaction(self) -> Transaction:
        """Return a transaction, whose sends and receives all take effect or none does: see Transaction."""
        return Transaction(on_loop(lambda: self._inner.transaction()))


def connect(
    endpoint: str | None = None,
    *,
    token: str | None = None,
    tls: ssl.SSLContext | None = None,
    timeout: float = 10.0,
    client: str = "",
    reconnect: bool | Reconnect = False,
) -> Connection:
    """Connect to a queue manager: `connect(…)`, or `with connect(…) as connection`.

    `endpoint` is the path of a Unix socket, `unix:/path`, `tcp://host:port` or `tls://host:port`; None reads
    the variable MSMQ_FAST_ENDPOINT. `timeout` is in seconds and covers connecting and the hello. Raises
    ValueError for an invalid endpoint, ConnectionLost, AccessDenied for a wrong token.

    With `reconnect`, the client connects again when the connection is lost, with the pauses of `Reconnect`.
    Queues, senders and subscriptions continue; later calls wait, and calls that change nothing are repeated.
    Any other pending call raises ConnectionLost, a send SendInDoubt, a commit CommitInDoubt; open
    transactions are aborted, and cursors are closed. The default is off, since only the program can decide
    what to do with a message in doubt.
    """
    inner = run(
        _connection.connect(
            endpoint, token=token, tls=tls, timeout=timeout, client=client, reconnect=reconnect
        )
    )
    return Connection(inner)
