"""Bodies of .NET's BinaryMessageFormatter: decodes MS-NRBF streams to plain data, and encodes simple values.

Decoding has two steps, so that nothing in a hostile stream is expanded before it is counted:

1. `_Values` walks the records and stores each object once. Objects are not nested: a member that is a
   reference to another object stays a reference.
2. `_Tree` converts the root to plain data: a dict with `__class__` for an object, a list for an array, and a
   Python value for the well-known types of .NET (numbers, Decimal, DateTime, TimeSpan, Guid, List,
   Dictionary). A second occurrence of an object is {"__ref__": path of the first}, so the result has no
   cycles, and its size is linear in the size of the stream.

No name in the stream is ever resolved to code. Bounds: MAX_VALUES members and elements, MAX_DEPTH levels,
MAX_TEXT characters of names and strings that are repeated by reference.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, timedelta
from decimal import Decimal
from itertools import repeat
from typing import Any, Final, NamedTuple
from uuid import UUID

from msmq_fast.bodies.errors import BodyError
from msmq_fast.bodies.netbinary import Class, Opaque, Walk
from msmq_fast.bodies.types import (
    ARRAY,
    TICKS_PER_MICROSECOND,
    TYPES,
    SimpleType,
    check,
    decimal_parts,
    from_ticks,
    simple_type,
    span_ticks,
    to_ticks,
)
from msmq_fast.bodies.xml import CLASS
from msmq_fast.bodies.xmlvalues import decimal_text, read_decimal

MAX_VALUES: Final = 1 << 22
MAX_DEPTH: Final = 100
MAX_TEXT: Final = 1 << 24
REFERENCE: Final = "__ref__"
"""The only key of the dict that replaces a repeated object."""

_BY_CODE: Final = {kind.code: kind for kind in TYPES.values() if kind.code}
_LAYOUTS: Final = {code: struct.Struct(kind.layout) for code, kind in _BY_CODE.items() if kind.layout}
_BYTE, _CHAR, _DECIMAL, _TIMESPAN, _DATETIME, _STRING = 2, 3, 5, 12, 13, 18
_TICKS: Final = (1 << 62) - 1
_KIND_UTC, _KIND_LOCAL = 1, 2
_LIST: Final = "System.Collections.Generic.List`1["
_DICTIONARY: Final = "System.Collections.Generic.Dictionary`2["
_BOXED: Final = frozenset("System." + kind.net for kind in TYPES.values() if kind.code)
_LOCAL_NOTE: Final = "times without a zone are local times of the sender"
_FINE_NOTE: Final = "times were cut to microseconds"
_DATE_NOTE: Final = "times outside of the years 1 to 9999 are left as ticks"


def decode(body: bytes, most: int = MAX_VALUES) -> tuple[Any, list[str]]:
    """Return (value of a stream, notes on lossy conversions). `most` bounds the members and elements.

    Raises BodyError if the bytes are not a BinaryFormatter stream, are truncated or damaged, or exceed one of
    the bounds.
    """
    values = _Values(body, most)
    try:
        values.run()
    except Opaque:
        raise BodyError(
            f"the stream lacks the types of the members before byte {values.at}: only .NET can read it"
        ) from None
    tree = _Tree(values)
    return tree.root(), list(tree.notes)


class _Reference(NamedTuple):
    identifier: int


class _Object(NamedTuple):
    found: Class
    members: list[Any]


class _Array:
    __slots__ = ("elements", "lengths")

    def __init__(self, lengths: list[int]) -> None:
        self.lengths = lengths
        self.elements: list[Any] | bytes = []


class _Moment(NamedTuple):
    """A DateTime: its ticks and its kind (0 unspecified, 1 UTC, 2 local)."""

    ticks: int
    kind: int


class _Values(Walk):
    """The objects of a stream by identifier. Objects within objects are stored as references."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self._most = most
        self.objects: dict[int, Any] = {}
        self._owners: list[_Object | _Array] = []
        self._count = 0

    def object_begins(self, identifier: int, found: Class) -> None:
        """Store an empty object; the next values are its members."""
        self._own(identifier, _Object(found, []))

    def array_begins(self, identifier: int, name: str, lengths: list[int]) -> None:
        """Store an empty array; the next values are its elements."""
        self._own(identifier, _Array(lengths))

    def _own(self, identifier: int, made: _Object | _Array) -> None:
        self._keep(identifier, made)
        self._put(_Reference(identifier))
        self._owners.append(made)

    def _keep(self, identifier: int, value: Any) -> None:
        if self.objects.setdefault(identifier, value) is not value:
            raise BodyError(f"object {identifier} before byte {self.at} occurs twice")

    def ends(self) -> None:
        """Close the current object or array: the next values belong to the one that contains it."""
        self._owners.pop()

    def string_passed(self, identifier: int, text: str) -> None:
        """Store a string, and add it as a member of the current object."""
        self._keep(identifier, text)
        self._put(text)

    def value_passed(self, primitive: int, at: int) -> None:
        """Add a primitive value as a member of the current object."""
        self._put(_primitive(primitive, self.data[at : self.at]))

    def values_passed(self, primitive: int, count: int, at: int) -> None:
        """Add all elements of a primitive array; an array of bytes is stored as bytes."""
        owner, data = self._owners[-1], self.data[at : self.at]
        assert isinstance(owner, _Array)  # noqa: S101 - objects have no elements
        if primitive == _BYTE:
            owner.elements = bytes(data)
            return
        self._spend(count)
        owner.elements = [_scalar(primitive, one) for (one,) in _LAYOUTS[primitive].iter_unpack(data)]

    def nulls_passed(self, count: int) -> None:
        """Add `count` members that are None."""
        self._spend(count)
        if self._owners:
            self._members().extend(repeat(None, count))

    def reference_passed(self, identifier: int) -> None:
        """Add a member that refers to an object."""
        self._put(_Reference(identifier))

    def _put(self, value: Any) -> None:
        self._spend(1)
        if self._owners:
            self._members().append(value)

    def _members(self) -> list[Any]:
        owner = self._owners[-1]
        members = owner.members if isinstance(owner, _Object) else owner.elements
        assert isinstance(members, list)  # noqa: S101 - bytes come whole
        return members

    def _spend(self, count: int) -> None:
        self._count += count
        if self._count > self._most:
            raise BodyError(f"the stream has more than {self._most} values")


def _primitive(primitive: int, data: bytes) -> Any:
    if primitive in _LAYOUTS:
        return _scalar(primitive, _LAYOUTS[primitive].unpack(data)[0])
    if primitive == _CHAR:
        return data.decode("utf-8", "replace")
    content = data[_prefix(data) :].decode("utf-8", "replace")
    if primitive == _STRING:
        return content
    try:
        return read_decimal(content)
    except ValueError:
        return content


def _prefix(data: bytes) -> int:
    """Return the size in bytes of the length prefix with which `data` begins."""
    return next(index for index, one in enumerate(data, 1) if not one & 0x80)


def _scalar(primitive: int, value: Any) -> Any:
    if primitive == _DATETIME:
        return _Moment(value & _TICKS, value >> 62)
    if primitive == _TIMESPAN:
        return _span(value)
    return value


def _span(ticks: int) -> timedelta:
    return timedelta(microseconds=ticks // TICKS_PER_MICROSECOND)


class _Place:
    """A position in the tree: the member or element `key` of the object at the position `owner`. Its text is
    the path from the root.
    """

    __slots__ = ("key", "owner")

    def __init__(self, owner: _Place | None, key: str | int) -> None:
        self.owner = owner
        self.key = key

    def __str__(self) -> str:
        parts: list[str] = []
        place: _Place | None = self
        while place is not None:
            key = place.key
            if isinstance(key, int):
                parts.append(f"[{key}]")
            else:
                short = key if len(key) <= 40 else key[:37] + "..."
                parts.append(short if short.isprintable() else ascii(short)[1:-1])
            place = place.owner
        return "".join(reversed(parts))


class _Tree:
    """Converts the root of a stream to plain data."""

    def __init__(self, values: _Values) -> None:
        self.notes: dict[str, None] = {}
        self._objects = values.objects
        self._root = values.root
        self._places: dict[int, _Place] = {}
        self._text = 0

    def root(self) -> Any:
        if self._root not in self._objects:
            raise BodyError(f"the stream has no object {self._root}, which its header names as the root")
        return self._expanded(_Reference(self._root), None, "$", 0)

    def _expanded(self, value: Any, owner: _Place | None, key: str | int, depth: int) -> Any:
        """Return the plain data of `value`, the member or element `key` of the object at `owner`."""
        if isinstance(value, _Moment):
            return self._moment(value)
        if not isinstance(value, _Reference):
            return value
        if depth >= MAX_DEPTH:
            raise BodyError(f"objects are nested more than {MAX_DEPTH} deep")
        identifier = value.identifier
        found = self._objects.get(identifier)
        if isinstance(found, str):
            self._spend(len(found))
            return found
        place = _Place(owner, key)
        if found is None:
            raise BodyError(f"object {identifier}, which {place} refers to, is not in the stream")
        first = self._first(identifier, place)
        if first is not place:
            path = str(first)
            self._spend(len(path))
            return {REFERENCE: path}
        if isinstance(found, _Object):
            return self._object(found, place, depth + 1)
        return self._array(found, place, depth + 1)

    def _first(self, identifier: int, place: _Place) -> _Place:
        """Return the position at which the object `identifier` occurred first; `place` if it has not occurred
        before.
        """
        return self._places.setdefault(identifier, place)

    def _spend(self, characters: int) -> None:
        """Count `characters` of a text that is in the stream once, but may be in the tree several times.
        Raises BodyError if the sum exceeds MAX_TEXT.
        """
        self._text += characters
        if self._text > MAX_TEXT:
            raise BodyError(f"names and strings that are repeated have more than {MAX_TEXT} characters")

    def _array(self, found: _Array, place: _Place, depth: int) -> Any:
        elements = found.elements
        depth += len(found.lengths) - 1  # lists within lists
        if depth > MAX_DEPTH:
            raise BodyError(f"objects are nested more than {MAX_DEPTH} deep")
        if isinstance(elements, bytes):
            return elements if len(found.lengths) == 1 else _shaped(list(elements), found.lengths)
        flat = [self._expanded(one, place, index, depth) for index, one in enumerate(elements)]
        return _shaped(flat, found.lengths)

    def _object(self, found: _Object, place: _Place, depth: int) -> Any:
        name = found.found.name
        fields = dict(zip(found.found.names, found.members, strict=True))
        known = self._known(name, fields)
        if known is not None:
            return known
        if name.startswith(_LIST) and set(fields) == {"_items", "_size", "_version"}:
            items, size = self._expanded(fields["_items"], place, "._items", depth), fields["_size"]
            if isinstance(items, list | bytes) and isinstance(size, int) and 0 <= size <= len(items):
                return items[:size]
            fields["_items"] = items
        self._spend(len(name) + sum(map(len, fields)))
        expanded = {key: self._expanded(one, place, f".{key}", depth) for key, one in fields.items()}
        if name.startswith(_DICTIONARY):
            pairs = _pairs(expanded.get("KeyValuePairs"))
            if pairs is not None:
                return pairs
        return {CLASS: name, **{key: one for key, one in expanded.items() if key != CLASS}}

    def _known(self, name: str, fields: dict[str, Any]) -> Any:
        """Return the Python value of an object whose .NET type is well known; None for any other type, or if
        the object is incomplete.
        """
        if name in _BOXED and set(fields) == {"m_value"}:
            value = fields["m_value"]
            return None if isinstance(value, _Reference | _Moment) else value
        reader = _KNOWN.get(name)
        if reader is None:
            return None
        try:
            value = reader(fields)
        except (KeyError, TypeError, ValueError, OverflowError, struct.error):
            return None
        return self._moment(value) if isinstance(value, _Moment) else value

    def _moment(self, moment: _Moment) -> Any:
        value = from_ticks(moment.ticks)
        if value is None:
            self.notes[_DATE_NOTE] = None
            return moment.ticks
        if moment.ticks % TICKS_PER_MICROSECOND:
            self.notes[_FINE_NOTE] = None
        if moment.kind >= _KIND_LOCAL:
            self.notes[_LOCAL_NOTE] = None
        return value.replace(tzinfo=UTC) if moment.kind == _KIND_UTC else value


def _shaped(flat: list[Any], lengths: list[int]) -> list[Any]:
    """Return the elements of an array with the dimensions `lengths` as nested lists. An array without
    elements is an empty list, whatever its dimensions are.
    """
    if not flat:
        return flat
    for length in reversed(lengths[1:]):
        flat = [flat[start : start + length] for start in range(0, len(flat), length)]
    return flat


def _pairs(pairs: Any) -> dict[str, Any] | list[list[Any]] | None:
    """Return the pairs of a Dictionary as a dict if the keys are strings, else as a list of pairs; None if
    the Dictionary is incomplete.
    """
    if not isinstance(pairs, list) or not all(
        isinstance(one, dict) and "key" in one and "value" in one for one in pairs
    ):
        return None
    if all(isinstance(one["key"], str) for one in pairs):
        return {one["key"]: one["value"] for one in pairs}
    return [[one["key"], one["value"]] for one in pairs]


def _known_decimal(fields: dict[str, Any]) -> Decimal:
    flags = fields["flags"]
    scale = flags >> 16 & 0xFF
    if scale > 28:
        raise ValueError(scale)
    digits = (
        (fields["hi"] & 0xFFFFFFFF) << 64 | (fields["mid"] & 0xFFFFFFFF) << 32 | fields["lo"] & 0xFFFFFFFF
    )
    return Decimal((int(flags < 0), tuple(map(int, str(digits))), -scale))


def _known_guid(fields: dict[str, Any]) -> UUID:
    return UUID(bytes_le=_GUID.pack(*(fields[name] for name in _GUID_MEMBERS)))


_GUID: Final = struct.Struct("<ihh8B")
_GUID_MEMBERS: Final = tuple(f"_{letter}" for letter in "abcdefghijk")
_KNOWN: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "System.DateTime": lambda fields: _Moment(fields["dateData"] & _TICKS, fields["dateData"] >> 62),
    "System.Decimal": _known_decimal,
    "System.Guid": _known_guid,
    "System.TimeSpan": lambda fields: _span(fields["_ticks"]),
}

# ------------------------------------------------------------------------------------------------- writing

_INT: Final = struct.Struct("<i")
_HEADER: Final = b"\0" + struct.pack("<4i", 1, -1, 1, 0)
_END: Final = b"\x0b"
_CLASS_RECORD, _STRING_RECORD, _PRIMITIVES_RECORD, _STRINGS_RECORD = 4, 6, 15, 17
_NULL, _NULLS_256, _NULLS = 10, 13, 14


def encode(value: Any, name: str) -> bytes:
    """Return the stream that BinaryFormatter writes for a simple value or an array of simple values.

    Raises BodyError if the formatter cannot write the type, or the value does not have the type.
    """
    if not name.endswith(ARRAY):
        return _HEADER + _root(value, simple_type(name)) + _END
    kind = simple_type(name.removesuffix(ARRAY))
    if kind.name == "string":
        return _HEADER + _strings(value) + _END
    if not kind.code:
        raise BodyError(f"the formatter binary does not write arrays of {kind.name}")
    return _HEADER + _array(value, kind) + _END


def _root(value: Any, kind: SimpleType) -> bytes:
    check(value, kind)
    if kind.name == "string":
        return bytes((_STRING_RECORD,)) + _INT.pack(1) + _counted(value)
    if kind.name == "bytes":
        return _array(bytes(value), TYPES["uint8"])
    if kind.name == "guid":
        return _object(kind, tuple(zip(_GUID_MEMBERS, (8, 7, 7, *(2,) * 8), strict=True)), value.bytes_le)
    if kind.name == "decimal":
        scale, digits = decimal_parts(Decimal(value))
        words = (
            scale << 16 | (value < 0) << 31,
            digits >> 64,
            digits & 0xFFFFFFFF,
            digits >> 32 & 0xFFFFFFFF,
        )
        return _object(
            kind, tuple((name, 8) for name in ("flags", "hi", "lo", "mid")), struct.pack("<4I", *words)
        )
    if kind.name == "datetime":
        ticks = to_ticks(value)
        data = struct.pack("<2Q", ticks, ticks | _kind_of(value) << 62)
        return _object(kind, (("ticks", 9), ("dateData", 16)), data)
    if kind.name == "timespan":
        return _object(kind, (("_ticks", 9),), _value(value, kind))
    return _object(kind, (("m_value", kind.code),), _value(value, kind))


def _object(kind: SimpleType, members: tuple[tuple[str, int], ...], data: bytes) -> bytes:
    """Return a SystemClassWithMembersAndTypes record whose members are all primitive, followed by their
    values.
    """
    names = b"".join(_counted(name) for name, _ in members)
    head = bytes((_CLASS_RECORD,)) + _INT.pack(1) + _counted("System." + kind.net) + _INT.pack(len(members))
    return head + names + bytes(len(members)) + bytes(code for _, code in members) + data


def _array(items: Any, kind: SimpleType) -> bytes:
    head = bytes((_PRIMITIVES_RECORD,)) + _INT.pack(1) + _INT.pack(len(items)) + bytes((kind.code,))
    if isinstance(items, bytes):
        return head + items
    for item in items:
        check(item, kind)
    return head + b"".join(_value(item, kind) for item in items)


def _strings(items: Any) -> bytes:
    """Return an ArraySingleString record. A repeated string is written as a reference to the first one, as
    .NET does if they are the same object.
    """
    kind = TYPES["string"]
    parts = [bytes((_STRINGS_RECORD,)), _INT.pack(1), _INT.pack(len(items))]
    known: dict[str, int] = {}
    nulls = 0
    for item in items:
        if item is None:
            nulls += 1
            continue
        check(item, kind)
        parts.append(_nulls(nulls))
        nulls = 0
        if item in known:
            parts.append(b"\x09" + _INT.pack(known[item]))
            continue
        known[item] = len(known) + 2
        parts.append(bytes((_STRING_RECORD,)) + _INT.pack(known[item]) + _counted(item))
    parts.append(_nulls(nulls))
    return b"".join(parts)


def _nulls(count: int) -> bytes:
    if count <= 1:
        return bytes((_NULL,)) * count
    return bytes((_NULLS_256, count)) if count < 256 else bytes((_NULLS,)) + _INT.pack(count)


def _value(value: Any, kind: SimpleType) -> bytes:
    if kind.name == "char":
        return str(value).encode()
    if kind.name == "decimal":
        return _counted(decimal_text(value))
    if kind.name == "datetime":
        return _LAYOUTS[_DATETIME].pack(to_ticks(value) | _kind_of(value) << 62)
    if kind.name == "timespan":
        return _LAYOUTS[_TIMESPAN].pack(span_ticks(value))
    return _LAYOUTS[kind.code].pack(value)


def _kind_of(value: Any) -> int:
    """Return the DateTimeKind of a datetime. Raises BodyError for a time zone other than UTC: .NET would
    interpret the time in its own local zone.
    """
    if value.tzinfo is None:
        return 0
    if value.utcoffset():
        raise BodyError(
            f"the formatter binary can write a time in UTC or without a zone only, not {value.isoformat()}"
        )
    return _KIND_UTC


def _counted(text: str) -> bytes:
    data = text.encode()
    size, head = len(data), bytearray()
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head) + data
