"""The client without asyncio: the same names, calls that block.

One event loop in a background thread serves all connections of the process; objects may be used from any
thread. A forked child has a loop of its own; it connects anew, since connections belong to the parent.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from collections.abc import Coroutine, Iterable, Iterator
from concurrent.futures import CancelledError
from itertools import islice
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar, overload
from uuid import UUID

from msmq_fast.client import connection as _connection
from msmq_fast.client import cursor as _cursor
from msmq_fast.client import queue as _queue
from msmq_fast.client import sender as _sender
from msmq_fast.client import subscription as _subscription
from msmq_fast.client import transaction as _transaction
from msmq_fast.client.message import Message, ReceivedMessage
from msmq_fast.client.transaction import SINGLE_MESSAGE as SINGLE_MESSAGE
from msmq_fast.client.transaction import Single
from msmq_fast.protocol.errors import IOTimeout
from msmq_fast.protocol.frames import Access, Lookup, Share

T = TypeVar("T")

_CHUNK = 1024  # messages of a long send_many that are handed to the loop at once


class _Runner:
    """The event loop of the background thread, started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """In a forked child: the thread of the loop is not there, and the lock may be held for ever."""
        self._lock = threading.Lock()
        self._loop = None

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="msmq_fast.sync", daemon=True).start()
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result()
        except (KeyboardInterrupt, CancelledError):
            future.cancel()
            raise


_runner = _Runner()


class _Managed(Protocol):
    async def __aenter__(self) -> object: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> object: ...


_Inner = TypeVar("_Inner", bound=_Managed)


class _Wrapper(Generic[_Inner]):
    """Something of the client with asyncio, to be used in a `with` statement."""

    def __init__(self, inner: _Inner) -> None:
        self._inner = inner

    def __enter__(self) -> Self:
        _runner.run(self._inner.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _runner.run(self._inner.__aexit__(kind, error, trace))


class Subscription(_Wrapper[_subscription.Subscription]):
    """See `msmq_fast.Subscription`; use as `with queue.subscribe() as messages: for message in messages`."""

    def __iter__(self) -> Iterator[ReceivedMessage]:
        while messages := self.batch():
            yield from messages

    def batch(self, limit: int = 1024) -> list[ReceivedMessage]:
        """All messages that are here, at least one and at most `limit`; empty when the subscription is
        over.
        """
        return _runner.run(self._inner.batch(limit))

    def acknowledge(self, first: ReceivedMessage, last: ReceivedMessage | None = None) -> None:
        """Remove `first` (or all delivered from `first` to `last`); returns when that is durable."""
        _runner.run(self._inner.acknowledge(first, last))

    def release(self, first: ReceivedMessage, last: ReceivedMessage | None = None) -> None:
        """Put `first` (or all delivered from `first` to `last`) back in its place."""
        _runner.run(self._inner.release(first, last))


class Transaction:
    """See `msmq_fast.Transaction`; use as `with connection.transaction() as transaction`."""

    def __init__(self, inner: _transaction.Transaction) -> None:
        self.inner = inner

    @property
    def identifier(self) -> str:
        """What operators see of it."""
        return self.inner.identifier

    def __enter__(self) -> Transaction:
        _runner.run(self.inner.begin())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _runner.run(self.inner.__aexit__(kind, error, trace))

    def prepare(self) -> None:
        """Vote for a commit in two phases: returns when a crash can no longer forget the transaction."""
        _runner.run(self.inner.prepare())

    def commit(self) -> None:
        """Returns when everything has happened, durably. What it raises means that nothing has."""
        _runner.run(self.inner.commit())

    def abort(self) -> None:
        """Forget what was sent, put back what was received."""
        _runner.run(self.inner.abort())


@overload
def _inner(transaction: Transaction | None) -> _transaction.Transaction | None: ...
@overload
def _inner(transaction: Transaction | Single | None) -> _transaction.Transaction | Single | None: ...
def _inner(transaction: Transaction | Single | None) -> _transaction.Transaction | Single | None:
    return transaction.inner if isinstance(transaction, Transaction) else transaction


class Cursor(_Wrapper[_cursor.Cursor]):
    """See `msmq_fast.Cursor`."""

    def __iter__(self) -> Iterator[ReceivedMessage]:
        read = self.peek
        while True:
            try:
                yield read(0)
            except IOTimeout:
                return
            read = self.peek_next

    def close(self) -> None:
        """Close it."""
        _runner.run(self._inner.close())

    def peek(self, timeout: float | None = None) -> ReceivedMessage:
        """The message it stands on. Raises IOTimeout, MessageAlreadyReceived."""
        return _runner.run(self._inner.peek(timeout))

    def peek_next(self, timeout: float | None = None) -> ReceivedMessage:
        """The message behind the one peeked last. Raises IOTimeout, IllegalCursorAction if none was."""
        return _runner.run(self._inner.peek_next(timeout))

    def receive(
        self, timeout: float | None = None, *, transaction: Transaction | None = None
    ) -> ReceivedMessage:
        """Remove and return the message it stands on, or the next one if it stands on none."""
        return _runner.run(self._inner.receive(timeout, transaction=_inner(transaction)))


class Sender(_Wrapper[_sender.Sender]):
    """See `msmq_fast.Sender`; use as `with queue.sender() as sender`, which ends with all acknowledged."""

    @property
    def acknowledged(self) -> int:
        """Messages that are kept."""
        return self._inner.acknowledged

    def send(self, message: Message) -> None:
        """Send one message; waits while too many are not acknowledged. Raises what went wrong before."""
        _runner.run(self._inner.send(message))

    def flush(self) -> None:
        """Wait until all are answered. Raises BatchRefused, ConnectionLost."""
        _runner.run(self._inner.flush())


class Queue(_Wrapper[_queue.Queue]):
    """See `msmq_fast.Queue`."""

    @property
    def name(self) -> str:
        """The name with which it was opened."""
        return self._inner.name

    def close(self) -> None:
        """Close the queue."""
        _runner.run(self._inner.close())

    def send(
        self, message: Message | bytes, *, transaction: Transaction | Single | None = None, **properties: Any
    ) -> str:
        """Send one message; returns its message id when it is kept or in memory."""
        return _runner.run(self._inner.send(message, transaction=_inner(transaction), **properties))

    def send_many(
        self, messages: Iterable[Message], *, transaction: Transaction | Single | None = None
    ) -> list[str]:
        """Send messages in order; returns their ids when all are kept. Raises BatchRefused."""
        source = iter(messages)
        ids: list[str] = []
        while chunk := list(islice(source, _CHUNK)):
            ids += _runner.run(self._inner.send_many(chunk, transaction=_inner(transaction)))
        return ids

    def sender(
        self, *, window: int = 8192, batch: int = 256, transaction: Transaction | Single | None = None
    ) -> Sender:
        """A sender that batches by itself, for throughput."""

        async def make() -> _sender.Sender:  # it belongs to the loop on which it is made
            return self._inner.sender(window=window, batch=batch, transaction=_inner(transaction))

        return Sender(_runner.run(make()))

    def receive(
        self, timeout: float | None = None, *, transaction: Transaction | None = None
    ) -> ReceivedMessage:
        """Remove and return the first message, waiting up to `timeout` seconds. Raises IOTimeout."""
        return _runner.run(self._inner.receive(timeout, transaction=_inner(transaction)))

    def peek(self, timeout: float | None = None) -> ReceivedMessage:
        """The first message, which stays in the queue. Raises IOTimeout."""
        return _runner.run(self._inner.peek(timeout))

    def lookup(
        self,
        lookup_id: int = 0,
        operation: Lookup = Lookup.CURRENT,
        *,
        receive: bool = False,
        transaction: Transaction | None = None,
    ) -> ReceivedMessage:
        """The message with a lookup id, or the one next to it, or the first or last.

        Raises MessageNotFound.
        """
        return _runner.run(
            self._inner.lookup(lookup_id, operation, receive=receive, transaction=_inner(transaction))
        )

    def subscribe(
        self, credit: int = 256, *, acknowledge: bool = True, transaction: Transaction | None = None
    ) -> Subscription:
        """Messages as they come, at most `credit` ahead."""
        return Subscription(
            self._inner.subscribe(credit, acknowledge=acknowledge, transaction=_inner(transaction))
        )

    def __iter__(self) -> Iterator[ReceivedMessage]:
        with self.subscribe() as messages:
            for message in messages:
                yield message
                messages.acknowledge(message)

    def cursor(self) -> Cursor:
        """A cursor before the first message."""
        return Cursor(_runner.run(self._inner.cursor()))

    def move(
        self, message: ReceivedMessage | int, target: Queue, *, transaction: Transaction | None = None
    ) -> None:
        """Move a message to a subqueue, or back to the queue; `target` is open with Access.MOVE."""
        _runner.run(self._inner.move(message, target._inner, transaction=_inner(transaction)))

    def reject(self, message: ReceivedMessage | int, *, transaction: Transaction) -> None:
        """Give up a message that was received in `transaction`, with its commit."""
        _runner.run(self._inner.reject(message, transaction=transaction.inner))

    def purge(self) -> int | None:
        """Remove all messages; their number."""
        return _runner.run(self._inner.purge())


class Connection:
    """See `msmq_fast.Connection`."""

    def __init__(self, inner: _connection.Connection) -> None:
        self._inner = inner

    @property
    def computer_name(self) -> str:
        """Name of the queue manager's computer."""
        return self._inner.computer_name

    @property
    def guid(self) -> UUID:
        """GUID of the queue manager."""
        return self._inner.guid

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection and with it all its queues."""
        _runner.run(self._inner.close())

    def ping(self) -> None:
        """One round trip."""
        _runner.run(self._inner.ping())

    def stats(self) -> dict[str, Any]:
        """Counters of the queue manager."""
        return _runner.run(self._inner.stats())

    def snapshot(self, directory: str, bytes_per_second: int | None = None) -> dict[str, Any]:
        """Copy the running store into a new directory of the server's machine; the manifest of the copy."""
        return _runner.run(self._inner.snapshot(directory, bytes_per_second))

    def snapshot_progress(self) -> tuple[int, int] | None:
        """Bytes written, and about how many there will be; None while no snapshot is made."""
        return _runner.run(self._inner.snapshot_progress())

    def open(
        self, name: str, access: Access = Access.SEND | Access.RECEIVE, share: Share = Share.DENY_NONE
    ) -> Queue:
        """Open a queue by path or format name."""
        return Queue(_runner.run(self._inner.open(name, access, share)))

    def transaction(self) -> Transaction:
        """Sends and receives that happen together or not at all."""
        return Transaction(self._inner.transaction())

    def transactions(self) -> list[dict[str, Any]]:
        """The open and prepared transactions of the queue manager. Raises AccessDenied."""
        return _runner.run(self._inner.transactions())

    def end_transaction(self, identifier: str, *, commit: bool) -> None:
        """Commit a prepared transaction whose coordinator is lost, or abort any."""
        _runner.run(self._inner.end_transaction(identifier, commit=commit))

    def create_queue(self, name: str, **properties: Any) -> dict[str, Any]:
        """Create a queue. Raises QueueExists, IllegalQueuePathName."""
        return _runner.run(self._inner.create_queue(name, **properties))

    def delete_queue(self, name: str) -> None:
        """Delete a queue and what is in it. Raises QueueNotFound."""
        _runner.run(self._inner.delete_queue(name))

    def queue(self, name: str) -> dict[str, Any]:
        """Properties and counts of a queue. Raises QueueNotFound."""
        return _runner.run(self._inner.queue(name))

    def set_queue(self, name: str, **properties: Any) -> dict[str, Any]:
        """Change properties of a queue. Raises QueueNotFound, PropertyError."""
        return _runner.run(self._inner.set_queue(name, **properties))

    def queues(self, kind: str = "user") -> list[dict[str, Any]]:
        """All queues of a kind: `user`, `system`, `outgoing` or `all`."""
        return _runner.run(self._inner.queues(kind))

    def outgoing(self) -> list[dict[str, Any]]:
        """The outgoing queues."""
        return _runner.run(self._inner.outgoing())

    def show_outgoing(self, name: str) -> dict[str, Any]:
        """One outgoing queue. Raises QueueNotFound."""
        return _runner.run(self._inner.show_outgoing(name))

    def pause_outgoing(self, name: str) -> None:
        """Hold an outgoing queue back. Raises QueueNotFound."""
        _runner.run(self._inner.pause_outgoing(name))

    def resume_outgoing(self, name: str) -> None:
        """Let an outgoing queue go on. Raises QueueNotFound."""
        _runner.run(self._inner.resume_outgoing(name))

    def purge_outgoing(self, name: str) -> int:
        """Remove all messages of an outgoing queue; their number. Raises QueueNotFound."""
        return _runner.run(self._inner.purge_outgoing(name))

    def acl(self, name: str | None) -> dict[str, Any]:
        """Owner and entries of the access control list of a queue; of the queue manager for None."""
        return _runner.run(self._inner.acl(name))

    def edit_acl(self, name: str | None, action: str, account: str, rights: str = "") -> dict[str, Any]:
        """Change the list; see Connection.edit_acl of the asynchronous client."""
        return _runner.run(self._inner.edit_acl(name, action, account, rights))

    def explain_access(self, name: str | None, account: str, rights: str) -> dict[str, Any]:
        """Whether somebody has rights to a queue, and which entry decides."""
        return _runner.run(self._inner.explain_access(name, account, rights))

    def certificates(self, user: str | None = "") -> list[dict[str, Any]]:
        """The certificates of a user, of the caller for "", of everybody for None."""
        return _runner.run(self._inner.certificates(user))

    def create_certificate(self, user: str = "") -> dict[str, Any]:
        """Make an internal certificate in place of the one before."""
        return _runner.run(self._inner.create_certificate(user))

    def add_certificate(
        self, certificate: bytes, private_key: bytes | None = None, user: str = ""
    ) -> dict[str, Any]:
        """Register an external certificate; see Connection.add_certificate of the asynchronous client."""
        return _runner.run(self._inner.add_certificate(certificate, private_key, user))

    def remove_certificate(self, identifier: str, user: str = "") -> None:
        """Forget a certificate and its private key."""
        _runner.run(self._inner.remove_certificate(identifier, user))

    def keys(self) -> list[dict[str, Any]]:
        """The encryption keys of the queue manager, and those of others that were told to it."""
        return _runner.run(self._inner.keys())

    def tell_keys(self, guid: str, keys: bytes | None) -> None:
        """Tell the encryption keys of another queue manager; None: forget them."""
        _runner.run(self._inner.tell_keys(guid, keys))

    def directory_objects(self, kind: str, after: str = "", limit: int = 1000) -> list[dict[str, Any]]:
        """Up to `limit` objects of a type (`Queue`, `Site`, …) by GUID, from behind the GUID `after`."""
        return _runner.run(self._inner.directory_objects(kind, after, limit))

    def directory_object(self, kind: str, name: str) -> dict[str, Any]:
        """One object, by GUID or by its unique name."""
        return _runner.run(self._inner.directory_object(kind, name))

    def put_directory(self, entry: dict[str, Any], how: str, *, dry_run: bool = False) -> str:
        """`create` an object, `set` attributes of one, or `import` it: created, changed or unchanged."""
        return _runner.run(self._inner.put_directory(entry, how, dry_run=dry_run))

    def delete_directory(self, kind: str, name: str) -> None:
        """Delete an object, by GUID or by its unique name."""
        _runner.run(self._inner.delete_directory(kind, name))


def connect(
    endpoint: str | None = None,
    *,
    token: str | None = None,
    tls: ssl.SSLContext | None = None,
    timeout: float = 10.0,
    client: str = "",
) -> Connection:
    """Connect to a queue manager; see `msmq_fast.connect`."""
    return Connection(
        _runner.run(_connection.connect(endpoint, token=token, tls=tls, timeout=timeout, client=client))
    )
