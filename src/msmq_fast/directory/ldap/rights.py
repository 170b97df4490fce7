"""What message queuing creates in a domain, the rights that this takes, and whether the account has them.

A domain controller tells which classes an account may create below an object, and which attributes of it the
account may write (MS-ADTS 3.1.1.4.5): nothing has to be tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from msmq_fast.directory.ldap import names
from msmq_fast.directory.ldap.entries import Entry
from msmq_fast.directory.ldap.interface import BASE, SUBTREE, Link
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult, generic
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.sid import Sid

__all__ = ["Need", "Rights"]

_FULL: Final = "RPWPCRCCDCLCLORCWOWDSDDTSW"
_SCHEMA: Final = {  # schemaIDGUID (MS-ADSC, MS-ADA2)
    "mSMQConfiguration": "9a0dc344-c100-11d1-bbc5-0080c76670c0",
    "mSMQQueue": "9a0dc343-c100-11d1-bbc5-0080c76670c0",
    "mSMQSettings": "9a0dc347-c100-11d1-bbc5-0080c76670c0",
    "server": "bf967a92-0de6-11d0-a285-00aa003049e2",
    "mSMQSignCertificates": "9a0dc33b-c100-11d1-bbc5-0080c76670c0",
    "mSMQDigests": "9a0dc33c-c100-11d1-bbc5-0080c76670c0",
}
_EFFECTIVE: Final = ["objectClass", "allowedChildClassesEffective", "allowedAttributesEffective"]


@dataclass(frozen=True, slots=True)
class Need:
    """One right. `grant` are the entries of the access list of `object` that give it, as text (SDDL)."""

    object: str  # distinguished name
    purpose: str
    right: str
    granted: bool
    grant: str


class Rights:
    """The rights of the account with which `link` has logged on. A failed operation raises DirectoryError."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def account(self) -> Sid:
        """Return the SID of the account."""
        self._link.root()
        for entry in self._link.search("", BASE, "(objectClass=*)", ["tokenGroups"]):
            for value in entry.attributes.get("tokengroups", ()):
                try:
                    return Sid.from_bytes(value)
                except SecurityDataError:
                    break
        raise generic("the domain controller does not say which account has logged on")

    def needs(self, computer: str, router_site: str = "") -> list[Need]:
        """Return what the queue manager of a computer needs. A router enters itself in its site, too:
        `router_site` is the distinguished name of that.
        """
        account = self.account()
        root = self._link.root()
        domain = (root.first("defaultNamingContext") or b"").decode()
        path = self._computer(computer, domain)
        found = list(self._own(path, account))
        if router_site:
            servers = names.child("Servers", router_site)
            found += self._in_site(names.child(computer, servers), servers, account)
        return found

    def _computer(self, name: str, domain: str) -> str:
        named = names.any_of([names.is_equal("sAMAccountName", f"{name}$"), names.is_equal("cn", name)])
        for entry in self._link.search(domain, SUBTREE, f"(&(objectClass=computer){named})", ["objectClass"]):
            return entry.path
        raise generic(f"the domain has no computer {name}: an administrator creates its account")

    def _own(self, path: str, account: Sid) -> Iterator[Need]:
        computer = self._effective(path)
        machine = names.child("msmq", path)
        there = self._effective(machine)
        grant = "".join(
            (
                f"(OA;;CC;{_SCHEMA['mSMQConfiguration']};;{account})",
                f"(OA;CIIO;{_FULL};;{_SCHEMA['mSMQConfiguration']};{account})",
                f"(OA;CIIO;{_FULL};;{_SCHEMA['mSMQQueue']};{account})",
            )
        )
        may = _may(computer, create=("mSMQConfiguration",))
        if there is None:
            yield Need(path, "the queue manager", "create mSMQConfiguration objects", may, grant)
        yield Need(
            machine if there is not None else path,
            "public queues",
            f"create and change mSMQQueue objects below {machine}",
            may if there is None else _may(there, create=("mSMQQueue",)),
            grant
            if there is None
            else f"(OA;;CCDC;{_SCHEMA['mSMQQueue']};;{account})"
            f"(OA;CIIO;{_FULL};;{_SCHEMA['mSMQQueue']};{account})",
        )
        if there is not None:
            keys = ("mSMQEncryptKey", "mSMQSites")
            right = "write the attributes of the object"
            yield Need(
                machine, "keys and site of the queue manager", right, _may(there, write=keys),
                f"(A;;RPWP;;;{account})",
            )  # fmt: skip
        certificates = ("mSMQSignCertificates", "mSMQDigests")
        yield Need(
            path, "the public key for signatures", f"write {' and '.join(certificates)}",
            _may(computer, write=certificates),
            "".join(f"(OA;;WP;{_SCHEMA[name]};;{account})" for name in certificates),
        )  # fmt: skip

    def _in_site(self, server: str, servers: str, account: Sid) -> Iterator[Need]:
        there = self._effective(server)
        grant = "".join(
            (
                f"(OA;;CC;{_SCHEMA['server']};;{account})",
                f"(OA;CIIO;{_FULL};;{_SCHEMA['server']};{account})",
                f"(OA;CIIO;{_FULL};;{_SCHEMA['mSMQSettings']};{account})",
            )
        )
        if there is None:
            may = _may(self._effective(servers), create=("server",))
            yield Need(servers, "the router in its site", "create server objects", may, grant)
        else:
            may = _may(there, create=("mSMQSettings",))
            grant = f"(OA;;CCDC;{_SCHEMA['mSMQSettings']};;{account})"
            yield Need(server, "the router in its site", "create mSMQSettings objects", may, grant)

    def _effective(self, path: str) -> Entry | None:
        """Return what the account may do with an object, None if there is no such object."""
        try:
            for entry in self._link.search(path, BASE, "(objectClass=*)", _EFFECTIVE):
                return entry
        except DirectoryError as error:
            if error.result is not DirectoryOperationResult.OBJECT_NOT_FOUND:
                raise
        return None


def _may(entry: Entry | None, *, create: tuple[str, ...] = (), write: tuple[str, ...] = ()) -> bool:
    if entry is None:
        return False
    both = (("allowedchildclasseseffective", create), ("allowedattributeseffective", write))
    for attribute, wanted in both:
        have = {value.decode().casefold() for value in entry.attributes.get(attribute, ())}
        if not {name.casefold() for name in wanted} <= have:
            return False
    return True
