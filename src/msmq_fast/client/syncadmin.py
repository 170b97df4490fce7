"""The client without asyncio: the same names, calls that block. See `msmq_fast.client.blocking`.

Made by tools/syncclient.py of the modules beside it: do not edit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from msmq_fast.client import admin as _admin
from msmq_fast.client.blocking import Wrapper, run
from msmq_fast.client.syncparts import (
    AccessAdmin,
    AuditAdmin,
    CertificateAdmin,
    ConfigAdmin,
    DefinitionAdmin,
    KeyAdmin,
    MessageAdmin,
    UserAdmin,
)
from msmq_fast.protocol.resources import (
    MessageEvent,
    OutgoingQueueInfo,
    QueueInfo,
    QueuePage,
    QueueProperties,
    ReaderInfo,
    RouteInfo,
    SeriesInfo,
    SessionInfo,
    SessionPage,
    SnapshotInfo,
    TransactionInfo,
)


class Admin(Wrapper[_admin.Admin]):
    """The groups of operators' requests (`queues`, `outgoing`, …), and the requests that concern the whole
    queue manager.
    """

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
    def sessions(self) -> SessionAdmin:
        """See the client with asyncio."""
        return SessionAdmin(self._inner.sessions)

    @property
    def directory(self) -> DirectoryAdmin:
        """See the client with asyncio."""
        return DirectoryAdmin(self._inner.directory)

    @property
    def messages(self) -> MessageAdmin:
        """Requests that browse, move, copy, remove, resubmit and import messages in batches."""
        return MessageAdmin(self._inner.messages)

    @property
    def users(self) -> UserAdmin:
        """Requests that list the users and groups."""
        return UserAdmin(self._inner.users)

    @property
    def config(self) -> ConfigAdmin:
        """Requests that show and check the configuration of the server."""
        return ConfigAdmin(self._inner.config)

    @property
    def audit(self) -> AuditAdmin:
        """Requests about the audit."""
        return AuditAdmin(self._inner.audit)

    @property
    def definitions(self) -> DefinitionAdmin:
        """Requests about definitions: queues, access lists and directory objects as a document."""
        return DefinitionAdmin(self._inner.definitions)

    @property
    def access(self) -> AccessAdmin:
        """Requests about access control lists."""
        return AccessAdmin(self._inner.access)

    @property
    def certificates(self) -> CertificateAdmin:
        """Requests about the certificates with which the messages of users are signed."""
        return CertificateAdmin(self._inner.certificates)

    @property
    def keys(self) -> KeyAdmin:
        """Requests about the public keys with which messages to queue managers are encrypted."""
        return KeyAdmin(self._inner.keys)

    def stats(self) -> dict[str, Any]:
        """Return the counters of the server by name."""
        return run(self._inner.stats())

    def reload(self) -> dict[str, Any]:
        """Make the server read its configuration again, as SIGHUP does.

        The reply lists the keys that changed (`changed`), the changed keys that need a restart (`restart`)
        and the old names of keys in the file (`warnings`).

        Raises InvalidParameter, with one line for each mistake, if the configuration is invalid; the server
        then keeps its old configuration. Raises AccessDenied.
        """
        return run(self._inner.reload())

    def series(self, name: str = "", resolution: int = 5, since: int = 0) -> SeriesInfo:
        """Return the recent history of a queue: one sample every 5 s for the last hour, or every 60 s for the
        last day. Without a name, return that of the sum of all user queues and their subqueues.

        `since` (seconds since 1970) leaves out the samples up to that time. Raises QueueNotFound,
        AccessDenied; InvalidParameter if the resolution is neither 5 nor 60.
        """
        return run(self._inner.series(name, resolution, since))

    def trace(self, message_id: bytes) -> list[MessageEvent]:
        """Return what happened to a message at this queue manager, as far back as the event feed reaches.

        `message_id` has 20 bytes, as `ReceivedMessage.id`. Raises AccessDenied.
        """
        return run(self._inner.trace(message_id))

    def snapshot(self, directory: str | None = None, bytes_per_second: int | None = None) -> SnapshotInfo:
        """Copy the running store into a new directory of the server's machine; without a directory, into the
        object storage that the server's configuration names.

        The server cancels the copy if the connection ends before it is complete. Raises InvalidParameter if
        the directory or the rate is invalid or another snapshot is running; AccessDenied, MSMQError.
        """
        return run(self._inner.snapshot(directory, bytes_per_second))

    def snapshot_progress(self) -> tuple[int, int] | None:
        """Return (bytes written, approximate total in bytes) of the running snapshot; None if there is none.

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
        """Return the properties and counts of a queue. Raises QueueNotFound."""
        return run(self._inner.get(name))

    def set(
        self, name: str, *, expected: Sequence[str] | None = None, **properties: Unpack[QueueProperties]
    ) -> QueueInfo:
        """Change the given properties of a queue; returns its properties and counts. Raises QueueNotFound,
        PropertyError. With `expected`, raises Changed unless the settings of the queue have one of these
        versions (see `msmq_fast.protocol.versions`).
        """
        return run(self._inner.set(name, expected=expected, **properties))

    def delete(self, name: str, *, expected: Sequence[str] | None = None) -> None:
        """Delete a queue and its messages. Raises QueueNotFound; with `expected`, Changed as `set`."""
        run(self._inner.delete(name, expected=expected))

    def all(self, kind: str = "user") -> list[QueueInfo]:
        """Return the queues of a kind: `user` or `system`."""
        return run(self._inner.all(kind))

    def page(
        self,
        kind: str = "user",
        *,
        text: str = "",
        glob: str = "",
        sort: str = "name",
        descending: bool = False,
        limit: int = 100,
        offset: int = 0,
    ) -> QueuePage:
        """Return up to `limit` queues of a kind after the first `offset`, and the sums over all pages. The
        kind is `user`, `system`, `journal`, `subqueue`, `outgoing` or `all`.

        `text` must be in the name, `glob` is a pattern for it with * ? and []; case does not matter. `sort`
        is `name`, `messages` or `bytes`. Raises InvalidParameter.
        """
        return run(
            self._inner.page(
                kind, text=text, glob=glob, sort=sort, descending=descending, limit=limit, offset=offset
            )
        )


class OutgoingAdmin(Wrapper[_admin.OutgoingAdmin]):
    """Outgoing queues. The name of an outgoing queue is the format name of its destination."""

    def all(self) -> list[OutgoingQueueInfo]:
        """Return all outgoing queues."""
        return run(self._inner.all())

    def get(self, name: str) -> OutgoingQueueInfo:
        """Return one outgoing queue. Raises QueueNotFound."""
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

    def kick(self, name: str) -> OutgoingQueueInfo:
        """Connect now, and send now what the receiver has not acknowledged; returns the queue at the start of
        the attempt. Raises QueueNotFound, AccessDenied; QueueNotActive if the queue is paused.
        """
        return run(self._inner.kick(name))

    def explain_route(self, name: str) -> RouteInfo:
        """Return what would happen to a message for a path or format name: the queue, the next hops, and what
        stops it. Sends nothing. Raises IllegalFormatName, IllegalQueuePathName,
        UnsupportedFormatNameOperation, AccessDenied.
        """
        return run(self._inner.explain_route(name))


class TransactionAdmin(Wrapper[_admin.TransactionAdmin]):
    """Transactions of all programs that use this queue manager."""

    def all(self) -> list[TransactionInfo]:
        """Return the open and prepared transactions. Raises AccessDenied."""
        return run(self._inner.all())

    def commit(self, identifier: str) -> None:
        """Commit a prepared transaction whose program can no longer commit it. Raises TransactionSequence if
        there is no such prepared transaction; AccessDenied.
        """
        run(self._inner.commit(identifier))

    def abort(self, identifier: str) -> None:
        """Abort a transaction. Raises TransactionSequence, AccessDenied."""
        run(self._inner.abort(identifier))


class SessionAdmin(Wrapper[_admin.SessionAdmin]):
    """Open connections of the server: of other queue managers, of programs, over RPC and HTTP, to the admin
    port, and those that the server itself has opened.
    """

    def page(self, kind: str = "", *, after: int = 0, limit: int = 100) -> SessionPage:
        """Return up to `limit` sessions (at most 1,000) in the order of their numbers, starting after the
        number `after`. `kind` is `mqqb`, `program`, `rpc`, `http` or `admin`; empty: all.

        Raises InvalidParameter, AccessDenied.
        """
        return run(self._inner.page(kind, after=after, limit=limit))

    def close(self, number: int) -> SessionInfo:
        """Close a connection at once; returns what it was. Peers and programs may connect again.

        Raises InvalidParameter if no session has this number; AccessDenied.
        """
        return run(self._inner.close(number))

    def readers(self) -> list[ReaderInfo]:
        """Return the queues of this computer that programs on other computers have open over RPC. Raises
        AccessDenied.
        """
        return run(self._inner.readers())


class DirectoryAdmin(Wrapper[_admin.DirectoryAdmin]):
    """Objects of the directory. Each object is a map of its attributes, which depend on its type."""

    def all(
        self, kind: str, after: str = "", limit: int = 1000, where: Sequence[Sequence[Any]] = ()
    ) -> list[dict[str, Any]]:
        """Return up to `limit` objects of a type (`Queue`, `Site`, …) in the order of their GUIDs, starting
        after the GUID `after`. `where` has conditions that must all be met, each as (attribute, operator,
        value), for example `("Label", "=", "Orders")`.
        """
        return run(self._inner.all(kind, after, limit, where))

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """Return one object, by its GUID or its unique name."""
        return run(self._inner.get(kind, name))

    def put(self, entry: dict[str, Any], how: str, *, dry_run: bool = False) -> str:
        """Write an object: `how` is `create`, `set` (change attributes of an existing object) or `import`.
        With `dry_run`, an `import` writes nothing. Returns `created`, `changed` or `unchanged`.
        """
        return run(self._inner.put(entry, how, dry_run=dry_run))

    def delete(self, kind: str, name: str) -> None:
        """Delete an object, by its GUID or its unique name."""
        run(self._inner.delete(kind, name))
