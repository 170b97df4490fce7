"""The schema of an Arrow IPC stream: its columns, and the position of each in a record batch.

A record batch lists, depth first in the order of the schema, a node (number of rows, number of nulls) for
each array, and the buffers of each array. To find the node and the buffers of one column, the layouts of all
columns before it must be known:

1. `read_schema` walks the fields once and counts nodes and buffers before each top-level column.
2. The number of buffers of a view type differs from batch to batch (`variadicBufferCounts`), so columns of
   view types are counted separately.
3. `BatchBuffers.take` returns the buffers of a column in one batch.

All functions raise ValueError if the metadata are damaged or larger than allowed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from msmq_fast.bulk.flatbuffer import Table
from msmq_fast.bulk.ipc import StreamMessage
from msmq_fast.packet.malformed import Malformed

__all__ = ["BatchBuffers", "Field", "read_schema"]

# Places of fields in their tables.
_ENDIANNESS, _FIELDS = 0, 1  # Schema
_NAME, _TYPE_TYPE, _TYPE, _DICTIONARY, _CHILDREN = 0, 2, 3, 4, 5  # Field
_BIT_WIDTH, _SIGNED = 0, 1  # Int
_BYTE_WIDTH = 0  # FixedSizeBinary
_MODE = 0  # Union
_ID, _INDEX_TYPE = 0, 1  # DictionaryEncoding
_NODES, _BUFFERS, _VARIADIC = 1, 2, 4  # RecordBatch

_NULL, _INT, _BINARY, _UTF8, _UNION, _FIXED = 1, 2, 4, 5, 14, 15  # Type
_LARGE_BINARY, _LARGE_UTF8, _RUN_END, _BINARY_VIEW, _UTF8_VIEW = 19, 20, 22, 23, 24
_LIST_VIEW, _LARGE_LIST_VIEW, _STRUCT, _FIXED_LIST = 25, 26, 13, 16

_OTHERS: Final = {
    **{1: "null", 3: "floating point", 6: "bool", 7: "decimal", 8: "date", 9: "time", 10: "timestamp"},
    **{11: "interval", 12: "list", 13: "struct", 14: "union", 16: "fixed size list", 17: "map"},
    **{18: "duration", 21: "large list", 22: "run end encoded", 25: "list view", 26: "large list view"},
}
_STRINGS: Final = {
    _BINARY: "binary",
    _UTF8: "string",
    _LARGE_BINARY: "large_binary",
    _LARGE_UTF8: "large_string",
    _BINARY_VIEW: "binary_view",
    _UTF8_VIEW: "string_view",
}
# Buffers of an array of each type, without those of its children; types that are not here have two.
_OF_TYPE: Final = {
    **dict.fromkeys((_NULL, _RUN_END), 0),
    **dict.fromkeys((_STRUCT, _FIXED_LIST), 1),
    **dict.fromkeys((_BINARY, _UTF8, _LARGE_BINARY, _LARGE_UTF8, _LIST_VIEW, _LARGE_LIST_VIEW), 3),
}
_MOST_FIELDS: Final = 1 << 18  # children included: offsets may lead to one table again and again
_DEEPEST: Final = 32
_LAST_TYPE: Final = 26


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or the values of a dictionary. `kind` is "int", "text", "binary" or "null"; "" for an Arrow
    type that is not supported. `type` is the name of the Arrow type for people.
    """

    name: str
    type: str
    kind: str
    width: int = 0  # bytes of an integer or of each row of a fixed size binary
    signed: bool = False
    large: bool = False  # offsets of 64 bits
    view: bool = False
    fixed: bool = False  # each row has `width` bytes
    node: int = 0  # its place among the nodes of a batch,
    buffer: int = 0  # among the buffers, without the variadic ones before it,
    variadic: int = 0  # and how many columns before it have variadic buffers
    dictionary: int | None = (
        None  # id; the values are then `values`, and the fields above speak of the indices
    )
    values: Field | None = None


class _Walk:
    """Counts the nodes and buffers before each column."""

    def __init__(self) -> None:
        self.fields = self.nodes = self.buffers = self.variadic = 0

    def enter(self, field: Table, depth: int) -> None:
        """Count one array and its children."""
        self.fields += 1
        if self.fields > _MOST_FIELDS or depth > _DEEPEST:
            raise Malformed("the Arrow schema has too many fields")
        kind = field.number("<B", _TYPE_TYPE)
        if not 1 <= kind <= _LAST_TYPE:
            raise Malformed(f"the Arrow schema has a field of the unknown type number {kind}")
        self.nodes += 1
        if field.has(_DICTIONARY):
            self.buffers += 2
            return  # the children are those of the dictionary
        self.buffers += _buffers_of(field, kind)
        self.variadic += kind in (_BINARY_VIEW, _UTF8_VIEW)
        for child in field.tables(_CHILDREN):
            self.enter(child, depth + 1)


def _buffers_of(field: Table, kind: int) -> int:
    if kind == _UNION:  # types, and offsets if it is dense
        return 1 + (field.table(_TYPE).number("<h", _MODE) == 1)
    return _OF_TYPE.get(kind, 2)


def read_schema(schema: Table) -> list[Field]:
    """Return the columns of a Schema table. Raises ValueError."""
    if schema.number("<h", _ENDIANNESS):
        raise Malformed("the Arrow stream is big-endian: write it little-endian")
    walk, found = _Walk(), []
    for field in schema.tables(_FIELDS):
        node, buffer, variadic = walk.nodes, walk.buffers, walk.variadic
        walk.enter(field, 0)
        found.append(_field(field, node, buffer, variadic))
    return found


def _field(table: Table, node: int, buffer: int, variadic: int) -> Field:
    name = table.text(_NAME)
    plain = _plain(table, name)
    if table.has(_DICTIONARY):
        encoding = table.table(_DICTIONARY)
        width, signed = _int(encoding.table(_INDEX_TYPE)) if encoding.has(_INDEX_TYPE) else (4, True)
        plain = Field(
            name,
            f"dictionary of {plain.type}",
            plain.kind,
            width,
            signed,
            dictionary=encoding.number("<q", _ID),
            values=plain,
        )
    return replace(plain, node=node, buffer=buffer, variadic=variadic)


def _plain(table: Table, name: str) -> Field:
    """Return the column as if it had no dictionary, without its position in a batch."""
    number = table.number("<B", _TYPE_TYPE)
    if number == _INT:
        width, signed = _int(table.table(_TYPE))
        return Field(name, f"{'' if signed else 'u'}int{8 * width}", "int", width, signed)
    if number == _FIXED:
        width = table.table(_TYPE).number("<i", _BYTE_WIDTH)
        if width < 0:
            raise Malformed("the Arrow schema has a negative fixed size")
        return Field(name, f"fixed_size_binary[{width}]", "binary", width, fixed=True)
    if number in _STRINGS:
        return Field(
            name,
            _STRINGS[number],
            "text" if number in (_UTF8, _LARGE_UTF8, _UTF8_VIEW) else "binary",
            large=number in (_LARGE_BINARY, _LARGE_UTF8),
            view=number in (_BINARY_VIEW, _UTF8_VIEW),
        )
    return Field(name, _OTHERS.get(number, f"number {number}"), "null" if number == _NULL else "")


def _int(kind: Table) -> tuple[int, bool]:
    """Return (size in bytes, whether it is signed) of an integer type."""
    bits = kind.number("<i", _BIT_WIDTH)
    if bits not in (8, 16, 32, 64):
        raise Malformed(f"the Arrow schema has integers of {bits} bits")
    return bits // 8, bool(kind.number("<B", _SIGNED))


class BatchBuffers:
    """The buffers of one record batch, each of them inside the body of its message."""

    def __init__(self, message: StreamMessage) -> None:
        self._body = memoryview(message.body())
        self._batch = message.batch
        self._rows = message.rows

    def has_nulls(self, field: Field) -> bool:
        """Return whether the batch declares nulls in the column."""
        rows, nulls = self._batch.row(_NODES, "<qq", field.node)
        if rows != self._rows or not 0 <= nulls <= rows:
            raise Malformed(
                f"the column {field.name} has {rows} rows, {nulls} of them null, in a batch of {self._rows}"
            )
        return nulls > 0

    def take(self, field: Field, count: int) -> list[memoryview]:
        """Return the first `count` buffers of a column, followed by its variadic buffers if the column has a
        view type.
        """
        counts = self._batch.numbers(_VARIADIC, field.variadic + field.view)
        if any(number < 0 for number in counts):
            raise Malformed("the metadata of an Arrow message is damaged")
        first = field.buffer + sum(counts[: field.variadic])
        last = first + count + (counts[field.variadic] if field.view else 0)
        return [self._slice(*self._batch.row(_BUFFERS, "<qq", index)) for index in range(first, last)]

    def _slice(self, offset: int, length: int) -> memoryview:
        if offset < 0 or length < 0 or offset + length > len(self._body):
            raise Malformed("a buffer of an Arrow array is outside its message")
        return self._body[offset : offset + length]
