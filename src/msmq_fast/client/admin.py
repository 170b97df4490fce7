"""What operators do, by subject: `connection.admin.queues.create(…)`, `connection.admin.outgoing.pause(…)`.

Answers are the dataclasses of `msmq_fast.protocol.resources`; fields that an earlier server does not send
have their defaults.

To add a request: 1. write a method in the class of its subject, and a dataclass if the answer is a map;
2. run `python -m tools.syncclient --write` for the blocking client.
"""

from __future__ import annotations

from typing import Any, Unpack

from msmq_fast.client.exchange import MessageAdmin
from msmq_fast.client.transport import Requester
from msmq_fast.protocol.frames import Frame
from msmq_fast.protocol.resources import (
    AccessDecision,
    AccessList,
    CertificateInfo,
    KeysInfo,
    MessageEvent,
    OutgoingQueueInfo,
    QueueInfo,
    QueueProperties,
    SnapshotInfo,
    TransactionInfo,
)


class Admin:
    """The subjects, and what belongs to the queue manager as a whole."""

    def __init__(self, link: Requester) -> None:
        self.queues = QueueAdmin(link)
        self.outgoing = OutgoingAdmin(link)
        self.transactions = TransactionAdmin(link)
        self.access = AccessAdmin(link)
        self.certificates = CertificateAdmin(link)
        self.keys = KeyAdmin(link)
        self.directory = DirectoryAdmin(link)
        self._messages = MessageAdmin(link)
        self._link = link

    @property
    def messages(self) -> MessageAdmin:
        """Messages in batches."""
        return self._messages

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


class _Subject:
    def __init__(self, link: Requester) -> None:
        self._link = link


class QueueAdmin(_Subject):
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


class OutgoingAdmin(_Subject):
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


class TransactionAdmin(_Subject):
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


class AccessAdmin(_Subject):
    """Access control lists of queues; of the queue manager for the name None."""

    async def get(self, name: str | None) -> AccessList:
        """The owner and the entries. Raises QueueNotFound, AccessDenied."""
        return AccessList.from_map(await self._link.request(Frame.SHOW_ACL, [name]))

    async def grant(self, name: str | None, account: str, rights: str) -> AccessList:
        """Allow rights (`send,peek`) to an account. Raises QueueNotFound, AccessDenied, InvalidParameter."""
        return await self._edit(name, "grant", account, rights)

    async def deny(self, name: str | None, account: str, rights: str) -> AccessList:
        """Deny rights to an account. Raises QueueNotFound, AccessDenied, InvalidParameter."""
        return await self._edit(name, "deny", account, rights)

    async def revoke(self, name: str | None, account: str, rights: str = "") -> AccessList:
        """Remove rights of an account from the list, all of them without `rights`. Raises as `grant`."""
        return await self._edit(name, "revoke", account, rights)

    async def set_owner(self, name: str | None, account: str) -> AccessList:
        """Make an account the owner. Raises as `grant`."""
        return await self._edit(name, "own", account, "")

    async def set(self, name: str | None, descriptor: str) -> AccessList:
        """Replace owner and list by those of a descriptor in SDDL. Raises as `grant`."""
        return await self._edit(name, "set", descriptor, "")

    async def explain(self, name: str | None, account: str, rights: str) -> AccessDecision:
        """Whether an account (the caller for "") has rights, and which entry decides. Raises as `get`."""
        return AccessDecision.from_map(await self._link.request(Frame.EXPLAIN, [name, account, rights]))

    async def _edit(self, name: str | None, action: str, account: str, rights: str) -> AccessList:
        return AccessList.from_map(await self._link.request(Frame.EDIT_ACL, [name, action, account, rights]))


class CertificateAdmin(_Subject):
    """Certificates with which messages of users are signed. The user "" is the caller."""

    async def all(self, user: str | None = "") -> list[CertificateInfo]:
        """The certificates of a user, of all users for None. Raises AccessDenied."""
        reply = await self._link.request(Frame.LIST_CERTIFICATES, [user])
        return [CertificateInfo.from_map(one) for one in reply]

    async def create(self, user: str = "") -> CertificateInfo:
        """Make an internal certificate in place of the one before. Raises AccessDenied."""
        return CertificateInfo.from_map(await self._link.request(Frame.CREATE_CERTIFICATE, [user]))

    async def add(
        self, certificate: bytes, private_key: bytes | None = None, user: str = ""
    ) -> CertificateInfo:
        """Register an external certificate (PEM or DER), with its private key (PEM) if the server is to sign
        with it. Raises AccessDenied, MSMQError for INVALID_CERTIFICATE.
        """
        reply = await self._link.request(Frame.ADD_CERTIFICATE, [user, certificate, private_key])
        return CertificateInfo.from_map(reply)

    async def remove(self, identifier: str, user: str = "") -> None:
        """Remove a certificate and its private key. Raises AccessDenied."""
        await self._link.request(Frame.REMOVE_CERTIFICATE, [user, identifier])


class KeyAdmin(_Subject):
    """Keys with which messages are encrypted for queue managers."""

    async def all(self) -> list[KeysInfo]:
        """The keys of this queue manager, and those of others that it knows."""
        return [KeysInfo.from_map(one) for one in await self._link.request(Frame.SHOW_KEYS, [])]

    async def add(self, guid: str, keys: bytes) -> None:
        """Keep the keys (MQDSPUBLICKEYS) of another queue manager. Raises AccessDenied, InvalidParameter."""
        await self._link.request(Frame.TELL_KEYS, [guid, keys])

    async def remove(self, guid: str) -> None:
        """Forget the keys of another queue manager. Raises AccessDenied, InvalidParameter."""
        await self._link.request(Frame.TELL_KEYS, [guid, None])


class DirectoryAdmin(_Subject):
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
