"""Transactional streams: nobody at one address uses up the room of all."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmq_fast.mqqb.limits import Limits
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.sessionstate import SessionState
from msmq_fast.packet.user import TransactionHeader
from tests.support.mqqb import wire
from tests.support.worlds.hosts import Host

FEW = 10


def first_of(source: int, number: int = 1) -> bytes:
    """A transactional message, the first of its sequence if `number` is 1."""
    header = TransactionHeader(
        sequence_ordinal=1,
        sequence_timestamp=1_700,
        sequence_number=number,
        previous_number=number - 1,
        first=True,
        last=True,
    )
    return wire.message(
        number, queue="OS:host\\private$\\t", source=UUID(int=source), transaction=header.encode()
    )


def session_of(host: Host, address: str, guid: int) -> Session:
    session = host.accept(100.0, address)
    session.receive(wire.establish(client=UUID(int=guid)) + wire.parameters(), 100.0)
    assert session.state is SessionState.OPEN
    return session


@pytest.fixture
def host() -> Host:
    host = Host(limits=Limits(streams_per_address=FEW))
    host.add("t", transactional=True)
    return host


def begin(host: Host, address: str, sources: range, *, guid: int = 900) -> Session:
    session = session_of(host, address, guid)
    for source in sources:
        if session.alive:
            session.receive(first_of(source), 101.0)
    host.commit()
    return session


def test_one_address_begins_a_bounded_number_of_streams_over_all_its_sessions(host: Host) -> None:
    session = begin(host, "192.0.2.1", range(1, 50))
    assert session.reason is CloseReason.STREAM_LIMIT
    assert session.reason.is_refusal
    assert len(host.session_context.streams) == FEW
    again = begin(host, "192.0.2.1", range(50, 60), guid=901)
    assert (again.reason, len(host.session_context.streams)) == (CloseReason.STREAM_LIMIT, FEW)


def test_others_begin_theirs_and_what_was_begun_goes_on(host: Host) -> None:
    begin(host, "192.0.2.1", range(1, 50))
    other = begin(host, "192.0.2.2", range(100, 105), guid=902)
    assert (other.alive, len(host.session_context.streams)) == (True, FEW + 5)
    session = session_of(host, "192.0.2.1", 903)
    session.receive(first_of(3, number=2), 102.0)
    host.commit()
    assert session.alive
    assert len(host.messages("t")) == FEW + 5 + 1


def test_the_addresses_of_one_ipv6_network_are_one(host: Host) -> None:
    for number in range(1, 20):
        begin(host, f"2001:db8::{number:x}", range(number * 10, number * 10 + 3), guid=900 + number)
    assert len(host.session_context.streams) == FEW
    assert begin(host, "2001:db8:0:1::1", range(1000, 1003), guid=990).alive


def test_streams_that_were_forgotten_make_room(host: Host) -> None:
    begin(host, "192.0.2.1", range(1, 50))
    host.advance(1000)
    assert host.session_context.streams.forget(0xFFFFFFFF, 4) == 4
    session = session_of(host, "192.0.2.1", 904)
    session.receive(first_of(2000), host.now)
    host.commit()
    assert session.alive
