"""GUIDs that peers state: our own, one GUID at two addresses, one that is only claimed; virtual clock."""

from __future__ import annotations

from uuid import UUID

from msmq_fast.mqqb.endpoint import SendPing
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.sessionstate import SessionState
from msmq_fast.packet.session import Ping
from tests.mqqb.transfers import Bench, ordinals
from tests.support.mqqb import wire
from tests.support.worlds.hosts import OWN, sent


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
