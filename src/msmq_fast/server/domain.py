"""The domain of a server: the connection to Active Directory that section [directory] describes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from msmq_fast.config.sections.directory import DirectoryConfig
from msmq_fast.directory.provider import DirectoryProvider
from msmq_fast.qm.settings import DirectoryMode
from msmq_fast.security.sid import Sid
from msmq_fast.server.declarations import DeclarationError

if TYPE_CHECKING:
    from msmq_fast.directory.ldap.accountcache import AccountCache
    from msmq_fast.directory.ldap.domain import Domain
    from msmq_fast.directory.ldap.link import LdapLink
    from msmq_fast.directory.ldap.locating import Locator
    from msmq_fast.directory.ldap.worker import Post

__all__ = ["domain_accounts", "domain_directory", "domain_of", "link_of"]


def domain_of(config: DirectoryConfig) -> Domain:
    """Return the domain of a configuration; it connects at its first operation. Raises DeclarationError."""
    return _domain(config, link_of(config))


def _domain(config: DirectoryConfig, link: LdapLink) -> Domain:
    from msmq_fast.directory.ldap.domain import Domain
    from msmq_fast.directory.ldap.forest import Catalog
    from msmq_fast.server.net.pinging import NetworkNearness

    return Domain(link, NetworkNearness(config.domain), Catalog(config.global_catalog))


def link_of(config: DirectoryConfig) -> LdapLink:
    """Return the connection that a configuration describes; it is opened at the first operation. Raises
    DeclarationError.
    """
    if not config.url and not config.domain:
        raise DeclarationError(
            'directory.url: give the domain controllers, for example ["ldap://dc1.corp.example"], or '
            "directory.domain for those that DNS names"
        )
    if bool(config.user) != (config.password_file is not None):
        raise DeclarationError("directory.user and directory.password_file belong together")
    from msmq_fast.directory.ldap.controllers import Controllers

    try:
        from msmq_fast.directory.ldap.connecting import LdapSettings
        from msmq_fast.directory.ldap.link import LdapLink
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in ("ldap", "_ldap"):
            raise
        raise DeclarationError(
            'directory.mode = "domain" needs python-ldap: install msmq-fast[ldap]'
        ) from None
    password = ""
    if config.password_file is not None:
        try:
            password = config.password_file.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise DeclarationError(f"directory.password_file: {config.password_file}: {error}") from None
        if not password:  # a log-on without password would be an anonymous one
            raise DeclarationError(f"directory.password_file: {config.password_file} is empty")
    if config.keytab is not None:  # libldap takes the credentials from the environment
        os.environ.setdefault("KRB5_CLIENT_KTNAME", str(config.keytab))
        os.environ.setdefault("KRB5CCNAME", "MEMORY:msmq-fast-directory")
    settings = LdapSettings(config.url, config.user, password, config.ca_file)
    if config.url:
        return LdapLink(settings, Controllers(config.url))
    locator = _locator(config.domain)
    return LdapLink(settings, Controllers((), find=locator.find, source=locator.source))


def _locator(domain: str) -> Locator:
    try:
        from msmq_fast.directory.ldap.locating import Locator
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] != "dns":
            raise
        raise DeclarationError(
            "directory.domain needs dnspython: install msmq-fast[ldap], or give directory.url"
        ) from None
    from msmq_fast.server.net.pinging import ping

    return Locator(domain, ping)


def domain_directory(
    config: DirectoryConfig, data: Path, monotonic: Callable[[], float], post: Post
) -> DirectoryProvider | None:
    """Return the directory of a server in a domain, None for one with another kind of directory. A file of
    the directory `data` keeps the copy of the domain. `post` calls a function on the event loop. Raises
    DeclarationError.
    """
    if config.mode != DirectoryMode.DOMAIN.value:
        return None
    link = link_of(config)
    from msmq_fast.directory.ldap.provider import Intervals, LdapDirectory
    from msmq_fast.directory.ldap.saved import SavedCopy
    from msmq_fast.directory.ldap.watch import LdapWatch
    from msmq_fast.directory.ldap.worker import ThreadWorker

    intervals = Intervals(config.changes_interval, config.complete_interval)
    watch = LdapWatch(link.settings, link.controllers)
    saved = SavedCopy(data / "domain.copy", config.url or [config.domain])
    return LdapDirectory(
        _domain(config, link), ThreadWorker(post), monotonic, watch=watch, saved=saved, intervals=intervals
    )


def domain_accounts(
    config: DirectoryConfig, given: Iterable[Sid], monotonic: Callable[[], float], post: Post
) -> AccountCache | None:
    """Return the users and groups of the domain of a server, None for a server without domain. `given` are
    the SIDs in security.domains. Raises DeclarationError.
    """
    if config.mode != DirectoryMode.DOMAIN.value:
        return None
    link = link_of(config)  # of its own: a name does not wait until all queues are read
    from msmq_fast.directory.ldap.accountcache import AccountCache
    from msmq_fast.directory.ldap.accounts import Accounts
    from msmq_fast.directory.ldap.worker import ThreadWorker

    return AccountCache(Accounts(link), ThreadWorker(post), monotonic, frozenset(given))
