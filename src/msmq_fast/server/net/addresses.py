"""The addresses and names of this machine, so that the server does not mistake them for those of another
computer.
"""

from __future__ import annotations

import fcntl
import socket
import struct
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from pathlib import Path

__all__ = ["host_names", "is_address", "is_own_address", "local_addresses", "source_address"]

_SIOCGIFADDR = 0x8915
_IF_INET6 = Path("/proc/net/if_inet6")


def is_address(text: str) -> bool:
    """Whether `text` is an IP address and not a name."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def local_addresses(listening: tuple[str, ...]) -> frozenset[str]:
    """Return the IP addresses at which this machine listens; all its addresses if one of `listening` is a
    wildcard.
    """
    found: set[str] = set()
    for host in listening:
        try:
            address = ip_address(host)
        except ValueError:
            found |= _resolved(host)
            continue
        if not address.is_unspecified:
            found.add(str(address))
        elif isinstance(address, IPv6Address):
            found |= _interfaces_v6()
        else:
            found |= _interfaces_v4()
    return frozenset(found)


def is_own_address(listening: tuple[str, ...], advertised: str) -> Callable[[str], bool]:
    """Return a function that tests whether a connection to an address would reach this machine itself. If one
    of `listening` is a wildcard, the function also returns True for every loopback address.
    """
    own = local_addresses(listening) | {advertised}
    wildcard = any(_is_wildcard(host) for host in listening)

    def is_own(address: str) -> bool:
        return address in own or (wildcard and ip_address(address).is_loopback)

    return is_own


def source_address(listening: tuple[str, ...]) -> str | None:
    """Return the local address for outgoing connections; None if the system chooses it. A server that listens
    at a single address also connects from that address, because peers know the server by it.
    """
    if len(listening) != 1:
        return None
    try:
        address = ip_address(listening[0])
    except ValueError:
        return None
    return None if address.is_unspecified else str(address)


def _is_wildcard(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def _resolved(host: str) -> set[str]:
    try:
        return {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except OSError:
        return set()


def _interfaces_v4() -> set[str]:
    found = set()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(probe, _SIOCGIFADDR, request)
            except OSError:
                continue  # an interface without an IPv4 address
            found.add(socket.inet_ntoa(answer[20:24]))
    return found


def _interfaces_v6() -> set[str]:
    try:
        lines = _IF_INET6.read_text(encoding="ascii").splitlines()
    except OSError:
        return set()
    return {str(IPv6Address(bytes.fromhex(line.split()[0]))) for line in lines if line}


def host_names() -> frozenset[str]:
    """Return the host name in two forms: complete, and up to the first dot."""
    whole = socket.gethostname()
    return frozenset(name for name in (whole, whole.split(".", 1)[0]) if name)
