"""Outgoing queues and their sessions: resolve, dial, retry, share, join, withdraw, close; virtual clock."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest

from msmq_fast.mqqb.hops import Progress, Target
from msmq_fast.mqqb.limits import Limits
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.switches import Switches
from msmq_fast.mqqb.transfer import Connect, LinkState, Resolve
from msmq_fast.qm.queues.stall import FLOWING, StallCause
from tests.mqqb.transfers import Bench, ordinals
from tests.support.mqqb import wire
from tests.support.worlds.hosts import OWN, sent


@pytest.mark.rule("QB-377", "QB-378", "QB-164", "QB-186", "QB-192", "QB-363", "QB-376")
def test_a_message_for_an_address_dials_and_flows_when_the_session_opens() -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7", range(1, 4))
    bench.transfer.submit(queue, 10.0)
    bench.transfer.submit(queue, 10.0)
    assert bench.effects == [Connect(1, "10.0.0.7")]
    session = bench.endpoint.connected(1, 11.0)
    assert session is not None
    (request,) = sent(session)
    answer = wire.establish(client=OWN, server=wire.PEER, stamp=struct.unpack_from("<I", request, 52)[0])
    for packet, kinds in ((answer, ["CP"]), (wire.parameters(500, 20_000), ["MSG"] * 3)):
        bench.transfer.submit(queue, 11.0)
        session.pump(11.0)
        session.receive(packet, 11.0)
        packets = sent(session)
        assert [wire.kind(each) for each in packets] == kinds  # none before the session is open
    assert [wire.ordinal(each) for each in packets] == [1, 2, 3]
    told = [Progress.IN_PROCESS, Progress.ANSWERED, Progress.ESTABLISHED]
    assert queue.told == [(progress, "10.0.0.7") for progress in told]


@pytest.mark.rule("QB-165", "QB-169", "QB-170", "QB-171", "QB-305", "QB-306")
def test_names_are_resolved_and_their_addresses_tried_in_turn() -> None:
    bench = Bench()
    queue = bench.queue("server")
    bench.transfer.submit(queue, 10.0)
    assert bench.take() == [Resolve(1, "server")]
    bench.transfer.resolved(1, ["10.0.0.1", "10.0.0.2"], 10.5)
    assert bench.take() == [Connect(1, "10.0.0.1")]
    bench.transfer.failed(1, "refused", 11.0)
    assert bench.take() == []
    bench.endpoint.expire(15.9)
    assert bench.take() == []
    bench.endpoint.expire(16.0)
    assert bench.take() == [Connect(1, "10.0.0.2")]
    bench.transfer.failed(1, "refused", 17.0)
    bench.endpoint.expire(22.0)
    assert bench.take() == [Resolve(1, "server")]  # behind the last address the name is asked for again
    bench.transfer.resolved(1, ["10.0.0.3"], 22.0)
    session = bench.connect(23.0)
    assert ordinals(session) == [1]
    bench.host.put(queue, [wire.message(2, source=OWN)])
    bench.transfer.submit(queue, 24.0)
    assert (ordinals(session), bench.take()) == ([2], [])  # the next message asks nobody
    assert [told for told, _ in queue.told].count(Progress.CONNECT_FAILURE) == 2


@pytest.mark.rule("QB-165", "QB-167")
def test_a_name_that_is_not_resolved_is_retried() -> None:
    bench = Bench()
    queue = bench.queue("nowhere")
    bench.transfer.submit(queue, 10.0)
    bench.take()
    bench.transfer.failed(1, "unknown", 10.0)
    assert queue.told[-1] == (Progress.DNS_FAILURE, "")
    assert bench.transfer.next_deadline() == 15.0
    bench.endpoint.expire(15.0)
    assert bench.take() == [Resolve(1, "nowhere")]


@pytest.mark.rule("QB-138", "QB-296", "QB-298", "QB-355", "QB-362")
def test_a_session_that_breaks_is_dialled_again_after_five_seconds_and_resends() -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7", range(1, 4), recoverable=True)
    bench.transfer.submit(queue, 10.0)
    session = bench.connect(10.0)
    assert ordinals(session) == [1, 2, 3]
    session.receive(wire.session_ack(ack=3, base_ack=1, flags=1), 10.5)
    session.close(CloseReason.DISCONNECTED, 11.0)
    bench.host.commit()
    assert queue.told[-1] == (Progress.DISCONNECTED, "10.0.0.7")
    bench.endpoint.expire(15.9)
    assert bench.take() == []
    bench.endpoint.expire(16.0)
    assert ordinals(bench.connect(16.0)) == [2, 3]


@pytest.mark.rule("QB-103", "QB-183")
def test_a_refused_session_is_retried_after_five_seconds() -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7")
    bench.transfer.submit(queue, 10.0)
    bench.take()
    session = bench.endpoint.connected(1, 10.0)
    assert session is not None
    session.receive(wire.establish(client=OWN, server=wire.PEER, refused=True), 10.0)
    assert queue.told[-2:] == [(Progress.REFUSED, "10.0.0.7"), (Progress.DISCONNECTING, "10.0.0.7")]
    assert bench.endpoint.session_context.counts.closed[CloseReason.REFUSED] == 1
    assert bench.transfer.links[0].state is LinkState.WAITING
    bench.endpoint.expire(15.0)
    assert bench.take() == [Connect(1, "10.0.0.7")]


@pytest.mark.rule("QB-303", "QB-376")
def test_an_idle_session_ends_and_a_new_message_dials_at_once() -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7")
    bench.transfer.submit(queue, 10.0)
    session = bench.connect(10.0)
    sent(session)
    session.receive(wire.session_ack(ack=1), 10.5)
    session.expire(310.0)
    session.expire(610.0)
    assert session.reason is CloseReason.IDLE
    bench.endpoint.expire(700.0)
    assert bench.take() == []
    bench.host.put(queue, [wire.message(2, source=OWN)])
    bench.transfer.submit(queue, 701.0)
    assert ordinals(bench.connect(701.0)) == [2]


@pytest.mark.rule("QB-008", "QB-127")
def test_destinations_are_forgotten_with_their_sessions() -> None:
    """Also those to which there was nothing more to be sent before anything came of it."""
    bench = Bench()
    for number in range(1, 4):
        queue = bench.queue(f"10.0.0.{number}")
        bench.transfer.submit(queue, 10.0)
        session = bench.connect(10.0, UUID(int=number))
        sent(session)
        session.receive(wire.session_ack(1), 10.0)
        assert len(bench.transfer.links) == 1
        session.close(CloseReason.IDLE, 310.0)
        assert bench.transfer.links == ()
    for host in ("10.0.0.9", "named"):
        queue = bench.queue(host)
        bench.transfer.submit(queue, 400.0)
        (effect,) = bench.take()
        assert isinstance(effect, Connect | Resolve)
        bench.transfer.withdraw(queue)
        bench.transfer.failed(effect.link, "", 401.0)
        assert bench.transfer.links == ()
        bench.transfer.resolved(effect.link, ["10.0.0.9"], 402.0)
        bench.transfer.pinged(effect.link, True, 402.0)
        bench.transfer.failed(effect.link, "", 402.0)
        assert bench.endpoint.connected(effect.link, 402.0) is None
    assert bench.take() == []


def test_several_queues_share_one_session_and_a_later_one_joins_it() -> None:
    bench = Bench()
    one, two = bench.queue("10.0.0.7", range(1, 3)), bench.queue("10.0.0.7", range(11, 13))
    bench.transfer.submit(one, 10.0)
    bench.transfer.submit(two, 10.0)
    session = bench.connect(10.0)
    assert sorted(ordinals(session)) == [1, 2, 11, 12]
    three = bench.queue("10.0.0.7", range(21, 23))
    bench.transfer.submit(three, 20.0)
    assert bench.take() == []
    assert ordinals(session) == [21, 22]
    bench.transfer.submit(bench.queue("other-name", range(31, 32)), 20.0)
    bench.take()
    bench.transfer.resolved(2, ["10.0.0.7"], 20.0)
    assert bench.take() == []  # another name for the same address
    assert ordinals(session) == [31]


@pytest.mark.rule("QB-008", "QB-127")
def test_an_accepted_session_is_used_instead_of_dialling() -> None:
    bench = Bench()
    session = bench.accepted("10.0.0.7", 5.0)
    sent(session)
    by_address, by_guid = bench.queue("10.0.0.7", range(1, 2)), bench.queue("", range(2, 3), guid=wire.PEER)
    bench.transfer.submit(by_address, 10.0)
    bench.transfer.submit(by_guid, 10.0)
    assert bench.take() == []
    assert ordinals(session) == [1, 2]
    strict = Bench(switches=Switches(amb18_reuse_accepted=False))
    strict.accepted("10.0.0.7", 5.0)
    strict.transfer.submit(strict.queue("10.0.0.7"), 10.0)
    assert strict.take() == [Connect(1, "10.0.0.7")]


@pytest.mark.rule("QB-127")
def test_a_queue_that_waits_to_reconnect_takes_the_session_that_its_peer_opens() -> None:
    bench = Bench()
    queue = bench.queue("", guid=wire.PEER)
    bench.transfer.submit(queue, 10.0)
    assert queue.told[-1] == (Progress.ROUTE_FAILURE, "")
    session = bench.accepted("10.0.0.7", 12.0)
    assert ordinals(session) == [1]
    session.close(CloseReason.DISCONNECTED, 13.0)
    assert bench.transfer.links[0].state is LinkState.WAITING


def test_a_queue_manager_whose_address_becomes_known_is_dialled_at_the_next_attempt() -> None:
    bench = Bench()
    first, second = (bench.queue("", guid=wire.PEER) for _ in range(2))
    for queue in (first, second):
        bench.transfer.submit(queue, 10.0)
    first.later = Target("10.0.0.7", wire.PEER)
    due = bench.transfer.next_deadline()
    assert due is not None
    bench.transfer.expire(due)
    assert [type(effect) for effect in bench.take()] == [Connect]
    links = {link.target.host: list(link.queues) for link in bench.transfer.links}
    assert links == {"": [second], "10.0.0.7": [first]}


def test_a_withdrawn_queue_sends_nothing_more() -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7", range(1, 3))
    bench.transfer.submit(queue, 10.0)
    session = bench.connect(10.0)
    sent(session)
    bench.transfer.withdraw(queue)
    bench.host.put(queue, [wire.message(3, source=OWN)])
    session.pump(11.0)
    assert ordinals(session) == []


@pytest.mark.rule("QB-153", "QB-295")
def test_stop_closes_every_session_without_a_word() -> None:
    bench = Bench()
    session = bench.accepted("10.0.0.7", 5.0)
    sent(session)
    bench.endpoint.stop(6.0)
    assert session.reason is CloseReason.STOPPED
    assert sent(session) == []
    assert bench.ended == [("10.0.0.7", CloseReason.STOPPED)]
    assert bench.endpoint.sessions == set()


# ---------------------------------------------------------------------------------------- the own computer


def test_a_name_of_this_computer_is_not_dialled() -> None:
    bench = Bench()
    bench.transfer._is_own = {"10.0.0.1"}.__contains__
    queue = bench.queue("alias")
    bench.transfer.submit(queue, 10.0)
    bench.take()
    bench.transfer.resolved(1, ["10.0.0.1"], 10.0)
    assert bench.take() == []
    assert queue.told[-1] == (Progress.OWN_HOST, "10.0.0.1")
    assert queue.homecomings == 1
    assert bench.transfer.next_deadline() is None
    assert bench.transfer.links == ()


def test_what_no_local_queue_takes_is_tried_again() -> None:
    bench = Bench()
    bench.transfer._is_own = {"10.0.0.1"}.__contains__
    queue = bench.queue("10.0.0.1")
    queue.at_home = False
    bench.transfer.submit(queue, 10.0)
    assert bench.transfer.next_deadline() == 15.0
    bench.endpoint.expire(15.0)
    assert queue.homecomings == 2
    assert bench.take() == []


# ---------------------------------------------------------------------------------------- queues come and go


def test_a_queue_that_joins_an_open_link_hears_so_and_wakes_the_session() -> None:
    bench = Bench()
    first, second = bench.queue("10.0.0.7"), bench.queue("10.0.0.7", range(5, 6))
    bench.transfer.submit(first, 10.0)
    session = bench.connect(10.0)
    bench.woken.clear()
    bench.transfer.submit(second, 11.0)
    assert second.told == [(Progress.ESTABLISHED, "10.0.0.7")]
    assert bench.woken == [session]


def test_a_withdrawn_queue_does_not_come_back_with_the_next_session() -> None:
    bench = Bench()
    first, second = bench.queue("10.0.0.7"), bench.queue("10.0.0.7", range(5, 6))
    bench.transfer.submit(first, 10.0)
    bench.transfer.submit(second, 10.0)
    bench.take()
    bench.transfer.withdraw(second)
    bench.transfer.withdraw(second)
    bench.transfer.failed(1, "refused", 10.0)
    bench.endpoint.expire(15.0)
    assert ordinals(bench.connect(15.0)) == [1]
    assert Progress.ESTABLISHED not in [progress for progress, _ in second.told]


def test_a_link_that_found_a_session_retries_no_more() -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7")
    bench.transfer.submit(queue, 10.0)
    bench.take()
    bench.transfer.failed(1, "refused", 10.0)
    assert bench.transfer.next_deadline() == 15.0
    bench.accepted("10.0.0.7", 12.0)
    assert queue.told[-1] == (Progress.ESTABLISHED, "10.0.0.7")
    assert bench.transfer.next_deadline() is None
    bench.endpoint.expire(15.0)
    assert bench.take() == []


def test_after_a_session_has_broken_the_peer_may_open_the_next_one() -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7")
    bench.transfer.submit(queue, 10.0)
    bench.connect(10.0).close(CloseReason.DISCONNECTED, 11.0)
    assert bench.transfer.links[0].state is LinkState.WAITING
    again = bench.accepted("10.0.0.7", 12.0)
    assert bench.transfer.links[0].state is LinkState.OPEN
    assert ordinals(again) == [1]


def test_an_operator_ends_the_pause_before_the_next_attempt() -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7")
    bench.transfer.submit(queue, 10.0)
    for now in (10.0, 15.0, 25.0):
        bench.endpoint.expire(now)
        assert bench.take() == [Connect(1, "10.0.0.7")]
        bench.transfer.failed(1, "refused", now)
    bench.transfer.kick(queue, 25.5)
    bench.endpoint.expire(25.5)
    assert bench.take() == [Connect(1, "10.0.0.7")]
    bench.transfer.kick(queue, 25.6)  # an attempt is under way
    bench.endpoint.expire(25.6)
    assert bench.take() == []
    bench.transfer.failed(1, "refused", 26.0)
    bench.endpoint.expire(31.0)  # the pauses are short again
    assert ordinals(bench.connect(31.0)) == [1]


def test_a_peer_that_acknowledges_nothing_is_an_obstacle_after_five_seconds() -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7")
    assert bench.transfer.obstacle(queue, 10.0) == FLOWING
    bench.transfer.submit(queue, 10.0)
    session = bench.connect(10.0)
    assert ordinals(session) == [1]
    assert bench.transfer.obstacle(queue, 14.9) == FLOWING
    stall = bench.transfer.obstacle(queue, 15.0)
    assert stall.cause is StallCause.SILENT
    assert "10.0.0.7 has acknowledged nothing for 5 s" in stall.reason
    session.receive(wire.session_ack(ack=1), 15.0)
    assert bench.transfer.obstacle(queue, 60.0) == FLOWING


def test_a_link_that_waits_for_its_turn_is_an_obstacle() -> None:
    bench = Bench(limits=Limits(dials=1))
    first, second = bench.queue("10.0.0.7"), bench.queue("10.0.0.8")
    for queue in (first, second):
        bench.transfer.submit(queue, 10.0)
    assert bench.transfer.obstacle(first, 10.0) == FLOWING
    assert bench.transfer.obstacle(second, 10.0).cause is StallCause.QUEUED


def test_a_peer_that_closes_while_messages_wait_is_a_failure() -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7", range(1, 4))
    bench.transfer.submit(queue, 10.0)
    session = bench.connect(10.0)
    sent(session)
    session.close(CloseReason.DISCONNECTED, 11.0)
    assert (Progress.SEND_FAILURE, "10.0.0.7") in queue.told
