"""The redo log's files as src/_native/redolog.h describes them, read and checked in plain Python."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PAGE: Final = 4096
HEAD: Final = struct.Struct("<8s I I 16s Q Q Q I")  # and the checksum
RECORD: Final = struct.Struct("<I I Q I I")
OPERATION: Final = struct.Struct("<B B H I")
DELETE: Final = 1

_TABLE: Final = [0] * 256
for _i in range(256):
    _value = _i
    for _ in range(8):
        _value = _value >> 1 ^ (0x82F63B78 if _value & 1 else 0)
    _TABLE[_i] = _value


def crc32c(data: bytes, crc: int = 0) -> int:
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


@dataclass
class Record:
    number: int
    at: int  # in the segment
    length: int
    operations: list[tuple[int, bytes, bytes | None]]  # table, key, value or None


@dataclass
class Segment:
    path: Path
    size: int
    epoch: int
    sequence: int
    first: int
    records: list[Record]


def read_segment(path: Path) -> Segment | None:
    """None: it was never used."""
    data = path.read_bytes()
    magic, version, size, identifier, epoch, sequence, first, reserved = HEAD.unpack_from(data)
    if not any(data[: HEAD.size + 4]):
        return None
    assert (magic, version, reserved) == (b"MSMQLOG1", 1, 0)
    assert len(data) == size
    assert struct.unpack_from("<I", data, HEAD.size)[0] == crc32c(data[: HEAD.size])
    seed = crc32c(identifier + struct.pack("<QQ", epoch, sequence))
    segment = Segment(path, size, epoch, sequence, first, [])
    at, number = PAGE, first
    while at + RECORD.size <= size:
        crc, length, found, count, zero = RECORD.unpack_from(data, at)
        if found != number or length < RECORD.size or length % 8 or at + length > size or zero:
            break
        if crc32c(data[at + 4 : at + length], seed) != crc:
            break
        segment.records.append(
            Record(number, at, length, _operations(data[at + RECORD.size : at + length], count))
        )
        at += length
        number += 1
    return segment


def _operations(data: bytes, count: int) -> list[tuple[int, bytes, bytes | None]]:
    found: list[tuple[int, bytes, bytes | None]] = []
    at = 0
    for _ in range(count):
        kind, table, key_size, size = OPERATION.unpack_from(data, at)
        at += OPERATION.size
        key, value = data[at : at + key_size], data[at + key_size : at + key_size + size]
        found.append((table, key, None if kind & DELETE else value))
        at += key_size + size
    assert len(data) - at < 8
    assert not any(data[at:])
    return found


def read_log(directory: Path) -> list[Segment]:
    """The segments in use, oldest first."""
    found = [read_segment(path) for path in sorted((directory / "log").glob("segment-*"))]
    return sorted((one for one in found if one is not None), key=lambda one: one.sequence)
