"""The end of a session: whatever ends it, nothing is said and nothing more is taken; what the handshake left
behind in a session that is open."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.sessionstate import SessionState
from msmq_fast.mqqb.switches import Switches
from tests.mqqb.transfers import OTHER, Bench
from tests.support.mqqb import wire
from tests.support.worlds.hosts import OWN, Host, sent

TIMED = Switches(amb19_prompt_ack=False, amb19_count_ack=False)


def refused(packet: bytes) -> bytes:
    return packet[:18] + bytes([packet[18] | 0x10]) + packet[19:]


def dialled(host: Host) -> Session:
    session = host.dial(now=100.0)
    session.data_to_send()
    return session


def answered(host: Host) -> Session:
    session = dialled(host)
    session.receive(wire.establish(client=OWN, server=OTHER, stamp=100_000), 100.0)
    session.data_to_send()
    return session


def greeted(host: Host) -> Session:
    session = host.accept(now=100.0)
    session.receive(wire.establish(), 100.0)
    session.data_to_send()
    return session


RESPONSE = wire.establish(client=OWN, server=OTHER, stamp=100_000)
ENDS: list[tuple[Callable[[Host], Session], bytes, CloseReason]] = [
    (lambda host: host.accept(now=100.0), wire.parameters(), CloseReason.OUT_OF_STATE),
    (lambda host: host.accept(now=100.0), wire.message(1), CloseReason.OUT_OF_STATE),
    (greeted, wire.establish(), CloseReason.OUT_OF_STATE),
    (greeted, wire.parameters(499), CloseReason.BAD_PARAMETERS),
    (greeted, wire.session_ack(), CloseReason.OUT_OF_STATE),
    (dialled, wire.parameters(), CloseReason.OUT_OF_STATE),
    (dialled, refused(RESPONSE), CloseReason.REFUSED),
    (dialled, wire.establish(client=OTHER, server=OTHER), CloseReason.WRONG_RESPONSE),
    (dialled, wire.establish(client=OWN, server=OWN), CloseReason.OWN_GUID),
    (answered, RESPONSE, CloseReason.OUT_OF_STATE),
    (answered, refused(wire.parameters()), CloseReason.REFUSED),
    (answered, wire.message(1), CloseReason.OUT_OF_STATE),
    (lambda host: host.opened(now=100.0), wire.parameters(), CloseReason.OUT_OF_STATE),
    (lambda host: host.opened(now=100.0), wire.establish(), CloseReason.OUT_OF_STATE),
    (lambda host: host.opened(now=100.0), b"\x11" + wire.message(1)[1:], CloseReason.MALFORMED),
    (lambda host: host.opened(now=100.0), wire.session_ack(sent=1), CloseReason.COUNT_MISMATCH),
    (lambda host: host.opened(now=100.0), wire.session_ack(ack=1), CloseReason.ACK_UNSENT),
]


@pytest.mark.rule("QB-178", "QB-183", "QB-187", "QB-193", "QB-295", "QB-297")
@pytest.mark.parametrize(("begin", "packet", "reason"), ENDS)
def test_a_session_that_ends_says_nothing_and_takes_nothing_more(
    begin: Callable[[Host], Session], packet: bytes, reason: CloseReason
) -> None:
    host = Host()
    session = begin(host)
    told = host.follower.told
    told.clear()
    session.receive(packet, 101.0)
    assert (session.state, session.reason) == (SessionState.CLOSED, reason)
    assert session.next_deadline() is None
    assert sent(session) == []
    more = wire.establish() + wire.parameters() + wire.message(7)
    room = session.buffer(len(more))
    room[: len(more)] = more
    session.commit(len(more), 102.0)
    session.receive(more, 102.0)
    session.pump(103.0)
    session.expire(1_000.0)
    session.pause()
    session.close(CloseReason.STOPPED, 104.0)
    assert sent(session) == []
    assert (session.state, session.reason) == (SessionState.CLOSED, reason)
    assert told == [("closed", reason)]
    assert host.messages() == []
    assert list(host.session_context.peers) == []
    assert not session.receiver.open


@pytest.mark.rule("QB-154", "QB-297")
def test_a_session_that_was_closed_has_heard_nothing_since() -> None:
    session = Host().opened(now=100.0)
    session.close(CloseReason.DISCONNECTED, 110.0)
    session.buffer(1)[0] = 0x10
    session.commit(1, 120.0)
    assert session.heard_at == 100.0


@pytest.mark.rule("QB-184", "QB-185", "QB-309")
@pytest.mark.parametrize(("delay", "timeout"), [(0.0, 0.5), (0.1, 0.8)])
def test_the_initiator_acknowledges_recoverable_messages_after_eight_round_trips_too(
    delay: float, timeout: float
) -> None:
    host = Host(switches=TIMED)
    session = host.dial(now=100.0)
    session.receive(wire.establish(client=OWN, server=OTHER, stamp=100_000), 100.0 + delay)
    session.receive(wire.parameters(), 101.0)
    assert session.opened_at == 101.0
    session.data_to_send()
    session.receive(wire.message(1, recoverable=True), 110.0)
    host.commit()
    session.pump(110.0)
    assert session.next_deadline() == pytest.approx(110.0 + timeout)
    session.expire(109.9 + timeout)
    assert sent(session) == []
    session.expire(110.1 + timeout)
    assert sent(session) == [wire.session_ack(ack=1, base_ack=1, flags=1)]


@pytest.mark.rule("QB-179", "QB-186")
def test_the_owner_hears_of_each_step() -> None:
    host = Host()
    session = host.dial(now=100.0)
    session.receive(wire.establish(client=OWN, server=OTHER, stamp=100_000), 100.0)
    session.receive(wire.parameters(), 101.0)
    session.close(CloseReason.DISCONNECTED, 102.0, "gone")
    session.gone()
    ended = ("closed", CloseReason.DISCONNECTED)
    assert host.follower.told == [("answered", OTHER), ("opened", 101.0), ended, ("gone", OTHER)]
    assert session.detail == "gone"


@pytest.mark.rule("QB-007", "QB-192", "QB-322")
def test_nothing_is_sent_before_the_session_is_open() -> None:
    host = Host()
    session = host.dial(now=100.0)
    session.data_to_send()
    session.attach(host.outgoing([wire.message(1, source=OWN)]))
    session.pump(100.0)
    assert sent(session) == []
    session.receive(wire.establish(client=OWN, server=OTHER, stamp=100_000), 100.0)
    session.pump(100.0)
    assert [wire.kind(packet) for packet in sent(session)] == ["CP"]
    session.receive(wire.parameters(), 101.0)
    assert [wire.ordinal(packet) for packet in sent(session)] == [1]


@pytest.mark.rule("QB-280", "QB-295")
def test_a_disk_that_failed_ends_the_session_without_an_acknowledgment() -> None:
    host = Host()
    session = host.opened(now=100.0)
    host.writer.fail_commit(2, 28)
    session.receive(wire.message(1, recoverable=True), 101.0)
    host.writer.submit()
    session.receive(wire.message(2, recoverable=True), 102.0)
    host.writer.submit()
    host.writer.complete_all()
    assert session.window.acknowledgeable == 1  # but who knows what is on such a disk
    session.pump(103.0)
    assert session.reason is CloseReason.STORE_FAILED
    assert sent(session) == []


@pytest.mark.rule("QB-297")
def test_a_commit_after_the_end_wakes_nobody() -> None:
    host = Host()
    session = host.opened(now=100.0)
    woken = host.woken
    session.receive(wire.message(1, recoverable=True), 101.0)
    session.close(CloseReason.DISCONNECTED, 102.0)
    assert woken == [session]  # by its end: there is a connection to be closed
    host.commit()
    assert woken == [session]
    assert host.messages() == [1]


@pytest.mark.rule("QB-153")
def test_a_stop_ends_dialled_and_accepted_sessions_and_counts_them() -> None:
    bench = Bench()
    bench.transfer.submit(bench.queue("10.0.0.7"), 10.0)
    dialled = bench.connect(10.0, OTHER)
    accepted = bench.accepted("10.0.0.8", 11.0)
    waiting = bench.endpoint.accept("10.0.0.9", 11.0)
    dialled.data_to_send()
    accepted.data_to_send()
    assert bench.endpoint.sessions == {dialled, accepted, waiting}
    bench.endpoint.stop(12.0)
    for session in (dialled, accepted, waiting):
        assert session.reason is CloseReason.STOPPED
        assert session.data_to_send() == []
    assert bench.endpoint.sessions == set()
    assert bench.host.session_context.counts.closed == {CloseReason.STOPPED: 3}
    assert sorted(address for address, _ in bench.ended) == ["10.0.0.7", "10.0.0.8", "10.0.0.9"]


def test_which_sessions_make_room_for_others() -> None:
    """An open one that was silent for a minute, with nothing under way in either direction."""
    host = Host(switches=TIMED)
    half = host.accept(now=100.0)
    assert not half.idle(1000.0, 60.0)
    session = host.opened(now=100.0)
    assert [session.idle(now, 60.0) for now in (100.0, 159.9, 160.0)] == [False, False, True]
    session.receive(wire.message(1, recoverable=True), 200.0)
    assert not session.idle(200.0, 60.0)
    assert not session.idle(300.0, 60.0)  # its acknowledgment is due
    host.commit()
    session.pump(300.0)
    session.expire(session.next_deadline() or 300.0)
    sent(session)
    assert session.idle(300.0, 60.0)
