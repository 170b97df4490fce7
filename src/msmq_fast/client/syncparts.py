"""The client without asyncio: the same names, calls that block. See `msmq_fast.client.blocking`.

Made by tools/syncclient.py of the modules beside it: do not edit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msmq_fast.client import auditadmin as _auditadmin
from msmq_fast.client import definitionadmin as _definitionadmin
from msmq_fast.client import exchange as _exchange
from msmq_fast.client import securityadmin as _securityadmin
from msmq_fast.client import serveradmin as _serveradmin
from msmq_fast.client.auditadmin import AuditPage
from msmq_fast.client.blocking import Wrapper, run, unwrap
from msmq_fast.client.definitionadmin import _Entry
from msmq_fast.client.exchange import EVERYTHING, Done, Filter, Page, Plan, Stored
from msmq_fast.client.syncqueue import Queue
from msmq_fast.protocol.accounts import AccountPage
from msmq_fast.protocol.configuration import ConfigCheck, ConfigPage
from msmq_fast.protocol.definitions import DefinitionChange
from msmq_fast.protocol.security import AccessDecision, AccessList, CertificateInfo, KeysInfo


class MessageAdmin(Wrapper[_exchange.MessageAdmin]):
    """Batch operations on the messages of this connection's queues.

    A batch examines at most `limit` messages that arrived after `after` (0: from the start) and up to `upto`
    (0: the newest message now). Pass `next` and `upto` of the result to the next call, as `after` and `upto`.
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
        *,
        each: bool = False,
        plan: Plan | None = None,
    ) -> Done:
        """Move the next batch from one queue to another of the same queue manager. Message identifiers do not
        change.

        Raises the error of the target queue if that queue refuses the first message. With `each`, refused
        messages stay, and `refused` of the result names them. With a `plan`, which is empty for the first
        batch, nothing is changed; the result is that of `each`.
        """
        return run(
            self._inner.move(unwrap(source), unwrap(target), wanted, after, upto, limit, each=each, plan=plan)
        )

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
        each: bool = False,
        plan: Plan | None = None,
    ) -> Done:
        """Copy the next batch from one queue to another; the arguments are those of `move`, and `job`.

        `job` is 16 bytes that identify the whole copy operation. With it, the queue manager stores the
        progress of the operation, and an `after` of None continues from that progress, also after a crash.
        """
        return run(
            self._inner.copy(
                unwrap(source), unwrap(target), wanted, after, upto, limit, job=job, each=each, plan=plan
            )
        )

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
        *,
        plan: Plan | None = None,
    ) -> Done:
        """Send the next batch of dead letters to their original destinations again, and remove those that
        were sent. With a `plan`, which is empty for the first batch, nothing is changed.
        """
        return run(self._inner.resubmit(unwrap(dead_letters), wanted, after, upto, limit, plan=plan))

    def remove(
        self,
        queue: Queue,
        wanted: Filter = EVERYTHING,
        after: int = 0,
        upto: int = 0,
        limit: int = 1000,
        *,
        dry_run: bool = False,
    ) -> Done:
        """Remove the next batch of messages from a queue that is open for receiving, as `Queue.purge` does
        with all of them: senders that asked for it get a negative acknowledgment. With `dry_run`, return what
        would be removed, and change nothing.

        If `wanted` has lookup ids, `refused` names those that were not removed, each with the reason.
        """
        return run(self._inner.remove(unwrap(queue), wanted, after, upto, limit, dry_run=dry_run))

    def browse_outgoing(
        self, name: str, wanted: Filter = EVERYTHING, after: int = 0, upto: int = 0, limit: int = 1000
    ) -> Page:
        """Return the next messages of an outgoing queue, as `browse` does for an open queue. Raises
        QueueNotFound, AccessDenied.
        """
        return run(self._inner.browse_outgoing(name, wanted, after, upto, limit))

    def remove_outgoing(
        self,
        name: str,
        wanted: Filter = EVERYTHING,
        after: int = 0,
        upto: int = 0,
        limit: int = 1000,
        *,
        dry_run: bool = False,
    ) -> Done:
        """Remove the next batch of messages of an outgoing queue, as `remove` does for an open queue.
        Messages that are being sent stay. Raises QueueNotFound, AccessDenied.
        """
        return run(self._inner.remove_outgoing(name, wanted, after, upto, limit, dry_run=dry_run))

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

        With `skip`, messages that are already in the queue are not imported again. If the queue refuses a
        record, raises the error of the queue; the records before it remain imported.
        """
        return run(self._inner.put(name, messages, skip=skip))

    def end(self) -> None:
        """Finish the import: the queue manager forgets its progress."""
        run(self._inner.end())


class AccessAdmin(Wrapper[_securityadmin.AccessAdmin]):
    """Access control lists of queues; a `name` of None stands for the queue manager."""

    def get(self, name: str | None) -> AccessList:
        """Return the owner and the entries of an access control list. Raises QueueNotFound, AccessDenied."""
        return run(self._inner.get(name))

    def grant(
        self, name: str | None, account: str, rights: str, *, expected: Sequence[str] | None = None
    ) -> AccessList:
        """Grant rights, such as `send,peek`, to an account. Raises QueueNotFound, AccessDenied,
        InvalidParameter. With `expected`, raises Changed unless the list in SDDL has one of these versions
        (see `msmq_fast.protocol.versions`).
        """
        return run(self._inner.grant(name, account, rights, expected=expected))

    def deny(
        self, name: str | None, account: str, rights: str, *, expected: Sequence[str] | None = None
    ) -> AccessList:
        """Deny rights to an account. Raises as `grant`."""
        return run(self._inner.deny(name, account, rights, expected=expected))

    def revoke(
        self, name: str | None, account: str, rights: str = "", *, expected: Sequence[str] | None = None
    ) -> AccessList:
        """Remove the entries for `rights` of an account from the list; all of its entries if `rights` is
        empty. Raises as `grant`.
        """
        return run(self._inner.revoke(name, account, rights, expected=expected))

    def set_owner(
        self, name: str | None, account: str, *, expected: Sequence[str] | None = None
    ) -> AccessList:
        """Make an account the owner of the queue. Raises as `grant`."""
        return run(self._inner.set_owner(name, account, expected=expected))

    def set(self, name: str | None, descriptor: str, *, expected: Sequence[str] | None = None) -> AccessList:
        """Replace the owner and the entries with those of a security descriptor in SDDL. Raises as
        `grant`.
        """
        return run(self._inner.set(name, descriptor, expected=expected))

    def explain(self, name: str | None, account: str, rights: str) -> AccessDecision:
        """Return whether an account ("": the caller) has `rights`, and which entry of the list decides this.
        Raises as `get`.
        """
        return run(self._inner.explain(name, account, rights))


class CertificateAdmin(Wrapper[_securityadmin.CertificateAdmin]):
    """Certificates with which the messages of users are signed. The user "" is the caller."""

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
    """Public keys with which messages to queue managers are encrypted."""

    def all(self) -> list[KeysInfo]:
        """Return the keys of this queue manager, and its stored copies of the keys of other queue
        managers.
        """
        return run(self._inner.all())

    def add(self, guid: str, keys: bytes) -> None:
        """Store the keys (MQDSPUBLICKEYS) of another queue manager. Raises AccessDenied, InvalidParameter."""
        run(self._inner.add(guid, keys))

    def remove(self, guid: str) -> None:
        """Delete the keys of another queue manager. Raises AccessDenied, InvalidParameter."""
        run(self._inner.remove(guid))


class AuditAdmin(Wrapper[_auditadmin.AuditAdmin]):
    """The audit of the queue manager. Administrators and readers may list it."""

    def page(
        self,
        start: int = 0,
        *,
        newest_first: bool = False,
        kind: str = "",
        caller: str = "",
        operation: str = "",
        object: str = "",
        since: int = 0,
        until: int = 0,
    ) -> AuditPage:
        """Return one page of entries, from number `start` on; `start` 0 is the oldest entry, or with
        `newest_first` the newest one. A page can be empty although more pages follow.

        `kind` is `act`, `denial` or `login`; `caller`, `operation` and `object` are parts of the texts, in
        any case, and `caller` may be a SID; `since` and `until` are seconds since 1970. An empty value or 0
        selects everything. Raises InvalidParameter, AccessDenied.
        """
        return run(
            self._inner.page(
                start,
                newest_first=newest_first,
                kind=kind,
                caller=caller,
                operation=operation,
                object=object,
                since=since,
                until=until,
            )
        )


class DefinitionAdmin(Wrapper[_definitionadmin.DefinitionAdmin]):
    """The definitions of the queue manager: see `msmq_fast.protocol.definitions`."""

    def export(self) -> dict[str, Any]:
        """Return the definitions as a document: the access list of the queue manager, all public and private
        queues in the order of their names, and the objects of the directory that are neither this queue
        manager nor its queues. Raises AccessDenied.
        """
        return run(self._inner.export())

    def put(self, document: object, *, dry_run: bool = False, delete: bool = False) -> list[DefinitionChange]:
        """Create what a document defines and does not exist, and change what differs; returns what was done
        with each entry. An entry that fails does not stop the others.

        `delete` also deletes the queues, with their messages, and the directory objects that the document
        does not have, if it has their section. `dry_run` changes nothing, and returns what would be done.

        Raises InvalidParameter if the document is malformed: nothing is changed then. Raises AccessDenied.
        """
        return run(self._inner.put(document, dry_run=dry_run, delete=delete))

    def put_objects(self, entries: Iterable[_Entry], *, dry_run: bool = False) -> list[DefinitionChange]:
        """Create or change objects of the directory, in an order in which they can refer to each other;
        returns what was done with each, in this order. `dry_run` changes nothing.
        """
        return run(self._inner.put_objects(list(entries), dry_run=dry_run))


class UserAdmin(Wrapper[_serveradmin.UserAdmin]):
    """Users and groups of the users file. Administrators and readers may list them."""

    def page(self, kind: str = "users", *, offset: int = 0, limit: int = 100) -> AccountPage:
        """Return up to `limit` users or groups (at most 1,000) by name, after the first `offset` ones. `kind`
        is `users` or `groups`. Raises InvalidParameter, AccessDenied.
        """
        return run(self._inner.page(kind, offset=offset, limit=limit))


class ConfigAdmin(Wrapper[_serveradmin.ConfigAdmin]):
    """The configuration of the running server. Administrators and readers may see it."""

    def page(self, *, offset: int = 0, limit: int = 1000) -> ConfigPage:
        """Return up to `limit` settings (at most 1,000) in force, after the first `offset` ones. Secrets are
        hidden. Raises AccessDenied.
        """
        return run(self._inner.page(offset=offset, limit=limit))

    def check(self, text: str) -> ConfigCheck:
        """Return what a reload would do if the configuration file had the content `text`; changes nothing.
        Raises InvalidParameter if the text is too long; AccessDenied.
        """
        return run(self._inner.check(text))
