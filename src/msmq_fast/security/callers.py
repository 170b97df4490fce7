"""Identifies the caller of a request on the admin port: the owner of a token, or a user of this machine.

The bulk API, the management API and the metrics share these rules. Nothing here depends on an HTTP library.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from msmq_fast.security.token import Token
from msmq_fast.security.webpages import Address, Ends, is_of_another_site, names_this_machine

__all__ = ["Access", "Caller", "CallerRefused", "Callers"]

_SCHEME: Final = "bearer "
_OF_OTHERS: Final = ("Origin", "Forwarded", "X-Forwarded-For", "X-Real-IP", "Via")
_ADVICE: Final = "send Authorization: Bearer with the token of a user (msmq-fast user token NAME)"


class Access(StrEnum):
    """The values of the configuration keys that say which callers are admitted without a token."""

    ADMINISTRATORS = "administrators"
    LOOPBACK = "loopback"
    TOKEN = "token"  # noqa: S105 - a word of the configuration
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Caller:
    """An identified caller. `token` decides what the caller may do.

    `uid` is the number of a user of this computer; None for the owner of a token or of a password. `groups`
    are groups besides those of the users file, as in `[[users]]`.
    """

    name: str
    token: Token
    uid: int | None = None
    groups: tuple[str, ...] = ()

    def at(self, address: str) -> Caller:
        """Return the caller with the network address that entries of the audit name."""
        return replace(self, token=replace(self.token, address=address))


class CallerRefused(Exception):
    """A caller that is not identified or not admitted. `code` is UNAUTHORIZED or ACCESS_DENIED."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class Callers:
    """Identifies callers. `of_token(text, address)` returns the owner of the token `text`, which a client at
    `address` sent. `of_local(client, server)` returns the user that owns the client's end of a loopback
    connection. Both return None for an unknown caller.

    `names` are the names of this machine besides localhost, in lower case.
    """

    access: Access
    of_token: Callable[[str, str], Caller | None]
    of_local: Callable[[Address, Address], Caller | None]
    names: Collection[str] = ()

    def identify(self, headers: Mapping[str, str], address: str, ends: Ends | None) -> Caller:
        """Return the caller of a request with these headers from a client at `address`. `ends` are the ends
        of a loopback connection; None for a connection from another machine. Raises CallerRefused.
        """
        header = headers.get("Authorization")
        if header is not None:
            known = self.of_token(_bearer(header), address)
            if known is None:
                raise CallerRefused(
                    "UNAUTHORIZED",
                    "unknown token, or too many wrong tokens from this address",
                )
            return known.at(address)
        if self.access not in (Access.ADMINISTRATORS, Access.LOOPBACK):
            raise CallerRefused("UNAUTHORIZED", f"a token is needed: {_ADVICE}")
        if ends is None:
            raise CallerRefused("UNAUTHORIZED", f"callers from another machine need a token: {_ADVICE}")
        self._refuse_web_pages(headers)
        local = self.of_local(ends.client, ends.server)
        if local is None:
            raise CallerRefused("UNAUTHORIZED", f"the system cannot identify the caller: {_ADVICE}")
        admitted = local.token.administrator or local.token.reader
        if self.access is Access.ADMINISTRATORS and not admitted:
            raise CallerRefused("UNAUTHORIZED", f"users other than administrators need a token: {_ADVICE}")
        return local.at(address)

    def _refuse_web_pages(self, headers: Mapping[str, str]) -> None:
        """Refuse requests that a web page or a proxy caused. Any web page can make the browser send requests
        to this machine, and can let its own host name resolve to the address of this machine. A request that
        a proxy forwards does not come from the user that runs the proxy.
        """
        foreign = any(name in headers for name in _OF_OTHERS) or is_of_another_site(headers)
        if foreign or not names_this_machine(headers.get("Host", "localhost"), self.names):
            raise CallerRefused(
                "ACCESS_DENIED",
                "requests from web pages or proxies, or with a Host other than localhost, need a token",
            )


def _bearer(header: str) -> str:
    if not header[: len(_SCHEME)].lower() == _SCHEME:
        raise CallerRefused("UNAUTHORIZED", f"the Authorization header is not of the type Bearer: {_ADVICE}")
    return header[len(_SCHEME) :].strip()
