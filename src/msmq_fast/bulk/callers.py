"""Identifies the caller of the bulk API: the owner of a token, or a user of this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from aiohttp import web

from msmq_fast.bulk.errors import Refusal
from msmq_fast.security.token import Token
from msmq_fast.security.webpages import (
    Address,
    Ends,
    is_of_another_site,
    loopback_ends,
    names_this_machine,
)

__all__ = ["Access", "Address", "Callers"]

_SCHEME: Final = "bearer "
_OF_OTHERS: Final = ("Origin", "Forwarded", "X-Forwarded-For", "X-Real-IP", "Via")
_ADVICE: Final = "send Authorization: Bearer with the token of a user (msmq-fast user token NAME)"


class Access(StrEnum):
    """The values of the configuration key `bulk.access`."""

    ADMINISTRATORS = "administrators"
    LOOPBACK = "loopback"
    TOKEN = "token"  # noqa: S105 - a word of the configuration
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Callers:
    """Identifies callers. `of_token(text, address)` returns the owner of the token `text`, which a client at
    `address` sent. `of_local(client, server)` returns the user that owns the client's end of a loopback
    connection. Both return None for an unknown caller.
    """

    access: Access
    of_token: Callable[[str, str], Token | None]
    of_local: Callable[[Address, Address], Token | None]

    def identify(self, request: web.Request) -> Token:
        """Return the caller of a request. Raises Refusal (UNAUTHORIZED or ACCESS_DENIED)."""
        header = request.headers.get("Authorization")
        if header is not None:
            known = self.of_token(_bearer(header), request.remote or "")
            if known is None:
                raise Refusal(
                    "UNAUTHORIZED",
                    "unknown token, or too many wrong tokens from this address",
                )
            return replace(known, address=request.remote or "")
        if self.access not in (Access.ADMINISTRATORS, Access.LOOPBACK):
            raise Refusal("UNAUTHORIZED", f"a token is needed: {_ADVICE}")
        ends = _loopback(request)
        if ends is None:
            raise Refusal("UNAUTHORIZED", f"callers from another machine need a token: {_ADVICE}")
        _refuse_web_pages(request)
        local = self.of_local(ends.client, ends.server)
        if local is None:
            raise Refusal("UNAUTHORIZED", f"the system cannot identify the caller: {_ADVICE}")
        if self.access is Access.ADMINISTRATORS and not (local.administrator or local.reader):
            raise Refusal("UNAUTHORIZED", f"users other than administrators need a token: {_ADVICE}")
        return replace(local, address=request.remote or "")


def _bearer(header: str) -> str:
    if not header[: len(_SCHEME)].lower() == _SCHEME:
        raise Refusal("UNAUTHORIZED", f"the Authorization header is not of the type Bearer: {_ADVICE}")
    return header[len(_SCHEME) :].strip()


def _loopback(request: web.Request) -> Ends | None:
    transport = request.transport
    if transport is None:
        return None
    return loopback_ends(transport.get_extra_info("sockname"), transport.get_extra_info("peername"))


def _refuse_web_pages(request: web.Request) -> None:
    """Refuse requests that a web page or a proxy caused. Any web page can make the browser send requests to
    this machine, and can let its own host name resolve to the address of this machine. A request that a proxy
    forwards does not come from the user that runs the proxy.
    """
    foreign = any(name in request.headers for name in _OF_OTHERS) or is_of_another_site(request.headers)
    if foreign or not names_this_machine(request.headers.get("Host", "localhost")):
        raise Refusal(
            "ACCESS_DENIED",
            "requests from web pages or proxies, or with a Host other than localhost, need a token",
        )
