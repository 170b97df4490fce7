"""The types of the IDL as data, to declare interfaces with.

Values: integers are `int`, GUIDs uuid.UUID, context handles 20 bytes or None for NULL, pointers None or what
they point to, strings `str` without the NUL, arrays of bytes `bytes` (any buffer when they are written),
arrays of WCHAR that are no strings `bytes` in UTF-16LE, other arrays lists, structures records
(`Struct.record`), and unions the value of the selected arm alone.

`size`, `length` and `switch` name the field of the same structure, or the parameter, that dictates a count or
an arm, as size_is, length_is and switch_is do.
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
    """Any type."""

    def zero(self) -> Any:
        """The zero value of the type."""
        return 0


@dataclass(frozen=True, eq=False)
class Integer(NdrType):
    """An integer by its code in the `struct` module; the same in both syntaxes."""

    code: str


I8, I16, I32, I64 = Integer("b"), Integer("h"), Integer("i"), Integer("q")
U8, U16, U32, U64 = Integer("B"), Integer("H"), Integer("I"), Integer("Q")


@dataclass(frozen=True, eq=False)
class Enum16(NdrType):
    """An enumeration without v1_enum: 16 bits in NDR, 32 in NDR64. Values that it does not name are let
    through."""


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
    """A context handle; `kind` is the name of its type, which a strict server compares."""

    kind: str

    def zero(self) -> None:
        return None


@dataclass(frozen=True, eq=False)
class FixedBytes(NdrType):
    """`byte name[size]`"""

    size: int

    def zero(self) -> bytes:
        return bytes(self.size)


@dataclass(frozen=True, eq=False)
class ArrayShape:
    """What `size` and `length` dictate of an array; `most` is the bound of one that is not conformant."""

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
    """An array of anything else."""

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
    """A pointer that has a representation; see UniquePtr, FullPtr, RefPtr. A function as `target` is for
    types that are declared later."""

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
    """A `ref` pointer inside a structure or an array. One that is a parameter has no representation: declare
    what it points to."""
    return Ptr(PointerKind.REF, target)


@dataclass(frozen=True, eq=False)
class UnionOf(NdrType):
    """A union: `tag` is the type of its discriminant, `arms` what it selects, None for an arm without
    members."""

    switch: str
    tag: NdrType
    arms: Mapping[int, NdrType | None]

    def zero(self) -> None:
        return None


@dataclass(frozen=True, eq=False)
class Struct(NdrType):
    """A structure: its name and its fields in order. `record` is the class of its values; call the Struct
    itself to make one."""

    name: str
    fields: Mapping[str, NdrType]
    record: type[Record] = field(init=False)

    def __post_init__(self) -> None:
        defaults = {
            name: None if isinstance(kind, Struct) else kind.zero() for name, kind in self.fields.items()
        }
        object.__setattr__(self, "record", record_class(self.name, defaults))

    def __call__(self, *values: Any, **named: Any) -> Record:
        """A value, from fields in order or by name; those that are left out are zero."""
        return self.record(*values, **named)

    def zero(self) -> Record:
        nested = {name: kind.zero() for name, kind in self.fields.items() if isinstance(kind, Struct)}
        return self.record(**nested)


def conformant(size: Correlation = None) -> ArrayShape:
    """The shape of an array with size_is."""
    return ArrayShape(size=size)


def conformant_varying(size: Correlation, length: Correlation) -> ArrayShape:
    """The shape of an array with size_is and length_is."""
    return ArrayShape(varying=True, size=size, length=length)


def string(size: Correlation = None) -> StringType:
    """`[string] char*`, without the pointer; `size` if there is size_is as well."""
    return StringType(False, ArrayShape(varying=True, size=size))


def wstring() -> StringType:
    """`[string] wchar_t*`, without the pointer."""
    return StringType(True, ArrayShape(varying=True))


def varying_string(most: int) -> StringType:
    """`[string] char name[most]`"""
    return StringType(False, ArrayShape(conformant=False, varying=True, most=most))
