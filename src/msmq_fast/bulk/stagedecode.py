"""Decodes record batches to the columns from which native code builds packets. Runs on a worker thread and
does not access queues.

The bytes come from any caller that may send. They never reach pyarrow, whose kernels rely on properties that
it does not check (in a cast, a null row with a view of negative length overflowed a buffer): `ipc` bounds the
messages, `ipcschema` finds the buffers of a column inside its message, and `_native.arrowcolumn` checks every
length and offset in the buffers. Arrow types with the same meaning, such as text with offsets of 32 and 64
bits, are converted to one type.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from msmq_fast._native.arrowcolumn import Column, fixed, gather, integers, places, strings, views
from msmq_fast.bulk.flatbuffer import Table
from msmq_fast.bulk.ipc import MOST_MESSAGE_BYTES, StreamMessage
from msmq_fast.bulk.ipcschema import BatchBuffers, read_schema
from msmq_fast.bulk.ipcschema import Field as ArrowField
from msmq_fast.packet.malformed import Malformed
from msmq_fast.protocol.columns import DELIVERY_SEQUENCE, MESSAGE_COLUMNS, OLD_NAMES

__all__ = ["Rows", "StageDecoder"]

_NUMBERS: Final = (
    "priority",
    "app_specific",
    "body_type",
    "time_to_reach_queue",
    "time_to_be_received",
    "delivery",
    "acknowledge",
    "journal",
)
_BINARIES: Final = ("correlation_id", "extension")
_TEXTS: Final = ("label", "message_id")
_NAMES: Final = ("queue", "response_queue", "admin_queue")
_TAKEN: Final = frozenset((*_NUMBERS, *_BINARIES, *_TEXTS, *_NAMES, "body"))
_PASSED_OVER: Final = frozenset(column.name for column in (*MESSAGE_COLUMNS, DELIVERY_SEQUENCE)) - _TAKEN

_SLICE_ROWS: Final = 4096
_SLICE_BYTES: Final = 1 << 20


@dataclass(slots=True)
class Rows:
    """Rows that become packets together.

    `queues` is a list of queue names, and `targets` holds, for each row, the index of its destination in
    `queues`. If `targets` is None, all rows go to the default queue. In the same way, `responses` holds
    indices into `response_names`, and `admins` into `admin_names`. A name of None stands for rows that give
    no name.
    """

    first: int  # number of the first row in its stream
    count: int
    columns: dict[str, Column] = field(default_factory=dict)
    targets: Column | None = None
    places: array[int] | memoryview = field(default_factory=lambda: array("I"))  # the same, for each row
    queues: list[str | None] = field(default_factory=lambda: [None])
    responses: Column | None = None
    response_names: list[str | None] = field(default_factory=list)
    admins: Column | None = None
    admin_names: list[str | None] = field(default_factory=list)

    def row_of(self, place: int) -> int:
        """Return the number, within the whole stream, of the first row whose queue is `queues[place]`."""
        return self.first + next((row for row, one in enumerate(self.places) if one == place), 0)


class StageDecoder:
    """Decodes the messages of one stream. Every method raises ValueError with one line that names the
    mistake.
    """

    def __init__(self, *, strict: bool) -> None:
        """`strict`: an unknown column is an error."""
        self._strict = strict
        self._fields: list[ArrowField] = []  # those that a message takes
        self._dictionaries: dict[int, ArrowField] = {}  # the values of each
        self._values: dict[int, Column] = {}
        self._rows = 0

    def check_schema(self, schema: Table) -> None:
        """Check the names and types of the columns. Call this once, before `decode`."""
        seen: set[str] = set()  # a stream may have a hundred thousand columns
        for arrow in read_schema(schema):
            name = OLD_NAMES.get(arrow.name, arrow.name)
            if name in seen:
                raise Malformed(f"the column {name[:100]!r} occurs twice")
            seen.add(name)
            if name in _TAKEN:
                if arrow.kind != "null":
                    self._fields.append(_typed(replace(arrow, name=name)))
            elif self._strict and name not in _PASSED_OVER:
                known = ", ".join(sorted(_TAKEN))
                raise Malformed(f"unknown column {name[:100]!r}; known columns: {known}")
        if "body" not in seen:
            raise Malformed("the column body is missing: every message needs a body")
        for arrow in self._fields:
            if arrow.dictionary is not None and arrow.values is not None:
                known_as = self._dictionaries.setdefault(arrow.dictionary, arrow.values)
                if known_as.type != arrow.values.type or known_as.kind != arrow.values.kind:
                    raise Malformed(f"the dictionary of column {arrow.name} has two types")

    def decode(self, message: StreamMessage) -> Iterator[Rows]:
        """Yield the rows of a record batch, in pieces. If `message` is a dictionary, store it and yield
        nothing.
        """
        buffers = BatchBuffers(message)
        if message.dictionary is not None:
            values = self._dictionaries.get(message.dictionary)
            if values is not None:  # the others are of columns that no message takes
                self._values[message.dictionary] = _array(values, buffers, message.rows, MOST_MESSAGE_BYTES)
            return
        columns, size = self._columns(buffers, message.rows)
        step = min(_SLICE_ROWS, max(1, message.rows * _SLICE_BYTES // max(size, 1)))
        for start in range(0, message.rows, step):
            yield self._piece(columns, start, min(step, message.rows - start))

    def _columns(self, buffers: BatchBuffers, rows: int) -> tuple[dict[str, Column], int]:
        """Return (columns of a batch by name, size of their rows in bytes).

        A dictionary or a view may repeat the same bytes in every row, so that a small message could expand
        until the memory is full: the expanded size is limited.
        """
        columns: dict[str, Column] = {}
        size = 8 * rows
        for arrow in self._fields:
            try:
                column = self._column(arrow, buffers, rows, MOST_MESSAGE_BYTES - size)
            except OverflowError as problem:
                raise Malformed(
                    f"rows from {self._rows}: the values of column {arrow.name}, which rows share, have "
                    f"{problem} bytes if repeated for each row: {MOST_MESSAGE_BYTES} is the limit, "
                    "use smaller batches"
                ) from None
            except ValueError as problem:
                raise Malformed(f"rows from {self._rows}: column {arrow.name}: {problem}") from None
            columns[arrow.name] = column
            size += column.nbytes
        return columns, size

    def _column(self, arrow: ArrowField, buffers: BatchBuffers, rows: int, most: int) -> Column:
        if arrow.dictionary is None:
            return _array(arrow, buffers, rows, most)
        values = self._values.get(arrow.dictionary)
        if values is None:
            raise Malformed("its dictionary is missing in the stream")
        bits, numbers = buffers.take(arrow, 2)
        return gather(
            integers(rows, _validity(buffers, arrow, bits), numbers, arrow.width, arrow.signed), values, most
        )

    def _piece(self, columns: dict[str, Column], start: int, count: int) -> Rows:
        rows = Rows(self._rows, count)
        self._rows += count
        for name, whole in columns.items():
            column = whole.slice(start, count)
            if name not in _NAMES:
                rows.columns[name] = column
                continue
            try:
                numbers, names, each = places(column, name == "queue")
            except ValueError as problem:
                raise Malformed(f"in the rows from row {rows.first} on, column {name}: {problem}") from None
            if name == "queue":
                rows.targets, rows.queues, rows.places = numbers, names, each
            elif name == "response_queue":
                rows.responses, rows.response_names = numbers, names
            else:
                rows.admins, rows.admin_names = numbers, names
        if not rows.places:
            rows.places = array("I", bytes(4 * count))
        return rows


def _typed(arrow: ArrowField) -> ArrowField:
    """Return the column if its values have the type that a message needs; a column of bytes is accepted for
    texts and becomes one of texts. Raises ValueError otherwise.
    """
    if arrow.dictionary is not None and not arrow.kind:
        raise Malformed(
            f"column {arrow.name} of type {arrow.type}: a dictionary holds texts, bytes or whole numbers"
        )
    wanted: tuple[str, ...] = ("binary", "text")
    words = "texts are needed"
    if arrow.name in _NUMBERS:
        wanted, words = ("int",), "whole numbers are needed"
    elif arrow.name in _BINARIES:
        wanted, words = ("binary",), "bytes are needed"
    if arrow.kind not in wanted:
        words = "texts or bytes are needed" if arrow.name == "body" else words
        raise Malformed(f"column {arrow.name} of type {arrow.type}: {words}")
    if arrow.name not in (*_TEXTS, *_NAMES):
        return arrow
    values = None if arrow.values is None else replace(arrow.values, kind="text")
    return replace(arrow, kind="text", values=values)


def _validity(buffers: BatchBuffers, arrow: ArrowField, bits: memoryview) -> memoryview | None:
    """Return the validity bitmap; None if the column has no nulls."""
    return bits if buffers.has_nulls(arrow) else None


def _array(arrow: ArrowField, buffers: BatchBuffers, rows: int, most: int) -> Column:
    """Return the values of a column that has no dictionary."""
    if arrow.kind == "int" or arrow.fixed:
        bits, values = buffers.take(arrow, 2)
        validity = _validity(buffers, arrow, bits)
        if arrow.fixed:
            return fixed(arrow.kind, rows, validity, values, arrow.width)
        return integers(rows, validity, values, arrow.width, arrow.signed)
    if arrow.view:
        bits, values, *shared = buffers.take(arrow, 2)
        return views(arrow.kind, rows, _validity(buffers, arrow, bits), values, [*shared], most)
    bits, offsets, data = buffers.take(arrow, 3)
    return strings(arrow.kind, rows, _validity(buffers, arrow, bits), offsets, data, arrow.large)
