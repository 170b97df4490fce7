"""Reads the records of capture files: pcap (both byte orders, micro- and nanoseconds) and pcapng.

Every size in a file is checked before it is used. For a damaged or truncated file, the readers yield the
valid records and then raise CaptureError.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

from msmq_fast.spark.pcap.errors import CaptureError

MAX_RECORD: Final = 16 << 20  # a longer one counts as damage; libpcap writes at most 256 KiB
_READ: Final = 1 << 20
_LATEST_US: Final = 253_402_300_799_000_000  # the largest value of a timestamp column
_PCAP: Final = {
    b"\xd4\xc3\xb2\xa1": ("<", 1),
    b"\xa1\xb2\xc3\xd4": (">", 1),
    b"\x4d\x3c\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\x3c\x4d": (">", 1000),
}
_SECTION: Final = b"\x0a\x0d\x0d\x0a"
_INTERFACE, _OLD_PACKET, _SIMPLE, _ENHANCED = 1, 2, 3, 6
_SNAP_LENGTH, _RESOLUTION, _OFFSET = 2, 9, 14


class Record(NamedTuple):
    """The captured bytes of one packet. `length` is its size on the wire in bytes."""

    number: int  # from 1
    time_us: int
    link: int  # LINKTYPE_
    data: bytes
    length: int


def read_records(file: BinaryIO) -> Iterator[Record]:
    """Yields the records of an open capture file. Raises CaptureError if the file is not a capture, or, after
    its valid records, if it is damaged.
    """
    source = _Source(file)
    magic = source.take(4)
    if magic in _PCAP:
        order, divisor = _PCAP[magic]
        yield from _pcap(source, order, divisor)
    elif magic == _SECTION:
        yield from _Sections(source).read()
    elif magic == b"":
        raise CaptureError("the file is empty")
    else:
        raise CaptureError(f"the file begins with {magic.hex()}: it is neither pcap nor pcapng")


class _Source:
    """A buffered reader of a capture file. `at` is the position in the file of the next byte to return."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._data = b""
        self._start = 0
        self.at = 0

    def take(self, size: int) -> bytes:
        """Returns `size` bytes, or fewer at the end of the file."""
        if size > len(self._data) - self._start:
            self._fill(size)
        found = self._data[self._start : self._start + size]
        self._start += len(found)
        self.at += len(found)
        return found

    def need(self, size: int, what: str) -> bytes:
        """Returns `size` bytes. Raises CaptureError if the file has fewer; `what` names the part of the file
        that is incomplete.
        """
        found = self.take(size)
        if len(found) < size:
            raise CaptureError(f"the file ends inside {what} at byte {self.at}")
        return found

    def _fill(self, size: int) -> None:
        parts = [self._data[self._start :]]
        held = len(parts[0])
        try:
            while held < size and (part := self._file.read(max(_READ, size - held))):
                parts.append(part)
                held += len(part)
        except (
            OSError,
            EOFError,
            ValueError,
            zlib.error,
        ) as error:  # gzip: truncated or damaged
            raise CaptureError(f"the file cannot be read after byte {self.at + held}: {error}") from None
        self._data, self._start = b"".join(parts), 0


def _pcap(source: _Source, order: str, divisor: int) -> Iterator[Record]:
    _major, _minor, _zone, _accuracy, _snap, link = struct.unpack(
        order + "HHiIII", source.need(20, "the header of the file")
    )
    link &= 0x0FFFFFFF  # the other bits describe checksums at the end of frames
    head = struct.Struct(order + "IIII")
    number = 0
    while raw := source.take(16):
        if len(raw) < 16:
            raise CaptureError(f"the file ends inside the header of record {number + 1}")
        seconds, fraction, captured, length = head.unpack(raw)
        number += 1
        if captured > MAX_RECORD:
            raise CaptureError(
                f"record {number} at byte {source.at - 16} claims {captured} bytes: the file is damaged there"
            )
        data = source.need(captured, f"record {number}")
        yield Record(number, seconds * 1_000_000 + fraction // divisor, link, data, length)


class _Interface(NamedTuple):
    link: int
    snap: int
    base: int  # time units per second
    offset: int  # seconds


class _Sections:
    """Reads the blocks of a pcapng file. Each section has its own byte order and interfaces."""

    def __init__(self, source: _Source) -> None:
        self._source = source
        self._order = "<"
        self._interfaces: list[_Interface] = []
        self._number = 0

    def read(self) -> Iterator[Record]:
        kind = _SECTION  # its type was already read
        while kind:
            begin = self._source.at - 4
            if len(kind) < 4:
                raise CaptureError(f"the file ends inside a block at byte {begin}")
            raw = self._source.need(4, "a block")
            before = b""
            if kind == _SECTION:
                before = self._source.need(4, "a section header")
                if before == b"\x4d\x3c\x2b\x1a":
                    self._order = "<"
                elif before == b"\x1a\x2b\x3c\x4d":
                    self._order = ">"
                else:
                    raise CaptureError(
                        f"the section at byte {begin} has an invalid byte order mark {before.hex()}"
                    )
                self._interfaces = []
            (size,) = struct.unpack(self._order + "I", raw)
            if size < 12 + len(before) or size % 4 or size > MAX_RECORD:
                raise CaptureError(
                    f"the block at byte {begin} claims {size} bytes: the file is damaged there"
                )
            content = self._source.need(size - 12 - len(before), "a block")
            if self._source.need(4, "a block") != raw:
                raise CaptureError(f"the block at byte {begin} has two different sizes")
            record = self._block(kind, content, begin)
            if record is not None:
                yield record
            kind = self._source.take(4)

    def _block(self, kind: bytes, content: bytes, begin: int) -> Record | None:
        (number,) = struct.unpack(self._order + "I", kind)
        try:
            if number == _INTERFACE:
                self._interfaces.append(self._interface(content))
            elif number == _ENHANCED:
                return self._packet(content, "IIIII", begin)
            elif number == _OLD_PACKET:
                return self._packet(content, "HHIIII", begin)
            elif number == _SIMPLE:
                return self._simple(content)
        except (struct.error, IndexError):
            raise CaptureError(f"the block at byte {begin} is too short for its kind") from None
        return None

    def _interface(self, content: bytes) -> _Interface:
        link, _reserved, snap = struct.unpack_from(self._order + "HHI", content)
        base, offset = 1_000_000, 0
        for code, value in self._options(content[8:]):
            if code == _RESOLUTION and len(value) == 1:
                power = value[0] & 0x7F
                base = 2**power if value[0] & 0x80 else 10 ** min(power, 30)
            elif code == _OFFSET and len(value) == 8:
                (offset,) = struct.unpack(self._order + "q", value)
        return _Interface(link, snap, base, offset)

    def _options(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        at = 0
        while at + 4 <= len(data):
            code, size = struct.unpack_from(self._order + "HH", data, at)
            at += 4
            if code == 0 or size > len(data) - at:
                return
            yield code, data[at : at + size]
            at += (size + 3) // 4 * 4

    def _packet(self, content: bytes, layout: str, begin: int) -> Record:
        first, *rest = struct.unpack_from(self._order + layout, content)
        high, low, captured, length = rest[-4:]
        interface = self._interfaces[first]
        data = content[20 : 20 + captured]
        if len(data) < captured:
            raise CaptureError(f"the packet in the block at byte {begin} is longer than the block")
        units = (high << 32) + low
        self._number += 1
        time_us = units * 1_000_000 // interface.base + interface.offset * 1_000_000
        time_us = min(max(time_us, 0), _LATEST_US)
        return Record(self._number, time_us, interface.link, data, length)

    def _simple(self, content: bytes) -> Record:
        (length,) = struct.unpack_from(self._order + "I", content)
        interface = self._interfaces[0]
        size = min(length, interface.snap or length, len(content) - 4)
        self._number += 1
        return Record(self._number, 0, interface.link, content[4 : 4 + size], length)
