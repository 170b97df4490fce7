"""The client without asyncio: the same names, calls that block. See `msmq_fast.client.blocking`.

Made by tools/syncclient.py of the modules beside it: do not edit.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator
from typing import Any, Unpack
from uuid import UUID

from msmq_fast.client import admin as _admin
from msmq_fast.client import connection as _connection
from msmq_fast.client import cursor as _cursor
from msmq_fast.client import exchange as _exchange
from msmq_fast.client import queue as _queue
from msmq_fast.client import securityadmin as _securityadmin
from msmq_fast.client import sender as _sender
from msmq_fast.client import subscription as _subscription
from msmq_fast.client import transaction as _transaction
from msmq_fast.client.blocking import ClosingWrapper, Wrapper, iterate, on_loop, run, unwrap
from msmq_fast.client.channel import Reconnect
from msmq_fast.client.errors import Refusal
from msmq_fast.client.exchange import EVERYTHING, Done, Filter, Page, Stored
from msmq_fast.client.message import Message, ReceivedMessage
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


class MessageAdmin(Wrapper[_exchange.MessageAdmin]):
    """Messages in batches, of the queues of one connection.

    A batch examines what arrived behind `after` (0: from the start) up to `upto` (0: what is there now), at
    most `limit` messages; `next` and `upto` of its result are where the next one begins.
    """

    def browse(
        self, queue: Queue, wanted: Filter = EVERYTHING, after: int = 0, upto: int = 0, limit: int = 1000
    ) -> Page:
        """The next messages of a queue in the order of arrival; they stay. Raises AccessDenied,
        QueueDeleted.
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
        """Move the next batch from one queue to another of the same queue manager. Identifiers stay.

        Raises the refusal of the target if it takes not even the first message.
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

        With `job`, 16 bytes that name what is to be done, the queue manager keeps how far it is, and `after`
        None goes on there, also after a crash.
        """
        return run(self._inner.copy(unwrap(source), unwrap(target), wanted, after, upto, limit, job=job))

    def end_job(self, job: bytes) -> None:
        """The queue manager forgets a copy that is finished: the same job is new work from now on."""
        run(self._inner.end_job(job))

    def resubmit(
        self,
        dead_letters: Queue,
        wanted: Filter = EVERYTHING,
        after: int = 0,
        upto: int = 0,
        limit: int = 1000,
    ) -> Done:
        """Send the next batch to its original destinations again; what was sent leaves the dead letters."""
        return run(self._inner.resubmit(unwrap(dead_letters), wanted, after, upto, limit))

    def open_import(self, job: bytes, *, anew: bool = False) -> Import:
        """Begin, or go on with, the import that `job` (16 bytes) names; `anew` forgets an earlier attempt.

        Raises AccessDenied, SharingViolation if it is under way.
        """
        return Import(run(self._inner.open_import(job, anew=anew)))


class Import(Wrapper[_exchange.Import]):
    """An import of the messages of a file. `done`: how many records an earlier attempt brought in."""

    @property
    def done(self) -> int:
        """See the client with asyncio."""
        return self._inner.done

    def put(self, name: str, messages: list[Stored], *, skip: bool = False) -> tuple[int, int]:
        """Bring the next records into a queue; (imported, skipped), when they are durable.

        `skip` passes over messages that are in the queue. Raises what the queue refuses the first of them
        with; what came before is kept.
        """
        return run(self._inner.put(name, messages, skip=skip))

    def end(self) -> None:
        """All records are there: the queue manager forgets how far the import got."""
        run(self._inner.end())


class AccessAdmin(Wrapper[_securityadmin.AccessAdmin]):
    """Access control lists of queues; of the queue manager for the name None."""

    def get(self, name: str | None) -> AccessList:
        """The owner and the entries. Raises QueueNotFound, AccessDenied."""
        return run(self._inner.get(name))

    def grant(self, name: str | None, account: str, rights: str) -> AccessList:
        """Allow rights (`send,peek`) to an account. Raises QueueNotFound, AccessDenied, InvalidParameter."""
        return run(self._inner.grant(name, account, rights))

    def deny(self, name: str | None, account: str, rights: str) -> AccessList:
        """Deny rights to an account. Raises QueueNotFound, AccessDenied, InvalidParameter."""
        return run(self._inner.deny(name, account, rights))

    def revoke(self, name: str | None, account: str, rights: str = "") -> AccessList:
        """Remove rights of an account from the list, all of them without `rights`. Raises as `grant`."""
        return run(self._inner.revoke(name, account, rights))

    def set_owner(self, name: str | None, account: str) -> AccessList:
        """Make an account the owner. Raises as `grant`."""
        return run(self._inner.set_owner(name, account))

    def set(self, name: str | None, descriptor: str) -> AccessList:
        """Replace owner and list by those of a descriptor in SDDL. Raises as `grant`."""
        return run(self._inner.set(name, descriptor))

    def explain(self, name: str | None, account: str, rights: str) -> AccessDecision:
        """Whether an account (the caller for "") has rights, and which entry decides. Raises as `get`."""
        return run(self._inner.explain(name, account, rights))


class CertificateAdmin(Wrapper[_securityadmin.CertificateAdmin]):
    """Certificates with which messages of users are signed. The user "" is the caller."""

    def all(self, user: str | None = "") -> list[CertificateInfo]:
        """The certificates of a user, of all users for None. Raises AccessDenied."""
        return run(self._inner.all(user))

    def create(self, user: str = "") -> CertificateInfo:
        """Make an internal certificate in place of the one before. Raises AccessDenied."""
        return run(self._inner.create(user))

    def add(self, certificate: bytes, private_key: bytes | None = None, user: str = "") -> CertificateInfo:
        """Register an external certificate (PEM or DER), with its private key (PEM) if the server is to sign
        with it. Raises AccessDenied, MSMQError for INVALID_CERTIFICATE.
        """
        return run(self._inner.add(certificate, private_key, user))

    def remove(self, identifier: str, user: str = "") -> None:
        """Remove a certificate and its private key. Raises AccessDenied."""
        run(self._inner.remove(identifier, user))


class KeyAdmin(Wrapper[_securityadmin.KeyAdmin]):
    """Keys with which messages are encrypted for queue managers."""

    def all(self) -> list[KeysInfo]:
        """The keys of this queue manager, and those of others that it knows."""
        return run(self._inner.all())

    def add(self, guid: str, keys: bytes) -> None:
        """Keep the keys (MQDSPUBLICKEYS) of another queue manager. Raises AccessDenied, InvalidParameter."""
        run(self._inner.add(guid, keys))

    def remove(self, guid: str) -> None:
        """Forget the keys of another queue manager. Raises AccessDenied, InvalidParameter."""
        run(self._inner.remove(guid))


class Admin(Wrapper[_admin.Admin]):
    """The subjects, and what belongs to the queue manager as a whole."""

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
        """Messages in batches."""
        return MessageAdmin(self._inner.messages)

    @property
    def access(self) -> AccessAdmin:
        """Access control lists."""
        return AccessAdmin(self._inner.access)

    @property
    def certificates(self) -> CertificateAdmin:
        """Certificates with which messages of users are signed."""
        return CertificateAdmin(self._inner.certificates)

    @property
    def keys(self) -> KeyAdmin:
        """Keys with which messages are encrypted for queue managers."""
        return KeyAdmin(self._inner.keys)

    def stats(self) -> dict[str, Any]:
        """Counters of the queue manager."""
        return run(self._inner.stats())

    def reload(self) -> dict[str, Any]:
        """Have the server read its configuration again, as SIGHUP does.

        The reply names what is in force now (`changed`), what takes a restart (`restart`) and the old names
        of keys that were read (`warnings`).

        Raises InvalidParameter, with one line for each mistake, if the configuration cannot be used; then
        nothing has changed. Raises AccessDenied.
        """
        return run(self._inner.reload())

    def trace(self, message_id: bytes) -> list[MessageEvent]:
        """What happened to a message at this queue manager, as far back as the event feed goes.

        `message_id` has 20 bytes, as `ReceivedMessage.id`. Raises AccessDenied.
        """
        return run(self._inner.trace(message_id))

    def snapshot(self, directory: str, bytes_per_second: int | None = None) -> SnapshotInfo:
        """Copy the running store into a new directory of the server's machine.

        The copy is given up if the connection ends before. Raises InvalidParameter (the directory, the rate,
        or another snapshot is being made), AccessDenied, MSMQError.
        """
        return run(self._inner.snapshot(directory, bytes_per_second))

    def snapshot_progress(self) -> tuple[int, int] | None:
        """Bytes written, and about how many there will be; None while no snapshot is made.

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
        """Change properties of a queue. Raises QueueNotFound, PropertyError."""
        return run(self._inner.set(name, **properties))

    def delete(self, name: str) -> None:
        """Delete a queue and its messages. Raises QueueNotFound."""
        run(self._inner.delete(name))

    def all(self, kind: str = "user") -> list[QueueInfo]:
        """The queues of a kind: `user` or `system`."""
        return run(self._inner.all(kind))


class OutgoingAdmin(Wrapper[_admin.OutgoingAdmin]):
    """Outgoing queues, by the format name of their destination."""

    def all(self) -> list[OutgoingQueueInfo]:
        """All outgoing queues."""
        return run(self._inner.all())

    def get(self, name: str) -> OutgoingQueueInfo:
        """One outgoing queue. Raises QueueNotFound."""
        return run(self._inner.get(name))

    def pause(self, name: str) -> None:
        """Send nothing from it until `resume`. Raises QueueNotFound."""
        run(self._inner.pause(name))

    def resume(self, name: str) -> None:
        """Send from it again. Raises QueueNotFound."""
        run(self._inner.resume(name))

    def purge(self, name: str) -> int:
        """Remove all of its messages; their number. Raises QueueNotFound."""
        return run(self._inner.purge(name))


class TransactionAdmin(Wrapper[_admin.TransactionAdmin]):
    """Transactions of all programs."""

    def all(self) -> list[TransactionInfo]:
        """The open and prepared transactions. Raises AccessDenied."""
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
    """Objects of the directory. Their attributes depend on the type, so they are maps."""

    def all(self, kind: str, after: str = "", limit: int = 1000) -> list[dict[str, Any]]:
        """Up to `limit` objects of a type (`Queue`, `Site`, …) by GUID, from behind the GUID `after`."""
        return run(self._inner.all(kind, after, limit))

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """One object, by GUID or by its unique name."""
        return run(self._inner.get(kind, name))

    def put(self, entry: dict[str, Any], how: str, *, dry_run: bool = False) -> str:
        """`create` an object, `set` attributes of one, or `import` it; answers `created`, `changed` or
        `unchanged`.
        """
        return run(self._inner.put(entry, how, dry_run=dry_run))

    def delete(self, kind: str, name: str) -> None:
        """Delete an object, by GUID or by its unique name."""
        run(self._inner.delete(kind, name))


class Connection(ClosingWrapper[_connection.Connection]):
    """A connection; its requests are pipelined. Made by `connect()`, closed by `close()` or `with`.

    `admin` has what operators do. Calls that wait when the connection is lost raise ConnectionLost; whether
    there is another one says the argument `reconnect` of `connect()`.
    """

    @property
    def admin(self) -> Admin:
        """What operators do, by subject: see Admin."""
        return Admin(self._inner.admin)

    @property
    def connected(self) -> bool:
        """False from the loss of the connection until it is there again."""
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
        """Close the connection and with it all its queues; pending calls raise ConnectionLost."""
        run(self._inner.close())

    def request(self, kind: Frame, payload: Any) -> Any:
        """One request, for parts of the protocol that have no method here."""
        return run(self._inner.request(kind, payload))

    def ping(self) -> None:
        """One round trip."""
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
        """Sends and receives that happen together or not at all: see Transaction."""
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

    `endpoint` is a path of a Unix socket, `unix:/path`, `tcp://host:port` or `tls://host:port`; None takes
    it from MSMQ_FAST_ENDPOINT. `timeout` is in seconds and covers connecting and the hello. Raises
    ValueError for a bad endpoint, ConnectionLost, AccessDenied for a wrong token.

    With `reconnect` a connection that is lost later is made again, with the pauses of `Reconnect`. Queues,
    senders and subscriptions go on; later calls wait, and those that change nothing are repeated. Another
    call that was under way raises ConnectionLost, a send SendInDoubt, a commit CommitInDoubt; open
    transactions are aborted, cursors are closed. It is off unless a program asks for it, since only the
    program can say what becomes of a message that is in doubt.
    """
    inner = run(
        _connection.connect(
            endpoint, token=token, tls=tls, timeout=timeout, client=client, reconnect=reconnect
        )
    )
    return Connection(inner)
