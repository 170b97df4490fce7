"""Plain data that sources, receivers and their adapters exchange."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from random import Random
from typing import NamedTuple


class Tsi(NamedTuple):
    """The transport session identifier, which identifies a session of a source (RFC 3208, 3.1)."""

    gsi: bytes
    """6 octets."""
    port: int
    """Data-source port."""


class Group(NamedTuple):
    """The multicast address and port to which the source of a session sends."""

    address: str
    """Dotted IPv4 multicast address."""
    port: int
    """Data-destination port."""


class Datagram(NamedTuple):
    """One PGM packet to be sent in one IP datagram of protocol 113."""

    payload: bytes
    destination: str
    """Dotted IPv4 address: the group, or the host that NAKs go to."""
    ttl: int | None
    """1 limits the datagram to this link; None uses the TTL that is configured for the group, or the default
    of the system for a unicast address.
    """
    router_alert: bool
    """Whether the datagram carries the IP option 94 04 00 00."""


@dataclass(slots=True)
class SourceStatistics:
    """Counters of one source; they only grow."""

    apdus: int = 0
    apdu_bytes: int = 0
    odata: int = 0
    rdata: int = 0
    spm: int = 0
    ncf: int = 0
    bytes_sent: int = 0
    naks: int = 0
    naks_outside_window: int = 0
    naks_dropped: int = 0
    malformed: int = 0


@dataclass(slots=True)
class ReceiverStatistics:
    """Counters of one receiver, over all its sessions; they only grow."""

    packets: int = 0
    bytes_received: int = 0
    malformed: int = 0
    """Packets with an invalid format or a wrong checksum."""
    apdus: int = 0
    apdu_bytes: int = 0
    duplicates: int = 0
    outside_window: int = 0
    no_room: int = 0
    """Packets after a gap that were dropped because there was no room to hold them."""
    sessions: int = 0
    refused_sessions: int = 0
    naks: int = 0
    """Sequence numbers requested by NAKs, repetitions included."""
    recovered: int = 0
    lost: int = 0
    """Missing packets that were given up as lost."""
    restarts: int = 0
    """How often a session continued after a loss."""
    apdus_dropped: int = 0
    """APDUs that were incomplete or whose fragments did not match."""


def make_tsi(host_name: str, random: Random) -> Tsi:
    """Return the TSI of a new session: the GSI from the host's DNS name, and a random port (RFC 3208, 8)."""
    digest = hashlib.md5(host_name.encode(), usedforsecurity=False).digest()
    return Tsi(digest[-6:], random.randrange(1024, 65_536))
