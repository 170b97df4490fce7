"""Groups of addresses, to which limits on peers apply, and addresses that a peer must not name as the address
of another computer.

Each IPv4 address is a group of its own. An IPv6 host can choose any of the 2**64 addresses of its network, so
its /64 is the group. An IPv4 address that arrives on an IPv6 socket (`::ffff:192.0.2.1`) is the IPv4 address.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

__all__ = ["address_group", "is_confined", "within_share"]

_PREFIX = 64
_SCARCE = 4  # places are scarce when no more than one of so many is left


@lru_cache(maxsize=4096)
def address_group(address: str) -> str:
    """Return the group that a limit "per address" counts `address` in: the IPv4 address, or the IPv6 /64.

    Text that is not an address (a Unix socket, a host name) is its own group. A zone identifier stays part
    of the group, because two interfaces have different link-local networks.
    """
    parsed = _parse(address)
    if parsed is None or isinstance(parsed, IPv4Address):
        return address if parsed is None else str(parsed)
    zone = f"%{parsed.scope_id}" if parsed.scope_id else ""
    return f"{IPv6Network((int(parsed), _PREFIX), strict=False)}{zone}"


def within_share(held: int, per_address: int, taken: int, limit: int) -> bool:
    """Whether an address group that has `held` places of a table may take one more.

    The table has `limit` places, of which all groups together have `taken`.

    1. The group must hold fewer than `per_address`.
    2. When a quarter of `limit` or less is left, the group must also hold fewer places than are left. Each
       further group then takes at most half of the rest, so that a few addresses cannot take the last places.
       This rule does not apply if `per_address` allows one group to hold all places.
    """
    left = limit - taken
    if held >= per_address:
        return False
    return per_address >= limit or left > limit // _SCARCE or held < left


def is_confined(address: str) -> bool:
    """Whether an address means something different on each computer, or denotes several computers.

    True for loopback, link-local, multicast, broadcast and unspecified addresses. An answer must not go to
    such an address because a peer named it, unless the peer itself has that address.
    """
    parsed = _parse(address)
    if parsed is None:
        return False
    return (
        parsed.is_loopback
        or parsed.is_link_local
        or parsed.is_multicast
        or parsed.is_unspecified
        or parsed == IPv4Address("255.255.255.255")
    )


def _parse(address: str) -> IPv4Address | IPv6Address | None:
    try:
        parsed = ip_address(address)
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return parsed.ipv4_mapped
    return parsed
