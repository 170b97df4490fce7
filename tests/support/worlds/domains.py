"""A provider on a domain of Active Directory: in memory, or on Samba."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from uuid import UUID

from msmq_fast.directory.ldap import names
from msmq_fast.directory.ldap.domain import Domain
from msmq_fast.directory.ldap.interface import BASE, SUBTREE, Link
from msmq_fast.directory.ldap.provider import LdapDirectory
from msmq_fast.directory.objects import DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError
from msmq_fast.security.acl import Ace, AceType, Acl
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.sid import EVERYONE, Sid
from msmq_fast.store.completion import Completion
from tests.support.worlds.activedirectory import CONFIGURATION, DOMAIN, SITE, ActiveDirectory
from tests.support.worlds.directories import OTHER, OWN, WALL, World, everything, machine, site

__all__ = ["SEND_ONLY", "DomainWorld", "Inline", "SambaWorld", "allowed"]

T = TypeVar("T")

SEND_ONLY = SecurityDescriptor.build(
    EVERYONE, EVERYONE, Acl((Ace.build(AceType.ACCESS_ALLOWED, 0x24, EVERYONE),))
).encoded
"""Everyone may send, and read the properties."""


class Inline:
    """A worker that performs each operation at once."""

    def submit(self, operation: Callable[[], T]) -> Completion[T]:
        done: Completion[T] = Completion()
        try:
            done.resolve(operation())
        except DirectoryError as error:
            done.fail(error)
        return done

    def tell(self, function: Callable[..., None], *arguments: object) -> None:
        function(*arguments)

    def give_way(self) -> None:
        """No other thread waits."""

    def close(self) -> None:
        """No thread has to end."""


class DomainWorld(World):
    """The domain in memory."""

    creates = frozenset(
        (
            ObjectType.QUEUE_MANAGER,
            ObjectType.QUEUE,
            ObjectType.SITE,
            ObjectType.ROUTING_LINK,
            ObjectType.USER,
        )
    )
    chooses_guids = True
    root = DOMAIN

    def __init__(self) -> None:
        self.now = WALL
        self.max_handles = 8
        self.memory = ActiveDirectory(lambda: self.now)
        self.link: Link = self.memory
        self._begin()

    def _begin(self) -> None:
        self.restart()
        self._before = {item.identifier for kind in ObjectType for item in self._everything(kind)}
        self._sites: dict[UUID, UUID] = {}

    def run(self) -> None:
        """Everything is done at once."""

    def restart(self) -> None:
        self.provider = LdapDirectory(
            Domain(self.link), Inline(), time.monotonic, max_handles=self.max_handles
        )
        self.provider.start().result()
        self.directory = self.provider

    def _everything(self, kind: ObjectType) -> list[DirectoryObject]:
        return [] if kind is ObjectType.CONNECTED_NETWORK else everything(self.directory, kind)

    def objects(self, kind: ObjectType = ObjectType.QUEUE) -> list[DirectoryObject]:
        return [item for item in self._everything(kind) if item.identifier not in self._before]

    def account(self, name: str) -> None:
        self.memory.computer(name)

    def home(self, name: str) -> None:
        self.account(name)
        self.directory.create(machine(name)).result()

    def user(self) -> str:
        """Make a user account; returns its SID."""
        return self.memory.user("contract")[1]

    def _site(self, wanted: UUID) -> UUID:
        """Return a site of the domain that takes the part of another one."""
        if wanted not in self._sites:
            name = f"site{len(self._sites)}"
            self._sites[wanted] = self.directory.create(site(name)).result()
            self._before.add(self._sites[wanted])
        return self._sites[wanted]

    def fitted(self, kind: ObjectType, values: Mapping[str, Any]) -> dict[str, Any]:
        made = dict(values)
        for name in ("Site1Identifier", "Site2Identifier"):
            if name in made:
                made[name] = self._site(made[name])
        if "SiteGateIdentifierList" in made:
            self.account("GATE")
            made["SiteGateIdentifierList"] = (self.directory.create(machine("GATE")).result(),)
        if made.get("SiteIdentifierList") == (OWN, OTHER):
            made["SiteIdentifierList"] = (self._site(OWN), self._site(OTHER))
        if kind is ObjectType.USER:
            made["SecurityIdentifier"] = self.user()
        if kind is ObjectType.SITE:
            made.pop("PublicSigningKeyList", None)  # a domain does not keep it
        if kind is ObjectType.QUEUE_MANAGER:
            made.pop("MachineSid", None)  # it is that of the computer account
            self.account(made["ComputerName"])
        if kind is ObjectType.QUEUE:
            made["Security"] = SEND_ONLY
            self.home(made["Pathname"].partition("\\")[0])
        return made

    def make_list(self, name: str, queue: UUID, alias: str) -> UUID:
        (entry,) = self.link.search(names.by_guid(queue), BASE, "(objectClass=*)", ["objectGUID"])
        recipient, path = (f"CN={one},CN=Users,{DOMAIN}" for one in (f"{name}-alias", name))
        self.link.add(
            recipient,
            {"objectClass": [b"msMQ-Custom-Recipient"], "msMQ-Recipient-FormatName": [alias.encode()]},
        )
        members = [entry.path.encode(), recipient.encode()]
        self.link.add(path, {"objectClass": [b"group"], "member": members})
        (made,) = self.link.search(path, BASE, "(objectClass=*)", ["objectGUID"])
        return made.identifier

    def same(self, name: str, found: Any, given: Any) -> bool:
        if name == "Pathname":
            return bool(found == given.lower())
        if name == "Security":  # owner and group are the domain's
            return allowed(found) & allowed(given) == allowed(given) != 0
        if name in ("SiteIdentifierList", "CertificateDigestList"):  # attributes of a domain have no order
            return set(found) == set(given)
        return bool(found == given)


def allowed(data: bytes) -> int:
    """The rights that a descriptor gives to everyone."""
    found = SecurityDescriptor.from_bytes(data)
    assert found.dacl is not None
    mask = 0
    for ace in found.dacl.aces:
        mask |= ace.mask if ace.sid == EVERYONE and ace.type == AceType.ACCESS_ALLOWED else 0
    return mask


class SambaWorld(DomainWorld):
    """A domain of Samba. It begins without what an earlier test has made."""

    def __init__(self, controller: Any, link: Link) -> None:
        self.now = 0
        self.max_handles = 8
        self.link = link
        self.controller = controller
        for base, kind in (
            (DOMAIN, "(&(objectClass=computer)(!(primaryGroupID=516)))"),
            (DOMAIN, "(cn=contract)"),
            (DOMAIN, "(objectClass=msMQ-Custom-Recipient)"),
            (DOMAIN, "(cn=list-of-contract)"),
            (CONFIGURATION, "(objectClass=mSMQSiteLink)"),
            (CONFIGURATION, "(objectClass=site)"),
        ):
            for entry in list(link.search(base, SUBTREE, kind, ["objectGUID"])):
                if entry.path.casefold() != SITE.casefold():
                    link.delete(entry.path)
        self._begin()

    def account(self, name: str) -> None:
        self.controller.computer(name)

    def user(self) -> str:
        path = self.controller.user("contract")
        (entry,) = self.link.search(path, BASE, "(objectClass=*)", ["objectSid"])
        value = entry.first("objectSid")
        assert value is not None
        return str(Sid.from_bytes(value))

    def stamped(self, seconds: int) -> bool:
        return abs(seconds - time.time()) < 100
