"""Identifies callers on the admin port: tokens of the configuration, and users of this machine."""

from __future__ import annotations

import pwd
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Final

from msmq_fast.app.auth import TokenTable
from msmq_fast.security.callers import Access, Caller, Callers
from msmq_fast.security.principals import Principals
from msmq_fast.security.users import UsersFileError
from msmq_fast.security.webpages import Address
from msmq_fast.server.net.peer_user import user_of

__all__ = ["callers_of"]


_MEMORY: Final = 2.0  # seconds that a user of this machine is known without asking the system again


def callers_of(
    access: Access,
    tokens: TokenTable,
    principals: Principals,
    monotonic: Callable[[], float],
    names: Collection[str] = (),
) -> Callers:
    """Return the object that identifies callers and admits them according to `access`. A change of the
    groups of a user takes effect within two seconds.
    """

    @lru_cache(maxsize=64)
    def of_unix(uid: int, _: int) -> Caller:
        try:
            name = pwd.getpwuid(uid).pw_name
        except KeyError:
            name = ""
        return Caller(name or f"uid {uid}", principals.of_unix(uid, name), uid)

    def of_token(text: str, address: str) -> Caller | None:
        identity = tokens.identify(text, address)
        if identity is None:
            return None
        try:
            token = principals.of_name(identity.name, identity.groups)
        except UsersFileError:  # a group that is no longer in the users file
            return None
        return Caller(identity.name, token, None, identity.groups)

    def of_local(client: Address, server: Address) -> Caller | None:
        uid = user_of(client, server)
        return None if uid is None else of_unix(uid, int(monotonic() / _MEMORY))

    return Callers(access, of_token, of_local, names)
