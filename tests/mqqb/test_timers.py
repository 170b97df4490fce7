"""The timers of sessions, row by row: when each starts, stops and starts anew, how long it runs, what follows
(section 3.1.2 and 3.1.6); counters beyond 16 bits; two queue managers that dial each other. Virtual clock."""

from __future__ import annotations

import struct
from array import array
from uuid import UUID

import pytest

from msmq_fast.mqqb.hops import Progress
from msmq_fast.mqqb.ping import Pinger
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.sessionstate import SessionState
from msmq_fast.mqqb.switches import Switches
from msmq_fast.mqqb.timers import Timers
from msmq_fast.mqqb.transfer import Connect, Resolve
from msmq_fast.timing import earliest
from tests.mqqb.transfers import OTHER, Bench, ordinals, ping
from tests.support.mqqb import wire
from tests.support.worlds.hosts import OWN, Host, sent

TIMED = Switches(amb19_prompt_ack=False, amb19_count_ack=False)


def packets(first: int, count: int, *, recoverable: bool = False) -> list[bytes]:
    return [wire.message(first + step, source=OWN, recoverable=recoverable) for step in range(count)]


# --------------------------------------------------------------------- 1: Session Initialization Timer


@pytest.mark.rule("QB-302", "QB-301", "QB-175", "QB-299")
@pytest.mark.parametrize("delay", [0.0, 1.5])
def test_initialization_lasts_a_minute_and_two_round_trips_in_every_waiting_state(delay: float) -> None:
    host = Host(timers=Timers(round_trip_delay=delay))
    due = 100.0 + 60.0 + 2 * delay
    accepted, greeted, dialled, answered = host.accept(), host.accept(), host.dial(), host.dial()
    greeted.receive(wire.establish(), 130.0)
    answered.receive(wire.establish(client=OWN, server=OTHER, stamp=100_000), 130.0)
    assert [session.state for session in (accepted, greeted, dialled, answered)] == [
        SessionState.WAITING_EC_MSG,
        SessionState.WAITING_CP_MSG,
        SessionState.WAITING_ECR_MSG,
        SessionState.WAITING_CPR_MSG,
    ]
    for session in (accepted, greeted, dialled, answered):
        assert session.next_deadline() == due  # of its own, whatever the others do (AMB-50)
        session.expire(due - 0.01)
        assert session.alive
        session.expire(due)
        assert session.reason is CloseReason.HANDSHAKE_TIMEOUT
        assert session.next_deadline() is None


@pytest.mark.rule("QB-302", "QB-190", "QB-192")
def test_initialization_ends_with_the_connection_parameters_in_both_roles() -> None:
    host = Host()
    accepted, dialled = host.opened(now=100.0), host.dial(now=100.0)
    dialled.receive(wire.establish(client=OWN, server=OTHER, stamp=100_000), 100.0)
    dialled.receive(wire.parameters(), 101.0)
    for session in (accepted, dialled):
        assert session.next_deadline() == 400.0
        session.expire(399.0)
        assert session.state is SessionState.OPEN


@pytest.mark.rule("QB-020")
def test_refused_connection_parameters_close() -> None:
    session = Host().dial(now=100.0)
    session.receive(wire.establish(client=OWN, server=OTHER, stamp=100_000), 100.0)
    refusal = bytearray(wire.parameters())
    refusal[18] |= 0x10  # CS
    session.receive(bytes(refusal), 100.0)
    assert session.reason is CloseReason.REFUSED
    assert not session.receiver.open


# --------------------------------------------------------------------- 2: Session Cleanup Timer


@pytest.mark.rule("QB-303", "QB-304", "QB-137")
@pytest.mark.parametrize("interval", [300.0, 120.0])
def test_cleanup_runs_again_and_again_while_there_is_activity(interval: float) -> None:
    host = Host(timers=Timers(session_cleanup=interval))
    session = host.opened(now=100.0)
    for period in range(1, 4):
        due = 100.0 + period * interval
        session.receive(wire.message(period), due - 1.0)
        session.expire(due - 0.5)
        sent(session)
        assert session.next_deadline() == due
        session.expire(due)
        assert session.alive
    session.expire(100.0 + 4 * interval - 0.01)
    assert session.alive
    session.expire(100.0 + 4 * interval)
    assert session.reason is CloseReason.IDLE
    assert session.next_deadline() is None


@pytest.mark.rule("QB-303")
def test_a_session_is_not_idle_before_its_handshake_is_over() -> None:
    host = Host(timers=Timers(session_init=1_000.0))
    session = host.accept(now=100.0)
    assert session.next_deadline() == 400.0
    session.expire(400.0)
    assert session.reason is CloseReason.IDLE


# --------------------------------------------------------------------- 3: Session Retry Connect Timer


@pytest.mark.rule("QB-305", "QB-301", "QB-138")
@pytest.mark.parametrize("delay", [0.0, 0.75])
def test_retry_waits_five_seconds_and_a_round_trip_after_each_kind_of_failure(delay: float) -> None:
    bench = Bench(timers=Timers(round_trip_delay=delay, retry_max=5.0))
    queue = bench.queue("server")
    bench.transfer.submit(queue, 10.0)
    assert bench.take() == [Resolve(1, "server")]
    assert bench.transfer.next_deadline() is None
    bench.transfer.failed(1, "no such name", 11.0)
    assert bench.transfer.next_deadline() == 16.0 + delay
    bench.endpoint.expire(16.0 + delay)
    assert bench.take() == [Resolve(1, "server")]
    assert bench.transfer.next_deadline() is None  # connecting stops the timer
    bench.transfer.resolved(1, ["10.0.0.7"], 17.0)
    assert bench.take() == [Connect(1, "10.0.0.7")]
    bench.transfer.failed(1, "refused", 18.0)
    assert bench.transfer.next_deadline() == 23.0 + delay
    bench.endpoint.expire(22.9 + delay)
    assert bench.take() == []
    bench.endpoint.expire(23.0 + delay)
    assert bench.take() == [Resolve(1, "server")]
    bench.transfer.resolved(1, ["10.0.0.7"], 24.0)
    session = bench.connect(25.0)
    assert bench.transfer.next_deadline() is None
    session.close(CloseReason.DISCONNECTED, 30.0)
    assert bench.transfer.next_deadline() == 35.0 + delay


@pytest.mark.rule("QB-305", "QB-306")
def test_there_is_no_retry_without_a_backlog() -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7")
    bench.transfer.submit(queue, 10.0)
    session = bench.connect(10.0)
    assert ordinals(session) == [1]
    session.receive(wire.session_ack(ack=1), 11.0)
    session.close(CloseReason.DISCONNECTED, 12.0)
    assert bench.transfer.next_deadline() is None


@pytest.mark.rule("QB-298")
def test_a_dialled_session_that_lasted_is_dialled_again_after_five_seconds_too() -> None:
    bench = Bench()
    bench.transfer.submit(bench.queue("10.0.0.7"), 10.0)
    session = bench.connect(10.0)
    session.receive(wire.session_ack(), 99.0)
    session.close(CloseReason.DISCONNECTED, 100.0)
    bench.endpoint.expire(104.9)
    assert bench.take() == []
    bench.endpoint.expire(105.0)
    assert bench.take() == [Connect(1, "10.0.0.7")]


@pytest.mark.rule("QB-174")
def test_a_ping_that_fails_starts_no_retry_without_a_backlog() -> None:
    bench = Bench(ping_first=True)
    queue = bench.queue("10.0.0.7")
    bench.transfer.submit(queue, 10.0)
    owner = bench.host.ledger.new_owner()
    queue.acknowledged(
        owner, array("Q", [message.lookup_id for message in queue.core.take(9, 1 << 20, owner)])
    )
    bench.endpoint.expire(11.0)
    assert queue.told[-1] == (Progress.PING_FAILURE, "10.0.0.7")
    assert bench.transfer.next_deadline() is None


# --------------------------------------------------------------------- 4: Session Ack Wait Timer


def sending(host: Host, *, direct: bool, ack: int = 20_000) -> Session:
    """An open session on which one message is in flight since 101.0, after something was heard at 100.0."""
    session = host.opened(now=100.0, ack=ack)
    source = host.outgoing(packets(1, 3))
    source.direct = direct
    session.attach(source)
    session.sent.peer_size = 1
    session.pump(101.0)
    assert len(sent(session)) == 1
    return session


@pytest.mark.rule("QB-307")
@pytest.mark.parametrize("ack", [20_000, 45_000])
@pytest.mark.parametrize("direct", [True, False])
def test_ack_wait_is_twice_as_long_for_direct_names(direct: bool, ack: int) -> None:
    session = sending(Host(), direct=direct, ack=ack)
    period = ack / 1000 * (2 if direct else 1)
    assert session.next_deadline() == 101.0 + period
    session.expire(101.0 + period)  # something was heard since: the handshake
    assert session.next_deadline() == min(101.0 + 2 * period, 400.0)


@pytest.mark.rule("QB-307")
@pytest.mark.parametrize(("guid", "factor"), [(wire.NULL, 3.0), (OTHER, 1.0)])
def test_a_dialled_session_is_direct_if_it_named_no_server(guid: UUID, factor: float) -> None:
    host = Host(timers=Timers(direct_ack_multiplier=3.0))
    session = host.dial(now=100.0, server_guid=guid)
    session.receive(wire.establish(client=OWN, server=OTHER, stamp=100_000), 100.0)
    session.receive(wire.parameters(), 100.0)
    source = host.outgoing(packets(1, 1))
    source.direct = False
    session.attach(source)
    session.pump(101.0)
    assert session.next_deadline() == 101.0 + 20.0 * factor


@pytest.mark.rule("QB-307", "QB-308")
def test_ack_wait_starts_with_the_first_message_only() -> None:
    session = sending(Host(), direct=False)
    session.sent.peer_size = 3
    session.pump(110.0)
    assert len(sent(session)) == 2
    assert session.next_deadline() == 121.0


@pytest.mark.rule("QB-338")
def test_what_is_sent_while_ack_wait_runs_does_not_start_it_anew() -> None:
    host = Host()
    session = host.opened(now=100.0, ack=20_000)
    source = host.outgoing(packets(1, 1))
    source.direct = False
    session.attach(source)
    session.pump(101.0)
    host.put(source, packets(2, 1))
    session.pump(115.0)
    assert len(sent(session)) == 2
    session.expire(121.0)
    session.expire(141.0)
    assert session.reason is CloseReason.ACK_TIMEOUT


@pytest.mark.rule("QB-308", "QB-154", "QB-338")
def test_ack_wait_closes_when_nothing_was_heard_in_a_whole_period() -> None:
    session = sending(Host(), direct=False)
    session.expire(121.0)
    assert session.alive
    session.expire(140.9)
    assert session.alive
    session.expire(141.0)
    assert session.reason is CloseReason.ACK_TIMEOUT
    assert session.next_deadline() is None


@pytest.mark.rule("QB-308", "QB-154")
def test_ack_wait_goes_on_as_long_as_anything_is_heard() -> None:
    session = sending(Host(), direct=False)
    for period in range(1, 6):
        session.receive(wire.message(period), 100.0 + 20 * period)  # no acknowledgment of ours
        session.expire(101.0 + 20 * period)
        sent(session)
        assert session.alive
    session.expire(221.0)
    assert session.reason is CloseReason.ACK_TIMEOUT


@pytest.mark.rule("QB-308")
def test_ack_wait_stops_when_nothing_awaits_an_acknowledgment_and_forgets_what_was_heard() -> None:
    host = Host()
    session = host.opened(now=100.0)
    source = host.outgoing(packets(1, 1))
    source.direct = False
    session.attach(source)
    session.pump(101.0)
    sent(session)
    # What was in flight has an answer, but the timer runs on: the peer heard of it by other means.
    session.sent.process(wire.header(ack=1), session.window)
    session.expire(121.0)
    assert session.next_deadline() == 400.0
    host.put(source, packets(2, 1))
    session.pump(130.0)
    assert session.next_deadline() == 150.0
    session.expire(150.0)
    assert session.reason is CloseReason.ACK_TIMEOUT  # nothing was heard since 121


@pytest.mark.rule("QB-203", "QB-308")
def test_a_session_header_starts_ack_wait_anew_or_ends_it() -> None:
    session = sending(Host(), direct=False)
    session.receive(wire.session_ack(ack=1, window=64), 110.0)
    assert len(sent(session)) == 2
    assert session.next_deadline() == 130.0
    session.receive(wire.session_ack(ack=2), 115.0)
    assert session.next_deadline() == 135.0
    session.receive(wire.session_ack(ack=3), 116.0)
    assert session.next_deadline() == 400.0


# --------------------------------------------------------------------- 5: Session Ack Send Timer


@pytest.mark.rule("QB-309", "QB-310", "QB-311", "QB-120")
@pytest.mark.parametrize("ack", [20_000, 60_000])
def test_ack_send_takes_half_of_ack_wait_and_does_not_begin_again_by_itself(ack: int) -> None:
    session = Host(switches=TIMED).opened(now=100.0, ack=ack)
    due = 101.0 + ack / 2000
    session.receive(wire.message(1), 101.0)
    assert session.next_deadline() == due
    session.receive(wire.message(2), 105.0)
    assert session.next_deadline() == due  # further messages do not start it anew
    session.expire(due - 0.01)
    assert sent(session) == []
    session.expire(due)
    assert sent(session) == [wire.session_ack(ack=2)]
    assert session.next_deadline() == 400.0


@pytest.mark.rule("QB-309")
@pytest.mark.parametrize("recoverable", [500, 3_000])
def test_the_first_recoverable_message_makes_it_sooner(recoverable: int) -> None:
    host = Host(switches=TIMED)
    session = host.opened(now=100.0, recoverable=recoverable)
    session.receive(wire.message(1), 101.0)
    session.receive(wire.message(2, recoverable=True), 102.0)
    host.commit()
    session.pump(102.5)
    due = 102.5 + recoverable / 1000
    assert session.next_deadline() == due
    session.receive(wire.message(3, recoverable=True), 102.7)
    host.commit()
    session.pump(102.8)
    assert session.next_deadline() == due
    session.expire(due)
    assert sent(session) == [wire.session_ack(ack=3, base_ack=1, flags=3)]


@pytest.mark.rule("QB-309", "QB-277")
def test_an_acknowledgment_stops_the_timer_and_the_next_message_has_a_whole_period() -> None:
    session = Host(switches=Switches(amb19_prompt_ack=False)).opened(now=100.0)
    session.receive(wire.message(1), 101.0)
    assert session.next_deadline() == 101.05
    session.receive(b"".join(wire.message(number) for number in range(2, 33)), 101.03)
    assert sent(session) == [wire.session_ack(ack=32)]  # half the window
    assert session.next_deadline() == 400.0
    session.receive(wire.message(33), 101.04)
    assert session.next_deadline() == pytest.approx(101.09)


@pytest.mark.rule("QB-309")
@pytest.mark.parametrize("count", [32, 33])
def test_what_one_header_cannot_say_does_not_wait_for_the_timer(count: int) -> None:
    host = Host(switches=TIMED)
    session = host.opened(now=100.0)
    for number in range(1, count + 1):
        session.receive(wire.message(number, recoverable=True), 101.0)
    host.commit()
    session.pump(101.0)
    assert len(sent(session)) == (2 if count == 33 else 0)


@pytest.mark.rule("QB-297", "QB-301")
def test_no_timer_outlives_its_session() -> None:
    session = sending(Host(switches=TIMED), direct=True)
    session.receive(wire.message(1) + wire.message(2)[:20], 102.0)
    session.pause_sending(103.0)
    session.close(CloseReason.DISCONNECTED, 104.0)
    assert session.next_deadline() is None
    session.pause_sending(105.0)
    assert session.next_deadline() is None


# --------------------------------------------------------------------- 9: Ping Response Timer


@pytest.mark.rule("QB-068", "QB-069", "QB-082", "QB-317", "QB-368", "QB-369", "QB-371")
def test_each_ping_has_its_own_cookie_and_second() -> None:
    done: list[tuple[int, bool, float]] = []
    pinger = Pinger(OWN, Timers().ping_response, lambda *outcome: done.append(outcome))
    assert pinger.next_deadline() is None
    assert pinger.send(71, 10.0) == ping(0, 1, OWN)
    assert pinger.send(72, 10.4) == ping(0, 2, OWN)
    assert pinger.send(73, 10.5) == ping(0, 3, OWN)
    assert pinger.next_deadline() == 11.0
    pinger.receive(ping(0, 2), 10.6)
    pinger.receive(ping(0, 2), 10.7)
    pinger.receive(ping(2, 3), 10.8)
    assert done == [(72, True, 10.6), (73, False, 10.8)]
    pinger.expire(10.99)
    assert len(done) == 2
    pinger.expire(11.0)
    assert done[2:] == [(71, False, 11.0)]
    pinger.receive(ping(0, 1), 11.1)
    pinger.receive(ping(0, 4), 11.1)
    assert len(done) == 3
    assert pinger.next_deadline() is None


@pytest.mark.rule("QB-172", "QB-317")
def test_pings_to_several_hosts_do_not_defeat_one_another() -> None:
    bench = Bench(ping_first=True)
    bench.endpoint.expire(10.0)
    for number, host in enumerate(("10.0.0.7", "10.0.0.8"), 1):
        bench.transfer.submit(bench.queue(host), 10.0 + number / 10)
    bench.take()
    bench.endpoint.ping_answered(ping(0, 1), 10.5)
    assert bench.take() == [Connect(1, "10.0.0.7")]
    assert bench.endpoint.next_deadline() == 11.2
    bench.endpoint.ping_answered(ping(0, 2), 10.6)
    assert bench.take() == [Connect(2, "10.0.0.8")]


# --------------------------------------------------------------------- values


@pytest.mark.rule("QB-301", "QB-144")
def test_durations_are_those_of_windows() -> None:
    timers = Timers()
    assert (timers.initialization, timers.session_cleanup, timers.retry) == (60.0, 300.0, 5.0)
    assert (timers.proposed_ack_wait, timers.direct_ack_multiplier) == (20.0, 2.0)
    assert (timers.history_cleanup, timers.ping_response) == (1_800.0, 1.0)
    assert Timers(ack_wait=1.0).proposed_ack_wait == 20.0
    assert Timers(ack_wait=100.0, round_trip_delay=30.0).proposed_ack_wait == 120.0
    assert Timers(ack_wait=30.0, round_trip_delay=5.0).proposed_ack_wait == 35.0
    assert earliest(None, 3.0, None, 2.0) == 2.0
    assert earliest(None, None) is None


# --------------------------------------------------------------------- counters beyond 16 bits (AMB-45)


@pytest.mark.rule("QB-195", "QB-202", "QB-277")
def test_both_directions_of_a_session_pass_65535_messages() -> None:
    host = Host(window=1_000)
    session = host.opened(now=100.0, window=0xFFFF)
    source = host.outgoing([])
    session.attach(source)
    step, in_all = 1_000, 0
    while in_all < 75_000:
        recoverable = in_all % 10_000 != 0
        first = in_all + 1
        host.put(source, packets(first, step, recoverable=recoverable))
        session.pump(101.0)
        assert len([packet for packet in sent(session) if wire.kind(packet) == "MSG"]) == step
        session.receive(
            b"".join(wire.message(first + n, recoverable=recoverable) for n in range(step)), 102.0
        )
        host.commit()
        in_all += step
        kept = session.sent.recoverable
        answer = wire.session_ack(
            ack=in_all & 0xFFFF,
            base_ack=kept & 0xFFFF,
            flags=1,
            sent=in_all & 0xFFFF,
            recoverable=session.window.recoverable & 0xFFFF,
            window=1_000,
        )
        session.receive(answer, 103.0)
        assert session.alive, (in_all, session.reason)
        assert session.sent.unacknowledged == 0
        session.expire(104.0)
        last = wire.read_header(sent(session)[-1])
        assert (last[0], last[3]) == (in_all & 0xFFFF, in_all & 0xFFFF)
        reader = host.ledger.new_owner()
        taken = host["q"].take(1 << 20, 1 << 30, reader)
        assert [wire.ordinal(message.packet) for message in taken] == list(range(first, first + step))
        for message in taken:
            host["q"].remove(message.lookup_id, reader)
        host.commit()
    assert source.core.messages == 0
    session.receive(wire.session_ack(ack=in_all & 0xFFFF, sent=(in_all + 1) & 0xFFFF), 105.0)
    assert session.reason is CloseReason.COUNT_MISMATCH


# --------------------------------------------------------------------- simultaneous open (AMB-84)


@pytest.mark.rule("QB-091")
@pytest.mark.parametrize("accepted_first", [True, False])
def test_two_queue_managers_that_dial_each_other_keep_both_sessions(accepted_first: bool) -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7", range(1, 4))
    bench.transfer.submit(queue, 10.0)
    (effect,) = bench.take()
    assert isinstance(effect, Connect)
    dialled = bench.endpoint.connected(effect.link, 10.0)
    assert dialled is not None
    (request,) = sent(dialled)
    stamp = struct.unpack_from("<I", request, 52)[0]
    if accepted_first:
        accepted = bench.accepted("10.0.0.7", 10.1)
    dialled.receive(
        wire.establish(client=OWN, server=wire.PEER, stamp=stamp) + wire.parameters(500, 20_000), 10.2
    )
    if not accepted_first:
        accepted = bench.accepted("10.0.0.7", 10.3)
    assert dialled.state is accepted.state is SessionState.OPEN
    assert ordinals(dialled) == [1, 2, 3]  # each message is bound to one session
    assert ordinals(accepted) == []
    accepted.receive(wire.message(9), 11.0)
    dialled.receive(wire.message(10), 11.0)
    assert bench.host.messages() == [9, 10]
    # What was in flight on the one that ends goes over the other.
    dialled.receive(wire.session_ack(ack=1, sent=1), 12.0)
    dialled.close(CloseReason.DISCONNECTED, 13.0)
    assert accepted.alive
    bench.endpoint.expire(18.0)
    assert bench.take() == []
    assert ordinals(accepted) == [2, 3]
