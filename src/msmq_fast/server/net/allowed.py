"""The addresses that may open sessions (`mqqb.allow`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network

__all__ = ["allowed_addresses"]


def allowed_addresses(networks: Iterable[str]) -> Callable[[str], bool]:
    """Return a function that tests whether an address is in one of the networks. If there are no networks,
    the function returns True for every address.

    An IPv4 address that arrives on an IPv6 socket counts as IPv4.
    """
    listed = [ip_network(network) for network in networks]
    if not listed:
        return lambda _: True

    @lru_cache(maxsize=1024)
    def allowed(address: str) -> bool:
        try:
            parsed = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped
        return any(parsed.version == network.version and parsed in network for network in listed)

    return allowed
