"""Limits for the clients of an endpoint, and its counters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Limits", "RpcCounters"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an endpoint and its connections: numbers, bytes and seconds."""

    connections: int = 1000
    connections_per_address: int = 0xFFFFFFFF
    calls: int = 16384
    """Calls under way on one connection (PFC_CONC_MPX)."""
    handles: int = 16384
    """Context handles of the clients at one address (of IPv6: one /64), and half of all; see handlebudget."""
    fragment: int = 5840
    """The largest fragment that is sent or received, that of Windows; 2048 to 65,528."""
    stub: int = 0x400000
    """The largest stub of a request (MS-RPCE 3.3.3.5.4)."""
    incomplete: int = 64 << 20
    """Bytes of requests that have not arrived in full, over all connections."""
    handshakes: int = 8 << 20
    """Bytes of binds and other PDUs without a request that have not arrived in full, over all connections.
    Each may keep a page of its own besides, one that is bound as much as a fragment may take."""
    presentation_contexts: int = 4000
    """The most of one connection, for each interface of the endpoint (MS-RPCE 3.3.3.5.5)."""
    security_contexts: int = 2048
    """The most of one connection (MS-RPCE 3.3.1.5.4)."""
    output: int = 1 << 20
    """Bytes of replies on one connection that wait for the transport before no more requests are taken."""
    handshake: float = 30.0
    """Seconds that a connection may be without a bind, or a security context incomplete."""
    slow_writer: float = 120.0
    """Seconds that a PDU or a fragmented request may stay incomplete."""
    slow_reader: float = 120.0
    """Seconds that a client may stop reading while output waits for it."""
    idle: float = 900.0
    """Seconds that a connection without calls and context handles may be silent."""


@dataclass(slots=True)
class RpcCounters:
    """Counters of an endpoint since its start (rpc_mgmt_inq_stats has the first four)."""

    calls_in: int = 0
    calls_out: int = 0
    pdus_in: int = 0
    pdus_out: int = 0
    connections: int = 0
    """Connections accepted."""
    binds: int = 0
    """Binds accepted."""
    abandoned: int = 0
    """Calls that were cancelled, orphaned, or whose connection was lost."""
    failures: int = 0
    """Methods that failed with an unexpected exception."""
    faults: Counter[int] = field(default_factory=Counter)
    """Fault PDUs by status."""
    refused: Counter[str] = field(default_factory=Counter)
    """PDUs refused, by reason."""
