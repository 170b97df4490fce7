"""The site of this computer in the domain, and why it is that one.

1. The site of the configuration.
2. The one in which the domain controller sees this computer (LDAP ping): it looks at the address from which
   the question comes.
3. The one of the smallest subnet that contains the address of this computer, for networks that do not let the
   ping pass.
4. The only site, else Default-First-Site-Name, else the site of the domain controller.

Sites are read from the domain, by a connection that is protected. The ping is not: it can only choose among
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final, Protocol
from uuid import UUID

from msmq_fast.directory.ldap.entries import Entry
from msmq_fast.directory.ldap.interface import SUBTREE, Link
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import not_found

__all__ = ["FIRST_SITE", "Nearness", "OwnSite", "find_site", "smallest_subnet"]

FIRST_SITE: Final = "Default-First-Site-Name"
"""The site that a new forest begins with."""


@dataclass(frozen=True, slots=True)
class OwnSite:
    """The site of this computer. `reason` says for people why it is that one."""

    entry: Entry
    reason: str

    @property
    def name(self) -> str:
        return _text(self.entry, "cn")


class Nearness(Protocol):
    """What the network says about the place of this computer."""

    def site(self, url: str) -> str:
        """Return the name of the site in which the controller with this URL sees this computer, "" if in
        none. Raises ValueError, with the reason, if it does not answer.
        """

    def address(self, url: str) -> IPv4Address | IPv6Address | None:
        """Return the address from which this computer reaches the controller with this URL."""


def find_site(
    link: Link,
    configuration: str,
    controller_site: str,
    *,
    nearness: Nearness | None = None,
    configured: UUID | None = None,
) -> OwnSite:
    """Return the site of this computer. `configuration` is the name of the configuration of the forest,
    `controller_site` that of the site of the domain controller. Raises DirectoryError.
    """
    container = f"CN=Sites,{configuration}"
    found = link.search(container, SUBTREE, "(objectClass=site)", ["objectGUID", "cn"])
    sites = {_text(entry, "cn").casefold(): entry for entry in found}

    def chosen(name: str, reason: str) -> OwnSite | None:
        entry = sites.get(name.casefold())
        return None if entry is None else OwnSite(entry, reason)

    if configured is not None:
        for entry in sites.values():
            if entry.identifier == configured:
                return OwnSite(entry, "directory.site of the configuration names it")
        raise not_found(ObjectType.SITE, f"the domain has no site {configured}, which directory.site names")
    passed = []
    if nearness is not None:
        url = link.controllers.current
        try:
            name = nearness.site(url)
        except ValueError as error:
            passed.append(f"the LDAP ping of {url} failed: {error}")
        else:
            site = chosen(name, f"the domain controller {url} sees this computer in it (LDAP ping)")
            if site is not None:
                return site
            passed.append(
                f"{url} sees this computer in the site {name!r}, which the domain does not have"
                if name
                else f"{url} sees this computer in no site"
            )
        address = nearness.address(url)
        if address is not None:
            entries = link.search(
                f"CN=Subnets,{container}", SUBTREE, "(objectClass=subnet)", ["cn", "siteObject"]
            )
            subnet = smallest_subnet(
                address, ((_text(entry, "cn"), _text(entry, "siteObject")) for entry in entries)
            )
            names = {entry.path.casefold(): name for name, entry in sites.items()}
            if subnet is not None and subnet[1].casefold() in names:
                reason = f"its subnet {subnet[0]} contains the address {address} of this computer"
                site = chosen(names[subnet[1].casefold()], "; ".join([reason, *passed]))
                if site is not None:
                    return site
            passed.append(f"no subnet of a site contains the address {address}")
    last = [(name, "the domain has no other site") for name in sites if len(sites) == 1]
    last += [
        (FIRST_SITE, "the site that a forest begins with"),
        (controller_site, "the site of the domain controller"),
    ]
    for name, reason in last:
        site = chosen(name, "; ".join([reason, *passed]))
        if site is not None:
            return site
    raise not_found(ObjectType.SITE, "the domain shows no site")


def smallest_subnet(
    address: IPv4Address | IPv6Address, subnets: Iterable[tuple[str, str]]
) -> tuple[str, str] | None:
    """Return the subnet with the longest prefix that contains the address, None if none does. A subnet is
    its name, such as 10.1.0.0/16, and its site; one with a malformed name or without site is passed over.
    """
    best: tuple[int, tuple[str, str]] | None = None
    for name, site in subnets:
        network = _network(name)
        if not site or network is None or network.version != address.version or address not in network:
            continue
        if best is None or network.prefixlen > best[0]:
            best = network.prefixlen, (name, site)
    return None if best is None else best[1]


def _network(name: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(name, strict=False) if name.count("/") == 1 else None
    except ValueError:
        return None


def _text(entry: Entry, attribute: str) -> str:
    return (entry.first(attribute) or b"").decode(errors="replace")
