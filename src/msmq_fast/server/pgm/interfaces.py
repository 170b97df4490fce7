"""The network interfaces for sending and receiving multicast packets."""

from __future__ import annotations

import array
import fcntl
import socket
import struct
from dataclasses import dataclass
from ipaddress import IPv4Address

from msmq_fast.server.net.sockets import ListenError

__all__ = ["Interface", "chosen_interfaces"]

_SIOCGIFCONF = 0x8912
_IFREQ = 40  # bytes of a struct ifreq where pointers have 8
_MOST = 512  # addresses of this machine that are looked at


@dataclass(frozen=True, slots=True)
class Interface:
    """A network interface. `index` is its number in the system. If `index` is 0, the system chooses the
    interface, and `address` is empty.
    """

    name: str = "any"
    index: int = 0
    address: str = ""

    def address_towards(self, group: str) -> str:
        """Return the source address of packets to a group. Raises OSError if there is no route to the
        group.
        """
        if self.address:
            return self.address
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((group, 1))
            return str(probe.getsockname()[0])


def chosen_interfaces(wanted: tuple[str, ...]) -> tuple[Interface, ...]:
    """Return the interfaces with the names or IPv4 addresses in `wanted`; if `wanted` is empty, the system
    chooses the interface. Raises ListenError.
    """
    if not wanted:
        return (Interface(),)
    present = _addresses()
    return tuple(_find(text, present) for text in dict.fromkeys(wanted))


def _find(text: str, present: list[tuple[str, str]]) -> Interface:
    for name, address in present:
        if text in (name, address) or (name == "lo" and _is_loopback(text)):
            chosen = address if text == name else text
            return Interface(name, socket.if_nametoindex(name), chosen)
    available = ", ".join(f"{name} ({address})" for name, address in present)
    raise ListenError(
        f'pgm.interfaces: "{text}" is neither the name nor the IPv4 address of an interface of this machine; '
        f"available: {available or 'none'}"
    )


def _is_loopback(text: str) -> bool:
    """Whether an address is in 127.0.0.0/8: such an address belongs to this machine even if no interface
    lists it.
    """
    try:
        return IPv4Address(text).is_loopback
    except ValueError:
        return False


def _addresses() -> list[tuple[str, str]]:
    """Return (interface, IPv4 address) pairs of this machine, including secondary addresses."""
    buffer = array.array("B", bytes(_MOST * _IFREQ))
    address, size = buffer.buffer_info()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        answer = fcntl.ioctl(probe, _SIOCGIFCONF, struct.pack("iL", size, address))
    filled = min(struct.unpack("iL", answer)[0], size)
    data = buffer.tobytes()
    found = []
    for at in range(0, filled - _IFREQ + 1, _IFREQ):
        label = data[at : at + 16].split(b"\0", 1)[0].decode(errors="replace")
        found.append((label.split(":", 1)[0], socket.inet_ntoa(data[at + 20 : at + 24])))
    return found
