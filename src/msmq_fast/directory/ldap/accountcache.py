"""The accounts of the domain as the server uses them: names come from memory, and a thread of its own asks
the domain controller for those that are missing.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from msmq_fast.directory.ldap.accounts import AccountName, Accounts, DomainNames
from msmq_fast.directory.ldap.requests import Requests
from msmq_fast.directory.ldap.worker import Worker
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult, for_applications
from msmq_fast.security.domainaccounts import DomainLogon
from msmq_fast.security.sid import Sid
from msmq_fast.store.completion import Completion

__all__ = ["AccountCache"]

_log = logging.getLogger(__name__)

MAX_NAMES: Final = 10_000
MAX_MISSING: Final = 1_000
"""SIDs that wait for their names; more are looked up when they are asked for again."""
_LIFETIME_S: Final = 3_600.0
_UNKNOWN_LIFETIME_S: Final = 300.0  # of the answer that an account does not exist
_RETRY_S: Final = 30.0  # from a failure to the next look-up of names
_NO_NAME: Final = AccountName("", False)
_GROUPS_LIFETIME_S: Final = 600.0
_GROUPS_STALE_S: Final = 36_000.0
"""How old the groups of an account may be while no domain controller answers: as old as those in a ticket."""
MAX_GROUPS: Final = 100_000
"""SIDs of groups in memory, of all accounts together."""
MAX_ASKED: Final = 100
"""Accounts whose groups a domain controller is asked for at the same time."""


@dataclass(frozen=True, slots=True)
class _Groups:
    """What is known about the groups of an account. `logon` is None if the domain does not know it, or cannot
    say its groups.
    """

    at: float
    logon: DomainLogon | None

    @property
    def size(self) -> int:
        return 1 if self.logon is None else 1 + len(self.logon.groups)

    @property
    def fresh_until(self) -> float:
        return self.at + (_UNKNOWN_LIFETIME_S if self.logon is None else _GROUPS_LIFETIME_S)


class AccountCache:
    """Implements `DomainAccounts`. `given` are the SIDs of domains in the configuration, besides which the
    server's own domain counts. `monotonic` returns seconds. Implements `Timed`.
    """

    def __init__(
        self, accounts: Accounts, worker: Worker, monotonic: Callable[[], float], given: frozenset[Sid]
    ) -> None:
        self._accounts = accounts
        self._worker = worker
        self._requests = Requests(worker, monotonic)
        self._monotonic = monotonic
        self._domains = given
        self._own: DomainNames | None = None
        self._names: OrderedDict[Sid, tuple[float, AccountName]] = OrderedDict()  # with the time of expiry
        self._missing: dict[Sid, None] = {}
        self._running: Completion[None] | None = None
        self._due: float | None = monotonic()
        self._quiet_until = 0.0
        self._groups: OrderedDict[Sid, _Groups] = OrderedDict()  # the oldest first
        self._groups_kept = 0  # SIDs
        self._asked: dict[Sid, Completion[float]] = {}
        self._groups_quiet_until = 0.0

    @property
    def domains(self) -> frozenset[Sid]:
        """The SIDs of the domains whose users are accepted; empty until a domain controller has answered."""
        return self._domains

    def close(self) -> None:
        """Ask no more."""
        self._due = None
        self._worker.close()

    # ---- the domain itself, and names that a log line lacked

    def next_deadline(self) -> float | None:
        """Return when the domain controller is asked next, or when a request has no answer in time; None if
        neither is to come.
        """
        found = [due for due in (self._next_question(), self._requests.next_deadline()) if due is not None]
        return min(found, default=None)

    def _next_question(self) -> float | None:
        if self._due is not None:
            return self._due
        return self._quiet_until if self._missing and self._running is None else None

    def expire(self, now: float) -> None:
        """Ask for the names of the domain, or those of accounts that are missing. Fails overdue requests."""
        self._requests.expire(now)
        if self._due is not None and now >= self._due:
            self._due = None
            self._worker.submit(self._accounts.domain).add_done_callback(self._met)
        elif self._due is None and self._missing and self._running is None and now >= self._quiet_until:
            self._look_up()

    def _met(self, done: Completion[DomainNames]) -> None:
        error = done.exception()
        if error is not None:
            _log.debug("the domain controller does not name its domain: %s", error)
            self._due = self._monotonic() + _RETRY_S
            return
        self._own = done.result()
        self._domains |= {self._own.sid}

    # ---- names

    def known_name(self, account: Sid) -> str:
        """Return `DOMAIN\\name` of an account from memory, "" if it is not there. An account of the domain
        that is not there is looked up for the next time.
        """
        return self._known(account).name

    def known_group(self, account: Sid) -> bool:
        """Whether memory says that the SID is that of a group."""
        return self._known(account).is_group

    def _known(self, account: Sid) -> AccountName:
        found = self._names.get(account)
        if found is not None and found[0] > self._monotonic():
            return found[1]
        if self._is_own(account) and len(self._missing) < MAX_MISSING:
            self._missing[account] = None
        return _NO_NAME if found is None else found[1]

    def _is_own(self, account: Sid) -> bool:
        return self._own is not None and account.within(self._own.sid)

    def learn(self, accounts: Iterable[Sid]) -> Completion[None]:
        """Look the names of these SIDs up. It succeeds, too, if some have none, or no domain controller
        answers; after a failure, the names are not asked for until 30 s later.
        """
        for account in accounts:
            self._known(account)
        if self._running is not None:
            return self._running
        if not self._missing or self._monotonic() < self._quiet_until:
            return Completion.of(None)
        return self._look_up()

    def _look_up(self) -> Completion[None]:
        wanted = list(self._missing)
        self._missing.clear()
        running: Completion[None] = Completion()
        self._running = running

        def found(done: Completion[Mapping[Sid, AccountName]]) -> None:
            self._running = None
            error = done.exception()
            if error is None:
                names = done.result()
                for account in wanted:
                    self._put(account, names.get(account, _NO_NAME))
            else:
                _log.debug("names of accounts are not known: %s", error)
                self._quiet_until = self._monotonic() + _RETRY_S
            running.resolve(None)

        self._requests.submit(lambda _: self._accounts.names(wanted)).add_done_callback(found)
        return running

    def _put(self, account: Sid, name: AccountName) -> None:
        lifetime = _LIFETIME_S if name.name else _UNKNOWN_LIFETIME_S
        self._names[account] = (self._monotonic() + lifetime, name)
        self._names.move_to_end(account)
        if len(self._names) > MAX_NAMES:
            self._names.popitem(last=False)

    # ---- what a request asks for

    def sid_of(self, name: str) -> Completion[Sid]:
        """Return the SID of the account `DOMAIN\\name` or `name@domain`. Fails with an MSMQError."""
        return for_applications(self._requests.submit(lambda _: self._accounts.sid(name)))

    def logon_of(self, account: Sid) -> Completion[DomainLogon]:
        """Return what a log-on of this account would say; while no domain controller answers, from memory.
        Fails with an MSMQError.
        """
        found: Completion[DomainLogon] = Completion()

        def answered(done: Completion[DomainLogon]) -> None:
            error = done.exception()
            self._note(account, done)
            known = self._usable(account) if _is_absent(error) else None
            if known is not None:
                found.resolve(known)
            elif error is not None:
                found.fail(error)
            else:
                found.resolve(done.result())

        self._requests.submit(lambda _: self._accounts.logon(account)).add_done_callback(answered)
        return for_applications(found)

    # ---- groups of the senders of messages

    def known_logon(self, account: Sid) -> DomainLogon | None:
        """Return what a log-on of this account would say, from memory; None if it is not there. What is older
        than 10 minutes is of use only while no domain controller answers, for 10 hours.
        """
        now = self._monotonic()
        found = self._groups.get(account)
        if found is not None and now < found.fresh_until:
            return found.logon
        return self._usable(account) if now < self._groups_quiet_until else None

    def _usable(self, account: Sid) -> DomainLogon | None:
        found = self._groups.get(account)
        if found is None or self._monotonic() >= found.at + _GROUPS_STALE_S:
            return None
        return found.logon

    def learn_logon(self, account: Sid) -> Completion[float] | None:
        """Ask for the groups of an account; see DomainAccounts. After a failure, no domain controller is
        asked until 30 s later.
        """
        asked = self._asked.get(account)
        if asked is not None:
            return asked
        now, found = self._monotonic(), self._groups.get(account)
        unknown = found is not None and found.logon is None and now < found.fresh_until
        if unknown or now < self._groups_quiet_until or len(self._asked) >= MAX_ASKED:
            return None
        learnt = self._asked[account] = Completion()

        def answered(done: Completion[DomainLogon]) -> None:
            del self._asked[account]
            self._note(account, done)
            learnt.resolve(self._monotonic())

        self._requests.submit(lambda _: self._accounts.logon(account)).add_done_callback(answered)
        return learnt

    def _note(self, account: Sid, done: Completion[DomainLogon]) -> None:
        """Keep an answer about the groups of an account. An account whose groups the domain controller cannot
        say, such as one with too many, does not keep it from being asked about others.
        """
        error, now = done.exception(), self._monotonic()
        if error is not None:
            _log.debug("the groups of %s are not known: %s", account, error)
        if _is_absent(error):
            self._groups_quiet_until = now + _RETRY_S
            return
        if error is None:
            self._domains |= {done.result().domain}
        groups = _Groups(now, None if error is not None else done.result())
        self._groups_quiet_until = 0.0
        before = self._groups.pop(account, None)
        self._groups[account] = groups
        self._groups_kept += groups.size - (0 if before is None else before.size)
        while self._groups_kept > MAX_GROUPS:
            self._groups_kept -= self._groups.popitem(last=False)[1].size


def _is_absent(error: Exception | None) -> bool:
    return isinstance(error, DirectoryError) and error.result is DirectoryOperationResult.NOT_CONNECTED
