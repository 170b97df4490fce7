"""The last log-on of each account since the start of the server, in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from msmq_fast.security.logons import Logon

__all__ = ["LastLogon", "LastLogons"]

_MOST: Final = 50_000  # accounts: more than the largest users file has; the oldest log-on is dropped first


@dataclass(frozen=True, slots=True)
class LastLogon:
    """An accepted log-on; `time_s` is Unix seconds, `method` names the secret."""

    time_s: int
    address: str
    method: str


class LastLogons:
    """Notes accepted log-ons. `now_s` returns Unix seconds."""

    def __init__(self, now_s: Callable[[], int]) -> None:
        self._now_s = now_s
        self._last: dict[str, LastLogon] = {}  # by casefolded name, the oldest first

    def note(self, logon: Logon) -> None:
        """Note an attempt to log on, if it was accepted."""
        if logon.refusal is not None or not logon.account:
            return
        name = logon.account.casefold()
        self._last.pop(name, None)
        self._last[name] = LastLogon(self._now_s(), logon.address, logon.method)
        if len(self._last) > _MOST:
            del self._last[next(iter(self._last))]

    def of(self, account: str) -> LastLogon | None:
        """Return the last log-on of an account; None if it has not logged on since the start."""
        return self._last.get(account.casefold())
