"""Queues with several next hops: their order, and which session serves any of them; virtual clock."""

from __future__ import annotations

import pytest

from msmq_fast.mqqb.hops import Progress, Target
from msmq_fast.mqqb.sessionstate import SessionState
from msmq_fast.mqqb.switches import Switches
from msmq_fast.mqqb.transfer import Connect, Resolve
from tests.mqqb.transfers import OTHER, Bench, Outgoing
from tests.support.mqqb import wire


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
