"""Extracts the TCP segment or UDP datagram from a captured record."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NamedTuple

from msmq_fast.spark.pcap.records import Record

FIN, SYN, RST, PUSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
TCP, UDP = 6, 17

_NULL, _ETHERNET, _RAW_OLD, _RAW_BSD, _RAW, _LOOP, _SLL, _IPV4, _IPV6, _SLL2 = (
    0,
    1,
    12,
    14,
    101,
    108,
    113,
    228,
    229,
    276,
)
_TYPE_AT: Final = {_ETHERNET: 12, _SLL: 14, _SLL2: 0}
_BEHIND: Final = {_ETHERNET: 14, _SLL: 16, _SLL2: 20}
_VLANS: Final = frozenset((0x8100, 0x88A8, 0x9100))
_TCP_HEAD: Final = struct.Struct(">HHIIBBH")
_PORTS: Final = struct.Struct(">HHH")
_EXTENSIONS: Final = frozenset((0, 43, 60, 135))  # IPv6 headers that contain their own length

LINKS: Final = frozenset((*_TYPE_AT, _NULL, _LOOP, _RAW_OLD, _RAW_BSD, _RAW, _IPV4, _IPV6))
"""The supported link types."""


class Segment(NamedTuple):
    """A TCP segment, or a UDP datagram (then `sequence`, `acknowledged` and `flags` are 0).

    `length` is the size of its payload on the wire. `payload` is shorter if the capture truncated it.
    """

    number: int
    time_us: int
    protocol: int
    source: bytes
    source_port: int
    destination: bytes
    destination_port: int
    sequence: int
    acknowledged: int
    flags: int
    payload: bytes
    length: int


class BadRecord(ValueError):
    """Raised if a network header in a record is truncated or invalid. The text says what is wrong."""


def address_text(address: bytes) -> str:
    """Returns an IPv4 or IPv6 address as text."""
    return str(IPv4Address(address) if len(address) == 4 else IPv6Address(address))


def segment_of(record: Record) -> Segment | None:
    """Returns the segment in a record; None if the record has another protocol, or is a fragment other than
    the first. Raises BadRecord if a header is truncated or invalid.
    """
    data, link = record.data, record.link
    try:
        if link in _TYPE_AT:
            kind_at, at = _TYPE_AT[link], _BEHIND[link]
            kind = data[kind_at] << 8 | data[kind_at + 1]
            while kind in _VLANS:
                kind = data[at + 2] << 8 | data[at + 3]
                at += 4
            if kind == 0x0800:
                return _ipv4(record, at)
            return _ipv6(record, at) if kind == 0x86DD else None
        if link not in LINKS:
            raise BadRecord(f"link type {link} is not supported")
        at = 4 if link in (_NULL, _LOOP) else 0
        version = data[at] >> 4
        if version == 4:
            return _ipv4(record, at)
        return _ipv6(record, at) if version == 6 else None
    except (IndexError, struct.error):
        raise BadRecord(f"{len(data)} captured bytes are too few for the headers") from None


def _ipv4(record: Record, at: int) -> Segment | None:
    data = record.data
    size = (data[at] & 0x0F) * 4
    total = data[at + 2] << 8 | data[at + 3]
    fragment = (data[at + 6] << 8 | data[at + 7]) & 0x1FFF
    protocol = data[at + 9]
    if protocol not in (TCP, UDP) or fragment:
        return None
    if size < 20:
        raise BadRecord(f"an IPv4 header has at least 20 bytes, not {size}")
    # Large segment offload sets the total length to 0.
    end = at + total if total else record.length
    return _transport(record, protocol, data[at + 12 : at + 16], data[at + 16 : at + 20], at + size, end)


def _ipv6(record: Record, at: int) -> Segment | None:
    data = record.data
    length = data[at + 4] << 8 | data[at + 5]
    following, end = data[at + 6], at + 40 + length if length else record.length
    source, destination = data[at + 8 : at + 24], data[at + 24 : at + 40]
    at += 40
    while following not in (TCP, UDP):
        if following == 44:  # fragment
            if (data[at + 2] << 8 | data[at + 3]) >> 3:
                return None
            following, at = data[at], at + 8
        elif following == 51:
            following, at = data[at], at + (data[at + 1] + 2) * 4
        elif following in _EXTENSIONS:
            following, at = data[at], at + (data[at + 1] + 1) * 8
        else:
            return None
    return _transport(record, following, source, destination, at, end)


def _transport(
    record: Record, protocol: int, source: bytes, destination: bytes, at: int, end: int
) -> Segment:
    data = record.data
    if protocol == UDP:
        source_port, destination_port, length = _PORTS.unpack_from(data, at)
        begin = at + 8
        end = min(end, at + length)
        sequence = acknowledged = flags = 0
    else:
        source_port, destination_port, sequence, acknowledged, offset, flags, _window = _TCP_HEAD.unpack_from(
            data, at
        )
        begin = at + (offset >> 4) * 4
        if begin < at + 20:
            raise BadRecord("a TCP header has at least 20 bytes")
    if begin > end:
        raise BadRecord("the headers are longer than the packet")
    return Segment(
        record.number,
        record.time_us,
        protocol,
        source,
        source_port,
        destination,
        destination_port,
        sequence,
        acknowledged,
        flags,
        data[begin:end],
        end - begin,
    )
