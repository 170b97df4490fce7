"""The site of this computer: the order of the ways to find it, and subnets."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.directory.ldap.domain import Domain
from msmq_fast.directory.ldap.ping import PingError
from msmq_fast.directory.ldap.siting import smallest_subnet
from msmq_fast.directory.objects import DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError
from tests.support.worlds.activedirectory import CONFIGURATION, SITE, ActiveDirectory

NORTH, SOUTH = (f"CN={name},CN=Sites,{CONFIGURATION}" for name in ("North", "South"))


class Near:
    """What the network says. `seen` is the answer to the ping, None if there is none."""

    def __init__(self, seen: str | None, address: str | None = "10.1.2.3") -> None:
        self._seen = seen
        self._address = address

    def site(self, url: str) -> str:
        if self._seen is None:
            raise PingError("no answer")
        return self._seen

    def address(self, url: str) -> IPv4Address | IPv6Address | None:
        return None if self._address is None else ip_address(self._address)


def forest(*sites: str, **subnets: str) -> ActiveDirectory:
    world = ActiveDirectory()
    for site in sites:
        world.add(site, {"objectClass": [b"site"]})
        world.add(f"CN=Servers,{site}", {"objectClass": [b"serversContainer"]})
    return world


def subnet(world: ActiveDirectory, name: str, site: str) -> None:
    place = f"CN={name},CN=Subnets,CN=Sites,{CONFIGURATION}"
    world.add(place, {"objectClass": [b"subnet"], **({"siteObject": [site.encode()]} if site else {})})


def found(world: ActiveDirectory, near: Near | None, configured: UUID | None = None) -> tuple[str, str]:
    site = Domain(world, near).own_site(configured)
    return site.name, site.reason


def test_the_ways_in_their_order() -> None:
    world = forest(NORTH, SOUTH)
    subnet(world, "10.1.0.0/16", SOUTH)
    north = UUID(bytes_le=world.shown(NORTH)["objectguid"][0])
    assert found(world, Near("South"), north) == ("North", "directory.site of the configuration names it")
    name, reason = found(world, Near("north"))
    assert (name, reason) == (
        "North", "the domain controller ldap://dc1.corp.example sees this computer in it (LDAP ping)"
    )  # fmt: skip
    for near, why in {
        Near(None): "the LDAP ping of ldap://dc1.corp.example failed: no answer",
        Near(""): "ldap://dc1.corp.example sees this computer in no site",
        Near("East"): "in the site 'East', which the domain does not have",
    }.items():
        name, reason = found(world, near)
        assert (name, why in reason) == ("South", True), reason
        assert reason.startswith("its subnet 10.1.0.0/16 contains the address 10.1.2.3 of this computer; ")
    name, reason = found(world, Near(None, "10.2.0.1"))
    assert name == "Default-First-Site-Name"
    assert reason == (
        "the site that a forest begins with; the LDAP ping of ldap://dc1.corp.example failed: no answer; "
        "no subnet of a site contains the address 10.2.0.1"
    )
    assert found(world, Near(None, None))[0] == "Default-First-Site-Name"
    assert found(world, None) == ("Default-First-Site-Name", "the site that a forest begins with")


def test_the_only_site() -> None:
    assert found(forest(), None) == ("Default-First-Site-Name", "the domain has no other site")


def test_a_site_of_the_configuration_that_the_domain_does_not_have() -> None:
    with pytest.raises(DirectoryError, match=f"the domain has no site {UUID(int=5)}, which directory.site"):
        found(forest(NORTH), None, UUID(int=5))


@pytest.mark.rule("SM-022")
def test_a_queue_manager_is_entered_in_the_site_that_was_found() -> None:
    """Also where nothing has been read of the domain before, and with its settings as a router."""
    world = forest(NORTH)
    world.computer("ALPHA")
    values = {"ComputerName": "ALPHA", "RoutingServer": True}
    made = Domain(world, Near("North")).create(DirectoryObject(ObjectType.QUEUE_MANAGER, values))
    north = UUID(bytes_le=world.shown(NORTH)["objectguid"][0])
    assert made["SiteIdentifierList"] == (north,)
    assert world.shown(f"CN=MSMQ Settings,CN=ALPHA,CN=Servers,{NORTH}")


SUBNETS = [
    ("10.0.0.0/8", "a"), ("10.1.0.0/16", "b"), ("10.1.2.0/24", "c"), ("10.1.2.128/25", ""),
    ("10.01.2.3/32", "leading zero"), ("10.1.2.3", "no prefix"), ("10.1.2.3/32/32", "two"),
    ("10.1.2.3/33", "?"),
    ("2001:DB8::/32", "d"), ("2001:db8:0:1::/64", "e"), ("::/0", "f"), ("x/8", "?"), ("", "?"), ("/", "?"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("address", "site"),
    [
        ("10.1.2.3", "c"), ("10.1.2.200", "c"), ("10.1.3.3", "b"), ("10.2.0.1", "a"), ("11.0.0.1", None),
        ("2001:db8:0:1::5", "e"), ("2001:db8:1::5", "d"), ("fe80::1", "f"),
    ],
)  # fmt: skip
def test_the_smallest_subnet(address: str, site: str | None) -> None:
    chosen = smallest_subnet(ip_address(address), SUBNETS)
    assert (None if chosen is None else chosen[1]) == site


@given(
    st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)),
    st.lists(st.tuples(st.ip_addresses(), st.integers(0, 128)), max_size=8),
)
def test_the_longest_match(
    address: IPv4Address | IPv6Address, given: list[tuple[IPv4Address | IPv6Address, int]]
) -> None:
    names = [f"{start}/{min(length, start.max_prefixlen)}" for start, length in given]
    chosen = smallest_subnet(address, [(name, name) for name in names])
    fitting = [
        network for network in (ip_network(name, strict=False) for name in names)
        if network.version == address.version and address in network
    ]  # fmt: skip
    assert (chosen is None) == (not fitting)
    if chosen is not None:
        assert int(chosen[0].partition("/")[2]) == max(one.prefixlen for one in fitting)


def test_siteobject_of_a_site_that_is_gone() -> None:
    world = forest(NORTH)
    subnet(world, "10.1.0.0/16", NORTH)
    world.delete(NORTH)
    assert found(world, Near(None))[0] == "Default-First-Site-Name"
    assert SITE.startswith("CN=Default-First-Site-Name")
