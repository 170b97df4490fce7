"""Parses and builds PGM packets (RFC 3208, 8 and 9). IPv4 addresses only."""

from __future__ import annotations

import struct
from functools import lru_cache
from ipaddress import IPv4Address
from typing import NamedTuple

from msmq_fast.srmp.pgm.model import Tsi
from msmq_fast.srmp.pgm.options import (
    NAK_LIST_LIMIT,
    NO_OPTIONS,
    OPT_END,
    OPT_FIN,
    OPT_FRAGMENT,
    OPT_LENGTH,
    OPT_NAK_LIST,
    OPT_RST,
    Fragment,
    Malformed,
    Options,
    parse_options,
)
from msmq_fast.srmp.pgm.sequence import MASK

SPM, ODATA, RDATA, NAK, NCF = 0x00, 0x04, 0x05, 0x08, 0x0A
_OPTIONS_PRESENT, _NETWORK_SIGNIFICANT, _PARITY = 0x01, 0x02, 0x80  # as on the wire
_AFI_IPV4 = 1

_HEADER = struct.Struct(">HHBBH6sH")
_DATA = struct.Struct(">HHBBH6sHII")
_SPM = struct.Struct(">HHBBH6sHIIIHH4s")
_NAK = struct.Struct(">HHBBH6sHIHH4sHH4s")
_FRAGMENT_OPTIONS = struct.Struct(">BBHBBHIII")
_CHECKSUM_AT = 6


class Spm(NamedTuple):
    """A source path message, by which a source announces its transmit window."""

    tsi: Tsi
    port: int
    sequence: int
    trail: int
    lead: int
    path: str
    """The destination of NAKs: a dotted IPv4 address."""
    fin: bool = False
    rst: int | None = None
    """N bit and error code if the session is aborted, otherwise None."""
    join: int | None = None


class Data(NamedTuple):
    """An ODATA packet, or an RDATA packet if `repair` is True."""

    tsi: Tsi
    port: int
    sequence: int
    trail: int
    data: bytes
    fragment: Fragment | None = None
    repair: bool = False
    fin: bool = False
    join: int | None = None


class Nak(NamedTuple):
    """A NAK, or an NCF if `confirmed` is True. `tsi` and `port` are those of the data packets, even in a NAK,
    although a NAK goes in the opposite direction.
    """

    tsi: Tsi
    port: int
    sequences: tuple[int, ...]
    """The missing sequence numbers, 1 to 63."""
    source: str
    group: str
    confirmed: bool = False


@lru_cache(maxsize=1024)
def address_octets(address: str) -> bytes:
    """Return the 4 octets of a dotted IPv4 address. Raises ValueError if `address` is not one."""
    return IPv4Address(address).packed


@lru_cache(maxsize=1024)
def _address_text(octets: bytes) -> str:
    return str(IPv4Address(octets))


def _sum(packet: bytes | bytearray) -> int:
    """Return the one's complement sum of the 16-bit words; 0xFFFF is reduced to 0."""
    total = int.from_bytes(packet, "big") % 0xFFFF  # 65536 ≡ 1: the words of a number add up
    return total if len(packet) % 2 == 0 else total * 256 % 0xFFFF


def _sealed(packet: bytearray) -> bytes:
    """Return the packet with its checksum; a checksum of 0 is sent as all ones."""
    struct.pack_into(">H", packet, _CHECKSUM_AT, 0xFFFF - _sum(packet))
    return bytes(packet)


def encode_spm(spm: Spm) -> bytes:
    present = spm.fin or spm.rst is not None
    packet = bytearray(
        _SPM.pack(
            spm.tsi.port, spm.port, SPM, _OPTIONS_PRESENT if present else 0, 0, spm.tsi.gsi, 0,
            spm.sequence & MASK, spm.trail & MASK, spm.lead & MASK, _AFI_IPV4, 0, address_octets(spm.path),
        )
    )  # fmt: skip
    if spm.rst is not None:
        packet += struct.pack(">BBHBBBB", OPT_LENGTH, 4, 8, OPT_RST | OPT_END, 4, 0, spm.rst)
    elif spm.fin:
        packet += struct.pack(">BBHBBBB", OPT_LENGTH, 4, 8, OPT_FIN | OPT_END, 4, 0, 0)
    return _sealed(packet)


def encode_data(data: Data) -> bytes:
    fragment = data.fragment
    packet = bytearray(
        _DATA.pack(
            data.tsi.port, data.port, RDATA if data.repair else ODATA, _OPTIONS_PRESENT if fragment else 0, 0,
            data.tsi.gsi, len(data.data), data.sequence & MASK, data.trail & MASK,
        )
    )  # fmt: skip
    if fragment is not None:
        packet += _FRAGMENT_OPTIONS.pack(
            OPT_LENGTH,
            4,
            20,
            OPT_FRAGMENT | OPT_END,
            16,
            0,
            fragment.first & MASK,
            fragment.offset,
            fragment.length,
        )
    packet += data.data
    return _sealed(packet)


def encode_nak(nak: Nak) -> bytes:
    """Return the packet. Raises ValueError for more than 63 sequence numbers."""
    listed = nak.sequences[1:]
    if len(listed) > NAK_LIST_LIMIT:
        raise ValueError(f"{len(listed)} sequence numbers in a NAK list; at most {NAK_LIST_LIMIT}")
    ports = (nak.tsi.port, nak.port) if nak.confirmed else (nak.port, nak.tsi.port)
    flags = _OPTIONS_PRESENT | _NETWORK_SIGNIFICANT if listed else 0
    packet = bytearray(
        _NAK.pack(
            *ports, NCF if nak.confirmed else NAK, flags, 0,
            nak.tsi.gsi, 0, nak.sequences[0] & MASK, _AFI_IPV4, 0, address_octets(nak.source),
            _AFI_IPV4, 0, address_octets(nak.group),
        )
    )  # fmt: skip
    if listed:
        size = 4 + 4 * len(listed)
        packet += struct.pack(">BBHBBH", OPT_LENGTH, 4, 4 + size, OPT_NAK_LIST | OPT_END, size, 0)
        packet += struct.pack(f">{len(listed)}I", *(sequence & MASK for sequence in listed))
    return _sealed(packet)


def destination_port(packet: bytes) -> int | None:
    """Return the port to which a packet is addressed: the port of the group for packets from a source, but
    for NAKs the source port of the session's data packets.
    """
    return int.from_bytes(packet[2:4], "big") if len(packet) >= _HEADER.size else None


def decode(packet: bytes) -> Spm | Data | Nak | None:
    """Reads a PGM packet without its IP header.

    Returns None for a packet type of RFC 3208 that this implementation ignores (null NAKs, polls, requests
    for SPMs, parity). Raises Malformed if the packet violates RFC 3208.
    """
    size = len(packet)
    if size < _HEADER.size:
        raise Malformed(f"the packet has {size} octets, fewer than a header")
    kind, options, checksum = packet[4], packet[5], packet[6:8]
    if kind & 0xF0:
        raise Malformed(f"the type 0x{kind:02x} has a version or reserved bits")
    if checksum == b"\0\0":
        if kind in (ODATA, RDATA):
            raise Malformed("a data packet has no checksum")
    elif _sum(packet):
        raise Malformed("the checksum is wrong")
    if options & _PARITY:
        return None
    if kind in (ODATA, RDATA):
        return _data(packet, size, kind, options)
    if kind == SPM:
        return _spm(packet, size, options)
    if kind in (NAK, NCF):
        return _nak(packet, size, kind, options)
    return None


def _data(packet: bytes, size: int, kind: int, flags: int) -> Data:
    if size < _DATA.size:
        raise Malformed(f"the packet has {size} octets, fewer than a data header")
    source, port, _, _, _, gsi, length, sequence, trail = _DATA.unpack_from(packet)
    begin, options = (
        parse_options(packet, _DATA.size, size) if flags & _OPTIONS_PRESENT else (_DATA.size, NO_OPTIONS)
    )
    if size - begin != length:
        raise Malformed(f"the TSDU length is {length}, but {size - begin} octets follow the header")
    fragment = options.fragment
    if fragment is not None and fragment.offset + length > fragment.length:
        raise Malformed(
            f"a fragment of {length} octets at {fragment.offset} exceeds its APDU of {fragment.length} octets"
        )
    return Data(
        Tsi(gsi, source),
        port,
        sequence,
        trail,
        packet[begin:],
        fragment,
        kind == RDATA,
        options.fin,
        options.join,
    )


def _spm(packet: bytes, size: int, flags: int) -> Spm:
    if size < _SPM.size:
        raise Malformed(f"the packet has {size} octets, fewer than an SPM")
    source, port, _, _, _, gsi, length, sequence, trail, lead, family, _, path = _SPM.unpack_from(packet)
    _need_ipv4(family)
    options = _tail(packet, _SPM.size, size, flags, length)
    return Spm(
        Tsi(gsi, source),
        port,
        sequence,
        trail,
        lead,
        _address_text(path),
        options.fin,
        options.rst,
        options.join,
    )


def _nak(packet: bytes, size: int, kind: int, flags: int) -> Nak:
    if size < _NAK.size:
        raise Malformed(f"the packet has {size} octets, fewer than a NAK")
    first, second, _, _, _, gsi, length, sequence, family, _, source, group_family, _, group = (
        _NAK.unpack_from(packet)
    )
    _need_ipv4(family)
    _need_ipv4(group_family)
    options = _tail(packet, _NAK.size, size, flags, length)
    confirmed = kind == NCF
    port, data_source = (second, first) if confirmed else (first, second)
    sequences = (sequence, *options.listed)
    return Nak(Tsi(gsi, data_source), port, sequences, _address_text(source), _address_text(group), confirmed)


def _need_ipv4(family: int) -> None:
    if family != _AFI_IPV4:
        raise Malformed(f"unsupported address family {family}; only IPv4 (1) is supported")


def _tail(packet: bytes, begin: int, size: int, flags: int, length: int) -> Options:
    """Return the options at the end of a packet without data."""
    options = NO_OPTIONS
    if flags & _OPTIONS_PRESENT:
        begin, options = parse_options(packet, begin, size)
    if length or begin != size:
        raise Malformed(
            f"the TSDU length is {length} in a packet without data, and {size - begin} octets follow"
        )
    return options
