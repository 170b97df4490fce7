"""What the console needs to know about users: the server supplies it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from msmq_fast.security.callers import Caller
from msmq_fast.security.webpages import Ends

__all__ = ["Logon", "LogonRefused", "Logons"]


class LogonRefused(Exception):
    """A log-on that is refused; the text is one line for the person at the browser."""


@dataclass(frozen=True, slots=True)
class Logon:
    """A caller, and what proved the identity: `proof` is a digest of the password or the token, by which the
    server finds out later whether it is still valid.
    """

    caller: Caller
    how: str
    """`password`, `token` or `local` (a user of this machine)."""
    proof: bytes = b""


class Logons(Protocol):
    """Identifies users. Every attempt counts towards the limits on failed log-ons and is audited."""

    async def by_password(self, name: str, password: str, address: str) -> Logon:
        """Return the log-on of a user of the users file. Raises LogonRefused."""

    async def by_token(self, token: str, address: str) -> Logon:
        """Return the log-on of the owner of a token. Raises LogonRefused."""

    def local(self, headers: Mapping[str, str], ends: Ends | None) -> Logon:
        """Return the log-on of the Unix user at the other end of a loopback connection. Raises LogonRefused
        if the connection is not a local one, or the configuration does not admit such users.
        """

    def renewed(self, logon: Logon) -> Caller | None:
        """Return the caller with the rights of this moment; None if the password or the token is no longer
        valid or the user was removed.
        """
