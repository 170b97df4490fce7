"""What one address may use up over a time."""

from __future__ import annotations

from msmq_fast.security.allowance import Allowance


def test_an_address_gets_back_over_time_what_it_used_up() -> None:
    allowance = Allowance(10, 100.0)
    assert [allowance.take("192.0.2.1", 4, 50.0) for _ in range(3)] == [True, True, False]
    assert allowance.take("192.0.2.1", 2, 50.0), "what was refused was not used up"
    assert not allowance.take("192.0.2.1", 5, 99.0)
    assert allowance.take("192.0.2.1", 5, 100.0)
    assert allowance.take("192.0.2.1", 10, 250.0)
    assert not allowance.take("192.0.2.1", 11, 1000.0)


def test_addresses_have_buckets_of_their_own_and_ipv6_networks_one() -> None:
    allowance = Allowance(1, 100.0)
    addresses = [
        "192.0.2.1",
        "192.0.2.2",
        "2001:db8::1",
        "2001:db8::2",
        "2001:db8:0:1::1",
        "::ffff:192.0.2.1",
    ]
    assert [allowance.take(each, 1, 0.0) for each in addresses] == [True, True, True, False, True, False]


def test_nothing_is_nothing() -> None:
    assert not Allowance(0, 100.0).take("192.0.2.1", 1, 0.0)


def test_the_memory_of_it_is_bounded() -> None:
    allowance = Allowance(2, 100.0)
    for number in range(20_000):
        assert allowance.take(f"10.0.{number >> 8}.{number & 255}", 1, 0.0)
    assert len(allowance._full_at) <= 4096
    assert allowance.take("10.0.78.31", 1, 0.0)
    assert not allowance.take("10.0.78.31", 1, 0.0), "the latest are remembered"
