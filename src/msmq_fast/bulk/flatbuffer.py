"""Reads tables of a flatbuffer that comes from the network: every offset is checked before it is used."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from msmq_fast.packet.malformed import Malformed

__all__ = ["Table"]

_MOST_NAME: Final = 4096  # bytes of a text


class Table:
    """A table of the flatbuffer that begins at `base` in `data`. Every method raises ValueError if an offset
    points outside the flatbuffer.
    """

    def __init__(self, data: bytes | bytearray, base: int, at: int) -> None:
        self._data, self._base, self._at = data, base, at
        self._fields = at - self._unpack("<i", at)
        self._size = self._unpack("<H", self._fields)

    @classmethod
    def root(cls, data: bytes | bytearray, base: int) -> Table:
        """Return the root table of the flatbuffer that begins at `base`."""
        if not 0 <= base <= len(data) - 4:
            raise Malformed("the metadata of an Arrow message is damaged")
        offset: int = struct.unpack_from("<i", data, base)[0]
        return cls(data, base, base + offset)

    def _unpack(self, layout: str, at: int) -> int:
        if not self._base <= at <= len(self._data) - struct.calcsize(layout):
            raise Malformed("the metadata of an Arrow message is damaged")
        value: int = struct.unpack_from(layout, self._data, at)[0]
        return value

    def _place(self, field: int) -> int:
        slot = 4 + 2 * field
        offset = self._unpack("<H", self._fields + slot) if slot + 2 <= self._size else 0
        return self._at + offset if offset else 0

    def has(self, field: int) -> bool:
        """Return whether a field is present."""
        return self._place(field) != 0

    def number(self, layout: str, field: int, default: int = 0) -> int:
        """Return the number in a field, `default` if the field is absent; `layout` is a `struct` format."""
        place = self._place(field)
        return self._unpack(layout, place) if place else default

    def table(self, field: int) -> Table:
        """Return the table in a field. Raises ValueError if the field is absent."""
        place = self._place(field)
        if not place:
            raise Malformed("the metadata of an Arrow message is incomplete")
        return Table(self._data, self._base, place + self._unpack("<I", place))

    def _vector(self, field: int, width: int) -> tuple[int, int]:
        """Return (offset of the first element, number of elements) of a vector with elements of `width`
        bytes; the number is 0 if the field is absent.
        """
        place = self._place(field)
        if not place:
            return 0, 0
        start = place + self._unpack("<I", place)
        count = self._unpack("<I", start)
        if start + 4 + count * width > len(self._data):
            raise Malformed("the metadata of an Arrow message is damaged")
        return start + 4, count

    def text(self, field: int) -> str:
        """Return the text in a field, "" if the field is absent. Bytes that are not UTF-8 are escaped."""
        start, count = self._vector(field, 1)
        if count > _MOST_NAME:
            raise Malformed(f"a name in the Arrow schema has more than {_MOST_NAME} bytes")
        return bytes(self._data[start : start + count]).decode(errors="backslashreplace")

    def tables(self, field: int) -> Iterator[Table]:
        """Yield the tables of a vector."""
        start, count = self._vector(field, 4)
        for at in range(start, start + 4 * count, 4):
            yield Table(self._data, self._base, at + self._unpack("<I", at))

    def row(self, field: int, layout: str, index: int) -> tuple[int, ...]:
        """Return the structure at `index` of a vector; `layout` is a `struct` format."""
        start, count = self._vector(field, struct.calcsize(layout))
        if not 0 <= index < count:
            raise Malformed("the metadata of an Arrow message is incomplete")
        return struct.unpack_from(layout, self._data, start + index * struct.calcsize(layout))

    def numbers(self, field: int, count: int) -> tuple[int, ...]:
        """Return the first `count` elements of a vector of signed 64-bit numbers."""
        start, available = self._vector(field, 8)
        if count > available:
            raise Malformed("the metadata of an Arrow message is incomplete")
        return struct.unpack_from(f"<{count}q", self._data, start)
