"""Who makes a request of the bulk API: the owner of a token, or a user of this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from aiohttp import web

from msmq_fast.bulk.errors import Refusal
from msmq_fast.security.token import Token

__all__ = ["Access", "Address", "Callers"]

Address = tuple[str, int]
"""Host and port of one end of a connection."""

_SCHEME: Final = "bearer "
_OF_OTHERS: Final = ("Origin", "Forwarded", "X-Forwarded-For", "X-Real-IP", "Via")
_ADVICE: Final = "send Authorization: Bearer with the token of a [[users]] entry"


class Access(StrEnum):
    """`bulk.access`."""

    LOOPBACK = "loopback"
    TOKEN = "token"  # noqa: S105 - a word of the configuration
    OFF = "off"


class Ends(NamedTuple):
    """Both ends of a connection over the loopback interface."""

    server: Address
    client: Address


@dataclass(frozen=True, slots=True)
class Callers:
    """`of_token` knows whose token a text is that came from an address, `of_local` whose the client's end of
    a loopback connection is; None: nobody's.
    """

    access: Access
    of_token: Callable[[str, str], Token | None]
    of_local: Callable[[Address, Address], Token | None]

    def identify(self, request: web.Request) -> Token:
        """Who asks. Raises Refusal: UNAUTHORIZED, ACCESS_DENIED."""
        header = request.headers.get("Authorization")
        if header is not None:
            known = self.of_token(_bearer(header), request.remote or "")
            if known is None:
                raise Refusal(
                    "UNAUTHORIZED",
                    "the token is not known here, or too many wrong ones came from your address",
                )
            return known
        if self.access is not Access.LOOPBACK:
            raise Refusal("UNAUTHORIZED", f"a token is needed: {_ADVICE}")
        ends = _loopback(request)
        if ends is None:
            raise Refusal("UNAUTHORIZED", f"a token is needed from another machine: {_ADVICE}")
        _refuse_web_pages(request)
        local = self.of_local(ends.client, ends.server)
        if local is None:
            raise Refusal("UNAUTHORIZED", f"the system does not tell who you are: {_ADVICE}")
        return local


def _bearer(header: str) -> str:
    if not header[: len(_SCHEME)].lower() == _SCHEME:
        raise Refusal("UNAUTHORIZED", f"another kind of authorization than a token: {_ADVICE}")
    return header[len(_SCHEME) :].strip()


def _loopback(request: web.Request) -> Ends | None:
    transport = request.transport
    ends = [transport.get_extra_info(name) for name in ("sockname", "peername")] if transport else []
    if not all(ends):
        return None
    server, client = (_plain(end) for end in ends)
    both = (ip_address(server[0]), ip_address(client[0]))
    return Ends(server, client) if all(address.is_loopback for address in both) else None


def _plain(end: tuple[str, int]) -> Address:
    """Without a zone, and IPv4 as such."""
    address: IPv4Address | IPv6Address | None = ip_address(end[0].partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return str(address), end[1]


def _refuse_web_pages(request: web.Request) -> None:
    """Browsers send what any page wants to this machine, and a page may call its own host by our address.
    What a proxy passes on is not the wish of the user that the proxy runs as.
    """
    foreign = any(name in request.headers for name in _OF_OTHERS)
    if foreign or not _is_here(request.headers.get("Host", "localhost")):
        raise Refusal(
            "ACCESS_DENIED",
            "requests of web pages, proxies and by other names than localhost need a token",
        )


def _is_here(header: str) -> bool:
    try:
        host = urlsplit(f"//{header}").hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
