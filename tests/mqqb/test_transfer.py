"""Resolve, connect, retry, idle close, shared sessions, pings, limits, cloned identities; virtual clock."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest

from msmq_fast._native.history import DuplicateHistory
from msmq_fast.mqqb.endpoint import Endpoint, SendPing
from msmq_fast.mqqb.handshake import NULL_GUID
from msmq_fast.mqqb.hops import Progress, Target
from msmq_fast.mqqb.limits import Limits
from msmq_fast.mqqb.ping import IN_ALL as PINGS_IN_ALL
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.sessionstate import SessionState
from msmq_fast.mqqb.switches import Switches
from msmq_fast.mqqb.transfer import Connect, LinkState, Resolve
from msmq_fast.packet.session import Ping
from tests.mqqb.transfers import OTHER, Bench, Outgoing, ordinals, ping
from tests.support.mqqb import wire
from tests.support.worlds.hosts import OWN, Host, sent


@pytest.mark.parametrize("confined", ["127.0.0.1", "169.254.169.254", "fe80::1", "224.0.0.1", "::1"])
def test_answers_do_not_go_to_confined_addresses_that_a_name_is_resolved_to(confined: str) -> None:
    bench = Bench()
    queue = bench.queue("rebound.example")
    queue.for_answers, queue.answers_for = True, "198.51.100.9"
    bench.transfer.submit(queue, 10.0)
    assert bench.take() == [Resolve(1, "rebound.example")]
    bench.transfer.resolved(1, [confined], 11.0)
    assert bench.take() == []
    assert queue.told[-1][0] is Progress.DNS_FAILURE
    bench.endpoint.expire(20.0)
    assert bench.take() == [Resolve(1, "rebound.example")]
    bench.transfer.resolved(1, [confined, "198.51.100.10"], 21.0)
    assert bench.take() == [Connect(1, "198.51.100.10")]


@pytest.mark.parametrize(
    ("for_answers", "of_peer", "guid"),
    [(False, "", NULL_GUID), (True, "127.0.0.9", NULL_GUID), (True, "198.51.100.9", wire.PEER)],
    ids=["of a program", "of a peer that has the address", "a host of the directory"],
)
def test_others_go_to_confined_addresses(for_answers: bool, of_peer: str, guid: UUID) -> None:
    bench = Bench()
    queue = bench.queue("server", guid=guid)
    queue.for_answers, queue.answers_for = for_answers, of_peer
    bench.transfer.submit(queue, 10.0)
    assert bench.take() == [Resolve(1, "server")]
    bench.transfer.resolved(1, ["127.0.0.9"], 11.0)
    assert bench.take() == [Connect(1, "127.0.0.9")]


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


# ------------------------------------------------------------------------------------------------ ping


def asked(
    bench: Bench, datagram: bytes, address: str = "10.0.0.1", port: int = 4057, now: float = 1.0
) -> bytes | None:
    """The answer to a datagram at the ping port, which is 3527 here."""
    return bench.endpoint.answer_ping(datagram, address, port, 3527, now)


@pytest.mark.rule("QB-161", "QB-063", "QB-064", "QB-066", "QB-067", "QB-068", "QB-069", "QB-370")
def test_ping_requests_are_answered() -> None:
    bench = Bench(limits=Limits(sessions=1))
    assert asked(bench, ping(0x7D01, 4)) == ping(0x0001, 4, OWN)
    assert asked(bench, ping(0x0000, 0xFFFFFFFF)) == ping(0x0000, 0xFFFFFFFF, OWN)
    assert asked(bench, ping(0, 4, signature=0x4855)) is None
    assert asked(bench, ping(0, 4)[:23]) is None
    bench.accepted("10.0.0.7", 5.0)
    assert asked(bench, ping(0x0001, 4)) == ping(0x0003, 4, OWN)


@pytest.mark.parametrize("port", [0, 7, 19, 123, 1023, 3527])
def test_a_ping_from_a_port_that_may_answer_by_itself_is_ignored(port: int) -> None:
    bench = Bench()
    assert asked(bench, ping(0, 4), port=port) is None
    assert asked(bench, ping(0, 4), port=1024) == ping(0, 4, OWN)


def test_two_responders_at_ports_of_their_own_do_not_answer_each_other() -> None:
    bench = Bench(limits=Limits(ping_ports=frozenset((5000,))))
    assert bench.endpoint.answer_ping(ping(0, 4), "10.0.0.1", 5000, 6000, 1.0) is None
    assert bench.endpoint.answer_ping(ping(0, 4), "10.0.0.1", 6000, 6000, 1.0) is None
    assert bench.endpoint.answer_ping(ping(0, 4), "10.0.0.1", 3527, 6000, 1.0) is None
    assert bench.endpoint.answer_ping(ping(0, 4), "10.0.0.1", 7000, 6000, 1.0) is not None


def test_pings_of_one_address_group_are_answered_at_a_limited_rate() -> None:
    bench = Bench(limits=Limits(pings_per_address=10))

    def answered(network: str, now: float) -> int:
        return sum(asked(bench, ping(0, n), network.format(n), now=now) is not None for n in range(1, 200))

    assert answered("10.0.0.7", 5.0) == 10
    assert answered("::ffff:10.0.0.7", 5.0) == 0
    assert answered("2001:db8::{:x}", 5.0) == 10
    assert answered("10.0.0.8", 5.0) == 10
    assert answered("10.0.0.7", 5.5) == 5
    assert answered("10.0.0.7", 60.0) == 10


def test_pings_from_forged_addresses_are_answered_at_a_limited_rate_in_all() -> None:
    bench = Bench(limits=Limits(pings_per_address=10))
    addresses = [f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(20_000)]
    assert sum(asked(bench, ping(0, 1), address) is not None for address in addresses) == PINGS_IN_ALL
    assert asked(bench, ping(0, 1), "10.0.0.1", now=1.5) is not None


@pytest.mark.rule(
    "QB-012", "QB-062", "QB-065", "QB-068", "QB-082", "QB-172", "QB-173", "QB-368", "QB-369", "QB-371"
)
@pytest.mark.rule("QB-164")
def test_an_answered_ping_comes_before_the_connection() -> None:
    bench = Bench(ping_first=True)
    bench.transfer.submit(bench.queue("10.0.0.7"), 10.0)
    assert bench.take() == [SendPing("10.0.0.7", ping(0, 1, OWN))]
    for wrong in (ping(0, 2), ping(0, 1, signature=1), ping(0, 1)[:20]):
        bench.endpoint.ping_answered(wrong, 10.1)
    assert bench.take() == []
    bench.endpoint.ping_answered(ping(0, 1), 10.2)
    assert bench.effects == [Connect(1, "10.0.0.7")]
    session = bench.endpoint.connected(1, 10.3)
    assert session is not None
    assert sent(session) == [wire.establish(client=OWN, server=NULL_GUID, stamp=10_300, system=0x210)]


@pytest.mark.rule("QB-174", "QB-317", "QB-368", "QB-371", "QB-172", "QB-164")
@pytest.mark.parametrize("refused", [True, False])
def test_a_failed_ping_waits_and_the_retry_does_not_ping(refused: bool) -> None:
    bench = Bench(ping_first=True)
    queue = bench.queue("10.0.0.7")
    bench.transfer.submit(queue, 10.0)
    bench.take()
    if refused:
        bench.endpoint.ping_answered(ping(2, 1), 11.0)
    else:
        bench.endpoint.expire(10.9)
        assert queue.told[-1][0] is Progress.IN_PROCESS
        bench.endpoint.expire(11.0)
    assert queue.told[-1] == (Progress.PING_FAILURE, "10.0.0.7")
    bench.endpoint.ping_answered(ping(0, 1), 11.5)  # too late
    assert bench.take() == []
    bench.endpoint.expire(16.0)
    assert bench.take() == [Connect(1, "10.0.0.7")]


# ----------------------------------------------------------------------------------- limits and identity


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


def test_our_own_identity_is_refused_in_both_roles() -> None:
    bench = Bench()
    session = bench.accepted("10.0.0.1", 1.0, OWN)
    assert sent(session)[0] == wire.establish(client=OWN, server=OWN, refused=True)
    assert session.reason is CloseReason.OWN_GUID
    bench.transfer.submit(bench.queue("10.0.0.7"), 10.0)
    bench.take()
    dialled = bench.endpoint.connected(1, 10.0)
    assert dialled is not None
    dialled.receive(wire.establish(client=OWN, server=OWN), 10.0)
    assert dialled.reason is CloseReason.OWN_GUID


def test_a_peer_with_several_networks_is_let_in_where_that_is_configured() -> None:
    bench = Bench(several_addresses=True)
    accepted = bench.accepted("10.0.0.1", 1.0)
    bench.transfer.submit(bench.queue("10.0.1.1"), 2.0)
    dialled = bench.connect(2.0)
    assert (accepted.state, dialled.state) == (SessionState.OPEN, SessionState.OPEN)
    assert ordinals(dialled) == [1]
    assert bench.accepted("10.0.2.1", 3.0, OWN).reason is CloseReason.OWN_GUID


def test_every_packet_says_that_a_peer_lives_at_its_address() -> None:
    bench = Bench()
    first = bench.accepted("10.0.0.1", 1.0)
    first.receive(wire.session_ack(), 100.0)
    peers = bench.endpoint.session_context.peers
    assert not peers.holds(bench.accepted("10.0.0.2", 200.0))
    assert peers.holds(first)


def test_a_packet_that_came_in_pieces_leaves_no_deadline_behind() -> None:
    session = Bench(limits=Limits(slow_writer=30.0)).accepted("10.0.0.1", 1.0)
    packet = wire.message(1)
    session.receive(packet[:20], 2.0)
    assert session.next_deadline() == 32.0
    session.receive(packet[20:], 3.0)
    session.expire(32.0)
    assert session.alive


def test_one_identity_at_two_addresses_is_reported_while_the_first_lives() -> None:
    contests: list[tuple[UUID, str, str]] = []
    bench = Bench(on_contest=lambda *about: contests.append(about))
    first = bench.accepted("10.0.0.1", 1.0)
    assert bench.accepted("10.0.0.1", 2.0).state is SessionState.OPEN  # the same peer again
    assert bench.accepted("fd00::1", 2.0).state is SessionState.OPEN  # its other address family
    assert contests == []
    clone = bench.accepted("10.0.0.2", 3.0)
    assert contests == [(wire.PEER, "10.0.0.1", "10.0.0.2")]
    assert (first.state, clone.state) == (SessionState.OPEN, SessionState.OPEN)


def test_messages_for_a_guid_take_no_session_that_only_claims_it() -> None:
    bench = Bench()
    owner = bench.accepted("10.0.0.1", 1.0)
    stranger = bench.accepted("10.0.0.66", 2.0)
    bench.take()
    bench.transfer.submit(bench.queue("", guid=wire.PEER), 3.0)
    assert (ordinals(owner), ordinals(stranger)) == ([1], [])
    owner.close(CloseReason.IDLE, 4.0)
    bench.transfer.submit(bench.queue("", range(2, 3), guid=wire.PEER), 5.0)
    bench.transfer.expire(300.0)
    assert ordinals(stranger) == []


def test_a_host_that_was_dialled_for_another_name_is_not_every_guid_that_it_says() -> None:
    bench = Bench()
    owner = bench.accepted("10.0.0.1", 1.0)
    bench.take()
    bench.transfer.submit(bench.queue("10.0.0.66"), 2.0)
    stranger = bench.connect(2.0, wire.PEER)
    assert ordinals(stranger) == [1]
    bench.transfer.submit(bench.queue("", range(2, 3), guid=wire.PEER), 3.0)
    assert (ordinals(owner), ordinals(stranger)) == ([2], [])


def test_a_question_is_one_datagram_and_only_its_cookie_answers_it() -> None:
    bench = Bench()
    squatter = bench.accepted("10.0.0.66", 1.0)
    owner = bench.accepted("10.0.0.1", 2.0)
    peers = bench.endpoint.session_context.peers
    bench.endpoint.expire(2.0)
    to_squatter, to_owner = bench.take()
    assert isinstance(to_squatter, SendPing)
    assert isinstance(to_owner, SendPing)
    assert (to_squatter.address, to_owner.address) == ("10.0.0.66", "10.0.0.1")
    asked = Ping.decode(to_owner.datagram)
    assert asked is not None
    bench.endpoint.ping_answered(Ping(asked.cookie ^ 1, wire.PEER).encode(), 2.5)
    assert peers.holds(squatter)
    bench.endpoint.ping_answered(Ping(asked.cookie, wire.PEER).encode(), 2.5)
    due = bench.endpoint.next_deadline()
    assert due is not None
    bench.endpoint.expire(due)  # the squatter has said nothing
    assert (peers.holds(owner), peers.holds(squatter)) == (True, False)


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


@pytest.mark.rule("QB-316", "QB-129")
def test_the_duplicate_history_is_cleaned_up_every_half_hour() -> None:
    bench = Bench()
    bench.accepted("10.0.0.1", 0.0).receive(wire.message(1), 1.0)
    assert len(bench.host.session_context.history) == 1
    bench.host.ledger.tick(5_000 * 1_000_000)
    bench.endpoint.expire(1_799.0)
    assert len(bench.host.session_context.history) == 1
    bench.endpoint.expire(1_800.0)
    assert len(bench.host.session_context.history) == 0
    bench.accepted("10.0.0.1", 1_801.0).receive(wire.message(2), 1_802.0)
    bench.host.ledger.tick(9_000 * 1_000_000)
    bench.endpoint.expire(3_599.0)
    assert len(bench.host.session_context.history) == 1
    bench.endpoint.expire(3_600.0)
    assert len(bench.host.session_context.history) == 0


@pytest.mark.rule("QB-078")
def test_the_stored_history_is_trimmed_to_what_is_remembered() -> None:
    host = Host(history=DuplicateHistory(100))
    calls: list[tuple[int, int]] = []
    left = [200, 3]

    def trim(before: int, limit: int) -> int:
        calls.append((before, limit))
        return left.pop(0)

    endpoint = Endpoint(host.session_context, lambda _: None, 0.0, trim_history=trim)
    session = endpoint.accept("10.0.0.1", 0.0)
    session.receive(wire.establish() + wire.parameters(), 0.0)
    endpoint.expire(10.0)
    assert calls == []
    session.receive(b"".join(wire.message(n, recoverable=True) for n in range(1, 131)), 11.0)
    host.commit()
    number = host.writer.next_entry(4)
    endpoint.expire(20.0)
    endpoint.expire(20.25)  # there was more than one portion
    endpoint.expire(25.0)
    assert calls == [(number - 100, 200)] * 2


# ---------------------------------------------------------------------------------------- several next hops


def routed(bench: Bench, *hops: Target) -> Outgoing:
    queue = bench.queue("unused")
    queue.hops = hops
    return queue


@pytest.mark.rule("QB-169", "QB-170", "QB-306")
def test_hops_are_tried_in_order_each_with_all_its_addresses() -> None:
    bench = Bench()
    queue = routed(bench, Target("first", OTHER), Target("10.0.0.9"), Target("last"))
    bench.transfer.submit(queue, 10.0)
    assert bench.take() == [Resolve(1, "first")]
    bench.transfer.resolved(1, ["10.0.0.1", "fd00::1", "10.0.0.1"], 10.0)
    tried: list[object] = []
    now = 10.0
    for _ in range(3):
        tried += bench.take()
        bench.transfer.failed(1, "refused", now)
        now += 5.0
        bench.endpoint.expire(now)
    tried += bench.take()
    assert tried == [
        Connect(1, "10.0.0.1"),
        Connect(1, "fd00::1"),
        Connect(1, "10.0.0.9"),
        Resolve(1, "last"),
    ]
    bench.transfer.failed(1, "unknown", now)
    bench.endpoint.expire(now + 5.0)
    assert bench.take() == [Resolve(1, "first")]


@pytest.mark.rule("QB-169")
def test_a_hop_whose_name_is_not_known_is_passed_over_at_once() -> None:
    bench = Bench()
    queue = routed(bench, Target("", OTHER), Target("nowhere"), Target("10.0.0.9"))
    bench.transfer.submit(queue, 10.0)
    assert bench.take() == [Resolve(1, "nowhere")]
    bench.transfer.resolved(1, [], 10.0)
    assert bench.take() == [Connect(1, "10.0.0.9")]
    assert (Progress.DNS_FAILURE, "") in queue.told


@pytest.mark.rule("QB-167", "QB-168", "QB-367")
def test_hops_without_any_host_wait_and_are_looked_up_again() -> None:
    bench = Bench()
    queue = routed(bench, Target("", OTHER))
    bench.transfer.submit(queue, 10.0)
    assert bench.take() == []
    assert queue.told[-1] == (Progress.ROUTE_FAILURE, "")
    assert bench.transfer.next_deadline() == 15.0
    queue.later = Target("10.0.0.9", OTHER)
    bench.endpoint.expire(15.0)
    assert bench.take() == [Connect(2, "10.0.0.9")]


@pytest.mark.rule("QB-171", "QB-306")
def test_behind_the_last_hop_the_way_is_looked_up_anew() -> None:
    bench = Bench()
    queue = routed(bench, Target("10.0.0.8"))
    bench.transfer.submit(queue, 10.0)
    bench.take()
    bench.transfer.failed(1, "refused", 10.0)
    queue.later = Target("10.0.0.9")
    bench.endpoint.expire(15.0)
    assert bench.take() == [Connect(2, "10.0.0.9")]
    assert [list(link.queues) for link in bench.transfer.links] == [[queue]]


def test_a_session_to_any_of_the_hops_serves() -> None:
    bench = Bench()
    bench.accepted("10.0.0.2", 9.0, OTHER)
    queue = routed(bench, Target("first"), Target("", OTHER))
    bench.transfer.submit(queue, 10.0)
    assert bench.take() == []
    assert queue.told[-1] == (Progress.ESTABLISHED, "10.0.0.2")


def test_queues_with_the_same_hops_share_a_link() -> None:
    bench = Bench()
    first, second = (routed(bench, Target("10.0.0.9", OTHER)) for _ in range(2))
    bench.transfer.submit(first, 10.0)
    bench.transfer.submit(second, 10.0)
    assert bench.take() == [Connect(1, "10.0.0.9")]


# ---------------------------------------------------------------------------------------- what queues hear


def test_why_there_was_no_connection_is_told() -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7")
    bench.transfer.submit(queue, 10.0)
    bench.transfer.failed(1, "too many files", 10.0, Progress.CREATE_FAILURE)
    assert queue.told[-1] == (Progress.CREATE_FAILURE, "10.0.0.7")
    assert bench.transfer.next_deadline() == 15.0


@pytest.mark.rule("QB-296")
@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (CloseReason.IDLE, [Progress.DISCONNECTING]),
        (CloseReason.STOPPED, [Progress.DISCONNECTING]),
        (CloseReason.DISCONNECTED, [Progress.DISCONNECTED]),
        (CloseReason.SLOW_READER, [Progress.SEND_FAILURE, Progress.DISCONNECTING]),
        (CloseReason.STORE_FAILED, [Progress.LOW_RESOURCE, Progress.DISCONNECTING]),
        (CloseReason.ACK_TIMEOUT, [Progress.FAILURE, Progress.DISCONNECTING]),
        (CloseReason.HANDSHAKE_TIMEOUT, [Progress.NOT_READY, Progress.DISCONNECTING]),
    ],
)
def test_the_end_of_a_session_is_told_in_two_steps(reason: CloseReason, told: list[Progress]) -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7")
    bench.transfer.submit(queue, 10.0)
    session = bench.connect(10.0)
    queue.told.clear()
    session.close(reason, 11.0)
    assert [progress for progress, _ in queue.told] == told
    queue.told.clear()
    session.gone()
    gone = [] if reason is CloseReason.DISCONNECTED else [(Progress.GONE, "10.0.0.7")]
    assert queue.told == gone
    session.gone()
    assert queue.told == gone


def test_a_connection_that_breaks_under_messages_is_a_failure_to_send() -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7")
    bench.transfer.submit(queue, 10.0)
    session = bench.connect(10.0)
    session.close(CloseReason.DISCONNECTED, 11.0, "Connection reset by peer")
    assert [progress for progress, _ in queue.told[-2:]] == [Progress.SEND_FAILURE, Progress.DISCONNECTED]


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


def test_a_session_that_is_not_open_yet_serves_nobody() -> None:
    bench = Bench()
    early = bench.endpoint.accept("10.0.0.2", 9.0, bench.woken.append)
    early.receive(wire.establish(client=OTHER), 9.0)
    assert early.state is SessionState.WAITING_CP_MSG
    queue = routed(bench, Target("10.0.0.9", OTHER))
    bench.transfer.submit(queue, 10.0)
    (effect,) = bench.take()
    assert effect == Connect(1, "10.0.0.9")
    bench.transfer.failed(1, "refused", 10.0)
    early.receive(wire.parameters(500, 20_000), 11.0)
    assert queue.told[-1] == (Progress.ESTABLISHED, "10.0.0.2")
    assert bench.woken == [early]


@pytest.mark.rule("QB-127")
def test_a_dialled_session_serves_other_links_to_the_same_queue_manager_whatever_the_switch_says() -> None:
    bench = Bench(switches=Switches(amb18_reuse_accepted=False))
    bench.transfer.submit(bench.queue("10.0.0.7"), 10.0)
    bench.connect(10.0, OTHER)
    queue = routed(bench, Target("elsewhere", OTHER))
    bench.transfer.submit(queue, 11.0)
    assert bench.take() == []
    assert queue.told == [(Progress.ESTABLISHED, "10.0.0.7")]


def test_a_session_with_the_address_of_a_later_hop_serves_at_once() -> None:
    bench = Bench()
    bench.accepted("10.0.0.2", 9.0)
    queue = routed(bench, Target("first"), Target("10.0.0.2"))
    bench.transfer.submit(queue, 10.0)
    assert bench.take() == []
    assert queue.told == [(Progress.ESTABLISHED, "10.0.0.2")]


def test_a_session_of_somebody_else_at_the_address_does_not_serve() -> None:
    bench = Bench()
    bench.accepted("10.0.0.9", 9.0)
    bench.transfer.submit(routed(bench, Target("10.0.0.9", OTHER)), 10.0)
    assert bench.take() == [Connect(1, "10.0.0.9")]


def test_after_a_session_has_broken_the_peer_may_open_the_next_one() -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7")
    bench.transfer.submit(queue, 10.0)
    bench.connect(10.0).close(CloseReason.DISCONNECTED, 11.0)
    assert bench.transfer.links[0].state is LinkState.WAITING
    again = bench.accepted("10.0.0.7", 12.0)
    assert bench.transfer.links[0].state is LinkState.OPEN
    assert ordinals(again) == [1]


@pytest.mark.parametrize(
    ("opened", "detail", "told"),
    [
        (False, "", [Progress.NOT_READY, Progress.DISCONNECTED]),
        (False, "reset", [Progress.NOT_READY, Progress.DISCONNECTED]),
        (True, "", [Progress.DISCONNECTED]),
        (True, "reset", [Progress.SEND_FAILURE, Progress.DISCONNECTED]),
    ],
)
def test_a_connection_that_is_lost(opened: bool, detail: str, told: list[Progress]) -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7")
    bench.transfer.submit(queue, 10.0)
    session = bench.connect(10.0) if opened else bench.endpoint.connected(1, 10.0)
    assert session is not None
    queue.told.clear()
    session.close(CloseReason.DISCONNECTED, 11.0, detail)
    assert [progress for progress, _ in queue.told] == told


def test_an_end_with_a_detail_is_no_lost_connection() -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7")
    bench.transfer.submit(queue, 10.0)
    bench.connect(10.0).close(CloseReason.COUNT_MISMATCH, 11.0, "3 and 4")
    assert [progress for progress, _ in queue.told[-2:]] == [Progress.FAILURE, Progress.DISCONNECTING]
