"""Signed SRMP messages whose key operation waits for its turn."""

from __future__ import annotations

from msmq_fast.security.keyturns import KeyTurns
from msmq_fast.srmp.reasons import Reason
from msmq_fast.srmp.signature import SignaturePolicy, Signer
from tests.srmp.receiving import DURABLE, url
from tests.support.srmp.station import Station, envelope


class Slow:
    """Every signature is good and takes 1 ms of a budget of a tenth of a core, which is used up."""

    policy = SignaturePolicy()

    def __init__(self, **more: int) -> None:
        self.calculated = 0.0
        self.turns = KeyTurns(0.1, 0.001, clock=lambda: self.calculated, **more)
        self.now = 1000.0

        def use_up() -> None:
            self.calculated += 0.002

        self.turns.take("", lambda: self.turns.run(use_up, self.now))

    def verify(self, *_: object) -> Signer:
        def operation() -> Signer:
            self.calculated += 0.001
            return Signer(b"certificate")

        return self.turns.run(operation, self.now)


def waiting(slow: Slow) -> Station:
    station = Station(verify=slow, turns=slow.turns)
    station.make("signed", authenticated=True)
    station.make("in")
    return station


def test_a_signed_message_waits_for_its_turn_and_nothing_else_does() -> None:
    slow = Slow()
    station = waiting(slow)
    first = station.begin(envelope(url("signed"), ordinal=1, headers=DURABLE), b"1", peer="192.0.2.1")
    again = station.begin(envelope(url("signed"), ordinal=1, headers=DURABLE), b"1", peer="192.0.2.2")
    assert station.post(envelope(url("in"), ordinal=2, headers=DURABLE), b"2") == 200
    assert not first.done
    assert (station.taken("signed"), station.taken()) == ([], [b"2"])
    slow.turns.expire(1001.0)
    slow.turns.expire(1002.0)
    assert (station.finish(first), station.finish(again)) == (200, 200)
    assert station.taken("signed") == [b"1"], "it is one message, whoever came first"


def test_signed_messages_beyond_those_that_may_wait_are_to_come_again() -> None:
    slow = Slow(per_group=2)
    station = waiting(slow)
    asked = [station.begin(envelope(url("signed"), ordinal=n, headers=DURABLE), b"x") for n in range(1, 4)]
    assert station.finish(asked[2]) == 500
    assert [reason for reason, _ in station.refused] == [Reason.KEYS]
    assert not asked[0].done
    slow.turns.expire(1001.0)
    slow.turns.expire(1002.0)
    assert [station.finish(each) for each in asked[:2]] == [200, 200]


def test_a_turn_that_comes_too_late_changes_nothing() -> None:
    slow = Slow()
    station = waiting(slow)
    gone = station.begin(envelope(url("signed"), ordinal=1, headers=DURABLE), b"1")
    station.finish(station.manager.delete_queue(".\\private$\\signed"))
    slow.turns.expire(1001.0)
    assert station.finish(gone) == 400
    assert station.dead() == []
