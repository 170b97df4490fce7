"""Section [directory]: public queues, computers, sites and users."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msmq_fast.config import kinds, url_kinds
from msmq_fast.config.kinds import key
from msmq_fast.qm.settings import DirectoryMode

__all__ = ["DirectoryConfig"]


@dataclass(slots=True)
class DirectoryConfig:
    """Section [directory]: public queues, computers, sites and users."""

    mode: str = key(
        kinds.choice(*(mode.value for mode in DirectoryMode)),
        DirectoryMode.EMBEDDED.value,
        "embedded: public queues are in the store of this server; workgroup: there are no public queues; "
        "domain: public queues are in Active Directory, see `msmq-fast domain`",
    )
    url: tuple[str, ...] = key(
        url_kinds.LDAP,
        (),
        "domain controllers, in the order in which they are tried: ldap://HOST or ldaps://HOST",
    )
    domain: str = key(
        kinds.TEXT,
        "",
        "DNS name of the domain, such as corp.example: without `url`, DNS names its controllers",
    )
    user: str = key(
        kinds.TEXT,
        "",
        "account with which this server logs on at the domain controller, as NAME@DOMAIN; empty: Kerberos "
        "with the credentials of `keytab`, or else of the process",
    )
    password_file: Path | None = key(kinds.PATH, None, "file that holds the password of `user`")
    keytab: Path | None = key(kinds.PATH, None, "keytab of this computer's account, for Kerberos")
    ca_file: Path | None = key(
        kinds.PATH, None, "certificates of the authorities that domain controllers' certificates come from"
    )
    changes_interval: float = key(
        kinds.duration(1, 86_400), 10.0, "interval at which the server asks the domain for changes"
    )
    complete_interval: float = key(
        kinds.duration(60, 10**7),
        3_600.0,
        "interval at which the server reads all objects of the domain again, and so notices deletions that "
        "its account may not see",
    )
    global_catalog: str = key(
        kinds.choice("auto", "yes", "no"),
        "auto",
        "whether objects of other domains of the forest are read from the global catalog of the domain "
        "controller; auto: if the forest has several domains",
    )
    site: str = key(kinds.GUID, "", "site of this computer, registered at the first start")
    sites_interval: float = key(
        kinds.duration(60, 10**7), 43_200.0, "interval at which the sites are read again from the directory"
    )
    gates_interval: float = key(
        kinds.duration(60, 10**7),
        3_600.0,
        "interval at which the site gates are read again from the directory",
    )
