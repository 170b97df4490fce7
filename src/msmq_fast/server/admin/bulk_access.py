"""Identifies callers of the bulk API: tokens of the configuration, and users of this machine."""

from __future__ import annotations

import pwd
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from msmq_fast.app.auth import TokenTable
from msmq_fast.bulk.callers import Access, Address, Callers
from msmq_fast.security.principals import Principals
from msmq_fast.security.token import Token
from msmq_fast.security.users import UsersFileError
from msmq_fast.server.net.peer_user import user_of

__all__ = ["bulk_callers"]


_MEMORY: Final = 2.0  # seconds that a user of this machine is known without asking the system again


def bulk_callers(
    access: Access, tokens: TokenTable, principals: Principals, monotonic: Callable[[], float]
) -> Callers:
    """Return the object that identifies callers and admits them according to `bulk.access`. A change of the
    groups of a user takes effect within two seconds.
    """

    @lru_cache(maxsize=64)
    def of_unix(uid: int, _: int) -> Token:
        try:
            name = pwd.getpwuid(uid).pw_name
        except KeyError:
            name = ""
        return principals.of_unix(uid, name)

    def of_token(text: str, address: str) -> Token | None:
        identity = tokens.identify(text, address)
        if identity is None:
            return None
        try:
            return principals.of_name(identity.name, identity.groups)
        except UsersFileError:  # a group that is no longer in the users file
            return None

    def of_local(client: Address, server: Address) -> Token | None:
        uid = user_of(client, server)
        return None if uid is None else of_unix(uid, int(monotonic() / _MEMORY))

    return Callers(access, of_token, of_local)
