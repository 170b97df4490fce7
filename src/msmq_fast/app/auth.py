"""Identifies the peer of a connection of the application protocol."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from msmq_fast.security.logons import LogonLimits
from msmq_fast.security.users import Users


@dataclass(frozen=True, slots=True)
class Identity:
    """The user of a connection: a uid that the kernel reports, or the name of the owner of a token."""

    name: str
    uid: int | None = None
    groups: tuple[str, ...] = ()  # beside those of the users file


class TokenTable:
    """The tokens of programs, from the users file and from [[users]] in the configuration."""

    def __init__(
        self,
        users: Mapping[str, str | bytes],
        groups: Mapping[str, tuple[str, ...]] | None = None,
        logons: LogonLimits | None = None,
        accounts: Callable[[], Users] | None = None,
    ) -> None:
        """`users` maps the names of [[users]] to their tokens (text) or to the SHA-256 of the tokens (32
        bytes); `groups` maps the names to the groups of the users. `logons` limits the wrong tokens from one
        address. `accounts` returns the contents of the users file.

        Raises ValueError for an empty token, which would admit everyone.
        """
        for name, token in users.items():
            if not token:
                raise ValueError(f"the token of {name} is empty")
        self._logons = logons
        self._accounts = accounts
        given = groups or {}
        self._tokens = [
            (
                Identity(name, None, given.get(name, ())),
                _digest(token) if isinstance(token, str) else token,
            )
            for name, token in users.items()
        ]

    def replace(self, other: TokenTable) -> None:
        """Replace the tokens of [[users]] with those of `other`; open connections keep their identity."""
        self._tokens = other._tokens

    def identify(self, token: str, address: str, method: str = "a token") -> Identity | None:
        """Return the owner of `token`. None if the token is wrong, or if too many wrong tokens came from this
        address.

        `method` names the secret in the audit. The digests of all tokens are compared in full, so the time
        taken reveals nothing about any of them.
        """
        found: Identity | None = None
        given = _digest(token)
        for identity, expected in self._all():
            if hmac.compare_digest(given, expected):
                found = identity
        if self._logons is not None:
            account = "" if found is None else found.name
            if self._logons.admit(account, address, proven=found is not None, method=method) is not None:
                return None
        return found

    def owner_of(self, digest: bytes) -> Identity | None:
        """Return the owner of the token with this SHA-256 digest, None if the token is no longer valid."""
        return next((one for one, known in self._all() if hmac.compare_digest(digest, known)), None)

    def _all(self) -> Iterator[tuple[Identity, bytes]]:
        yield from self._tokens
        if self._accounts is not None:
            for user in self._accounts().users.values():
                yield from ((Identity(user.name), digest) for digest in user.tokens)

    @property
    def empty(self) -> bool:
        """Whether no user has a token at present."""
        return next(self._all(), None) is None


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
