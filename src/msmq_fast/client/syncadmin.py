"""The client without asyncio: the same names, calls that block. See `msmq_fast.client.blocking`.

Made by tools/syncclient.py of the modules beside it: do not edit.
"""

from __future__ import annotations

from typing import Any, Unpack

from msmq_fast.client import admin as _admin
from msmq_fast.client import exchange as _exchange
from msmq_fast.client import securityadmin as _securityadmin
from msmq_fast.client.blocking import Wrapper, run, unwrap
from msmq_fast.client.exchange import EVERYTHING, Done, Filter, Page, Stored
from msmq_fast.client.syncqueue import Queue
from msmq_fast.protocol.resources import (
    MessageEvent,
    OutgoingQueueInfo,
    QueueInfo,
    QueueProperties,
    SnapshotInfo,
    TransactionInfo,
)
from msmq_fast.protocol.security import AccessDecision, AccessList, CertificateInfo, KeysInfo


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
