"""Who is at the other end, and what strangers may use up: what remains of sessions that ended."""

from __future__ import annotations

import pytest

from msmq_fast.mqqb.limits import Admission, Limits
from msmq_fast.mqqb.peers import LIVE_SECONDS
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.session import Session, State
from tests.mqqb import wire
from tests.mqqb.hosts import Host


def met(host: Host, address: str, now: float) -> Session:
    """A session whose peer has named itself."""
    session = host.accept(now, address)
    session.receive(wire.establish(), now)
    return session


@pytest.mark.rule("QB-297")
def test_a_session_that_ended_is_no_session_of_its_peer() -> None:
    host = Host()
    first, second = met(host, "10.0.0.1", 0.0), met(host, "10.0.0.1", 1.0)
    assert list(host.node.peers) == host.node.peers.of_guid(wire.PEER) == [first, second]
    first.close(CloseReason.DISCONNECTED, 2.0)
    assert list(host.node.peers) == [second]
    second.close(CloseReason.DISCONNECTED, 2.0)
    assert list(host.node.peers) == host.node.peers.of_guid(wire.PEER) == []
    assert host.node.peers._sessions == {}  # nothing is kept for peers that are gone
    assert met(host, "10.0.0.2", 2.0).state is State.WAITING_CP_MSG  # from elsewhere, at once


def test_a_peer_that_was_heard_lives_two_minutes_at_its_address() -> None:
    host = Host()
    first = met(host, "10.0.0.1", 100.0)
    first.receive(wire.parameters(), 150.0)
    assert met(host, "10.0.0.2", 150.0 + LIVE_SECONDS).reason is CloseReason.CLONED_GUID
    assert met(host, "fd00::1", 151.0).state is State.WAITING_CP_MSG  # its other family
    assert first.alive
    assert met(host, "10.0.0.2", 150.1 + LIVE_SECONDS).state is State.WAITING_CP_MSG
    assert first.reason is CloseReason.SUPERSEDED


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
