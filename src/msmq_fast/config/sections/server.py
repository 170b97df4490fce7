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

    name: str = key(name_kinds.COMPUTER_NAME, "", "computer name; empty: the first label of the host name")
    domain: str = key(
        name_kinds.COMPUTER,
        "",
        "DNS domain of this computer, which makes its name in the directory a qualified one",
    )
    aliases: tuple[str, ...] = key(
        name_kinds.COMPUTERS, (), "other names of this computer; messages to them are delivered here"
    )
    advertised_address: str = key(
        name_kinds.COMPUTER,
        "",
        "address or host name at which other computers reach this server, if network address "
        "translation hides its own",
    )
    guid: str = key(
        kinds.GUID, "", "GUID of the queue manager, used when the store is created; empty: a new one"
    )
    data: Path | None = key(
        kinds.PATH,
        None,
        "data directory; empty: /var/lib/msmq-fast for root, else the data directory of the user",
    )
    drain_timeout: float = key(
        kinds.duration(0, 3600), 10.0, "maximum time for an orderly stop; after it, the stop is forced"
    )
