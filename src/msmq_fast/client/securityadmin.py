"""What operators do about rights, certificates and keys: `access`, `certificates`, `keys` of
`connection.admin`.
"""

from __future__ import annotations

from msmq_fast.client.subject import Subject
from msmq_fast.protocol.frames import Frame
from msmq_fast.protocol.security import AccessDecision, AccessList, CertificateInfo, KeysInfo


class AccessAdmin(Subject):
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


class CertificateAdmin(Subject):
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


class KeyAdmin(Subject):
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
