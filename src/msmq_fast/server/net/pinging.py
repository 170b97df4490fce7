"""Sends LDAP pings to domain controllers (MS-ADTS 6.3.3) by UDP, and finds the address of this computer.

Each address is asked from a socket of its own, which the kernel has connected to it: datagrams of other
senders do not arrive. Port and message identifier cannot be predicted. A datagram that is not the answer is
passed over, and what comes after the answer is not read.
"""

from __future__ import annotations

import contextlib
import secrets
import selectors
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from msmq_fast.directory.ldap.ping import (
    MAX_ANSWER,
    MAX_IDENTIFIER,
    PingAnswer,
    PingError,
    decode_answer,
    encode_question,
)

__all__ = ["NetworkNearness", "Patience", "endpoints", "ping"]

_LDAP_PORT: Final = 389
_ADDRESSES: Final = 4  # of a controller
_LIES: Final = 16  # datagrams of an address that are passed over

Endpoint = tuple[socket.AddressFamily, tuple[Any, ...]]
"""An address family and a socket address."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: between two questions to an address, in all, and in all from the first answer on."""

    again: float = 0.5
    whole: float = 1.5
    after_first: float = 0.3


@dataclass(slots=True)
class _Asked:
    url: str
    socket: socket.socket
    question: bytes
    identifier: int
    left: int = field(default=_LIES)


def endpoints(url: str) -> list[Endpoint]:
    """Return the addresses of the domain controller with a URL. It listens for pings at the port of its
    ldap:// URL, and at 389 if it has an ldaps:// one. Returns none if its name cannot be resolved.
    """
    parts = urlsplit(url)
    if parts.hostname is None:  # else it would be this computer
        return []
    port = _LDAP_PORT if parts.scheme == "ldaps" else parts.port or _LDAP_PORT
    try:
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return []
    return [(family, address) for family, _type, _protocol, _name, address in found[:_ADDRESSES]]


def ping(
    urls: Iterable[str],
    domain: str = "",
    *,
    patience: Patience | None = None,
    resolve: Callable[[str], Sequence[Endpoint]] = endpoints,
    monotonic: Callable[[], float] = time.monotonic,
) -> tuple[dict[str, PingAnswer], dict[str, str]]:
    """Ask the domain controllers with these URLs, all at once. `resolve` returns the addresses of one; an
    answer of one of them is enough. Returns the answers in the order in which they came, and the reasons of
    those that gave none.
    """
    patience = patience or Patience()
    targets = {url: resolve(url) for url in urls}
    answers: dict[str, PingAnswer] = {}
    reasons = {url: "its name is not known" if not found else "no answer" for url, found in targets.items()}
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as opened:
        for url, found in targets.items():
            for endpoint in found:
                identifier = 1 + secrets.randbelow(MAX_IDENTIFIER)
                question = encode_question(identifier, domain)
                try:
                    asked = _Asked(url, opened.enter_context(_connected(endpoint)), question, identifier)
                except OSError as error:
                    reasons[url] = error.strerror or str(error)
                else:
                    selector.register(asked.socket, selectors.EVENT_READ, asked)
        begun = monotonic()
        deadline, sending = begun + patience.whole, begun
        while selector.get_map() and (now := monotonic()) < deadline:
            if now >= sending:
                _send(selector, reasons)
                sending = now + patience.again
            for key, _events in selector.select(max(0.0, min(sending, deadline) - now)):
                asked = key.data
                answer = _receive(asked, domain, reasons)
                if answer is not None and asked.url not in answers:
                    answers[asked.url] = answer
                    deadline = min(deadline, monotonic() + patience.after_first)
                if answer is not None or not asked.left:
                    selector.unregister(asked.socket)
            if len(answers) == len(targets):
                break
    return answers, {url: reason for url, reason in reasons.items() if url not in answers}


def _connected(endpoint: Endpoint) -> socket.socket:
    family, address = endpoint
    found = socket.socket(family, socket.SOCK_DGRAM)
    try:
        found.setblocking(False)
        found.connect(address)
    except OSError:
        found.close()
        raise
    return found


def _send(selector: selectors.BaseSelector, reasons: dict[str, str]) -> None:
    for key in list(selector.get_map().values()):
        asked: _Asked = key.data
        try:
            asked.socket.send(asked.question)
        except OSError as error:  # such as that of the question before
            reasons[asked.url] = error.strerror or str(error)


def _receive(asked: _Asked, domain: str, reasons: dict[str, str]) -> PingAnswer | None:
    try:
        data = asked.socket.recv(MAX_ANSWER + 1)
        return decode_answer(data, asked.identifier, domain)
    except BlockingIOError:
        return None
    except PingError as error:
        reasons[asked.url] = str(error)
    except OSError as error:  # no program listens there
        reasons[asked.url] = error.strerror or str(error)
        asked.left = 0
        return None
    asked.left -= 1
    return None


class NetworkNearness:
    """Implements `siting.Nearness` on the network. `domain` is the DNS name of the domain, "" for that of the
    controller.
    """

    def __init__(self, domain: str = "") -> None:
        self._domain = domain

    def site(self, url: str) -> str:
        """Return the site in which the controller with this URL sees this computer. Raises PingError."""
        answers, reasons = ping([url], self._domain)
        if url not in answers:
            raise PingError(reasons[url])
        return answers[url].client_site

    def address(self, url: str) -> IPv4Address | IPv6Address | None:
        """Return the address from which this computer reaches the controller with this URL."""
        return _source(endpoints(url))


def _source(found: Iterable[Endpoint]) -> IPv4Address | IPv6Address | None:
    for endpoint in found:
        with contextlib.suppress(OSError), _connected(endpoint) as asked:  # sends nothing
            address = ip_address(str(asked.getsockname()[0]).partition("%")[0])
            return getattr(address, "ipv4_mapped", None) or address
    return None
