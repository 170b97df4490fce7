"""Limits on sessions: their number in all and per address, slow readers and slow writers; virtual clock."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmq_fast.mqqb.limits import Limits
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.sessionstate import SessionState
from tests.mqqb.transfers import OTHER, Bench, ordinals
from tests.support.mqqb import wire
from tests.support.worlds.hosts import OWN, sent


@pytest.mark.rule("QB-022", "QB-180")
def test_limits_refuse_with_an_answer_and_are_counted() -> None:
    bench = Bench(limits=Limits(sessions=2, sessions_per_address=1))
    first = bench.accepted("10.0.0.1", 1.0)
    second = bench.accepted("10.0.0.1", 1.0)
    assert second.reason is CloseReason.ADDRESS_LIMIT
    assert sent(second) == [wire.establish(server=OWN, refused=True)]
    bench.accepted("10.0.0.2", 1.0, OTHER)
    third = bench.accepted("10.0.0.3", 1.0, UUID(int=5))
    assert third.reason is CloseReason.SESSION_LIMIT
    first.close(CloseReason.DISCONNECTED, 2.0)
    assert bench.accepted("10.0.0.1", 2.0).state is SessionState.OPEN
    counts = bench.endpoint.session_context.counts.closed
    assert (counts[CloseReason.ADDRESS_LIMIT], counts[CloseReason.SESSION_LIMIT]) == (1, 1)


def test_a_packet_that_came_in_pieces_leaves_no_deadline_behind() -> None:
    session = Bench(limits=Limits(slow_writer=30.0)).accepted("10.0.0.1", 1.0)
    packet = wire.message(1)
    session.receive(packet[:20], 2.0)
    assert session.next_deadline() == 32.0
    session.receive(packet[20:], 3.0)
    session.expire(32.0)
    assert session.alive


def test_slow_peers_are_cut_off() -> None:
    bench = Bench(limits=Limits(slow_reader=30.0, slow_writer=20.0))
    session = bench.accepted("10.0.0.1", 0.0)
    packet = wire.message(1)
    for step in range(19):
        session.receive(packet[step : step + 1], 1.0 + step)
    session.expire(20.9)
    assert session.state is SessionState.OPEN
    session.expire(21.0)
    assert session.reason is CloseReason.SLOW_WRITER
    queue = bench.queue("10.0.0.2", range(1, 9))
    reader = bench.accepted("10.0.0.2", 0.0, OTHER)
    sent(reader)
    reader.pause_sending(1.0)
    bench.transfer.submit(queue, 2.0)
    assert ordinals(reader) == []
    reader.resume_sending(3.0)
    assert ordinals(reader) == list(range(1, 9))
    reader.pause_sending(4.0)
    reader.expire(34.0)
    assert reader.reason is CloseReason.SLOW_READER
