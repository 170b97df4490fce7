"""Answers to peers are not dialled to loopback, link-local or multicast addresses that a name resolves to."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmq_fast.mqqb.handshake import NULL_GUID
from msmq_fast.mqqb.hops import Progress
from msmq_fast.mqqb.transfer import Connect, Resolve
from tests.mqqb.transfers import Bench
from tests.support.mqqb import wire


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
