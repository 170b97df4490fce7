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
        "embedded: in the own store; workgroup: nowhere, without public queues",
    )
    site: str = key(kinds.GUID, "", "site of this computer, entered at the first start")
    sites_interval: float = key(kinds.duration(60, 10**7), 43_200.0, "how often sites are read again")
    gates_interval: float = key(kinds.duration(60, 10**7), 3_600.0, "how often site gates are read again")
