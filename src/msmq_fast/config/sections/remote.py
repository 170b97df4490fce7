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
    user: str = key(
        kinds.TEXT, "", "user name with which this server logs on at other computers; empty: anonymous"
    )
    domain: str = key(kinds.TEXT, "", "domain or realm of `user`; empty: that of the other computer")
    password_file: Path | None = key(kinds.PATH, None, "file that holds the password of `user`")
    keytab: Path | None = key(kinds.PATH, None, "keytab of `user`, for Kerberos")
    authentication: str = key(
        kinds.choice("negotiate", "ntlm", "kerberos", "none"),
        "negotiate",
        "authentication method. negotiate: one that both sides support, Kerberos if there is a "
        "keytab; ntlm, kerberos: only this method; none: no log-on",
    )
    level: str = key(
        kinds.choice("connect", "packet", "integrity", "privacy"),
        "privacy",
        "authentication level. connect: the connection only; packet: each packet; integrity: each "
        "packet is also signed; privacy: each packet is also encrypted",
    )
    service: str = key(
        kinds.TEXT, "host", "first part of the Kerberos names of other computers, as in host/name"
    )
    readers: tuple[str, ...] = key(
        kinds.TEXTS,
        (),
        "users and groups, besides administrators, that may read queues of other computers with the "
        "account `user`",
    )
    epm_port: int = key(kinds.integer(1, 65535), 135, "TCP port of the endpoint mappers of other computers")
    port: int = key(
        kinds.integer(0, 65535),
        0,
        "TCP port of RemoteRead at other computers; 0: ask the endpoint mapper",
    )
    port_methods: bool = key(
        kinds.FLAG,
        False,
        "also ask each interface of the other computer for its port, as Windows did up to Server 2003",
    )
    connect_timeout: float = key(kinds.duration(0.1, 600), 30.0, "time for one attempt to connect")
    keep_alive: float = key(
        kinds.duration(1, 86_400), 60.0, "another computer that is silent is probed after this time"
    )
