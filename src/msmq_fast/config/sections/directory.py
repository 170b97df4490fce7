"""Section [directory]: public queues, computers, sites and users."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.config import kinds
from msmq_fast.config.kinds import key
from msmq_fast.qm.settings import DirectoryMode

__all__ = ["DirectoryConfig"]


@dataclass(slots=True)
class DirectoryConfig:
    """Section [directory]: public queues, computers, sites and users."""

    mode: str = key(
        kinds.choice(*(mode.value for mode in DirectoryMode)),
        DirectoryMode.EMBEDDED.value,
        "embedded: public queues are in the store of this server; workgroup: there are no public queues",
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
