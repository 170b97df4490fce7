"""Protection from HTTP requests that a web page makes a browser send to this machine.

A page may send requests to any host; the browser only hides the answers from the page. The name of the page's
own host may also be given the address of this machine (DNS rebinding); then the page can even read the
answers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import urlsplit

__all__ = ["Address", "Ends", "connection_ends", "is_of_another_site", "loopback_ends", "names_this_machine"]

Address = tuple[str, int]
"""Host and port of one end of a connection."""

_OWN: Final = ("none", "same-origin")  # none: entered by the user; same-origin: from this server's pages


class Ends(NamedTuple):
    """The addresses of both ends of a connection over the loopback interface."""

    server: Address
    client: Address


class _Transport(Protocol):
    def get_extra_info(self, name: str) -> Any: ...


def connection_ends(transport: _Transport | None) -> Ends | None:
    """Return the addresses of both ends of the connection of a transport, as `loopback_ends` does. None also
    for a connection that has already ended.
    """
    if transport is None:
        return None
    return loopback_ends(transport.get_extra_info("sockname"), transport.get_extra_info("peername"))


def loopback_ends(server: tuple[Any, ...] | None, client: tuple[Any, ...] | None) -> Ends | None:
    """Return the addresses of both ends of a connection, without zones, and with IPv4 addresses in IPv4 form.
    Return None if it is not a loopback connection.
    """
    if not server or not client:
        return None
    ends = Ends(_plain(server), _plain(client))
    return ends if all(ip_address(host).is_loopback for host, _ in ends) else None


def _plain(end: tuple[Any, ...]) -> Address:
    address = ip_address(str(end[0]).partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address), int(end[1])


def is_of_another_site(headers: Mapping[str, str]) -> bool:
    """Whether the request headers of a browser say that the request is from a page of another origin (Fetch
    Metadata).
    """
    return headers.get("Sec-Fetch-Site", "none").lower() not in _OWN


def names_this_machine(host: str, names: Collection[str] = ()) -> bool:
    """Whether a Host header means this machine: localhost, a loopback address, or one of `names` (in lower
    case). A page that uses DNS rebinding still sends the name of its own host.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or name in names or ip_address(name).is_loopback
    except ValueError:
        return False
