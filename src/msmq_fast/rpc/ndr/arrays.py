"""Conformant, varying and conformant varying arrays (C706 14.3.3, MS-RPCE 2.2.5.3.2)."""

from __future__ import annotations

import struct
from abc import abstractmethod
from array import array
from collections.abc import Sequence
from typing import Any

from msmq_fast.rpc.ndr.codec import Codec, Correlation, check_length, correlated
from msmq_fast.rpc.ndr.stream import Buffer, Reader, Writer, bad_stub
from msmq_fast.rpc.ndr.syntax import Syntax

__all__ = ["Array", "ByteArray", "ElementArray", "Shape", "WideArray"]

_MOST_ELEMENTS = 0x7FFFFFFF


class Shape:
    """Describes the counts in front of an array: which counts are sent, and which fields must agree with
    them.

    `size` gives the maximum count of a conformant array, `length` the actual count of a varying one. Offsets
    are 0, since none of the interfaces uses first_is.
    """

    __slots__ = ("_mask", "_one", "_two", "_width", "conformant", "length", "size", "varying")

    def __init__(
        self,
        syntax: Syntax,
        *,
        conformant: bool,
        varying: bool,
        size: Correlation = None,
        length: Correlation = None,
    ) -> None:
        self.conformant = conformant
        self.varying = varying
        self.size = size
        self.length = length
        self._width = syntax.pointer
        self._mask = self._width - 1
        self._one = struct.Struct(syntax.order + syntax.pointer_code)
        self._two = struct.Struct(syntax.order + 2 * syntax.pointer_code)

    @property
    def least(self) -> int:
        """The size of all counts in front of the array, in bytes."""
        return self._width * (self.conformant + 2 * self.varying)

    @property
    def align(self) -> int:
        """The alignment of the counts in bytes."""
        return self._width

    def read_maximum(self, reader: Reader) -> int:
        """Reads and returns the maximum count. Raises RpcFault for a count of 2^31 or more."""
        maximum: int = self._one.unpack_from(reader.buffer, reader.claim(self._mask, self._width))[0]
        if maximum > _MOST_ELEMENTS:
            raise bad_stub("a maximum count is 2^31 or more")
        return maximum

    def read_actual(self, reader: Reader, scope: Any, maximum: int) -> int:
        """Reads the offset and the actual count, if the array has them. Returns how many elements follow.
        `maximum` is the maximum count. Raises RpcFault.
        """
        expected = correlated(self.size, scope)
        if expected is not None and expected != maximum:
            raise bad_stub("the maximum count differs from size_is")
        if not self.varying:
            return maximum
        actual: int
        offset, actual = self._two.unpack_from(reader.buffer, reader.claim(self._mask, 2 * self._width))
        if offset:
            raise bad_stub("the offset of an array is not 0")
        if actual > maximum:
            raise bad_stub("the actual count of an array is greater than its maximum count")
        expected = correlated(self.length, scope)
        if expected is not None and expected != actual:
            raise bad_stub("the actual count differs from length_is")
        return actual

    def write_maximum(self, writer: Writer, scope: Any, length: int) -> None:
        """Writes the maximum count of an array of which `length` elements are sent. Raises ValueError if the
        field of size_is contradicts `length`.
        """
        maximum = correlated(self.size, scope)
        if maximum is None:
            maximum = length
        elif length > maximum or (length != maximum and not self.varying):
            raise ValueError(f"{length} elements do not fit in an array of {maximum}")
        writer.align(self._mask)
        writer.put(self._one.pack(maximum))

    def write_actual(self, writer: Writer, scope: Any, length: int) -> None:
        """Writes the offset and the actual count in front of `length` elements. Raises ValueError if the
        field of length_is contradicts `length`.
        """
        if self.varying:
            check_length(self.length, scope, length)
            writer.align(self._mask)
            writer.put(self._two.pack(0, length))


class Array(Codec):
    """The base of all array codecs; a subclass reads and writes the elements.

    If an array ends a structure, the codec of the structure reads and writes the array's maximum count.
    """

    def __init__(self, shape: Shape, most: int, align: int) -> None:
        """`most` is the largest number of elements of an array that is not conformant. `align` is the
        alignment of an element in bytes.
        """
        self.shape = shape
        self.align = max(align, shape.align if shape.varying else 1)
        self.least = shape.least
        self._most = most

    def read(self, reader: Reader, scope: Any) -> Any:
        maximum = self.shape.read_maximum(reader) if self.shape.conformant else self._most
        return self.read_body(reader, scope, maximum)

    def write(self, writer: Writer, value: Any, scope: Any) -> None:
        if self.shape.conformant:
            self.shape.write_maximum(writer, scope, self.length_of(value))
        self.write_body(writer, value, scope)

    def length_of(self, value: Any) -> int:
        """The number of elements in `value`."""
        return len(value)

    @abstractmethod
    def read_body(self, reader: Reader, scope: Any, maximum: int) -> Any:
        """Reads the part of the array after the maximum count. Raises RpcFault."""

    @abstractmethod
    def write_body(self, writer: Writer, value: Any, scope: Any) -> None:
        """Writes the part of the array after the maximum count. Raises ValueError."""


class ByteArray(Array):
    """An array of bytes: decoded as `bytes`, encoded from any object with a buffer. Decoding and encoding
    each copy the bytes once.
    """

    def __init__(self, shape: Shape, most: int = 0) -> None:
        super().__init__(shape, most, 1)

    def read_body(self, reader: Reader, scope: Any, maximum: int) -> bytes:
        return reader.take(self.shape.read_actual(reader, scope, maximum))

    def write_body(self, writer: Writer, value: Buffer, scope: Any) -> None:
        self.shape.write_actual(writer, scope, len(value))
        writer.put(value)


class WideArray(Array):
    """An array of 16-bit characters without the string attribute: bytes in UTF-16LE, two for each element."""

    def __init__(self, syntax: Syntax, shape: Shape, most: int = 0) -> None:
        super().__init__(shape, most, 2)
        self._foreign = syntax.big_endian

    def length_of(self, value: bytes) -> int:
        length, rest = divmod(len(value), 2)
        if rest:
            raise ValueError("an array of 16-bit characters needs an even number of bytes")
        return length

    def read_body(self, reader: Reader, scope: Any, maximum: int) -> bytes:
        data = reader.take(2 * self.shape.read_actual(reader, scope, maximum))
        return _swapped(data) if self._foreign else data

    def write_body(self, writer: Writer, value: bytes, scope: Any) -> None:
        self.shape.write_actual(writer, scope, self.length_of(value))
        writer.put(_swapped(value) if self._foreign else value)


class ElementArray(Array):
    """An array of any other type, decoded as a list."""

    def __init__(self, shape: Shape, element: Codec, most: int = 0) -> None:
        super().__init__(shape, most, element.align)
        self._element = element
        self.points = element.points

    def read_body(self, reader: Reader, scope: Any, maximum: int) -> list[Any]:
        count = self.shape.read_actual(reader, scope, maximum)
        element = self._element
        if count * element.least > reader.end - reader.pos:
            raise bad_stub("the stub is truncated")
        reader.elements -= count
        if reader.elements < 0:
            raise bad_stub("the arrays of the stub have too many elements")
        return [element.read(reader, scope) for _ in range(count)]

    def read_deferred(self, reader: Reader, value: list[Any], scope: Any) -> list[Any]:
        deferred = self._element.read_deferred
        for index, item in enumerate(value):
            value[index] = deferred(reader, item, scope)
        return value

    def write_body(self, writer: Writer, value: Sequence[Any], scope: Any) -> None:
        self.shape.write_actual(writer, scope, len(value))
        for item in value:
            self._element.write(writer, item, scope)

    def write_deferred(self, writer: Writer, value: Sequence[Any], scope: Any) -> None:
        for item in value:
            self._element.write_deferred(writer, item, scope)


def _swapped(data: bytes) -> bytes:
    units = array("H", data)
    units.byteswap()
    return units.tobytes()
