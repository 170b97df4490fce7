"""Accounts of a domain that are written down, for tests without a domain controller."""

from __future__ import annotations

from collections.abc import Iterable

from msmq_fast.protocol.errors import InvalidParameter
from msmq_fast.security.domainaccounts import DomainLogon
from msmq_fast.security.sid import Sid, sid
from msmq_fast.store.completion import Completion

DOMAIN = sid("S-1-5-21-11-22-33")


class WrittenAccounts:
    """Implements `DomainAccounts`: the accounts in `names` by the last part of their SID. A name is known
    once it has been learnt, and so are groups. `away`: no domain controller answers.
    """

    def __init__(self, names: dict[int, str] | None = None, *, known: bool = True) -> None:
        self._names = {DOMAIN.child(rid): name for rid, name in (names or {}).items()}
        self._learnt: set[Sid] = set()
        self._logons: set[Sid] = set()
        self.asked: list[tuple[Sid, Completion[float]]] = []
        self.away = False
        self.domains = frozenset([DOMAIN] if known else [])

    def known_name(self, account: Sid) -> str:
        return self._names.get(account, "") if account in self._learnt else ""

    def known_group(self, account: Sid) -> bool:
        return account in self._names and account not in self._users()

    def _users(self) -> set[Sid]:
        return {account for account, name in self._names.items() if name.islower()}

    def learn(self, accounts: Iterable[Sid]) -> Completion[None]:
        self._learnt.update(accounts)
        return Completion.of(None)

    def sid_of(self, name: str) -> Completion[Sid]:
        done: Completion[Sid] = Completion()
        for account, known in self._names.items():
            if known.casefold() == name.partition("\\")[2].casefold():
                done.resolve(account)
        done.fail(InvalidParameter(f"the domain CORP has no user or group {name!r}"))
        return done

    def logon_of(self, account: Sid) -> Completion[DomainLogon]:
        groups = tuple(one for one in self._names if one not in self._users())
        return Completion.of(
            DomainLogon(account, f"CORP\\{self._names[account]}", DOMAIN, DOMAIN.child(513), groups)
        )

    def known_logon(self, account: Sid) -> DomainLogon | None:
        return self.logon_of(account).result() if account in self._logons else None

    def learn_logon(self, account: Sid) -> Completion[float] | None:
        if self.away or account not in self._users():
            return None
        self.asked.append((account, Completion()))
        return self.asked[-1][1]

    def answer(self, now: float) -> None:
        """The domain controller answers all questions about groups; it says nothing while it is `away`."""
        asked, self.asked = self.asked, []
        for account, done in asked:
            if not self.away:
                self._logons.add(account)
            done.resolve(now)
