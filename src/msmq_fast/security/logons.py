"""Limits on failed log-ons: a peer that guesses is slowed down and locked out, and users elsewhere are not
affected.

1. An account has `FREE` failures from one address group. Each further failure locks this pair of account and
   group, for 1 s, 2 s, 4 s, … up to `LONGEST`. While it is locked even the right secret is refused, and
   attempts do not count as failures, so that the lock ends.
2. A group has `FREE_IN_ALL` failures for all accounts, existing ones or not, and is then locked in the same
   way: this stops a peer that tries one secret with many names.
3. All failures together have a budget of `RATE` a second. It slows down a guesser with many addresses.
4. Rules 2 and 3 do not concern an account that has logged on from the group before. So an active user is not
   locked out by other peers behind the same NAT or by a flood of unknown peers.
5. A success resets rule 1 for its pair. Counts without a new failure for `MEMORY` seconds are dropped.

A failed attempt without an account name (with a token), or with an unknown name, counts for the account "".
So the number of accounts stays that of the users file, whatever names peers try. The lock of "" applies to
the whole group: otherwise a peer could find a right token among many wrong ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from msmq_fast.security.addresses import address_group
from msmq_fast.security.allowance import Allowance
from msmq_fast.signals import Signal

__all__ = ["WRONG", "Logon", "LogonLimits"]

K = TypeVar("K")
V = TypeVar("V")

WRONG: Final = "wrong name or secret"
FREE: Final = 5
FREE_IN_ALL: Final = 20
LONGEST: Final = 300.0
MEMORY: Final = 3600.0
RATE: Final = 10.0
_BURST: Final = 10.0  # seconds of RATE that may come at once
_MOST: Final = 10_000  # entries of each kind; the oldest one is removed first


@dataclass(slots=True)
class _Failures:
    count: int = 0
    last: float = 0.0
    locked_until: float = 0.0

    def add(self, free: int, now: float) -> None:
        if now - self.last > MEMORY:
            self.count = 0
        self.count += 1
        self.last = now
        if self.count >= free:
            self.locked_until = now + min(LONGEST, 2.0 ** min(self.count - free, 20))


@dataclass(frozen=True, slots=True)
class Logon:
    """An attempt to log on. `account` is "" if the secret belongs to no account or the account is not known;
    `method` names the secret and the place: `a token`, `NTLM`, `a password at the console`. `refusal` is the
    reason, None if the log-on is accepted.
    """

    account: str
    address: str
    method: str
    refusal: str | None = None


class LogonLimits:
    """The counts and locks of failed log-ons. Sans-IO; `monotonic` returns seconds. Emits `attempted` for
    each log-on.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.attempted: Signal[[Logon]] = Signal()
        self._monotonic = monotonic
        self._pairs: dict[tuple[str, str], _Failures] = {}
        self._groups: dict[str, _Failures] = {}
        self._known: dict[tuple[str, str], None] = {}
        self._budget = Allowance(RATE * _BURST, _BURST)

    def admit(self, account: str, address: str, *, proven: bool, method: str = "a token") -> str | None:
        """Decide on a log-on; `proven` is whether its secret is right. Return None if the log-on is accepted,
        otherwise the reason of the refusal, for the log.

        Call it once for each attempt, and only after the secret was compared, so that the duration of an
        attempt reveals nothing.
        """
        refusal = self._admit(account, address, proven=proven)
        self.attempted(Logon(account, address, method, refusal))
        return refusal

    def bars(self, account: str, address: str) -> bool:
        """Whether every log-on of `account` from this address would be refused now by rules 2 and 3, so that
        a secret which is expensive to verify need not be verified. Locks of rule 1 are not considered: the
        duration of an attempt would reveal which accounts exist.
        """
        group = address_group(address)
        return (account, group) not in self._known and self._barred(group, self._monotonic()) is not None

    def _admit(self, account: str, address: str, *, proven: bool) -> str | None:
        now = self._monotonic()
        group = address_group(address)
        pair = (account, group)
        reason = self._locked(pair, now)
        if reason is not None:
            return reason
        if proven:
            self._pairs.pop(pair, None)
            _put(self._known, pair, None)
            return None
        self._fail(pair, now)
        return WRONG

    def _locked(self, pair: tuple[str, str], now: float) -> str | None:
        _, group = pair
        failures = self._pairs.get(pair)
        if failures is not None and failures.locked_until > now:
            return f"locked for {failures.locked_until - now:.0f} s after {failures.count} failures"
        return None if pair in self._known else self._barred(group, now)

    def _barred(self, group: str, now: float) -> str | None:
        """Return the reason that refuses accounts which have not logged on from the group before."""
        for failures in (self._groups.get(group), self._pairs.get(("", group))):
            if failures is not None and failures.locked_until > now:
                seconds = failures.locked_until - now
                return f"the address is locked for {seconds:.0f} s after {failures.count} failures"
        if not self._budget.has("", 1.0, now):
            return "too many failed log-ons at this server"
        return None

    def _fail(self, pair: tuple[str, str], now: float) -> None:
        _, group = pair
        one = self._pairs.pop(pair, None) or _Failures()
        one.add(FREE, now)
        _put(self._pairs, pair, one)
        if pair in self._known:
            return
        every = self._groups.pop(group, None) or _Failures()
        every.add(FREE_IN_ALL, now)
        _put(self._groups, group, every)
        self._budget.take("", 1.0, now)


def _put(table: dict[K, V], key: K, value: V) -> None:
    """Add the newest entry; drop the oldest if the table is full."""
    table.pop(key, None)
    if len(table) >= _MOST:
        del table[next(iter(table))]
    table[key] = value
