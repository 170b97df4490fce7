"""Who is at the other end of a connection of the application protocol."""

from __future__ import annotations

import hmac
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """The user of a connection: a uid that the kernel vouched for, or the name that belongs to a token."""

    name: str
    uid: int | None = None


class TokenTable:
    """The tokens of the users of TCP connections."""

    def __init__(self, users: dict[str, str]) -> None:
        """`users` maps names to tokens. Raises ValueError for an empty token, which would admit everyone."""
        for name, token in users.items():
            if not token:
                raise ValueError(f"the token of {name} is empty")
        self._tokens = [(name, token.encode()) for name, token in users.items()]

    def identify(self, token: str) -> Identity | None:
        """The identity that belongs to `token`, or None.

        Every token is compared in full, so the time taken tells nothing about any of them.
        """
        found: Identity | None = None
        given = token.encode("utf-8", "surrogatepass")
        for name, expected in self._tokens:
            if hmac.compare_digest(given, expected):
                found = Identity(name)
        return found
