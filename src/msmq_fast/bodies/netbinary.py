"""Streams of .NET's BinaryFormatter (MS-NRBF): walks their records and collects the type names.

The walk uses the sizes of the records; no type in the stream is ever resolved to code. `Walk` calls a method
for each item that it passes; these methods do nothing here, and a subclass that needs values
(`bodies.binary`) overrides them. If the stream does not contain the types of the members of a class, the walk
ends: `net_binary` then returns the names found so far, with `complete` False.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from msmq_fast.bodies.errors import BodyError

_INT: Final = struct.Struct("<i")
# PrimitiveTypeEnumeration -> bytes of a value; 0: of no fixed size
PRIMITIVES: Final = {
    1: ("Boolean", 1),
    2: ("Byte", 1),
    3: ("Char", 0),
    5: ("Decimal", 0),
    6: ("Double", 8),
    7: ("Int16", 2),
    8: ("Int32", 4),
    9: ("Int64", 8),
    10: ("SByte", 1),
    11: ("Single", 4),
    12: ("TimeSpan", 8),
    13: ("DateTime", 8),
    14: ("UInt16", 2),
    15: ("UInt32", 4),
    16: ("UInt64", 8),
    18: ("String", 0),
}
_CHAR, _DECIMAL, _NULL, _STRING = 3, 5, 17, 18
# BinaryTypeEnumeration
_IS_PRIMITIVE, _IS_SYSTEM, _IS_CLASS, _IS_PRIMITIVES = 0, 3, 4, 7
_PLAIN: Final = {1: "System.String", 2: "System.Object", 5: "System.Object[]", 6: "System.String[]"}
_MAX_NAMES: Final = 10_000


class NetBinary(NamedTuple):
    """The type and library names of a stream, in the order of their first appearance."""

    root: str | None
    types: list[str]
    libraries: list[str]
    records: int
    complete: bool


class Class(NamedTuple):
    """A class that the stream declares: its name, and the types and names of its members."""

    name: str
    members: tuple[int, ...] | None  # in reverse: primitive types, 0 for records; None: not told
    names: tuple[str, ...]  # of the members, in their order


class Opaque(Exception):
    """Raised if the rest of a stream cannot be walked, because the stream does not contain the sizes of the
    records that follow.
    """


class _Open:
    """An object or array that is not completely read."""

    __slots__ = ("members", "nulls", "rest")

    def __init__(self, members: tuple[int, ...], rest: int, nulls: bool) -> None:
        self.members = members  # of a class, in reverse; of an array one
        self.rest = rest
        self.nulls = nulls  # several nulls may stand in one record


def net_binary(body: bytes) -> NetBinary:
    """Return the type and library names of a stream. Raises BodyError if the bytes are not a stream, or are
    truncated or damaged.
    """
    walk = Walk(body)
    complete = True
    try:
        walk.run()
    except Opaque:
        complete = False
    return NetBinary(
        walk.roots.get(walk.root), list(walk.types), list(walk.libraries), walk.records, complete
    )


class Walk:
    """One pass over a stream.

    Each value, string, null and reference belongs to the innermost object or array that is still open. `run`
    raises BodyError for a damaged stream, and Opaque if the stream does not contain the sizes of the records
    that follow.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.root = 0
        self.records = 0
        self.types: dict[str, None] = {}
        self.libraries: dict[str, None] = {}
        self.roots: dict[int, str] = {}  # only of the root object
        self._classes: dict[int, Class] = {}
        self._open: list[_Open] = []

    def run(self) -> None:
        if self.data[:1] != b"\0" or len(self.data) < 17 or self.data[9:17] != b"\x01\0\0\0\0\0\0\0":
            raise BodyError("the body does not begin with the header of a BinaryFormatter stream")
        (self.root,) = _INT.unpack_from(self.data, 1)
        self.at, self.records = 17, 1
        while True:
            if self._open:
                self._member(self._open[-1])
            elif not self._record(None):
                return

    # -- what a subclass may want to know

    def object_begins(self, identifier: int, found: Class) -> None:
        """An object begins. Its members follow in the order of `found.names`."""

    def array_begins(self, identifier: int, name: str, lengths: list[int]) -> None:
        """An array begins. Its elements follow; the index of the last dimension varies fastest."""

    def ends(self) -> None:
        """The innermost open object or array is complete."""

    def string_passed(self, identifier: int, text: str) -> None:
        """A string was read; it is the object `identifier`."""

    def value_passed(self, primitive: int, at: int) -> None:
        """A primitive value was read; its bytes are those from `at` to `self.at`. `primitive` is a
        PrimitiveTypeEnumeration.
        """

    def values_passed(self, primitive: int, count: int, at: int) -> None:
        """`count` elements of a fixed size were read; their bytes are those from `at` to `self.at`."""

    def nulls_passed(self, count: int) -> None:
        """`count` null members were read."""

    def reference_passed(self, identifier: int) -> None:
        """A reference to an object of the stream was read; the object may follow later."""

    # -- records

    def _member(self, owner: _Open) -> None:
        """Read the next member of an object or array, or close it if it is complete."""
        if owner.rest == 0:
            self._open.pop()
            self.ends()
            return
        owner.rest -= 1
        kind = owner.members[owner.rest if len(owner.members) > 1 else 0]
        if kind:
            self._primitive(kind)
        else:
            self._record(owner)

    def _record(self, owner: _Open | None) -> bool:
        """Read one record; returns False at the end of the stream."""
        kind = self._byte()
        self.records += 1
        if kind == 12:
            self._int()
            self._name(self.libraries, self._string())
            if owner is not None:
                owner.rest += 1  # it is no member
            return True
        if kind == 11:
            if owner is not None:
                raise BodyError(f"the stream ends inside an object at byte {self.at - 1}")
            return False
        read = _RECORDS.get(kind)
        if read is not None:
            read(self)
        elif kind in (13, 14):
            self._nulls(self._byte() if kind == 13 else self._int(), owner)
        elif kind in (21, 22):
            raise Opaque  # calls of .NET Remoting, which no message carries
        elif kind == 10:
            self.nulls_passed(1)
        else:
            raise BodyError(f"record type {kind} at byte {self.at - 1} is not known")
        return True

    def _nulls(self, count: int, owner: _Open | None) -> None:
        if owner is None or not owner.nulls or not 0 < count <= owner.rest + 1:
            raise BodyError(f"{count} nulls before byte {self.at} are more than the missing members")
        owner.rest -= count - 1
        self.nulls_passed(count)

    # -- classes

    def _typed_class(self, *, system: bool) -> None:
        identifier, name, names = self._class_info()
        kinds = [self._byte() for _ in range(len(names))]
        members = tuple(self._type_info(kind)[0] for kind in kinds)
        if not system:
            self._int()
        self._begin(identifier, Class(name, members[::-1], names))

    def _untyped_class(self, *, system: bool) -> None:
        identifier, name, names = self._class_info()
        if not system:
            self._int()
        self._begin(identifier, Class(name, None, names))

    def _class_with_id(self) -> None:
        identifier, known = self._int(), self._classes.get(self._int())
        if known is None:
            raise BodyError(
                f"the record before byte {self.at} refers to a class that the stream has not declared"
            )
        self._begin(identifier, known)

    def _class_info(self) -> tuple[int, str, tuple[str, ...]]:
        identifier, name, count = self._int(), self._string(), self._int()
        if not 0 <= count <= len(self.data) - self.at:
            raise BodyError(f"a class with {count} members does not fit into the stream at byte {self.at}")
        names = tuple(self._string() for _ in range(count))
        self._name(self.types, name)
        return identifier, name, names

    def _begin(self, identifier: int, found: Class) -> None:
        self._classes[identifier] = found
        self._seen(identifier, found.name)
        if found.members is None:
            raise Opaque
        self.object_begins(identifier, found)
        if found.members:
            self._open.append(_Open(found.members, len(found.members), nulls=False))
        else:
            self.ends()

    # -- arrays

    def _array(self) -> None:
        identifier, shape, rank = self._int(), self._byte(), self._int()
        if shape > 5 or not 1 <= rank <= 32:
            raise BodyError(
                f"the array before byte {self.at} cannot have shape {shape} and {rank} dimensions"
            )
        lengths = [self._length() for _ in range(rank)]
        for _ in range(rank if shape > 2 else 0):
            self._int()
        primitive, name = self._type_info(self._byte())
        self._elements(identifier, f"{name}[{',' * (rank - 1)}]", primitive, lengths)

    def _simple_array(self, name: str) -> None:
        identifier = self._int()
        self._elements(identifier, name, 0, [self._length()])

    def _primitive_array(self) -> None:
        identifier, count = self._int(), self._length()
        primitive, name = self._value_type()
        self._elements(identifier, name + "[]", primitive, [count])

    def _elements(self, identifier: int, name: str, primitive: int, lengths: list[int]) -> None:
        self._seen(identifier, name)
        count = math.prod(lengths)
        size = PRIMITIVES[primitive][1] if primitive else 0
        at = self.at
        if size:
            self._skip(size * count)
        self.array_begins(identifier, name, lengths)
        if count and not size:
            self._open.append(_Open((primitive,), count, nulls=True))
            return
        if size:
            self.values_passed(primitive, count, at)
        self.ends()

    # -- values

    def _type_info(self, kind: int) -> tuple[int, str]:
        """Read the additional information of a BinaryTypeEnumeration.

        Returns (primitive type, name of the type). The primitive type is 0 if each value has a record of its
        own.
        """
        if kind == _IS_PRIMITIVE:
            return self._value_type()
        if kind == _IS_PRIMITIVES:
            return 0, self._value_type()[1] + "[]"
        if kind in (_IS_SYSTEM, _IS_CLASS):
            name = self._string()
            self._name(self.types, name)
            if kind == _IS_CLASS:
                self._int()
            return 0, name
        if kind not in _PLAIN:
            raise BodyError(f"member type {kind} before byte {self.at} is not known")
        return 0, _PLAIN[kind]

    def _value_type(self) -> tuple[int, str]:
        primitive = self._byte()
        if primitive not in PRIMITIVES:
            raise BodyError(f"primitive type {primitive} before byte {self.at} is not known")
        return primitive, "System." + PRIMITIVES[primitive][0]

    def _typed_value(self) -> None:
        primitive = self._byte()
        if primitive == _NULL:
            self.nulls_passed(1)
            return
        self.at -= 1
        self._primitive(self._value_type()[0])

    def _object_string(self) -> None:
        identifier = self._int()
        self.string_passed(identifier, self._string())
        self._seen(identifier, "System.String")

    def _reference(self) -> None:
        self.reference_passed(self._int())

    def _primitive(self, primitive: int) -> None:
        at = self.at
        size = PRIMITIVES[primitive][1]
        if size:
            self._skip(size)
        elif primitive in (_DECIMAL, _STRING):
            self._string()
        elif primitive == _CHAR:
            first = self._byte()
            self._skip(0 if first < 0x80 else 1 if first < 0xE0 else 2 if first < 0xF0 else 3)
        self.value_passed(primitive, at)

    def _seen(self, identifier: int, name: str) -> None:
        if identifier == self.root:
            self.roots.setdefault(identifier, name)

    def _name(self, names: dict[str, None], name: str) -> None:
        if len(names) >= _MAX_NAMES:
            raise BodyError(f"the stream names more than {_MAX_NAMES} types")
        names[name] = None

    def _byte(self) -> int:
        self._skip(1)
        return self.data[self.at - 1]

    def _int(self) -> int:
        self._skip(4)
        return int(_INT.unpack_from(self.data, self.at - 4)[0])

    def _length(self) -> int:
        found = self._int()
        if found < 0:
            raise BodyError(f"the length before byte {self.at} is negative")
        return found

    def _string(self) -> str:
        size = 0
        for shift in range(0, 35, 7):
            part = self._byte()
            size |= (part & 0x7F) << shift
            if not part & 0x80:
                break
        else:
            raise BodyError(f"the length before byte {self.at} has more than 31 bits")
        self._skip(size)
        return self.data[self.at - size : self.at].decode("utf-8", "replace")

    def _skip(self, size: int) -> None:
        if size > len(self.data) - self.at:
            raise BodyError(f"the stream is cut: {size} bytes are missing at byte {self.at}")
        self.at += size


_RECORDS: Final[dict[int, Callable[[Walk], None]]] = {
    1: Walk._class_with_id,
    2: lambda walk: walk._untyped_class(system=True),
    3: lambda walk: walk._untyped_class(system=False),
    4: lambda walk: walk._typed_class(system=True),
    5: lambda walk: walk._typed_class(system=False),
    6: Walk._object_string,
    7: Walk._array,
    8: Walk._typed_value,
    9: Walk._reference,
    15: Walk._primitive_array,
    16: lambda walk: walk._simple_array("System.Object[]"),
    17: lambda walk: walk._simple_array("System.String[]"),
}
