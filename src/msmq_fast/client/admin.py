"""What operators do, by subject: `connection.admin.queues.create(…)`, `connection.admin.outgoing.pause(…)`.

Answers are the dataclasses of `msmq_fast.protocol.resources`; fields that an earlier server does not send
have their defaults.

To add a request: 1. write a method in the class of its subject, and a dataclass if the answer is a map;
2. run `python -m tools.syncclient --write` for the blocking client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from msmq_fast.client.subject import Subject
from msmq_fast.client.transport import Requester
from msmq_fast.protocol.frames import Frame
from msmq_fast.protocol.resources import (
    MessageEvent,
    OutgoingQueueInfo,
    QueueInfo,
    QueueProperties,
    SnapshotInfo,
    TransactionInfo,
)

if TYPE_CHECKING:
    from msmq_fast.client.exchange import MessageAdmin
    from msmq_fast.client.securityadmin import AccessAdmin, CertificateAdmin, KeyAdmin


class Admin:
    """The subjects, and what belongs to the queue manager as a whole."""

    def __init__(self, link: Requester) -> None:
        self.queues = QueueAdmin(link)
        self.outgoing = OutgoingAdmin(link)
        self.transactions = TransactionAdmin(link)
        self.directory = DirectoryAdmin(link)
        self._link = link

    # These are imported when they are first used: their types take longer than all the rest.

    @property
    def messages(self) -> MessageAdmin:
        """Messages in batches."""
        from msmq_fast.client.exchange import MessageAdmin

        return MessageAdmin(self._link)

    @property
    def access(self) -> AccessAdmin:
        """Access control lists."""
        from msmq_fast.client.securityadmin import AccessAdmin

        return AccessAdmin(self._link)

    @property
    def certificates(self) -> CertificateAdmin:
        """Certificates with which messages of users are signed."""
        from msmq_fast.client.securityadmin import CertificateAdmin

        return CertificateAdmin(self._link)

    @property
    def keys(self) -> KeyAdmin:
        """Keys with which messages are encrypted for queue managers."""
        from msmq_fast.client.securityadmin import KeyAdmin

        return KeyAdmin(self._link)

    async def stats(self) -> dict[str, Any]:
        """Counters of the queue manager."""
        return dict(await self._link.request(Frame.STATS, []))

    async def reload(self) -> dict[str, Any]:
        """Have the server read its configuration again, as SIGHUP does.

        The reply names what is in force now (`changed`), what takes a restart (`restart`) and the old names
        of keys that were read (`warnings`).

        Raises InvalidParameter, with one line for each mistake, if the configuration cannot be used; then
        nothing has changed. Raises AccessDenied.
        """
        return dict(await self._link.request(Frame.RELOAD, []))

    async def trace(self, message_id: bytes) -> list[MessageEvent]:
        """What happened to a message at this queue manager, as far back as the event feed goes.

        `message_id` has 20 bytes, as `ReceivedMessage.id`. Raises AccessDenied.
        """
        events: list[MessageEvent] = []
        following, finished = 0, False
        while not finished:
            page = await self._link.request(Frame.TRACE, [message_id, following])
            events += [MessageEvent.from_map(event) for event in page["events"]]
            following, finished = page["next"], page["finished"]
        return events

    async def snapshot(self, directory: str, bytes_per_second: int | None = None) -> SnapshotInfo:
        """Copy the running store into a new directory of the server's machine.

        The copy is given up if the connection ends before. Raises InvalidParameter (the directory, the rate,
        or another snapshot is being made), AccessDenied, MSMQError.
        """
        reply = await self._link.request(Frame.SNAPSHOT, [directory, bytes_per_second])
        return SnapshotInfo.from_map(reply)

    async def snapshot_progress(self) -> tuple[int, int] | None:
        """Bytes written, and about how many there will be; None while no snapshot is made.

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
        """Properties and counts of a queue. Raises QueueNotFound."""
        return QueueInfo.from_map(await self._link.request(Frame.GET_QUEUE, [name]))

    async def set(self, name: str, **properties: Unpack[QueueProperties]) -> QueueInfo:
        """Change properties of a queue. Raises QueueNotFound, PropertyError."""
        return QueueInfo.from_map(await self._link.request(Frame.SET_QUEUE, [name, properties]))

    async def delete(self, name: str) -> None:
        """Delete a queue and its messages. Raises QueueNotFound."""
        await self._link.request(Frame.DELETE_QUEUE, [name])

    async def all(self, kind: str = "user") -> list[QueueInfo]:
        """The queues of a kind: `user` or `system`."""
        return [QueueInfo.from_map(one) for one in await self._link.request(Frame.LIST_QUEUES, [kind])]


class OutgoingAdmin(Subject):
    """Outgoing queues, by the format name of their destination."""

    async def all(self) -> list[OutgoingQueueInfo]:
        """All outgoing queues."""
        return [OutgoingQueueInfo.from_map(one) for one in await self._link.request(Frame.LIST_OUTGOING, [])]

    async def get(self, name: str) -> OutgoingQueueInfo:
        """One outgoing queue. Raises QueueNotFound."""
        return OutgoingQueueInfo.from_map(await self._link.request(Frame.SHOW_OUTGOING, [name]))

    async def pause(self, name: str) -> None:
        """Send nothing from it until `resume`. Raises QueueNotFound."""
        await self._link.request(Frame.PAUSE_OUTGOING, [name])

    async def resume(self, name: str) -> None:
        """Send from it again. Raises QueueNotFound."""
        await self._link.request(Frame.RESUME_OUTGOING, [name])

    async def purge(self, name: str) -> int:
        """Remove all of its messages; their number. Raises QueueNotFound."""
        return int(await self._link.request(Frame.PURGE_OUTGOING, [name]))


class TransactionAdmin(Subject):
    """Transactions of all programs."""

    async def all(self) -> list[TransactionInfo]:
        """The open and prepared transactions. Raises AccessDenied."""
        return [
            TransactionInfo.from_map(one) for one in await self._link.request(Frame.LIST_TRANSACTIONS, [])
        ]

    async def commit(self, identifier: str) -> None:
        """Commit a prepared transaction whose coordinator is lost. Raises TransactionSequence,
        AccessDenied.
        """
        await self._link.request(Frame.END_TRANSACTION, [identifier, "commit"])

    async def abort(self, identifier: str) -> None:
        """Abort a transaction. Raises TransactionSequence, AccessDenied."""
        await self._link.request(Frame.END_TRANSACTION, [identifier, "abort"])


class DirectoryAdmin(Subject):
    """Objects of the directory. Their attributes depend on the type, so they are maps."""

    async def all(self, kind: str, after: str = "", limit: int = 1000) -> list[dict[str, Any]]:
        """Up to `limit` objects of a type (`Queue`, `Site`, …) by GUID, from behind the GUID `after`."""
        return list(await self._link.request(Frame.LIST_DIRECTORY, [kind, after, limit]))

    async def get(self, kind: str, name: str) -> dict[str, Any]:
        """One object, by GUID or by its unique name."""
        return dict(await self._link.request(Frame.SHOW_DIRECTORY, [kind, name]))

    async def put(self, entry: dict[str, Any], how: str, *, dry_run: bool = False) -> str:
        """`create` an object, `set` attributes of one, or `import` it; answers `created`, `changed` or
        `unchanged`.
        """
        return str(await self._link.request(Frame.PUT_DIRECTORY, [entry, how, dry_run]))

    async def delete(self, kind: str, name: str) -> None:
        """Delete an object, by GUID or by its unique name."""
        await self._link.request(Frame.DELETE_DIRECTORY, [kind, name])
