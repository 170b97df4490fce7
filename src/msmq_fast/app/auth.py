"""Who is at the other end of a connection of the application protocol."""

from __future__ import annotations

import hmac
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """The user of a connection: a uid that the kernel vouched for, or the name that belongs to a token."""

    name: str
    uid: int | None = None
    groups: tuple[str, ...] = ()  # beside those of the users file


class TokenTable:
    """The tokens of the users of TCP connections."""

    def __init__(self, users: dict[str, str], groups: dict[str, tuple[str, ...]] | None = None) -> None:
        """`users` maps names to tokens, `groups` some of them to groups.

        Raises ValueError for an empty token, which would admit everyone.
        """
        for name, token in users.items():
            if not token:
                raise ValueError(f"the token of {name} is empty")
        given = groups or {}
        self._tokens = [
            (Identity(name, None, given.get(name, ())), token.encode()) for name, token in users.items()
        ]

    def replace(self, other: TokenTable) -> None:
        """Take over the tokens of `other`; connections that are open keep their identity."""
        self._tokens = other._tokens

    def identify(self, token: str) -> Identity | None:
        """The identity that belongs to `token`, or None.

        Every token is compared in full, so the time taken tells nothing about any of them.
        """
        found: Identity | None = None
        given = token.encode("utf-8", "surrogatepass")
        for identity, expected in self._tokens:
            if hmac.compare_digest(given, expected):
                found = identity
        return found
