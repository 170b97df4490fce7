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
        "group of defaults: windows: as a Windows host, anonymous senders included; hardened: only hosts of "
        "mqqb.allow reach port 1801, nothing else is open; keys that are set win",
    )
    users_file: Path | None = key(kinds.PATH, None, "users; empty: users.toml in the data directory")  # noqa: RUF009
    default_queue_acl: str = key(
        kinds.choice("spec", "restrictive"),
        "restrictive",
        "what Everyone may do with a new queue: spec: all, as MS-MQDMPR has it; restrictive: look and send, "
        "as on Windows",
    )
    anonymous_may_send: bool = key(
        kinds.FLAG, True, "new queues take messages of senders that do not say who they are"
    )
    everyone_creates_queues: bool = key(kinds.FLAG, False, "not only administrators create queues")
    domains: tuple[str, ...] = key(kinds.TEXTS, (), "SIDs of the domains whose accounts are domain users")
    quarantine: str = key(
        name_kinds.QUEUE, "", "queue for messages of refused senders; empty: they are dropped"
    )
    audit_interval: float = key(kinds.duration(0, 86_400), 10.0, "equal refusals are logged once in so long")
