"""Parses the URLs of queues, and finds out whether they name this computer and which queue they name.

MC-MQSRM defines `http://host[:port]/msmq/[private$/]queue`. Both kinds of slashes and any case occur, and a
query may follow the name (4.4). A `?` may also be part of the name, since it is legal in queue names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import quote, unquote

from msmq_fast.packet.names import QueuePart, Scope, parse_queue_part
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.qm.queues.registry import QueueRegistry, Target

__all__ = ["DEFAULT_PORTS", "OwnUrls", "Url", "authority", "is_http", "parse_url", "queue_parts"]

DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_MAX_URL: Final = 8192
_URL = re.compile(
    r"(https?)://(\[[0-9A-Fa-f:.]{2,45}\]|[^\s:/\\\[\]?#@%]{1,255})(?::([0-9]{1,5}))?([/\\?].*)?",
    re.IGNORECASE,
)
_ROOT = re.compile(r"[/\\]msmq[/\\](.+)", re.IGNORECASE | re.DOTALL)
_CONTROLS = re.compile(r"[\x00-\x1F\x7F]")
_AS_IT_IS: Final = "".join(map(chr, range(0x21, 0x7F)))  # of a path in a request line


@dataclass(frozen=True, slots=True)
class Url:
    """The pieces of an http or https URL.

    - `text` is the whole URL as written.
    - `host` is in lower case; an IPv6 address has no brackets.
    - `path` is as written, includes the query, and is never empty.
    """

    text: str
    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """`host` or `host:port`, as in the Host header and before the path."""
        return authority(self.scheme, self.host, self.port)

    @property
    def target(self) -> str:
        """The path for a request line: each backslash is replaced by `/`; spaces, control characters and
        non-ASCII characters are replaced by percent escapes.
        """
        return quote(self.path.replace("\\", "/"), safe=_AS_IT_IS)


def authority(scheme: str, host: str, port: int) -> str:
    """Return `host` or `host:port`: without the default port of the scheme, with IPv6 addresses in
    brackets.
    """
    shown = f"[{host}]" if ":" in host else host
    return shown if DEFAULT_PORTS[scheme] == port else f"{shown}:{port}"


def is_http(text: str) -> bool:
    """Return whether a text begins like an http or https URL."""
    return text[:8].lower().startswith(("http://", "https://"))


def parse_url(text: str) -> Url:
    """Parse a URL. Raises ValueError if it is not an http or https URL, or if no message can be
    sent to it.
    """
    found = _URL.fullmatch(text) if len(text) <= _MAX_URL else None
    if found is None or _CONTROLS.search(text):
        raise ValueError("expected a URL such as http://host/msmq/private$/queue")
    scheme, host, digits, path = found.groups()
    scheme, host = scheme.lower(), host.lower()
    if scheme not in DEFAULT_PORTS:  # U+017F matches the s of https where case is ignored
        raise ValueError("expected a URL of http or https")
    port = int(digits) if digits else DEFAULT_PORTS[scheme]
    if not 0 < port <= 0xFFFF:
        raise ValueError("expected a port from 1 to 65535")
    if host.startswith("["):
        try:
            host = str(IPv6Address(host[1:-1]))
        except ValueError:
            raise ValueError("expected an IPv6 address in the brackets") from None
    if not path:
        path = "/"
    return Url(text, scheme, host, port, f"/{path}" if path.startswith("?") else path)


def queue_parts(url: Url) -> tuple[QueuePart, ...]:
    """Return the names of the queues that the path of a URL may name, in the order in which to try them.

    Names that include the query come before names without the query (A-87), and names with decoded percent
    escapes before names as written. Names of queues that take no messages are omitted.
    """
    found = _ROOT.fullmatch(url.path)
    if found is None:
        return ()
    whole = found[1].replace("/", "\\")
    parts: dict[QueuePart, None] = {}
    for text in (whole, whole.partition("?")[0]):
        for spelling in (_decoded(text), text):
            part = None if spelling is None else parse_queue_part(spelling)
            if part is not None and not (part.journal or part.subqueue or part.scope is Scope.SYSTEM):
                parts[part] = None
    return tuple(parts)


def _decoded(text: str) -> str | None:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return None


class OwnUrls:
    """Recognizes URLs of this computer, and builds URLs by which others reach it."""

    def __init__(self, registry: QueueRegistry, public_host: str) -> None:
        """`public_host` is the host in URLs that are sent to other computers: a name or an address, without a
        port.
        """
        self._registry = registry
        self._public_host = public_host.strip("[]").lower() if ":" in public_host else public_host
        self._ports: dict[str, int] = {}

    def listen(self, scheme: str, ports: Iterable[int]) -> None:
        """Set the ports of the listeners for a scheme. Our own URLs contain the first port."""
        for port in ports:
            self._ports.setdefault(scheme, port)

    def is_local(self, url: Url) -> bool:
        """Return whether the host of a URL is this computer, and its port one of our listeners' ports or the
        default of the scheme.
        """
        if not self._registry.is_local(url.host):
            return False
        return url.port == DEFAULT_PORTS[url.scheme] or url.port in self._ports.values()

    def queue(self, url: Url) -> Queue | None:
        """Return the queue of this computer that the path of a URL names; None if there is no such queue. The
        host of the URL is ignored.
        """
        for part in queue_parts(url):
            found = self._registry.find(Target(None, key=part.key))
            if found is not None:
                return found
        return None

    def order_queue(self, scheme: str) -> str:
        """Returns the URL to which receivers are to send stream receipts (SR-206, A-49), with `scheme`, or
        with the other scheme if `scheme` has no listener.
        """
        if scheme not in self._ports and self._ports:
            scheme = next(iter(self._ports))
        port = self._ports.get(scheme, DEFAULT_PORTS[scheme])
        return f"{scheme}://{authority(scheme, self._public_host, port)}/MSMQ/PRIVATE$/order_queue$"
