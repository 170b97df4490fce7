"""Strings (C706 14.3.4, MS-RPCE 2.2.5.3.3): arrays of characters that end with a NUL."""

from __future__ import annotations

from msmq_fast.rpc.ndr.arrays import Array, Shape
from msmq_fast.rpc.ndr.stream import Reader, Writer, bad_stub
from msmq_fast.rpc.ndr.syntax import Syntax

__all__ = ["String"]

_BYTES = "latin-1"


class String(Array):
    """A string of bytes or of 16-bit characters, decoded as `str`. As in C, the string ends at the first NUL.

    Lone surrogates are kept, as in the names and labels of packets.
    """

    def __init__(self, syntax: Syntax, shape: Shape, *, wide: bool, most: int = 0) -> None:
        self._size = 2 if wide else 1
        super().__init__(shape, most, self._size)
        self._encoding = _BYTES if not wide else "utf-16-be" if syntax.big_endian else "utf-16-le"
        self._errors = "surrogatepass" if wide else "strict"

    def length_of(self, value: str) -> int:
        return len(self._encoded(value)) // self._size

    def read_body(self, reader: Reader, scope: object, maximum: int) -> str:
        data = reader.take(self._size * self.shape.read_actual(reader, scope, maximum))
        if not data or any(data[-self._size :]):
            raise bad_stub("a string has no terminating NUL")
        return data.decode(self._encoding, self._errors).partition("\0")[0]

    def write_body(self, writer: Writer, value: str, scope: object) -> None:
        data = self._encoded(value)
        self.shape.write_actual(writer, scope, len(data) // self._size)
        writer.put(data)

    def _encoded(self, value: str) -> bytes:
        return (value + "\0").encode(self._encoding, self._errors)
