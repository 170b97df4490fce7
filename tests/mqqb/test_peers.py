"""Who is at the other end, and what strangers may use up: what remains of sessions that ended."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from msmq_fast.mqqb import peers
from msmq_fast.mqqb.limits import Admission, Limits
from msmq_fast.mqqb.peers import ASK_AGAIN, LIVE_SECONDS
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.sessionstate import SessionState
from tests.support.mqqb import wire
from tests.support.worlds.hosts import Host


def met(host: Host, address: str, now: float) -> Session:
    """A session whose peer has named itself."""
    session = host.accept(now, address)
    session.receive(wire.establish(), now)
    return session


@pytest.mark.rule("QB-297")
def test_a_session_that_ended_is_no_session_of_its_peer() -> None:
    host = Host()
    first, second = met(host, "10.0.0.1", 0.0), met(host, "10.0.0.1", 1.0)
    assert (
        list(host.session_context.peers) == host.session_context.peers.of_guid(wire.PEER) == [first, second]
    )
    first.close(CloseReason.DISCONNECTED, 2.0)
    assert list(host.session_context.peers) == [second]
    second.close(CloseReason.DISCONNECTED, 2.0)
    assert list(host.session_context.peers) == host.session_context.peers.of_guid(wire.PEER) == []
    assert host.session_context.peers._sessions == {}  # nothing is kept for peers that are gone
    assert met(host, "10.0.0.2", 2.0).state is SessionState.WAITING_CP_MSG  # from elsewhere, at once


class Asked:
    """Answers the questions of `Peers` when the test says so."""

    def __init__(self, host: Host) -> None:
        self.waiting: list[tuple[str, Callable[[UUID | None, float], None]]] = []
        self._host = host

    def ask(self, now: float) -> None:
        """What is due is asked."""
        self._host.session_context.peers.expire(
            now, lambda address, done, _now: self.waiting.append((address, done))
        )

    def answer(self, now: float, *there: str) -> list[str]:
        """Every address that was asked; at those in `there` is the peer, at the others nothing answers."""
        self.ask(now)
        asked, self.waiting = self.waiting, []
        for address, done in asked:
            done(wire.PEER if address in there else None, now)
        return [address for address, _ in asked]


FIRST, SECOND, AWAY = "10.0.0.1", "10.0.0.2", "10.0.0.66"


def home(host: Host) -> list[str]:
    """The addresses of the sessions that speak for the peer."""
    peers = host.session_context.peers
    return [session.peer_address for session in peers if peers.holds(session)]


def test_no_peer_is_locked_out_by_a_stranger_who_used_its_guid_before() -> None:
    host = Host()
    asked = Asked(host)
    squatter = met(host, AWAY, 0.0)
    assert home(host) == [AWAY]
    owner = met(host, FIRST, 1.0)
    assert owner.state is SessionState.WAITING_CP_MSG
    assert home(host) == [AWAY]
    # The squatter answers no ping, the owner does: it is believed from there.
    assert asked.answer(2.0, FIRST) == [AWAY, FIRST]
    assert home(host) == [FIRST]
    assert squatter.alive
    # Nor does the squatter get it back.
    met(host, AWAY, 3.0)
    asked.answer(4.0, FIRST)
    assert home(host) == [FIRST]


def test_a_stranger_does_not_displace_a_peer_that_answers() -> None:
    host = Host()
    asked = Asked(host)
    met(host, FIRST, 0.0).close(CloseReason.IDLE, 10.0)
    stranger = met(host, AWAY, 1_000.0)
    assert home(host) == [], "before there was an answer"
    asked.answer(1_001.0, FIRST, AWAY)
    assert home(host) == []
    assert stranger.alive
    # They are asked again as long as there is a session, and not after that.
    assert asked.answer(1_001.0 + ASK_AGAIN, FIRST, AWAY) == [FIRST, AWAY]
    stranger.close(CloseReason.DISCONNECTED, 1_040.0)
    asked.ask(1_100.0)
    assert asked.waiting == []
    assert host.session_context.peers.next_deadline() is None
    met(host, FIRST, 1_200.0)
    assert home(host) == [FIRST]


@pytest.mark.parametrize("answers", [True, False])
def test_a_peer_that_moved_is_believed_from_its_new_address(answers: bool) -> None:
    host = Host()
    asked = Asked(host)
    before = met(host, FIRST, 100.0)
    moved = met(host, SECOND, 130.0)
    # Behind an address translator no ping is answered: then the silence of the old session says it.
    there = (SECOND,) if answers else ()
    asked.answer(131.0, *there)
    assert home(host) == ([SECOND] if answers else [FIRST])
    now = 131.0
    while home(host) != [SECOND] and now < 400.0:
        now = host.session_context.peers.next_deadline() or 1_000.0
        moved.heard_at = now
        asked.answer(now, *there)
    assert home(host) == [SECOND]
    if not answers:
        assert before.reason is CloseReason.SUPERSEDED
        assert 220.0 < now < 260.0


def test_another_node_of_a_cluster_takes_over() -> None:
    host = Host()
    asked = Asked(host)
    met(host, FIRST, 100.0).close(CloseReason.DISCONNECTED, 101.0)
    met(host, SECOND, 102.0)
    asked.answer(103.0, SECOND)
    assert home(host) == [SECOND]
    met(host, FIRST, 104.0)  # and back, while nothing is heard of the second
    asked.answer(105.0, FIRST)
    assert home(host) == [FIRST]


def test_without_pings_a_session_that_was_heard_keeps_its_peer() -> None:
    host = Host()
    before = met(host, FIRST, 100.0)
    met(host, SECOND, 100.0 + LIVE_SECONDS)
    host.session_context.peers.expire(100.0 + LIVE_SECONDS)
    assert home(host) == [FIRST]
    before.close(CloseReason.DISCONNECTED, 230.0)
    host.session_context.peers.expire(100.0 + LIVE_SECONDS + ASK_AGAIN)
    assert home(host) == [SECOND]


def test_both_families_of_a_peer_are_its_home() -> None:
    host = Host()
    met(host, FIRST, 100.0)
    met(host, "fd00::1", 101.0)
    assert home(host) == [FIRST, "fd00::1"]


def test_several_addresses_of_one_peer() -> None:
    host = Host(several_addresses=True)
    first = met(host, FIRST, 100.0)
    met(host, SECOND, 101.0)
    assert home(host) == [FIRST, SECOND]
    assert host.session_context.peers.next_deadline() is None
    assert host.session_context.peers.addresses_of(first) == {FIRST, SECOND}


def test_a_pinned_peer_has_no_other_address() -> None:
    host = Host(pinned={wire.PEER: frozenset((FIRST, SECOND))})
    assert met(host, AWAY, 100.0).reason is CloseReason.PINNED_GUID
    first, second = met(host, FIRST, 101.0), met(host, SECOND, 102.0)
    assert home(host) == [FIRST, SECOND]
    assert (
        host.session_context.peers.addresses_of(first)
        == host.session_context.peers.addresses_of(second)
        == {FIRST, SECOND}
    )


def test_a_session_from_elsewhere_speaks_no_more_for_a_peer_that_is_pinned_later() -> None:
    host = Host()
    believed = host.session_context.peers
    away = met(host, AWAY, 100.0)
    assert believed.holds(away)
    believed.set_pinned({wire.PEER: frozenset((FIRST,))})
    assert not believed.holds(away)
    first = met(host, FIRST, 101.0)
    assert believed.holds(first)
    assert met(host, SECOND, 102.0).reason is CloseReason.PINNED_GUID
    believed.set_pinned({})
    assert met(host, SECOND, 103.0).reason is None


def test_several_peers_at_one_address() -> None:
    """Behind one address translator, which answers for one of them or for none."""
    host = Host()
    for number in range(1, 4):
        session = host.accept(100.0, FIRST)
        session.receive(wire.establish(UUID(int=number)), 100.0)
    assert home(host) == [FIRST] * 3
    assert host.session_context.peers.next_deadline() is None


def test_homes_of_invented_guids_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "MOST_HOMES", 10)
    host = Host()
    for number in range(100):
        session = host.accept(100.0, AWAY)
        session.receive(wire.establish(UUID(int=number + 1)), 100.0)
        session.close(CloseReason.DISCONNECTED, 100.0)
    assert len(host.session_context.peers._homes) == 10
    assert len(host.session_context.peers._homes_in[AWAY]) == 10


def test_invented_guids_push_out_no_homes_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a stranger would take over whatever GUID it likes, one handshake later."""
    monkeypatch.setattr(peers, "MOST_HOMES", 20)
    monkeypatch.setattr(peers, "HOMES_OF_GROUP", 5)
    host = Host()
    asked = Asked(host)
    met(host, FIRST, 0.0).close(CloseReason.DISCONNECTED, 1.0)
    for number in range(100):
        session = host.accept(2.0, AWAY)
        session.receive(wire.establish(UUID(int=number + 1)), 2.0)
    met(host, AWAY, 3.0)
    assert asked.answer(3.0, FIRST, AWAY) == [FIRST, AWAY]
    assert host.session_context.peers.last_address(wire.PEER) == FIRST
    # Nor does a crowd of addresses, as long as there is a session.
    met(host, FIRST, 4.0)
    for number in range(100):
        session = host.accept(5.0, f"10.9.0.{number}")
        session.receive(wire.establish(UUID(int=number + 1000)), 5.0)
        session.close(CloseReason.DISCONNECTED, 5.0)
    assert host.session_context.peers.last_address(wire.PEER) == FIRST


def test_a_turn_asks_about_a_bounded_number_of_contested_guids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_TURN", 3)
    host = Host()
    asked = Asked(host)
    for address in (FIRST, AWAY):
        for number in range(10):
            host.accept(0.0, address).receive(wire.establish(UUID(int=number + 1)), 0.0)
    while host.session_context.peers.next_deadline() == 0.0:
        asked.answer(0.0)
    turns = 0
    while (due := host.session_context.peers.next_deadline()) is not None and due <= ASK_AGAIN:
        asked.ask(ASK_AGAIN)
        assert len(asked.waiting) <= 2 * 3
        asked.waiting.clear()
        turns += 1
    assert turns == 4


@pytest.mark.rule("QB-022", "QB-064")
def test_admission_counts_each_address_and_forgets_those_that_left() -> None:
    admission = Admission(Limits(sessions=3, sessions_per_address=2))
    for address in ("10.0.0.1", "10.0.0.1", "10.0.0.2"):
        assert admission.would_refuse(address) is None
        admission.enter(address)
    assert admission.total == 3
    assert admission.would_refuse("10.0.0.3") is CloseReason.SESSION_LIMIT
    admission.leave("10.0.0.2")
    assert admission.would_refuse("10.0.0.1") is CloseReason.ADDRESS_LIMIT
    assert admission.would_refuse("10.0.0.2") is None
    admission.leave("10.0.0.1")
    assert admission.would_refuse("10.0.0.1") is None
    admission.leave("10.0.0.1")
    assert admission.total == 0
    assert not admission._per_address


def test_admission_counts_an_ipv6_network_as_one_address() -> None:
    admission = Admission(Limits(sessions_per_address=2))
    for address in ("2001:db8::1", "2001:db8::2"):
        assert admission.would_refuse(address) is None
        admission.enter(address)
    assert admission.would_refuse("2001:db8::ffff:3") is CloseReason.ADDRESS_LIMIT
    assert admission.would_refuse("2001:db8:0:1::1") is None
    admission.enter("::ffff:10.0.0.1")
    admission.enter("10.0.0.1")
    assert admission.would_refuse("10.0.0.1") is CloseReason.ADDRESS_LIMIT
    admission.leave("2001:db8::1")
    assert admission.would_refuse("2001:db8::3") is None


def test_one_question_that_cannot_be_asked_again_holds_up_no_other_one() -> None:
    host = Host()
    asked = Asked(host)
    for number in (1, 2):
        guid = UUID(int=number)
        for address in (f"10.0.{number}.1", f"10.0.{number}.66"):
            host.accept(0.0, address).receive(wire.establish(client=guid), 0.0)
    asked.answer(1.0)
    tried: list[str] = []

    def ask(address: str, _done: object, _now: float) -> None:
        tried.append(address)
        if len(tried) == 1:
            raise OSError("no socket")

    due = host.session_context.peers.next_deadline()
    assert due is not None
    with pytest.raises(ExceptionGroup):
        host.session_context.peers.expire(due + 1, ask)
    assert {address.rpartition(".")[0] for address in tried} == {"10.0.1", "10.0.2"}
