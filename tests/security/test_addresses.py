"""Addresses as limits count them."""

from __future__ import annotations

import pytest

from msmq_fast.security.addresses import address_group, is_confined, within_share


@pytest.mark.parametrize(
    ("address", "group"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64%eth0"),
        ("unix", "unix"),
        ("", ""),
    ],
)
def test_an_ipv4_address_counts_whole_and_an_ipv6_address_as_its_64(address: str, group: str) -> None:
    assert address_group(address) == group


LOCAL = ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "169.254.169.254", "fe80::1"]
MANY = ["224.0.0.1", "ff02::1", "0.0.0.0", "::", "255.255.255.255"]  # noqa: S104


@pytest.mark.parametrize("address", LOCAL + MANY)
def test_addresses_that_a_peer_may_not_name_for_another(address: str) -> None:
    assert is_confined(address)


@pytest.mark.parametrize("address", ["192.0.2.1", "10.0.0.7", "2001:db8::1", "fd00::1", "host", ""])
def test_ordinary_addresses_and_names_are_not_confined(address: str) -> None:
    assert not is_confined(address)


def test_a_few_address_groups_never_take_the_last_places() -> None:
    taken, shares = 0, []
    for _ in range(12):  # each takes what it can
        held = 0
        while within_share(held, 1024, taken, 4096):
            held, taken = held + 1, taken + 1
        shares.append(held)
    assert shares == [1024, 1024, 1024, 512, 256, 128, 64, 32, 16, 8, 4, 2]
    assert within_share(0, 1024, taken, 4096)


def test_one_address_group_may_have_all_places_where_its_limit_says_so() -> None:
    assert within_share(9, 10, 9, 10)
    assert not within_share(10, 10, 10, 10)
    assert within_share(4, 5, 7, 10)
    assert not within_share(5, 5, 5, 10)
