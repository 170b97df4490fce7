"""The settings of PGM, and the constants of [MC-MQSRM] 2.1.3.1."""

from __future__ import annotations

from dataclasses import dataclass

APDU_LIMIT = 65_536
"""Octets of the largest APDU that is sent or reassembled ([MC-MQSRM] 2.1.3.1)."""

IP_HEADER = 20
DATA_HEADER = 24
FRAGMENT_OPTIONS = 20
"""Octets of OPT_LENGTH and OPT_FRAGMENT."""
ROUTER_ALERT = 4
"""Octets of the IP option that SPM, NCF and RDATA carry (RFC 3208, 8)."""


@dataclass(frozen=True, slots=True)
class PgmSettings:
    """Settings: times in seconds, sizes in octets, rates in octets per second.

    Raises ValueError with one line of text if a value is out of range.
    """

    max_rate: float = 70_000.0
    """TXW_MAX_RTE: SPM, ODATA, RDATA and NCF together, IP headers included."""
    window_seconds: float = 300.0
    """TXW_SECS: how long a packet can be repaired."""
    advance_share: float = 0.15
    """TXW_ADV_SECS and TXW_ADV_IVL as a share of TXW_SECS."""
    bucket_seconds: float = 0.040
    """Depth of the token bucket; never less than one packet of `mtu` octets."""
    peak_factor: float = 8.0
    """How many times faster than `max_rate` the packets of one burst may follow each other (RFC 3208,
    5.1.2)."""
    mtu: int = 1500
    """Octets of the largest IP datagram sent."""
    window_memory: int = 64 << 20
    """Maximum number of octets in the transmit window, however high `max_rate` is."""
    heartbeat_first: float = 1.0
    heartbeat_last: float = 15.0
    ambient_packets: int = 50
    ambient_seconds: float = 0.5
    opening_spms: int = 3
    """SPMs before the first data of a session: a receiver that gets one of them misses no data."""
    repair_spread: float = 0.060
    """The longest delay of an RDATA (2.1.3.1)."""
    ncf_backlog: int = 256
    """The most NCFs that may wait to be sent; further NAKs are not answered."""

    nak_backoff_least: float = 0.01
    nak_backoff_most: float = 0.05
    nak_repeat: float = 0.75
    nak_data: float = 2.0
    nak_ncf_retries: int = 10
    nak_data_retries: int = 10

    max_sources: int = 64
    """The most transport sessions of a receiver at a time."""
    max_sources_of_host: int = 8
    source_idle: float = 300.0
    """Seconds after which an idle session is deleted."""
    receive_memory: int = 48 << 20
    """The most octets that all sessions of a receiver hold until a gap before them is filled."""
    receive_memory_of_source: int = 16 << 20
    max_missing: int = 2048
    """The most sequence numbers of one session that are requested at a time."""

    def __post_init__(self) -> None:
        if not self.max_rate >= 1000:
            raise ValueError(f"PGM: the rate is {self.max_rate:g} octets/s; it must be at least 1000")
        if not 1 <= self.window_seconds <= 86_400:
            raise ValueError(f"PGM: the window is {self.window_seconds:g} s; it must be 1 to 86400 s")
        if not 576 <= self.mtu <= 65_535:
            raise ValueError(f"PGM: the MTU is {self.mtu}; it must be 576 to 65535")

    @property
    def advance_seconds(self) -> float:
        """TXW_ADV_SECS, equal to TXW_ADV_IVL: seconds between two advances of the transmit window."""
        return self.window_seconds * self.advance_share

    @property
    def window_bytes(self) -> int:
        """TXW_BYTES: the maximum number of octets in the transmit window."""
        return int(min(self.max_rate * self.window_seconds, self.window_memory))

    @property
    def bucket_bytes(self) -> float:
        return max(self.max_rate * self.bucket_seconds, float(self.mtu))

    @property
    def fragment_bytes(self) -> int:
        """The maximum number of application data octets in one packet: the MTU without the IP header, Router
        Alert, the data header and OPT_FRAGMENT.
        """
        return self.mtu - IP_HEADER - ROUTER_ALERT - DATA_HEADER - FRAGMENT_OPTIONS
