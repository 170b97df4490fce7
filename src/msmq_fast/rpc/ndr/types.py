"""The types from which the tables of interfaces are declared; they mirror the IDL.

Values in Python: integers are `int`, GUIDs uuid.UUID, context handles 20 bytes or None for NULL. A pointer is
None or the value of its target. Strings are `str` without the NUL. Arrays of bytes are `bytes` (when
they are written, any buffer is accepted). Arrays of WCHAR that lack the `string` attribute are `bytes` in
UTF-16LE. Other arrays are lists. Structures are records (`Struct.record`). A union is the value of the
selected arm alone.

`size`, `length` and `switch` correspond to size_is, length_is and switch_is. Each is the name of a parameter,
or of a field in the same structure, that gives a count or selects an arm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from msmq_fast.rpc.ndr.codec import Correlation
from msmq_fast.rpc.ndr.pointers import PointerKind
from msmq_fast.rpc.ndr.record import Record, record_class

__all__ = [
    "GUID",
    "I8",
    "I16",
    "I32",
    "I64",
    "U8",
    "U16",
    "U32",
    "U64",
    "ArrayOf",
    "Bytes",
    "ContextHandle",
    "Enum16",
    "FixedBytes",
    "FullPtr",
    "Integer",
    "NdrType",
    "Ptr",
    "Range",
    "RefPtr",
    "StringType",
    "Struct",
    "UnionOf",
    "UniquePtr",
    "Uuid",
    "WChars",
    "conformant",
    "conformant_varying",
    "string",
    "varying_string",
    "wstring",
]


@dataclass(frozen=True, eq=False)
class NdrType:
    """The base of all types."""

    def zero(self) -> Any:
        """The zero value of the type."""
        return 0


@dataclass(frozen=True, eq=False)
class Integer(NdrType):
    """An integer, given by its format character in the `struct` module. Its size is the same in all transfer
    syntaxes.
    """

    code: str


I8, I16, I32, I64 = Integer("b"), Integer("h"), Integer("i"), Integer("q")
U8, U16, U32, U64 = Integer("B"), Integer("H"), Integer("I"), Integer("Q")


@dataclass(frozen=True, eq=False)
class Enum16(NdrType):
    """An enumeration without v1_enum: 16 bits in NDR, 32 in NDR64. Values without a name are accepted."""


@dataclass(frozen=True, eq=False)
class Range(NdrType):
    """An integer with a `range` attribute."""

    base: Integer
    low: int
    high: int


@dataclass(frozen=True, eq=False)
class Uuid(NdrType):
    """A GUID."""

    def zero(self) -> UUID:
        return UUID(int=0)


GUID = Uuid()


@dataclass(frozen=True, eq=False)
class ContextHandle(NdrType):
    """A context handle. `kind` is the name of its type, which a strict server compares."""

    kind: str

    def zero(self) -> None:
        return None


@dataclass(frozen=True, eq=False)
class FixedBytes(NdrType):
    """`byte name[size]`: an array of bytes with a fixed length."""

    size: int

    def zero(self) -> bytes:
        return bytes(self.size)


@dataclass(frozen=True, eq=False)
class ArrayShape:
    """Which fields give the counts of an array. `most` is the largest number of elements of an array that is
    not conformant.
    """

    conformant: bool = True
    varying: bool = False
    size: Correlation = None
    length: Correlation = None
    most: int = 0


@dataclass(frozen=True, eq=False)
class Bytes(NdrType):
    """An array of bytes."""

    shape: ArrayShape

    def zero(self) -> bytes:
        return b""


@dataclass(frozen=True, eq=False)
class WChars(NdrType):
    """An array of 16-bit characters that is not a string."""

    shape: ArrayShape

    def zero(self) -> bytes:
        return b""


@dataclass(frozen=True, eq=False)
class ArrayOf(NdrType):
    """An array of any other type."""

    element: NdrType
    shape: ArrayShape

    def zero(self) -> tuple[()]:
        return ()


@dataclass(frozen=True, eq=False)
class StringType(NdrType):
    """An array with the `string` attribute, of `char` or of `wchar_t` (`wide`)."""

    wide: bool
    shape: ArrayShape

    def zero(self) -> str:
        return ""


@dataclass(frozen=True, eq=False)
class Ptr(NdrType):
    """A pointer that has bytes on the wire. Declare it with UniquePtr, FullPtr or RefPtr.

    `target` may be a function that returns the type, for a type that is declared later.
    """

    kind: PointerKind
    target: NdrType | Callable[[], NdrType]

    def zero(self) -> None:
        return None


def UniquePtr(target: NdrType | Callable[[], NdrType]) -> Ptr:
    """A `unique` pointer."""
    return Ptr(PointerKind.UNIQUE, target)


def FullPtr(target: NdrType | Callable[[], NdrType]) -> Ptr:
    """A `ptr` pointer."""
    return Ptr(PointerKind.FULL, target)


def RefPtr(target: NdrType | Callable[[], NdrType]) -> Ptr:
    """A `ref` pointer inside a structure or an array.

    A `ref` pointer that is a parameter is not encoded: declare the type of its target instead.
    """
    return Ptr(PointerKind.REF, target)


@dataclass(frozen=True, eq=False)
class UnionOf(NdrType):
    """A union. `tag` is the type of the discriminant. `arms` maps its values to types, or to None for an arm
    without members.
    """

    switch: str
    tag: NdrType
    arms: Mapping[int, NdrType | None]

    def zero(self) -> None:
        return None


@dataclass(frozen=True, eq=False)
class Struct(NdrType):
    """A structure: its name and its fields in order.

    `record` is the class of its values. Call the Struct to create a value.
    """

    name: str
    fields: Mapping[str, NdrType]
    record: type[Record] = field(init=False)

    def __post_init__(self) -> None:
        defaults = {
            name: None if isinstance(kind, Struct) else kind.zero() for name, kind in self.fields.items()
        }
        object.__setattr__(self, "record", record_class(self.name, defaults))

    def __call__(self, *values: Any, **named: Any) -> Record:
        """Creates a value from fields in order or by name. Fields that are left out are zero."""
        return self.record(*values, **named)

    def zero(self) -> Record:
        nested = {name: kind.zero() for name, kind in self.fields.items() if isinstance(kind, Struct)}
        return self.record(**nested)


def conformant(size: Correlation = None) -> ArrayShape:
    """Returns the shape of an array with size_is."""
    return ArrayShape(size=size)


def conformant_varying(size: Correlation, length: Correlation) -> ArrayShape:
    """Returns the shape of an array with size_is and length_is."""
    return ArrayShape(varying=True, size=size, length=length)


def string(size: Correlation = None) -> StringType:
    """Declares the target of `[string] char*`, without the pointer. Pass `size` if the declaration also has
    size_is.
    """
    return StringType(False, ArrayShape(varying=True, size=size))


def wstring() -> StringType:
    """Declares the target of `[string] wchar_t*`, without the pointer."""
    return StringType(True, ArrayShape(varying=True))


def varying_string(most: int) -> StringType:
    """Declares `[string] char name[most]`."""
    return StringType(False, ArrayShape(conformant=False, varying=True, most=most))
