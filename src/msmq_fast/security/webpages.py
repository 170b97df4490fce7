"""Requests over HTTP that a web page makes a browser send to this machine.

A page may send requests anywhere (only the answers are kept from it), and may call its own host by our
address (DNS rebinding): then even the answers are its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

__all__ = ["Address", "Ends", "is_of_another_site", "loopback_ends", "names_this_machine"]

Address = tuple[str, int]
"""Host and port of one end of a connection."""

_OWN: Final = ("none", "same-origin")  # typed in by the user; of a page of ours


class Ends(NamedTuple):
    """Both ends of a connection over the loopback interface."""

    server: Address
    client: Address


def loopback_ends(server: tuple[Any, ...] | None, client: tuple[Any, ...] | None) -> Ends | None:
    """The ends as they are without zones, IPv4 as such. None for a connection of another kind."""
    if not server or not client:
        return None
    ends = Ends(_plain(server), _plain(client))
    return ends if all(ip_address(host).is_loopback for host, _ in ends) else None


def _plain(end: tuple[Any, ...]) -> Address:
    address = ip_address(str(end[0]).partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address), int(end[1])


def is_of_another_site(headers: Mapping[str, str]) -> bool:
    """Whether a browser says that a page of another origin wants this (Fetch Metadata)."""
    return headers.get("Sec-Fetch-Site", "none").lower() not in _OWN


def names_this_machine(host: str, names: Collection[str] = ()) -> bool:
    """Whether a Host header means this machine: localhost, a loopback address, or one of `names` (in lower
    case). A page that calls its own host by our address still names that host.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or name in names or ip_address(name).is_loopback
    except ValueError:
        return False
