"""Section [security]: access control."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msmq_fast.config import kinds, name_kinds
from msmq_fast.config.kinds import key

__all__ = ["SecurityConfig"]


@dataclass(slots=True)
class SecurityConfig:
    """Section [security]: access control."""

    profile: str = key(
        kinds.choice("windows", "hardened"),
        "windows",
        "group of defaults. windows: as on a Windows host, anonymous senders included; hardened: only "
        "the hosts of mqqb.allow reach port 1801, and nothing else is open. Keys that are set take "
        "precedence",
    )
    users_file: Path | None = key(
        kinds.PATH, None, "file of the users; empty: users.toml in the data directory"
    )
    default_queue_acl: str = key(
        kinds.choice("spec", "restrictive"),
        "restrictive",
        "rights of Everyone on a new queue. spec: all, as in MS-MQDMPR; restrictive: read properties "
        "and permissions, and send, as on Windows",
    )
    anonymous_may_send: bool = key(kinds.FLAG, True, "new queues accept messages of anonymous senders")
    everyone_creates_queues: bool = key(
        kinds.FLAG, False, "every user may create queues, not only administrators"
    )
    domains: tuple[str, ...] = key(kinds.TEXTS, (), "SIDs of the domains whose accounts are domain users")
    quarantine: str = key(
        name_kinds.QUEUE, "", "queue for messages of senders without access; empty: such messages are dropped"
    )
    audit_interval: float = key(
        kinds.duration(0, 86_400), 10.0, "a repeated refusal is logged once per interval"
    )
