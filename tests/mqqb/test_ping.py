"""The ping port: which pings are answered, at which rate, and a ping before a connection; virtual clock."""

from __future__ import annotations

import pytest

from msmq_fast.mqqb.endpoint import SendPing
from msmq_fast.mqqb.handshake import NULL_GUID
from msmq_fast.mqqb.hops import Progress
from msmq_fast.mqqb.limits import Limits
from msmq_fast.mqqb.ping import IN_ALL as PINGS_IN_ALL
from msmq_fast.mqqb.transfer import Connect
from tests.mqqb.transfers import Bench, ping
from tests.support.mqqb import wire
from tests.support.worlds.hosts import OWN, sent


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
