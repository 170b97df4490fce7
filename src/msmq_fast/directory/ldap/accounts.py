"""Users and groups of the domain: SIDs for names, names for SIDs, and the groups of a user. Every call
blocks, and all calls come from one thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msmq_fast.directory.ldap import names
from msmq_fast.directory.ldap.entries import Entry
from msmq_fast.directory.ldap.interface import BASE, LEVEL, SUBTREE, Link
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult, generic
from msmq_fast.protocol.errors import InvalidParameter
from msmq_fast.security.domainaccounts import DomainLogon
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.sid import Sid

__all__ = ["AccountName", "Accounts", "DomainNames"]

AT_ONCE: Final = 100
"""SIDs in one search."""
MAX_GROUPS: Final = 5_000
"""Groups of a user. Windows logs no user on that is in more than 1,015."""
_ACCOUNTS: Final = names.any_of(["(objectClass=user)", "(objectClass=group)"])
_DEFAULT_GROUP: Final = 513  # Domain Users


@dataclass(frozen=True, slots=True)
class DomainNames:
    """The names of a domain: `short` is the one in front of a backslash, `long` the one behind an @."""

    sid: Sid
    path: str  # distinguished name
    short: str
    long: str


@dataclass(frozen=True, slots=True)
class AccountName:
    """The name of an account, `DOMAIN\\name`."""

    name: str
    is_group: bool


class Accounts:
    """The accounts behind a link. A failed operation raises DirectoryError."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._domain: DomainNames | None = None

    def domain(self) -> DomainNames:
        """Return the names of the domain, which are read once. Each operation begins here: the question to
        the domain controller finds another one if the last one does not answer.
        """
        self._link.prefer()
        root = self._link.root()
        if self._domain is None:
            self._domain = self._read_domain(root)
        return self._domain

    def _read_domain(self, root: Entry) -> DomainNames:
        path = (root.first("defaultNamingContext") or b"").decode()
        configuration = (root.first("configurationNamingContext") or b"").decode()
        account = None
        for entry in self._link.search(path, BASE, "(objectClass=*)", ["objectSid"]):
            account = _sid(entry)
        where = f"(&(objectClass=crossRef){names.is_equal('nCName', path)})"
        short = long = ""
        for entry in self._link.search(
            f"CN=Partitions,{configuration}", LEVEL, where, ["nETBIOSName", "dnsRoot"]
        ):
            short, long = _text(entry, "nETBIOSName"), _text(entry, "dnsRoot")
        if account is None or not short or not long:
            raise generic(f"the domain controller does not say the SID and the names of {path}")
        return DomainNames(account, path, short, long)

    def sid(self, name: str) -> Sid:
        """Return the SID of the account `DOMAIN\\name` or `name@domain`."""
        domain = self.domain()
        short, backslash, account = name.partition("\\")
        if not backslash:
            account, _, suffix = name.rpartition("@")
            own = suffix.casefold() == domain.long.casefold()
            given = [names.is_equal("userPrincipalName", name)]
            if own:
                given.append(names.is_equal("sAMAccountName", account))
        elif short.casefold() in (domain.short.casefold(), domain.long.casefold()):
            given = [names.is_equal("sAMAccountName", account)]
        else:
            raise _unknown(f"{short} is not the domain of this server, {domain.short}: give the SID instead")
        condition = f"(&{_ACCOUNTS}{names.any_of(given)})"
        for entry in self._link.search(domain.path, SUBTREE, condition, ["objectSid"]):
            found = _sid(entry)
            if found is not None:
                return found
        raise _unknown(f"the domain {domain.short} has no user or group {account!r}")

    def names(self, accounts: Sequence[Sid]) -> Mapping[Sid, AccountName]:
        """Return the names of those accounts that the domain has."""
        domain = self.domain()
        found: dict[Sid, AccountName] = {}
        for begin in range(0, len(accounts), AT_ONCE):
            wanted = [names.is_equal("objectSid", one.data) for one in accounts[begin : begin + AT_ONCE]]
            condition = f"(&{_ACCOUNTS}{names.any_of(wanted)})"
            attributes = ["objectSid", "sAMAccountName", "objectClass"]
            for entry in self._link.search(domain.path, SUBTREE, condition, attributes):
                account, name = _sid(entry), _text(entry, "sAMAccountName")
                if account is not None and name:
                    group = any(one.lower() == b"group" for one in entry.attributes.get("objectclass", ()))
                    found[account] = AccountName(f"{domain.short}\\{name}", group)
        return found

    def logon(self, account: Sid) -> DomainLogon:
        """Return what a log-on of an account of the domain would say about its groups."""
        domain = self.domain()
        known = self.names([account]).get(account)
        if known is None:
            raise _unknown(f"the domain {domain.short} has no user or group {account}")
        attributes = ["tokenGroups", "primaryGroupID"]
        for entry in self._link.search(f"<SID={account}>", BASE, "(objectClass=*)", attributes):
            groups = []
            if len(entry.attributes.get("tokengroups", ())) > MAX_GROUPS:
                raise generic(f"{entry.path}: tokenGroups: more than {MAX_GROUPS} groups")
            for value in entry.attributes.get("tokengroups", ()):
                try:
                    groups.append(Sid.from_bytes(value))
                except SecurityDataError as error:
                    raise generic(f"{entry.path}: tokenGroups: {error}") from None
            primary = int(entry.first("primaryGroupID") or _DEFAULT_GROUP)
            return DomainLogon(account, known.name, domain.sid, domain.sid.child(primary), tuple(groups))
        raise _unknown(f"the domain {domain.short} has no user or group {account}")


def _unknown(detail: str) -> DirectoryError:
    """An account that does not exist is a mistake in a request, not one of the directory."""
    refusal = InvalidParameter(detail)
    return DirectoryError(DirectoryOperationResult.OBJECT_NOT_FOUND, detail, refusal=refusal)


def _text(entry: Entry, attribute: str) -> str:
    return (entry.first(attribute) or b"").decode("utf-8", "replace")


def _sid(entry: Entry) -> Sid | None:
    value = entry.first("objectSid")
    try:
        return None if value is None else Sid.from_bytes(value)
    except SecurityDataError:
        return None
