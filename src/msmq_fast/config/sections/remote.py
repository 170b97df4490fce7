"""Section [remote]: queues of other computers that programs read through this server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msmq_fast.config import kinds
from msmq_fast.config.kinds import key

__all__ = ["RemoteConfig"]


@dataclass(slots=True)
class RemoteConfig:
    """Section [remote]: queues of other computers that programs read through this server."""

    enabled: bool = key(kinds.FLAG, True, "programs may receive from and peek at queues of other computers")
    user: str = key(kinds.TEXT, "", "as whom other computers are read; empty: anonymously")
    domain: str = key(kinds.TEXT, "", "domain or realm of that user; empty: that of the other computer")
    password_file: Path | None = key(kinds.PATH, None, "file that holds the password")  # noqa: RUF009
    keytab: Path | None = key(kinds.PATH, None, "keytab of the user, for Kerberos")  # noqa: RUF009
    authentication: str = key(
        kinds.choice("negotiate", "ntlm", "kerberos", "none"),
        "negotiate",
        "how: what both sides have, Kerberos where there is a keytab; or one of them only; or not at all",
    )
    level: str = key(
        kinds.choice("connect", "packet", "integrity", "privacy"),
        "privacy",
        "authentication level: once, or every packet, or signed, or encrypted too",
    )
    service: str = key(
        kinds.TEXT, "host", "Kerberos: first part of the names of other computers, as in host/name"
    )
    readers: tuple[str, ...] = key(
        kinds.TEXTS, (), "users and groups who may read as that user; administrators may always"
    )
    epm_port: int = key(kinds.integer(1, 65535), 135, "TCP port of the endpoint mappers of other computers")
    port: int = key(
        kinds.integer(0, 65535),
        0,
        "TCP port of RemoteRead there, without asking a mapper; 0: the mapper tells it",
    )
    port_methods: bool = key(
        kinds.FLAG, False, "ask the interfaces for their ports once more, as Windows did up to Server 2003"
    )
    connect_timeout: float = key(kinds.duration(0.1, 600), 30.0, "for one connection")
    keep_alive: float = key(
        kinds.duration(1, 86_400), 60.0, "another computer that is silent for so long is asked if it is there"
    )
