"""Section [pgm]: messages to and from multicast groups."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.config import kinds
from msmq_fast.config.kinds import key
from msmq_fast.srmp.pgm.settings import PgmSettings

__all__ = ["PgmConfig"]


@dataclass(slots=True)
class PgmConfig:
    """Section [pgm]: messages to and from multicast groups."""

    enabled: bool = key(
        kinds.FLAG,
        False,
        "queues with a multicast address receive messages from it, and messages may be sent to "
        "MULTICAST= names",
    )
    interfaces: tuple[str, ...] = key(
        kinds.TEXTS,
        (),
        "names or IPv4 addresses of the network interfaces; empty: the interface that the system chooses",
    )
    rate: int = key(
        kinds.size(1000, 1 << 40),
        70_000,
        "maximum number of bytes per second that are sent to one group, headers and repairs included "
        "(TXW_MAX_RTE)",
    )
    window: float = key(
        kinds.duration(1, 86_400),
        300.0,
        "time for which receivers can request that sent data is sent again (TXW_SECS)",
    )
    ttl: int = key(
        kinds.integer(1, 255), 16, "time to live of packets: the number of networks that they may cross"
    )
    mtu: int = key(kinds.integer(576, 65_535), 1500, "size of the largest IP packet in bytes")
    buffer: int = key(
        kinds.size(1 << 16, 1 << 30), 4 << 20, "bytes that the system buffers until the server reads them"
    )
    udp_port: int | None = key(
        kinds.port(),
        None,
        "send PGM inside UDP at this port, for tests without the right to IP protocol 113; other "
        "MSMQ hosts do not understand it",
    )

    def settings(self) -> PgmSettings:
        """Return the settings in the form that the PGM engine takes."""
        return PgmSettings(max_rate=float(self.rate), window_seconds=self.window, mtu=self.mtu)
