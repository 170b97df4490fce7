"""Operators' requests about rights, certificates and keys: `access`, `certificates`, `keys` of
`connection.admin`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msmq_fast.client.subject import Subject, expecting
from msmq_fast.protocol.frames import Frame
from msmq_fast.protocol.security import AccessDecision, AccessList, CertificateInfo, KeysInfo


class AccessAdmin(Subject):
    """Access control lists of queues; a `name` of None stands for the queue manager."""

    async def get(self, name: str | None) -> AccessList:
        """Return the owner and the entries of an access control list. Raises QueueNotFound, AccessDenied."""
        return AccessList.from_map(await self._link.request(Frame.SHOW_ACL, [name]))

    async def grant(
        self, name: str | None, account: str, rights: str, *, expected: Sequence[str] | None = None
    ) -> AccessList:
        """Grant rights, such as `send,peek`, to an account. Raises QueueNotFound, AccessDenied,
        InvalidParameter. With `expected`, raises Changed unless the list in SDDL has one of these versions
        (see `msmq_fast.protocol.versions`).
        """
        return await self._edit(name, "grant", account, rights, expected)

    async def deny(
        self, name: str | None, account: str, rights: str, *, expected: Sequence[str] | None = None
    ) -> AccessList:
        """Deny rights to an account. Raises as `grant`."""
        return await self._edit(name, "deny", account, rights, expected)

    async def revoke(
        self, name: str | None, account: str, rights: str = "", *, expected: Sequence[str] | None = None
    ) -> AccessList:
        """Remove the entries for `rights` of an account from the list; all of its entries if `rights` is
        empty. Raises as `grant`.
        """
        return await self._edit(name, "revoke", account, rights, expected)

    async def set_owner(
        self, name: str | None, account: str, *, expected: Sequence[str] | None = None
    ) -> AccessList:
        """Make an account the owner of the queue. Raises as `grant`."""
        return await self._edit(name, "own", account, "", expected)

    async def set(
        self, name: str | None, descriptor: str, *, expected: Sequence[str] | None = None
    ) -> AccessList:
        """Replace the owner and the entries with those of a security descriptor in SDDL. Raises as
        `grant`.
        """
        return await self._edit(name, "set", descriptor, "", expected)

    async def explain(self, name: str | None, account: str, rights: str) -> AccessDecision:
        """Return whether an account ("": the caller) has `rights`, and which entry of the list decides this.
        Raises as `get`.
        """
        return AccessDecision.from_map(await self._link.request(Frame.EXPLAIN, [name, account, rights]))

    async def _edit(
        self, name: str | None, action: str, account: str, rights: str, expected: Sequence[str] | None
    ) -> AccessList:
        request = expecting(expected, name, action, account, rights)
        return AccessList.from_map(await self._link.request(Frame.EDIT_ACL, request))


class CertificateAdmin(Subject):
    """Certificates with which the messages of users are signed. The user "" is the caller."""

    async def all(self, user: str | None = "") -> list[CertificateInfo]:
        """Return the certificates of a user, or of all users if `user` is None. Raises AccessDenied."""
        reply = await self._link.request(Frame.LIST_CERTIFICATES, [user])
        return [CertificateInfo.from_map(one) for one in reply]

    async def create(self, user: str = "") -> CertificateInfo:
        """Make an internal certificate for a user; it replaces the previous one. Raises AccessDenied."""
        return CertificateInfo.from_map(await self._link.request(Frame.CREATE_CERTIFICATE, [user]))

    async def add(
        self, certificate: bytes, private_key: bytes | None = None, user: str = ""
    ) -> CertificateInfo:
        """Register an external certificate (PEM or DER). Add its private key (PEM) if the server is to sign
        with it. Raises AccessDenied; MSMQError with INVALID_CERTIFICATE.
        """
        reply = await self._link.request(Frame.ADD_CERTIFICATE, [user, certificate, private_key])
        return CertificateInfo.from_map(reply)

    async def remove(self, identifier: str, user: str = "") -> None:
        """Remove a certificate and its private key. Raises AccessDenied."""
        await self._link.request(Frame.REMOVE_CERTIFICATE, [user, identifier])


class KeyAdmin(Subject):
    """Public keys with which messages to queue managers are encrypted."""

    async def all(self) -> list[KeysInfo]:
        """Return the keys of this queue manager, and its stored copies of the keys of other queue
        managers.
        """
        return [KeysInfo.from_map(one) for one in await self._link.request(Frame.SHOW_KEYS, [])]

    async def add(self, guid: str, keys: bytes) -> None:
        """Store the keys (MQDSPUBLICKEYS) of another queue manager. Raises AccessDenied, InvalidParameter."""
        await self._link.request(Frame.TELL_KEYS, [guid, keys])

    async def remove(self, guid: str) -> None:
        """Delete the keys of another queue manager. Raises AccessDenied, InvalidParameter."""
        await self._link.request(Frame.TELL_KEYS, [guid, None])
