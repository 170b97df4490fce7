"""Section [server]: identity of this queue manager, and its data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msmq_fast.config import kinds, name_kinds
from msmq_fast.config.kinds import key

__all__ = ["ServerConfig"]


@dataclass(slots=True)
class ServerConfig:
    """Section [server]: identity of this queue manager, and its data."""

    name: str = key(name_kinds.COMPUTER_NAME, "", "computer name; empty: the host name")
    domain: str = key(name_kinds.COMPUTER, "", "DNS domain, for the qualified name that the directory shows")
    aliases: tuple[str, ...] = key(name_kinds.COMPUTERS, (), "more names that mean this computer")
    advertised_address: str = key(
        name_kinds.COMPUTER,
        "",
        "address or host name at which others reach this server, if a NAT hides its own",
    )
    guid: str = key(
        kinds.GUID, "", "queue-manager GUID to take over when the store is created; empty: a new one"
    )
    data: Path | None = key(kinds.PATH, None, "data directory; empty: the user's data directory")  # noqa: RUF009
    drain_timeout: float = key(kinds.duration(0, 3600), 10.0, "how long a stop may take before it is forced")
