"""The options of PGM packets (RFC 3208, 9): every length is checked before it is used."""

from __future__ import annotations

import struct
from typing import NamedTuple

OPT_LENGTH, OPT_FRAGMENT, OPT_NAK_LIST, OPT_JOIN, OPT_FIN, OPT_RST = 0x00, 0x01, 0x02, 0x03, 0x0E, 0x0F
OPT_END = 0x80
NAK_LIST_LIMIT = 62
"""The most sequence numbers in OPT_NAK_LIST, besides the one in the header."""

_OPTION_LIMIT = 16


class Malformed(ValueError):
    """The packet violates RFC 3208; the text of the exception states the violation."""


class Fragment(NamedTuple):
    """OPT_FRAGMENT: the position of the data in its APDU."""

    first: int
    """Sequence number of the packet that holds the beginning of the APDU."""
    offset: int
    length: int
    """The size of the whole APDU in octets."""


class Options(NamedTuple):
    fragment: Fragment | None = None
    listed: tuple[int, ...] = ()
    join: int | None = None
    fin: bool = False
    rst: int | None = None


NO_OPTIONS = Options()


def parse_options(packet: bytes, begin: int, size: int) -> tuple[int, Options]:
    """Returns the offset of the end of the options, and their values; skips unknown options.

    `begin` is the offset at which the options begin; `size` is the size of the packet.
    """
    if size - begin < 4:
        raise Malformed("the header announces options, but none follow")
    if packet[begin] & ~OPT_END != OPT_LENGTH or packet[begin + 1] != 4:
        raise Malformed("the options do not begin with OPT_LENGTH")
    total = int.from_bytes(packet[begin + 2 : begin + 4], "big")
    if not 4 < total <= size - begin:
        raise Malformed(f"invalid size: options of {total} octets with {size - begin} octets left")
    end = begin + total
    at = begin + 4
    found = NO_OPTIONS
    for _ in range(_OPTION_LIMIT):
        if end - at < 4:
            raise Malformed("an option is truncated")
        kind, length = packet[at], packet[at + 1]
        if not 4 <= length <= end - at:
            raise Malformed(f"invalid size: an option of {length} octets with {end - at} octets left")
        found = _noted(found, kind & ~OPT_END, packet[at : at + length])
        at += length
        if kind & OPT_END:
            if at != end:
                raise Malformed(f"{end - at} octets follow the last option")
            return end, found
    raise Malformed(f"the packet has more than {_OPTION_LIMIT} options")


def _noted(found: Options, kind: int, option: bytes) -> Options:
    if kind == OPT_FRAGMENT:
        _need_length(option, 16)
        first, offset, length = struct.unpack_from(">III", option, 4)
        return found._replace(fragment=Fragment(first, offset, length))
    if kind == OPT_NAK_LIST:
        count = (len(option) - 4) // 4
        if len(option) % 4 or not 1 <= count <= NAK_LIST_LIMIT:
            raise Malformed(f"invalid size: a NAK list of {len(option)} octets")
        return found._replace(listed=struct.unpack_from(f">{count}I", option, 4))
    if kind == OPT_JOIN:
        _need_length(option, 8)
        return found._replace(join=int.from_bytes(option[4:8], "big"))
    if kind == OPT_FIN:
        _need_length(option, 4)
        return found._replace(fin=True)
    if kind == OPT_RST:
        _need_length(option, 4)
        return found._replace(rst=option[3] & 0x7F)
    return found


def _need_length(option: bytes, length: int) -> None:
    if len(option) != length:
        raise Malformed(f"option 0x{option[0] & 0x7F:02x} of {len(option)} octets instead of {length}")
