"""Section [srmp] of the configuration: messages over HTTP and HTTPS."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.config import kinds
from msmq_fast.config.kinds import key
from msmq_fast.config.srmp_receiving import SrmpReceivingConfig

__all__ = ["SrmpConfig"]


@dataclass(slots=True)
class SrmpConfig(SrmpReceivingConfig):
    """Section [srmp]: how messages come and leave over HTTP; the ports are in [server]."""

    connections: int = key(kinds.integer(1, 1_000_000), 4096, "open connections at the HTTP ports")
    connections_per_address: int = key(kinds.integer(1, 1_000_000), 1024, "of these, from one address")
    unfinished: int = key(
        kinds.size(0, 1 << 40), 256 << 20, "bytes of large requests that are on their way; beyond it, 500"
    )
    keep_alive: float = key(
        kinds.duration(1, 86_400), 360.0, "a connection without requests for so long is closed"
    )
