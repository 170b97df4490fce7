"""Accounts of a domain: what a verified log-on says about its user, and names for SIDs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Protocol

from msmq_fast.security.sid import FIRST_ACCOUNT_RID, Sid
from msmq_fast.store.completion import Completion

__all__ = ["DomainAccounts", "DomainLogon", "DomainLogonRefused", "GroupsNeeded", "is_of_a_domain"]

_DOMAIN_ACCOUNTS = (5, 21)  # authority and first sub-authority of the SIDs of domains
_ASSERTED_IDENTITY = 18


class DomainLogonRefused(Exception):
    """The groups of a caller are not accepted; the text is one line for the log."""


class GroupsNeeded(Exception):
    """Raised if a decision depends on the groups of an account, which a domain controller is being asked
    for. The caller abandons its work without any effect, and repeats it when `learnt` is resolved: with the
    time in monotonic seconds. It never fails.
    """

    def __init__(self, learnt: Completion[float]) -> None:
        super().__init__()
        self.learnt = learnt


@dataclass(frozen=True, slots=True)
class DomainLogon:
    """A user of a domain, as a domain controller that is trusted describes it. `name` is `DOMAIN\\user`,
    `domain` the SID of the user's domain, `groups` has the groups of all domains.
    """

    user: Sid
    name: str
    domain: Sid
    primary_group: Sid
    groups: tuple[Sid, ...]

    def accepted_groups(self, domains: Collection[Sid], local: Sid) -> frozenset[Sid]:
        """Return the groups that the domain may name: its own and those of other domains, but neither
        well-known groups of other domains nor groups that this computer alone gives, such as Administrators
        and those of the users file, whose SIDs are within `local`. Raises DomainLogonRefused if the user is
        of another domain than `domains`.
        """
        if self.domain not in domains:
            raise DomainLogonRefused(
                f"{self.name} is of the domain {self.domain}, which is not this server's: security.domains "
                "can add it"
            )
        return frozenset(one for one in self.groups if is_of_a_domain(one, domains, local))


def is_of_a_domain(group: Sid, domains: Collection[Sid], local: Sid) -> bool:
    """Whether a domain may name this group: see DomainLogon.accepted_groups."""
    numbers = group.sub_authorities
    if group.authority == _ASSERTED_IDENTITY:
        return True
    if (group.authority, *numbers[:1]) != _DOMAIN_ACCOUNTS or len(numbers) != 5 or group.within(local):
        return False
    return numbers[4] >= FIRST_ACCOUNT_RID or any(group.within(domain) for domain in domains)


class DomainAccounts(Protocol):
    """Users and groups of the domain that the server is a member of. What returns a Completion asks a domain
    controller; it fails with an MSMQError.
    """

    @property
    def domains(self) -> frozenset[Sid]:
        """The SIDs of the domains whose users are accepted; empty until a domain controller has answered."""

    def known_name(self, account: Sid) -> str:
        """Return `DOMAIN\\name` of an account from memory, "" if it is not there. An account of the domain
        that is not there is looked up for the next time.
        """

    def known_group(self, account: Sid) -> bool:
        """Whether memory says that the SID is that of a group."""

    def learn(self, accounts: Iterable[Sid]) -> Completion[None]:
        """Look the names of these SIDs up. It succeeds, too, if some have none, or no domain controller
        answers.
        """

    def sid_of(self, name: str) -> Completion[Sid]:
        """Return the SID of the account `DOMAIN\\name` or `name@domain`."""

    def logon_of(self, account: Sid) -> Completion[DomainLogon]:
        """Return what a log-on of this account would say. Nothing proves that the account has logged on."""

    def known_logon(self, account: Sid) -> DomainLogon | None:
        """Return the same from memory, None if it is not there."""

    def learn_logon(self, account: Sid) -> Completion[float] | None:
        """Ask for what `known_logon` does not know; see GroupsNeeded. Return None if that is of no use now: a
        domain controller did not answer, or does not know the account, or too many accounts are asked for.
        """
