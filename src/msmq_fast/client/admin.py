"""Requests of operators, grouped by what they concern: `connection.admin.queues.create(…)`,
`connection.admin.outgoing.pause(…)`.

Replies are the dataclasses of `msmq_fast.protocol.resources`. A field that an earlier server does not send
has its default.

To add a request: 1. write a method in the class of its group, and a dataclass if the reply is a map;
2. run `python -m tools.syncclient --write` for the blocking client.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from msmq_fast.client.subject import Subject, expecting
from msmq_fast.client.transport import Requester
from msmq_fast.protocol.frames import Frame
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

if TYPE_CHECKING:
    from msmq_fast.client.auditadmin import AuditAdmin
    from msmq_fast.client.definitionadmin import DefinitionAdmin
    from msmq_fast.client.exchange import MessageAdmin
    from msmq_fast.client.securityadmin import AccessAdmin, CertificateAdmin, KeyAdmin
    from msmq_fast.client.serveradmin import ConfigAdmin, UserAdmin


class Admin:
    """The groups of operators' requests (`queues`, `outgoing`, …), and the requests that concern the whole
    queue manager.
    """

    def __init__(self, link: Requester) -> None:
        self.queues = QueueAdmin(link)
        self.outgoing = OutgoingAdmin(link)
        self.transactions = TransactionAdmin(link)
        self.sessions = SessionAdmin(link)
        self.directory = DirectoryAdmin(link)
        self._link = link

    # These are imported when they are first used: their types take longer than all the rest.

    @property
    def messages(self) -> MessageAdmin:
        """Requests that browse, move, copy, remove, resubmit and import messages in batches."""
        from msmq_fast.client.exchange import MessageAdmin

        return MessageAdmin(self._link)

    @property
    def users(self) -> UserAdmin:
        """Requests that list the users and groups."""
        from msmq_fast.client.serveradmin import UserAdmin

        return UserAdmin(self._link)

    @property
    def config(self) -> ConfigAdmin:
        """Requests that show and check the configuration of the server."""
        from msmq_fast.client.serveradmin import ConfigAdmin

        return ConfigAdmin(self._link)

    @property
    def audit(self) -> AuditAdmin:
        """Requests about the audit."""
        from msmq_fast.client.auditadmin import AuditAdmin

        return AuditAdmin(self._link)

    @property
    def definitions(self) -> DefinitionAdmin:
        """Requests about definitions: queues, access lists and directory objects as a document."""
        from msmq_fast.client.definitionadmin import DefinitionAdmin

        return DefinitionAdmin(self._link)

    @property
    def access(self) -> AccessAdmin:
        """Requests about access control lists."""
        from msmq_fast.client.securityadmin import AccessAdmin

        return AccessAdmin(self._link)

    @property
    def certificates(self) -> CertificateAdmin:
        """Requests about the certificates with which the messages of users are signed."""
        from msmq_fast.client.securityadmin import CertificateAdmin

        return CertificateAdmin(self._link)

    @property
    def keys(self) -> KeyAdmin:
        """Requests about the public keys with which messages to queue managers are encrypted."""
        from msmq_fast.client.securityadmin import KeyAdmin

        return KeyAdmin(self._link)

    async def stats(self) -> dict[str, Any]:
        """Return the counters of the server by name."""
        return dict(await self._link.request(Frame.STATS, []))

    async def reload(self) -> dict[str, Any]:
        """Make the server read its configuration again, as SIGHUP does.

        The reply lists the keys that changed (`changed`), the changed keys that need a restart (`restart`)
        and the old names of keys in the file (`warnings`).

        Raises InvalidParameter, with one line for each mistake, if the configuration is invalid; the server
        then keeps its old configuration. Raises AccessDenied.
        """
        return dict(await self._link.request(Frame.RELOAD, []))

    async def series(self, name: str = "", resolution: int = 5, since: int = 0) -> SeriesInfo:
        """Return the recent history of a queue: one sample every 5 s for the last hour, or every 60 s for the
        last day. Without a name, return that of the sum of all user queues and their subqueues.

        `since` (seconds since 1970) leaves out the samples up to that time. Raises QueueNotFound,
        AccessDenied; InvalidParameter if the resolution is neither 5 nor 60.
        """
        return SeriesInfo.from_map(await self._link.request(Frame.SERIES, [name, resolution, since]))

    async def trace(self, message_id: bytes) -> list[MessageEvent]:
        """Return what happened to a message at this queue manager, as far back as the event feed reaches.

        `message_id` has 20 bytes, as `ReceivedMessage.id`. Raises AccessDenied.
        """
        events: list[MessageEvent] = []
        following, finished = 0, False
        while not finished:
            page = await self._link.request(Frame.TRACE, [message_id, following])
            events += [MessageEvent.from_map(event) for event in page["events"]]
            following, finished = page["next"], page["finished"]
        return events

    async def snapshot(
        self, directory: str | None = None, bytes_per_second: int | None = None
    ) -> SnapshotInfo:
        """Copy the running store into a new directory of the server's machine; without a directory, into the
        object storage that the server's configuration names.

        The server cancels the copy if the connection ends before it is complete. Raises InvalidParameter if
        the directory or the rate is invalid or another snapshot is running; AccessDenied, MSMQError.
        """
        reply = await self._link.request(Frame.SNAPSHOT, [directory, bytes_per_second])
        return SnapshotInfo.from_map(reply)

    async def snapshot_progress(self) -> tuple[int, int] | None:
        """Return (bytes written, approximate total in bytes) of the running snapshot; None if there is none.

        Raises AccessDenied.
        """
        reply = await self._link.request(Frame.SHOW_SNAPSHOT, [])
        return None if reply is None else (reply[0], reply[1])


class QueueAdmin(Subject):
    """Queues of this queue manager."""

    async def create(self, name: str, **properties: Unpack[QueueProperties]) -> QueueInfo:
        """Create a queue: `create("orders", transactional=True, label="Incoming orders")`.

        Raises QueueExists, IllegalQueuePathName, PropertyError.
        """
        return QueueInfo.from_map(await self._link.request(Frame.CREATE_QUEUE, [name, properties]))

    async def get(self, name: str) -> QueueInfo:
        """Return the properties and counts of a queue. Raises QueueNotFound."""
        return QueueInfo.from_map(await self._link.request(Frame.GET_QUEUE, [name]))

    async def set(
        self, name: str, *, expected: Sequence[str] | None = None, **properties: Unpack[QueueProperties]
    ) -> QueueInfo:
        """Change the given properties of a queue; returns its properties and counts. Raises QueueNotFound,
        PropertyError. With `expected`, raises Changed unless the settings of the queue have one of these
        versions (see `msmq_fast.protocol.versions`).
        """
        return QueueInfo.from_map(
            await self._link.request(Frame.SET_QUEUE, expecting(expected, name, properties))
        )

    async def delete(self, name: str, *, expected: Sequence[str] | None = None) -> None:
        """Delete a queue and its messages. Raises QueueNotFound; with `expected`, Changed as `set`."""
        await self._link.request(Frame.DELETE_QUEUE, expecting(expected, name))

    async def all(self, kind: str = "user") -> list[QueueInfo]:
        """Return the queues of a kind: `user` or `system`."""
        return [QueueInfo.from_map(one) for one in await self._link.request(Frame.LIST_QUEUES, [kind])]

    async def page(
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
        payload = [kind, text, glob, sort, descending, limit, offset]
        return QueuePage.from_map(await self._link.request(Frame.PAGE_QUEUES, payload))


class OutgoingAdmin(Subject):
    """Outgoing queues. The name of an outgoing queue is the format name of its destination."""

    async def all(self) -> list[OutgoingQueueInfo]:
        """Return all outgoing queues."""
        return [OutgoingQueueInfo.from_map(one) for one in await self._link.request(Frame.LIST_OUTGOING, [])]

    async def get(self, name: str) -> OutgoingQueueInfo:
        """Return one outgoing queue. Raises QueueNotFound."""
        return OutgoingQueueInfo.from_map(await self._link.request(Frame.SHOW_OUTGOING, [name]))

    async def pause(self, name: str) -> None:
        """Stop sending from an outgoing queue until `resume`. Raises QueueNotFound."""
        await self._link.request(Frame.PAUSE_OUTGOING, [name])

    async def resume(self, name: str) -> None:
        """Send from a paused outgoing queue again. Raises QueueNotFound."""
        await self._link.request(Frame.RESUME_OUTGOING, [name])

    async def purge(self, name: str) -> int:
        """Remove all messages of an outgoing queue; returns their number. Raises QueueNotFound."""
        return int(await self._link.request(Frame.PURGE_OUTGOING, [name]))

    async def kick(self, name: str) -> OutgoingQueueInfo:
        """Connect now, and send now what the receiver has not acknowledged; returns the queue at the start of
        the attempt. Raises QueueNotFound, AccessDenied; QueueNotActive if the queue is paused.
        """
        return OutgoingQueueInfo.from_map(await self._link.request(Frame.KICK_OUTGOING, [name]))

    async def explain_route(self, name: str) -> RouteInfo:
        """Return what would happen to a message for a path or format name: the queue, the next hops, and what
        stops it. Sends nothing. Raises IllegalFormatName, IllegalQueuePathName,
        UnsupportedFormatNameOperation, AccessDenied.
        """
        return RouteInfo.from_map(await self._link.request(Frame.EXPLAIN_ROUTE, [name]))


class TransactionAdmin(Subject):
    """Transactions of all programs that use this queue manager."""

    async def all(self) -> list[TransactionInfo]:
        """Return the open and prepared transactions. Raises AccessDenied."""
        return [
            TransactionInfo.from_map(one) for one in await self._link.request(Frame.LIST_TRANSACTIONS, [])
        ]

    async def commit(self, identifier: str) -> None:
        """Commit a prepared transaction whose program can no longer commit it. Raises TransactionSequence if
        there is no such prepared transaction; AccessDenied.
        """
        await self._link.request(Frame.END_TRANSACTION, [identifier, "commit"])

    async def abort(self, identifier: str) -> None:
        """Abort a transaction. Raises TransactionSequence, AccessDenied."""
        await self._link.request(Frame.END_TRANSACTION, [identifier, "abort"])


class SessionAdmin(Subject):
    """Open connections of the server: of other queue managers, of programs, over RPC and HTTP, to the admin
    port, and those that the server itself has opened.
    """

    async def page(self, kind: str = "", *, after: int = 0, limit: int = 100) -> SessionPage:
        """Return up to `limit` sessions (at most 1,000) in the order of their numbers, starting after the
        number `after`. `kind` is `mqqb`, `program`, `rpc`, `http` or `admin`; empty: all.

        Raises InvalidParameter, AccessDenied.
        """
        return SessionPage.from_map(await self._link.request(Frame.LIST_SESSIONS, [kind, after, limit]))

    async def close(self, number: int) -> SessionInfo:
        """Close a connection at once; returns what it was. Peers and programs may connect again.

        Raises InvalidParameter if no session has this number; AccessDenied.
        """
        return SessionInfo.from_map(await self._link.request(Frame.END_SESSION, [number]))

    async def readers(self) -> list[ReaderInfo]:
        """Return the queues of this computer that programs on other computers have open over RPC. Raises
        AccessDenied.
        """
        return [ReaderInfo.from_map(one) for one in await self._link.request(Frame.LIST_READERS, [])]


class DirectoryAdmin(Subject):
    """Objects of the directory. Each object is a map of its attributes, which depend on its type."""

    async def all(
        self, kind: str, after: str = "", limit: int = 1000, where: Sequence[Sequence[Any]] = ()
    ) -> list[dict[str, Any]]:
        """Return up to `limit` objects of a type (`Queue`, `Site`, …) in the order of their GUIDs, starting
        after the GUID `after`. `where` has conditions that must all be met, each as (attribute, operator,
        value), for example `("Label", "=", "Orders")`.
        """
        conditions = [list(one) for one in where]
        return list(await self._link.request(Frame.LIST_DIRECTORY, [kind, after, limit, conditions]))

    async def get(self, kind: str, name: str) -> dict[str, Any]:
        """Return one object, by its GUID or its unique name."""
        return dict(await self._link.request(Frame.SHOW_DIRECTORY, [kind, name]))

    async def put(self, entry: dict[str, Any], how: str, *, dry_run: bool = False) -> str:
        """Write an object: `how` is `create`, `set` (change attributes of an existing object) or `import`.
        With `dry_run`, an `import` writes nothing. Returns `created`, `changed` or `unchanged`.
        """
        return str(await self._link.request(Frame.PUT_DIRECTORY, [entry, how, dry_run]))

    async def delete(self, kind: str, name: str) -> None:
        """Delete an object, by its GUID or its unique name."""
        await self._link.request(Frame.DELETE_DIRECTORY, [kind, name])
