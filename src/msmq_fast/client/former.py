"""The administration of earlier versions: the same requests as `connection.admin`, answered by maps."""

from __future__ import annotations

from typing import Any

from msmq_fast.client.channel import Channel
from msmq_fast.protocol.frames import Frame


class FormerMethods:
    """Methods of a connection that answer with the maps of the frames, for programs that print them as they
    are. Others use `connection.admin`, whose answers have types.
    """

    _channel: Channel

    async def stats(self) -> dict[str, Any]:
        """Counters of the queue manager."""
        return dict(await self._channel.request(Frame.STATS, []))

    async def snapshot(self, directory: str, bytes_per_second: int | None = None) -> dict[str, Any]:
        """Copy the running store into a new directory of the server's machine; the manifest of the copy.

        It ends when this connection does. Raises InvalidParameter (the directory, the rate, or another
        snapshot that is being made), AccessDenied, MSMQError.
        """
        return dict(await self._channel.request(Frame.SNAPSHOT, [directory, bytes_per_second]))

    async def snapshot_progress(self) -> tuple[int, int] | None:
        """Bytes written, and about how many there will be; None while no snapshot is made.

        Raises AccessDenied.
        """
        reply = await self._channel.request(Frame.SHOW_SNAPSHOT, [])
        return None if reply is None else (reply[0], reply[1])

    async def transactions(self) -> list[dict[str, Any]]:
        """The open and prepared transactions of the queue manager. Raises AccessDenied."""
        return list(await self._channel.request(Frame.LIST_TRANSACTIONS, []))

    async def end_transaction(self, identifier: str, *, commit: bool) -> None:
        """Commit a prepared transaction whose coordinator is lost, or abort any.

        Raises TransactionSequence, AccessDenied.
        """
        await self._channel.request(Frame.END_TRANSACTION, [identifier, "commit" if commit else "abort"])

    async def create_queue(self, name: str, **properties: Any) -> dict[str, Any]:
        """Create a queue: `label`, `transactional`, `journal`, `quota_kb`, … Raises QueueExists,
        IllegalQueuePathName.
        """
        return dict(await self._channel.request(Frame.CREATE_QUEUE, [name, properties]))

    async def delete_queue(self, name: str) -> None:
        """Delete a queue and what is in it. Raises QueueNotFound."""
        await self._channel.request(Frame.DELETE_QUEUE, [name])

    async def queue(self, name: str) -> dict[str, Any]:
        """Properties and counts of a queue. Raises QueueNotFound."""
        return dict(await self._channel.request(Frame.GET_QUEUE, [name]))

    async def set_queue(self, name: str, **properties: Any) -> dict[str, Any]:
        """Change properties of a queue. Raises QueueNotFound, PropertyError."""
        return dict(await self._channel.request(Frame.SET_QUEUE, [name, properties]))

    async def queues(self, kind: str = "user") -> list[dict[str, Any]]:
        """All queues of a kind: `user`, `system`, `outgoing` or `all`."""
        return list(await self._channel.request(Frame.LIST_QUEUES, [kind]))

    # ------------------------------------------------------------------------------------------- access

    async def acl(self, name: str | None) -> dict[str, Any]:
        """Owner and entries of the access control list of a queue; of the queue manager for None.

        Raises QueueNotFound, AccessDenied.
        """
        return dict(await self._channel.request(Frame.SHOW_ACL, [name]))

    async def edit_acl(self, name: str | None, action: str, account: str, rights: str = "") -> dict[str, Any]:
        """Change the list: `grant`, `deny` or `revoke` rights (`send,peek`), `own` (a new owner), `set` (a
        descriptor string as `account`); the list as it is then. Raises QueueNotFound, AccessDenied.
        """
        return dict(await self._channel.request(Frame.EDIT_ACL, [name, action, account, rights]))

    async def explain_access(self, name: str | None, account: str, rights: str) -> dict[str, Any]:
        """Whether an account has rights to a queue, and which entry decides.

        Raises QueueNotFound, AccessDenied.
        """
        return dict(await self._channel.request(Frame.EXPLAIN, [name, account, rights]))

    # ------------------------------------------------------------------------------------- certificates, keys

    async def certificates(self, user: str | None = "") -> list[dict[str, Any]]:
        """The certificates of a user, of the caller for "", of all users for None. Raises AccessDenied."""
        return list(await self._channel.request(Frame.LIST_CERTIFICATES, [user]))

    async def create_certificate(self, user: str = "") -> dict[str, Any]:
        """Make an internal certificate in place of the one before. Raises AccessDenied."""
        return dict(await self._channel.request(Frame.CREATE_CERTIFICATE, [user]))

    async def add_certificate(
        self, certificate: bytes, private_key: bytes | None = None, user: str = ""
    ) -> dict[str, Any]:
        """Register an external certificate (PEM or DER), with its private key (PEM) if the server is to sign
        with it. Raises AccessDenied, MSMQError for INVALID_CERTIFICATE.
        """
        return dict(await self._channel.request(Frame.ADD_CERTIFICATE, [user, certificate, private_key]))

    async def remove_certificate(self, identifier: str, user: str = "") -> None:
        """Forget a certificate and its private key. Raises AccessDenied."""
        await self._channel.request(Frame.REMOVE_CERTIFICATE, [user, identifier])

    async def keys(self) -> list[dict[str, Any]]:
        """The encryption keys of the queue manager, and those of others that were told to it."""
        return list(await self._channel.request(Frame.SHOW_KEYS, []))

    async def tell_keys(self, guid: str, keys: bytes | None) -> None:
        """Tell the encryption keys (MQDSPUBLICKEYS) of another queue manager; None: forget them.

        Raises AccessDenied, InvalidParameter.
        """
        await self._channel.request(Frame.TELL_KEYS, [guid, keys])

    # ---------------------------------------------------------------------------------------- outgoing queues

    async def outgoing(self) -> list[dict[str, Any]]:
        """The outgoing queues."""
        return list(await self._channel.request(Frame.LIST_OUTGOING, []))

    async def show_outgoing(self, name: str) -> dict[str, Any]:
        """One outgoing queue, by the format name of its destination. Raises QueueNotFound."""
        return dict(await self._channel.request(Frame.SHOW_OUTGOING, [name]))

    async def pause_outgoing(self, name: str) -> None:
        """Hold an outgoing queue back. Raises QueueNotFound."""
        await self._channel.request(Frame.PAUSE_OUTGOING, [name])

    async def resume_outgoing(self, name: str) -> None:
        """Let an outgoing queue go on. Raises QueueNotFound."""
        await self._channel.request(Frame.RESUME_OUTGOING, [name])

    async def purge_outgoing(self, name: str) -> int:
        """Remove all messages of an outgoing queue; their number. Raises QueueNotFound."""
        return int(await self._channel.request(Frame.PURGE_OUTGOING, [name]))

    # ---------------------------------------------------------------------------------------- directory

    async def directory_objects(self, kind: str, after: str = "", limit: int = 1000) -> list[dict[str, Any]]:
        """Up to `limit` objects of a type (`Queue`, `Site`, …) by GUID, from behind the GUID `after`."""
        return list(await self._channel.request(Frame.LIST_DIRECTORY, [kind, after, limit]))

    async def directory_object(self, kind: str, name: str) -> dict[str, Any]:
        """One object, by GUID or by its unique name."""
        return dict(await self._channel.request(Frame.SHOW_DIRECTORY, [kind, name]))

    async def put_directory(self, entry: dict[str, Any], how: str, *, dry_run: bool = False) -> str:
        """`create` an object, `set` attributes of one, or `import` it: created, changed or unchanged."""
        return str(await self._channel.request(Frame.PUT_DIRECTORY, [entry, how, dry_run]))

    async def delete_directory(self, kind: str, name: str) -> None:
        """Delete an object, by GUID or by its unique name."""
        await self._channel.request(Frame.DELETE_DIRECTORY, [kind, name])
