"""Encrypted messages whose private-key operation has to wait for its turn: nothing overtakes them, nothing
comes twice or is lost, and no other session waits for them.
"""

from __future__ import annotations

import asyncio
from random import Random
from uuid import UUID

import pytest

from msmq_fast._native.framing import ParsedMessage
from msmq_fast.mqqb.destination import Destination
from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.mqqb.limits import Limits
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.sessionstate import SessionState
from msmq_fast.security.keyturns import KeyTurns
from tests.mqqb.securities import security
from tests.mqqb.serving import Serving, until
from tests.mqqb.streams import acknowledged
from tests.support.mqqb import wire
from tests.support.mqqb.headers import header
from tests.support.worlds.hosts import Host

OPERATION = 0.001  # seconds
ENCRYPTED = security(0x21, key=b"a key that nobody saw before")


class Slow:
    """Keys with a budget of a tenth of a core, which is used up; each message takes an operation."""

    def __init__(self, **more: int) -> None:
        self.calculated = 0.0
        self.turns = KeyTurns(0.1, 0.001, clock=lambda: self.calculated, **more)
        self.opened = 0

    def open(self, message: ParsedMessage, target: Destination) -> bytes:
        def operation() -> bytes:
            self.calculated += OPERATION
            self.opened += 1
            return message.kept()

        return self.turns.run(operation, 100.0)

    def use_up(self, now: float = 100.0) -> None:
        self.turns.at_once(lambda: self.open_one(now))

    def open_one(self, now: float) -> None:
        def operation() -> None:
            self.calculated += 2 * OPERATION

        self.turns.run(operation, now)


def side(**more: int) -> tuple[Host, Slow]:
    slow = Slow(**more)
    hooks = Hooks(protection=slow)
    host = Host(turns=slow.turns, limits=Limits(session_keys=1_000_000), hooks=hooks)
    slow.use_up()
    return host, slow


def encrypted(number: int, size: int = 10) -> bytes:
    return wire.message(number, security=ENCRYPTED, recoverable=True, body=bytes(size))


def give_turns(slow: Slow, end: float) -> float:
    """Time passes until nobody waits, or until `end`."""
    now = 100.0
    while (due := slow.turns.next_deadline()) is not None and due <= end:
        now = max(now, due)
        slow.turns.expire(now)
    return now


def test_a_message_waits_and_what_is_behind_it_waits_behind_it() -> None:
    host, slow = side()
    session, other = host.opened(), host.opened()
    session.receive(wire.message(1) + encrypted(2) + wire.message(3) + encrypted(4) + wire.message(5), 100.0)
    assert (session.reading_paused, slow.opened, host.messages()) == (True, 0, [1])
    session.receive(wire.message(6) + wire.message(7)[:99], 100.0)  # what the kernel had for it
    other.receive(wire.message(100), 100.0)
    assert (other.reading_paused, host.messages()) == (False, [1, 100])
    now = give_turns(slow, 101.0)
    assert (session.reading_paused, slow.opened) == (False, 2)
    session.receive(wire.message(7)[99:], now)
    host.commit()
    assert host.messages() == [1, 100, 2, 3, 4, 5, 6, 7]


def test_nothing_is_acknowledged_that_waits() -> None:
    host, slow = side()
    session = host.opened(recoverable=500)
    session.receive(wire.message(1, recoverable=True) + encrypted(2), 100.0)
    host.commit()
    session.expire(100.6)
    acks = wire.split(b"".join(session.data_to_send()))
    assert acks
    assert all(wire.read_header(each[20:])[1] <= 1 for each in acks)
    give_turns(slow, 101.0)
    host.commit()
    assert host.messages() == [1, 2]


def test_a_stream_lands_once_and_in_order_however_its_messages_wait() -> None:
    """Two sessions bring the same stream, as after a broken connection; each cut and each turn at random."""
    for seed in range(30):
        chance = Random(seed)
        host, slow = side()
        host.add("t", transactional=True)

        def tx(number: int) -> bytes:
            return wire.message(
                number,
                transaction=header(number),
                queue="OS:h\\private$\\t",
                security=ENCRYPTED if number % 3 else b"",
            )

        sessions = [host.opened(), host.opened()]
        streams = [bytearray(b"".join(map(tx, range(1, 13)))) for _ in sessions]
        now = 100.0
        while any(streams) or slow.turns.next_deadline() is not None:
            which = chance.randrange(3)
            if which < 2:
                data = bytes(streams[which][: chance.randrange(1, 900)])
                if not sessions[which].reading_paused or chance.random() < 0.2:
                    del streams[which][: len(data)]
                    sessions[which].receive(data, now)
            now += chance.random() / 100
            slow.turns.expire(now)
            if chance.random() < 0.3:
                host.commit()
        host.commit()
        assert host.messages("t") == [*range(1, 13)], seed
        host.advance(1.0)
        assert acknowledged(host)[-1][2] == 12


def test_a_session_that_ends_takes_its_message_with_it() -> None:
    host, slow = side()
    session = host.opened()
    session.receive(encrypted(1), 100.0)
    session.close(CloseReason.DISCONNECTED, 100.0)
    give_turns(slow, 110.0)
    assert (slow.opened, host.messages(), session.reading_paused) == (0, [], False)
    again = host.opened()
    again.receive(encrypted(1), 110.0)
    host.commit()
    assert host.messages() == [1], "it comes again and is no duplicate"


def test_a_message_is_looked_at_anew_when_its_turn_comes() -> None:
    host, slow = side()
    session = host.opened()
    session.receive(encrypted(1), 100.0)
    del host.queues["private$\\q"]
    host.session_context.forget_routes()
    give_turns(slow, 101.0)
    assert (slow.opened, session.reading_paused) == (0, False)
    assert [reason for reason, _ in host.refusals] == ["unknown queue"]


def test_too_many_that_wait_end_the_session_and_the_message_stays_with_its_sender() -> None:
    host, slow = side(per_group=3)
    sessions = [host.opened() for _ in range(4)]
    for number, session in enumerate(sessions):
        session.receive(encrypted(number + 1), 100.0)
    assert [session.alive for session in sessions] == [True, True, True, False]
    assert sessions[-1].reason is CloseReason.KEYS
    give_turns(slow, 101.0)
    host.commit()
    assert host.messages() == [1, 2, 3]


def _address(host: Host, address: str, peer: int = 1) -> Session:
    session = host.accept(100.0, address)
    session.receive(wire.establish(UUID(int=peer)), 100.0)
    session.receive(wire.parameters(500, 20_000, 64), 100.0)
    session.data_to_send()
    assert session.state is SessionState.OPEN
    return session


def test_one_address_with_hundreds_of_sessions_takes_no_more_than_its_share() -> None:
    host, slow = side()
    crowd = [_address(host, "192.0.2.66") for _ in range(200)]
    honest = _address(host, "192.0.2.1", 2)
    for number, session in enumerate(crowd):
        session.receive(b"".join(encrypted(1000 * number + n) for n in range(1, 20)), 100.0)
    honest.receive(b"".join(encrypted(900_000 + n) for n in range(1, 11)), 100.0)
    now = give_turns(slow, 100.25)
    assert now <= 100.25
    host.commit()
    assert {*range(900_001, 900_011)} <= {*host.messages()}, "each second turn is for it"
    assert slow.calculated < 0.25 * 0.1 + 4 * OPERATION


@pytest.mark.parametrize("size", [10, 100_000])
def test_the_socket_is_read_again_when_the_turn_has_come(size: int) -> None:
    async def run() -> None:
        slow = Slow()
        hooks = Hooks(protection=slow)
        serving = Serving(turns=slow.turns, limits=Limits(session_keys=1_000_000), hooks=hooks)
        _, writer = await asyncio.open_connection("127.0.0.1", await serving.start())
        writer.write(wire.establish() + wire.parameters())
        await until(lambda: bool(serving.endpoint.sessions))
        (session,) = serving.endpoint.sessions
        slow.use_up(1e9)
        writer.write(b"".join(encrypted(n, size) for n in range(1, 31)))
        await until(lambda: session.reading_paused)
        now = 1e9
        while slow.opened < 30:
            await until(lambda: session.reading_paused)
            now += 1.0
            slow.turns.expire(now)
        await until(lambda: len(serving.host.messages()) == 30)
        writer.close()
        await until(lambda: not serving.endpoint.sessions)

    asyncio.run(run())
