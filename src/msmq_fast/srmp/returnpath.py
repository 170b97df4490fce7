"""Decides where receipts may be sent: to the computer that asked for them, or where the configuration allows.

Any host that can post a message names URLs for its receipts. Without a rule, an unauthenticated peer could
make this server post to any host and port.

1. A message that asks for receipts is stored with the address that it came from, in a header line after those
   of its request (`with_peer`, `peer_of`). For a stream, the address is stored with the other data that
   receipts need (`streams.Terms`).
2. The outgoing queue for a receipt has that address in its name, after the URL: `;at=192.0.2.5` (`bound`).
   This has the form of a subqueue's name. Messages cannot be sent to a subqueue, so no URL of another queue
   has this form, and programs cannot open such a queue. `*` means that the address is not known.
3. When a connection is opened, the host of the URL is resolved once, and connections are opened only to
   addresses that `ReturnPaths` admits. So the rule also holds after a restart, and if the host name later
   resolves to another address.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from msmq_fast._native.framing import parse
from msmq_fast.packet.soap import has_envelope
from msmq_fast.security.addresses import is_confined
from msmq_fast.srmp.urls import Url

__all__ = ["NO_ADDRESS", "ReturnPaths", "bound", "is_allowed_text", "peer_of", "split", "with_peer"]

NO_ADDRESS: Final = "*"

_AT: Final = ";at="
_LINE: Final = b"X-MSMQ-Fast-Peer: "
_HEAD: Final = 80 << 10  # bytes: no request has a longer head
_COMPOUND: Final = 16  # bytes in front of the request in a CompoundMessageHeader


def bound(url: str, address: str) -> str:
    """Return the name, without `DIRECT=`, of the outgoing queue for receipts to a URL at an address."""
    return f"{url}{_AT}{address}"


def split(text: str) -> tuple[str, str | None]:
    """Split the name of an outgoing queue into the URL and the address to which it is bound. The address is
    None if the queue is not for receipts but for messages of programs on this computer.
    """
    url, at, address = text.rpartition(_AT)
    return (url, address) if at else (text, None)


def with_peer(raw: bytes, size: int, peer: str) -> bytes:
    """Return the request `raw`, whose body has `size` bytes, with the address of the peer in its head."""
    head = raw[: len(raw) - size].rstrip(b"\r\n")
    return b"%b\r\n%b%b\r\n\r\n%b" % (head, _LINE, peer.encode(), raw[len(raw) - size :])


def peer_of(packet: bytes) -> str:
    """Return the address that a stored message came from; empty if it is not known."""
    if not has_envelope(packet):
        return ""
    offset = parse(packet).fields()["compound_offset"]
    head = packet[offset + _COMPOUND : offset + _COMPOUND + _HEAD] if offset else b""
    head, end, _ = head.partition(b"\r\n\r\n")
    line = head.rpartition(b"\r\n")[2]
    return line[len(_LINE) :].decode("latin-1") if end and line.startswith(_LINE) else ""


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def is_allowed_text(text: str) -> bool:
    """Return whether a text is a host name, a pattern of host names, an address or a network."""
    if "/" in text:
        try:
            ip_network(text)
        except ValueError:
            return False
        return True
    return bool(text) and not set(text) & set(" @\\?#%")


class ReturnPaths:
    """The hosts to which receipts may be sent: the peer that asked for them, and the hosts in `allowed`.

    `allowed` are host names, patterns such as `*.example.org`, addresses and networks such as 10.0.0.0/8. A
    host that is allowed by its name is not reached at an address that does not identify one host on the
    network (loopback, link-local, multicast), unless the network of the address is allowed too.
    """

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._patterns: list[str] = []
        self._networks: list[IPv4Network | IPv6Network] = []
        for text in allowed:
            try:
                self._networks.append(ip_network(text))
            except ValueError:
                self._patterns.append(text.casefold())

    def bind(self, text: str, url: Url, peer: str) -> str | None:
        """Return the name of the outgoing queue for receipts to a URL; None if they must not be sent.

        `text` is the URL as the message writes it, and `url` the parsed URL. `peer` is the address from which
        the message came, empty if it is not known.
        """
        if _AT in text:
            return None
        if self.is_named(url.host):
            return bound(text, peer or NO_ADDRESS)
        literal = _address(url.host)
        if literal is not None:
            admitted = self.admits(peer or NO_ADDRESS, url.host, url.host)
        else:
            admitted = bool(peer or self._networks)
        return bound(text, peer or NO_ADDRESS) if admitted else None

    def admits(self, peer: str, host: str, address: str) -> bool:
        """Return whether a receipt for a message from `peer` may be sent to `address`, to which `host`
        resolves.
        """
        found = _address(address)
        if found is None:
            return False
        if found == _address(peer) or any(found in network for network in self._networks):
            return True
        return self.is_named(host) and not is_confined(address)

    def is_named(self, host: str) -> bool:
        """Return whether a host is allowed by its name."""
        return any(fnmatchcase(host.casefold(), pattern) for pattern in self._patterns)
