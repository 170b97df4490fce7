"""Operators' requests about accounts and the configuration: `users` and `config` of `connection.admin`."""

from __future__ import annotations

from msmq_fast.client.subject import Subject
from msmq_fast.protocol.accounts import AccountPage
from msmq_fast.protocol.configuration import ConfigCheck, ConfigPage
from msmq_fast.protocol.frames import Frame

__all__ = ["ConfigAdmin", "UserAdmin"]


class UserAdmin(Subject):
    """Users and groups of the users file. Administrators and readers may list them."""

    async def page(self, kind: str = "users", *, offset: int = 0, limit: int = 100) -> AccountPage:
        """Return up to `limit` users or groups (at most 1,000) by name, after the first `offset` ones. `kind`
        is `users` or `groups`. Raises InvalidParameter, AccessDenied.
        """
        return AccountPage.from_map(await self._link.request(Frame.LIST_USERS, [kind, offset, limit]))


class ConfigAdmin(Subject):
    """The configuration of the running server. Administrators and readers may see it."""

    async def page(self, *, offset: int = 0, limit: int = 1000) -> ConfigPage:
        """Return up to `limit` settings (at most 1,000) in force, after the first `offset` ones. Secrets are
        hidden. Raises AccessDenied.
        """
        return ConfigPage.from_map(await self._link.request(Frame.SHOW_CONFIG, [offset, limit]))

    async def check(self, text: str) -> ConfigCheck:
        """Return what a reload would do if the configuration file had the content `text`; changes nothing.
        Raises InvalidParameter if the text is too long; AccessDenied.
        """
        return ConfigCheck.from_map(await self._link.request(Frame.CHECK_CONFIG, [text]))
