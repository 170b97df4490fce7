"""Sessions of the console by a virtual clock."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from msmq_fast.console.logons import Logon
from msmq_fast.console.sessions import IDLE, LONGEST, MOST, MOST_OF_ONE, Notice, Sessions
from msmq_fast.security.callers import Caller
from msmq_fast.security.token import ANONYMOUS_TOKEN

pytestmark = pytest.mark.smoke


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0
        self._numbers = self._count()

    def __call__(self) -> float:
        return self.now

    def random_bytes(self, count: int) -> bytes:
        return hashlib.shake_128(next(self._numbers)).digest(count)

    @staticmethod
    def _count() -> Iterator[bytes]:
        number = 0
        while True:
            number += 1
            yield str(number).encode()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> Sessions:
    return Sessions(clock, clock.random_bytes)


def logon(name: str = "alice") -> Logon:
    return Logon(Caller(name, ANONYMOUS_TOKEN), "password")


def test_a_session_is_found_by_its_cookie_only(sessions: Sessions) -> None:
    cookie = sessions.open(logon(), "192.0.2.1")
    assert len(cookie) == 43  # 256 bits
    found = sessions.find(cookie)
    assert found is not None
    assert found.logon.caller.name == "alice"
    assert sessions.find(cookie + "x") is None
    assert sessions.find("") is None


def test_each_log_on_has_a_new_cookie(sessions: Sessions) -> None:
    assert sessions.open(logon(), "") != sessions.open(logon(), "")


def test_an_idle_session_ends(sessions: Sessions, clock: Clock) -> None:
    cookie = sessions.open(logon(), "")
    clock.now += IDLE - 1
    assert sessions.find(cookie) is not None
    clock.now += IDLE - 1
    assert sessions.find(cookie) is not None
    clock.now += IDLE
    assert sessions.find(cookie) is None
    assert list(sessions.all()) == []


def test_a_busy_session_ends_after_twelve_hours(sessions: Sessions, clock: Clock) -> None:
    cookie = sessions.open(logon(), "")
    until = clock.now + LONGEST
    while clock.now + 600 < until:
        clock.now += 600
        assert sessions.find(cookie) is not None
    clock.now = until
    assert sessions.find(cookie) is None


def test_sessions_are_listed_and_revoked_by_number(sessions: Sessions) -> None:
    first, second = sessions.open(logon(), "192.0.2.1"), sessions.open(logon("bob"), "192.0.2.2")
    numbers = {session.logon.caller.name: session.number for session in sessions.all()}
    assert not sessions.revoke(numbers["alice"], "bob")
    assert sessions.revoke(numbers["alice"], None)
    assert not sessions.revoke(numbers["alice"], None)
    assert sessions.find(first) is None
    assert sessions.find(second) is not None
    sessions.close(second)
    assert sessions.find(second) is None


def test_the_number_of_sessions_is_bounded(sessions: Sessions) -> None:
    own = [sessions.open(logon(), "") for _ in range(MOST_OF_ONE + 2)]
    assert [sessions.find(cookie) is not None for cookie in own] == [False] * 2 + [True] * MOST_OF_ONE
    for number in range(MOST + 5):
        sessions.open(logon(f"user{number}"), "")
    assert len(list(sessions.all())) == MOST


def test_notices_are_shown_once(sessions: Sessions) -> None:
    session = sessions.find(sessions.open(logon(), ""))
    assert session is not None
    for number in range(100):
        session.tell(Notice("done", str(number)))
    taken = session.take_notices()
    assert [notice.text for notice in taken][-1] == "99"
    assert len(taken) == 20
    assert session.take_notices() == []
