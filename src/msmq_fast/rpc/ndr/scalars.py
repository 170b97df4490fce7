"""Codecs of types with a fixed size, and of runs: consecutive values of such types, which one call reads or
writes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from msmq_fast.rpc.ndr.codec import Codec
from msmq_fast.rpc.ndr.stream import Reader, Writer, bad_stub
from msmq_fast.rpc.ndr.syntax import Syntax

__all__ = ["Guid", "Handle", "Octets", "Run", "Scalar"]

_NULL_HANDLE = bytes(20)
_SWAPPED = struct.Struct(">IIHH")
_NATIVE = struct.Struct("<IIHH")


class Scalar(Codec):
    """A type that the `struct` module can pack; it also checks the range of integers.

    `low` and `high` are the bounds of a `range` attribute. If `converts` is set, `lift` converts the unpacked
    data into the value, and `lower` converts a value into the data to pack.
    """

    converts = False

    def __init__(
        self, syntax: Syntax, code: str, align: int, low: int | None = None, high: int | None = None
    ) -> None:
        self.code = code
        self.low = low
        self.high = high
        self.align = align
        self.least = struct.calcsize("<" + code)
        self._mask = align - 1
        self._struct = struct.Struct(syntax.order + code)

    def lift(self, raw: Any) -> Any:
        """Converts the unpacked data into the value."""
        return raw

    def lower(self, writer: Writer, value: Any) -> Any:
        """Converts a value into the data to pack."""
        return value

    def read(self, reader: Reader, scope: Any) -> Any:
        raw = self._struct.unpack_from(reader.buffer, reader.claim(self._mask, self.least))[0]
        if self.high is not None and not self.low <= raw <= self.high:
            raise bad_stub("an integer is out of its range")
        return self.lift(raw)

    def write(self, writer: Writer, value: Any, scope: Any) -> None:
        writer.align(self._mask)
        writer.put(self._struct.pack(self.lower(writer, value)))


class Guid(Scalar):
    """A GUID as uuid.UUID.

    The three integers of a GUID have the byte order of the stub: it is written as `UUID.bytes` or
    `UUID.bytes_le`.
    """

    converts = True

    def __init__(self, syntax: Syntax) -> None:
        super().__init__(syntax, "16s", 4)
        self._big_endian = syntax.big_endian

    def lift(self, raw: bytes) -> UUID:
        return UUID(bytes=raw) if self._big_endian else UUID(bytes_le=raw)

    def lower(self, writer: Writer, value: UUID) -> bytes:
        return value.bytes if self._big_endian else value.bytes_le


class Handle(Scalar):
    """A context handle: its 20 bytes in little-endian order, whatever the byte order of the stub; None for
    NULL.
    """

    converts = True

    def __init__(self, syntax: Syntax) -> None:
        super().__init__(syntax, "20s", 4)
        self._big_endian = syntax.big_endian

    def lift(self, raw: bytes) -> bytes | None:
        if raw == _NULL_HANDLE:
            return None
        return _NATIVE.pack(*_SWAPPED.unpack_from(raw)) + raw[12:] if self._big_endian else raw

    def lower(self, writer: Writer, value: bytes | None) -> bytes:
        if value is None:
            return _NULL_HANDLE
        if len(value) != 20:
            raise ValueError(f"a context handle has 20 bytes, not {len(value)}")
        return _SWAPPED.pack(*_NATIVE.unpack_from(value)) + value[12:] if self._big_endian else value


class Octets(Scalar):
    """An array of bytes with a fixed length."""

    converts = True

    def __init__(self, syntax: Syntax, size: int) -> None:
        super().__init__(syntax, f"{size}s", 1)

    def lower(self, writer: Writer, value: bytes) -> bytes:
        if len(value) != self.least:
            raise ValueError(f"the array has {self.least} bytes, not {len(value)}")
        return value


class Run:
    """Consecutive scalars with the gaps between them, handled by one struct.Struct.

    `align` is the alignment in bytes of the position at which the run begins; it must be enough for all
    members. `size` is in bytes.
    """

    __slots__ = ("_checks", "_conversions", "_mask", "_pack", "lifts", "size", "unpack_from")

    def __init__(
        self, syntax: Syntax, members: Sequence[Scalar], align: int, *, pad_end: bool = False
    ) -> None:
        layout, size = "", 0
        for member in members:
            gap = -size % member.align
            layout += f"{gap}x{member.code}" if gap else member.code
            size += gap + member.least
        if pad_end and size % align:
            layout += f"{-size % align}x"
        compiled = struct.Struct(syntax.order + layout)
        self.size = compiled.size
        self._mask = align - 1
        self.unpack_from = compiled.unpack_from
        self._pack = compiled.pack
        self._checks = tuple(
            (index, member.low, member.high)
            for index, member in enumerate(members)
            if member.high is not None
        )
        self._conversions = tuple((index, member) for index, member in enumerate(members) if member.converts)
        self.lifts = bool(self._checks or self._conversions)

    def read(self, reader: Reader) -> Sequence[Any]:
        """Reads and returns the values. Raises RpcFault."""
        values = self.unpack_from(reader.buffer, reader.claim(self._mask, self.size))
        return self.lifted(values) if self.lifts else values

    def lifted(self, values: Sequence[Any]) -> Sequence[Any]:
        """Checks and converts values that `struct.unpack_from` has returned. Raises RpcFault."""
        for index, low, high in self._checks:
            if not low <= values[index] <= high:
                raise bad_stub("an integer is out of its range")
        if self._conversions:
            lifted = list(values)
            for index, member in self._conversions:
                lifted[index] = member.lift(lifted[index])
            return lifted
        return values

    def write(self, writer: Writer, values: Sequence[Any]) -> None:
        """Writes the values. Raises struct.error or ValueError for values that do not fit."""
        if self._conversions:
            values = self._lowered(writer, values)
        writer.align(self._mask)
        writer.put(self._pack(*values))

    def write_all(self, values: Sequence[Any]) -> bytes:
        """Returns a stub that contains only `values`. Raises what `write` raises."""
        return self._pack(*(self._lowered(Writer(), values) if self._conversions else values))

    def _lowered(self, writer: Writer, values: Sequence[Any]) -> Sequence[Any]:
        lowered = list(values)
        for index, member in self._conversions:
            lowered[index] = member.lower(writer, lowered[index])
        return lowered
