"""Sessions of the console. They are kept in memory: a restart of the server ends all of them.

A cookie carries 256 random bits. The table holds only the SHA-256 of the cookie, so that its content opens no
session. A session ends `IDLE` seconds after its last request and `LONGEST` seconds after its log-on.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from msmq_fast.console.logons import Logon

__all__ = ["IDLE", "LONGEST", "MOST", "MOST_OF_ONE", "Notice", "Session", "Sessions"]

IDLE: Final = 30 * 60.0
LONGEST: Final = 12 * 3600.0
MOST: Final = 1000
"""Sessions of all users; the one that was used least recently ends first."""
MOST_OF_ONE: Final = 16
"""Sessions of one user."""
_NOTICES: Final = 20
_SIZE: Final = 32  # bytes of a cookie
_LONGEST_COOKIE: Final = 64  # characters


@dataclass(frozen=True, slots=True)
class Notice:
    """The result of an action, shown on the next page. `kind` is `done`, `begun`, `partial` or `failed`;
    `details` are further lines, such as the refusals by reason.
    """

    kind: str
    text: str
    details: tuple[str, ...] = ()


@dataclass(slots=True)
class Session:
    """One log-on in one browser. `began` and `used` are monotonic seconds; `number` names the session in
    lists of sessions and reveals nothing about its cookie.
    """

    number: int
    logon: Logon
    address: str
    began: float
    used: float
    notices: list[Notice] = field(default_factory=list)

    def tell(self, notice: Notice) -> None:
        """Show `notice` on the next page."""
        self.notices.append(notice)
        del self.notices[:-_NOTICES]

    def take_notices(self) -> list[Notice]:
        """Return the notices to show, each of them once."""
        taken, self.notices = self.notices, []
        return taken


class Sessions:
    """All sessions. `monotonic` returns seconds; `random_bytes(n)` returns n unpredictable bytes."""

    def __init__(self, monotonic: Callable[[], float], random_bytes: Callable[[int], bytes]) -> None:
        self._monotonic = monotonic
        self._random_bytes = random_bytes
        self._sessions: dict[bytes, Session] = {}  # by digest of the cookie, in the order of their last use
        self._next = 1

    def open(self, logon: Logon, address: str) -> str:
        """Begin a session; return the value of its cookie."""
        now = self._monotonic()
        self._expire(now)
        own = [key for key, one in self._sessions.items() if one.logon.caller.name == logon.caller.name]
        for key in own[: max(0, len(own) - MOST_OF_ONE + 1)]:
            del self._sessions[key]
        while len(self._sessions) >= MOST:
            del self._sessions[next(iter(self._sessions))]
        cookie = urlsafe_b64encode(self._random_bytes(_SIZE)).rstrip(b"=").decode()
        self._sessions[_key(cookie)] = Session(self._next, logon, address, now, now)
        self._next += 1
        return cookie

    def find(self, cookie: str) -> Session | None:
        """Return the session of a cookie and count this as a use of it; None if there is none any more."""
        key = _key(cookie)
        now = self._monotonic()
        session = self._sessions.pop(key, None)
        if session is None or _has_ended(session, now):
            return None
        session.used = now
        self._sessions[key] = session
        return session

    def look_at(self, cookie: str) -> Session | None:
        """Return the session of a cookie as `find` does, without counting this as a use of it."""
        session = self._sessions.get(_key(cookie))
        return None if session is None or _has_ended(session, self._monotonic()) else session

    def close(self, cookie: str) -> None:
        """End the session of a cookie, if there is one."""
        self._sessions.pop(_key(cookie), None)

    def revoke(self, number: int, name: str | None) -> bool:
        """End a session by its number; with `name`, only if the session is of this user. Return whether such
        a session existed.
        """
        for key, session in self._sessions.items():
            if session.number == number and name in (None, session.logon.caller.name):
                del self._sessions[key]
                return True
        return False

    def all(self) -> Iterator[Session]:
        """Yield the sessions that have not ended, beginning with the newest log-on."""
        self._expire(self._monotonic())
        yield from sorted(self._sessions.values(), key=lambda session: -session.number)

    def idle(self, session: Session) -> float:
        """Return the seconds since the last use of a session."""
        return self._monotonic() - session.used

    def age(self, session: Session) -> float:
        """Return the seconds since the log-on of a session."""
        return self._monotonic() - session.began

    def _expire(self, now: float) -> None:
        for key in [key for key, session in self._sessions.items() if _has_ended(session, now)]:
            del self._sessions[key]


def _has_ended(session: Session, now: float) -> bool:
    return now - session.used >= IDLE or now - session.began >= LONGEST


def _key(cookie: str) -> bytes:
    return hashlib.sha256(cookie[:_LONGEST_COOKIE].encode("utf-8", "surrogatepass")).digest()
