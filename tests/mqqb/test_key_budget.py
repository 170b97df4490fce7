"""Session keys that peers make up: each costs a private RSA operation, so that a session is not listened to
for a while when it has brought many."""

from __future__ import annotations

import asyncio
import time

import pytest

from msmq_fast._native.framing import ParsedMessage
from msmq_fast.mqqb.destination import Destination
from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.mqqb.limits import KeyBudget, Limits
from msmq_fast.mqqb.reasons import CloseReason
from tests.mqqb.securities import security
from tests.mqqb.serving import Serving, until
from tests.support.mqqb import wire
from tests.support.worlds.hosts import Host

ENCRYPTED = security(0x21, key=b"a key that nobody saw before")


class Opening:
    """Protection that opens a key for each message."""

    opened = 0

    def open(self, message: ParsedMessage, target: Destination) -> bytes:
        self.opened += 1
        return message.kept()


def encrypted(number: int, size: int = 10) -> bytes:
    return wire.message(number, security=ENCRYPTED, recoverable=True, body=bytes(size))


def test_a_second_of_keys_at_once_and_then_as_many_a_second() -> None:
    budget = KeyBudget(4)
    assert [budget.spend(1, 100.0) for _ in range(6)] == [None] * 4 + [100.25, 100.5]
    assert budget.spend(1, 100.5) == 100.75
    assert [budget.spend(1, 200.0) for _ in range(4)] == [None] * 4
    assert budget.spend(40, 300.0) == 309.0


def test_what_comes_meanwhile_waits_and_nothing_is_lost() -> None:
    opening = Opening()
    host = Host(limits=Limits(session_keys=10), hooks=Hooks(protection=opening))
    session, other = host.opened(), host.opened()
    session.receive(b"".join([*(encrypted(n) for n in range(1, 31)), wire.message(31)]), 101.0)
    assert (opening.opened, session.reading_paused) == (11, True)
    session.receive(wire.message(32)[:50], 101.0)  # what the kernel had for it
    other.receive(encrypted(100), 101.0)
    assert (opening.opened, other.reading_paused) == (12, False)  # no other session waits
    now, seen = 101.0, [11]
    while session.reading_paused:
        assert session.next_deadline() is not None
        assert 0 < session.next_deadline() - now < 0.2
        now = session.next_deadline()
        session.expire(now)
        seen.append(opening.opened - 1)
    assert list(dict.fromkeys(seen)) == [*range(11, 31)]
    assert now == pytest.approx(103.0)
    session.receive(wire.message(32)[50:], now)
    host.commit()
    assert sorted(host.messages()) == [*range(1, 33), 100]


def test_a_session_that_ends_meanwhile_takes_no_more() -> None:
    opening = Opening()
    host = Host(limits=Limits(session_keys=1), hooks=Hooks(protection=opening))
    session = host.opened()
    session.receive(b"".join(encrypted(n) for n in range(1, 9)), 101.0)
    session.close(CloseReason.STOPPED, 101.0)
    assert (session.reading_paused, session.next_deadline()) == (False, None)
    session.expire(110.0)
    assert opening.opened == 2


def test_the_socket_is_not_read_meanwhile() -> None:
    async def run() -> None:
        opening = Opening()
        serving = Serving(limits=Limits(session_keys=20), hooks=Hooks(protection=opening))
        _, writer = await asyncio.open_connection("127.0.0.1", await serving.start())
        writer.write(wire.establish() + wire.parameters())
        await until(lambda: bool(serving.endpoint.sessions))
        (session,) = serving.endpoint.sessions
        began = time.monotonic()
        sent = [encrypted(n, 100_000) for n in range(1, 41)]
        writer.write(b"".join(sent))
        await until(lambda: session.reading_paused)
        assert session.receiver.held < sum(map(len, sent)) // 2  # the rest is with the kernel and the peer
        await until(lambda: opening.opened == 40 and not session.reading_paused)
        assert time.monotonic() - began > 0.8
        await until(lambda: len(serving.host.messages()) == 40)
        writer.close()
        await until(lambda: not serving.endpoint.sessions)

    asyncio.run(run())
