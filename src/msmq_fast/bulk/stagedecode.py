"""Record batches to the columns that native code makes packets of. Runs on a worker thread, knows no queues.

pyarrow checks what came before anything else looks at it; types that say the same are made one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from msmq_fast._native.stagecodec import Column
from msmq_fast.bulk.arrow import arrow
from msmq_fast.bulk.ipc import MOST_MESSAGE_BYTES, BatchMessage
from msmq_fast.bulk.schema import DELIVERY_SEQUENCE, MESSAGE_COLUMNS

__all__ = ["Rows", "StageDecoder"]

_NUMBERS: Final = (
    "priority",
    "app_specific",
    "body_type",
    "ttrq_seconds",
    "ttbr_seconds",
    "delivery",
    "acknowledge",
    "journal",
)
_BINARIES: Final = ("correlation_id", "extension")
_TEXTS: Final = ("label", "message_id")
_NAMES: Final = ("queue", "resp_format_name", "admin_format_name")
_TAKEN: Final = frozenset((*_NUMBERS, *_BINARIES, *_TEXTS, *_NAMES, "body"))
_PASSED_OVER: Final = frozenset(column.name for column in (*MESSAGE_COLUMNS, DELIVERY_SEQUENCE)) - _TAKEN

_SLICE_ROWS: Final = 4096
_SLICE_BYTES: Final = 1 << 20


@dataclass(slots=True)
class Rows:
    """Rows that become packets together; `queues` are the names of which `targets` holds places (None: all
    rows go where rows without a name go), and so on. A name of None stands for rows without.
    """

    first: int  # number of the first row in its stream
    count: int
    columns: dict[str, Column] = field(default_factory=dict)
    targets: Column | None = None
    places: array[int] | memoryview = field(default_factory=lambda: array("I"))  # the same, for each row
    queues: list[str | None] = field(default_factory=lambda: [None])
    responses: Column | None = None
    response_names: list[str] = field(default_factory=list)
    admins: Column | None = None
    admin_names: list[str] = field(default_factory=list)

    def row_of(self, place: int) -> int:
        """The number in its stream of the first row for a queue."""
        return self.first + next((row for row, one in enumerate(self.places) if one == place), 0)


class StageDecoder:
    """Decodes the record batches of one stream. Every call raises ValueError, one line that says what is
    wrong.
    """

    def __init__(self, *, strict: bool) -> None:
        """`strict`: a column that is of no message is a mistake. ArrowMissing."""
        self._arrow = arrow()
        self._strict = strict
        self._columns: list[int] | None = None
        self._rows = 0

    def check_schema(self, prefix: bytes) -> None:
        """Look at the names of the columns; to be called when the schema has come."""
        with self._faults(), self._arrow.ipc.open_stream(self._arrow.py_buffer(prefix)) as stream:
            names: list[str] = list(stream.schema.names)
        seen: set[str] = set()  # a stream may have a hundred thousand columns
        for name in names:
            if name in seen:
                raise ValueError(f"the column {name[:100]!r} comes twice")
            seen.add(name)
            if self._strict and name not in _TAKEN and name not in _PASSED_OVER:
                known = ", ".join(sorted(_TAKEN))
                raise ValueError(f"unknown column {name[:100]!r}; a message takes {known}")
        if "body" not in names:
            raise ValueError("there is no column body: rows without one are no messages")
        self._columns = [index for index, name in enumerate(names) if name in _TAKEN]

    def decode(self, message: BatchMessage) -> Iterator[Rows]:
        """A record batch, in pieces."""
        pa = self._arrow
        options = pa.ipc.IpcReadOptions(included_fields=self._columns)
        with self._faults():
            with pa.ipc.open_stream(pa.py_buffer(message.stream), options=options) as stream:
                batch = stream.read_next_batch()
            batch.validate(full=True)
        batch, size = self._bounded(batch)
        step = min(_SLICE_ROWS, max(1, batch.num_rows * _SLICE_BYTES // max(batch.nbytes, size, 1)))
        for start in range(0, batch.num_rows, step):
            yield self._piece(batch.slice(start, step))

    def _bounded(self, batch: Any) -> tuple[Any, int]:
        """The batch without types that only lend a name to others, and how many bytes its columns have when
        each row has its own.

        A dictionary or a view may show the same bytes in every row: a small message would fill the memory.
        """
        pa = self._arrow
        columns = [_unnamed(pa, values) for values in batch.columns]
        size = 0
        for name, values in zip(batch.schema.names, columns, strict=True):
            try:
                size += _spread(pa, values)
            except (pa.ArrowException, TypeError) as problem:
                raise ValueError(
                    f"rows from {self._rows}: column {name} of type {values.type}: {_line(problem)}"
                ) from None
        if size > MOST_MESSAGE_BYTES:
            raise ValueError(
                f"rows from {self._rows}: the texts of their dictionaries have {size} bytes, each as often "
                f"as it is used: {MOST_MESSAGE_BYTES} is the limit, use smaller batches"
            )
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names), size

    def _piece(self, batch: Any) -> Rows:
        rows = Rows(self._rows, batch.num_rows)
        self._rows += rows.count
        pa = self._arrow
        for name, values in zip(batch.schema.names, batch.columns, strict=True):
            if pa.types.is_null(values.type):
                continue
            try:
                self._take(rows, name, values)
            except (pa.ArrowException, TypeError) as problem:
                raise ValueError(
                    f"rows from {rows.first}: column {name} of type {values.type}: {_line(problem)}"
                ) from None
        if not rows.places:
            rows.places = array("I", bytes(4 * rows.count))
        return rows

    def _take(self, rows: Rows, name: str, values: Any) -> None:
        pa = self._arrow
        if pa.types.is_dictionary(values.type) and name not in _NAMES:
            values = values.dictionary_decode()
        if name == "body":
            text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
            kind, wanted = ("text", pa.string()) if text else ("binary", pa.binary())
            rows.columns[name] = _column(values.cast(wanted), kind)
        elif name in _NUMBERS:
            if not pa.types.is_integer(values.type):
                raise TypeError("whole numbers are needed")
            rows.columns[name] = _column(values.cast(pa.int64()), "int")
        elif name in _BINARIES:
            if pa.types.is_string(values.type):
                raise TypeError("bytes are needed")
            rows.columns[name] = _column(values.cast(pa.binary()), "binary")
        elif name in _TEXTS:
            rows.columns[name] = _column(values.cast(pa.string()), "text")
        elif name == "queue":
            rows.targets, rows.queues, rows.places = self._named(values, missing=True)
        elif name == "resp_format_name":
            rows.responses, rows.response_names, _ = self._named(values)
        else:
            rows.admins, rows.admin_names, _ = self._named(values)

    def _named(self, values: Any, *, missing: bool = False) -> tuple[Column, list[Any], memoryview]:
        """Places, and the names that they stand for; `missing`: no name has a place too."""
        pa = self._arrow
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        encoded = values.cast(pa.string()).dictionary_encode("encode" if missing else "mask")
        numbers = encoded.indices.cast(pa.uint32()) if missing else None
        places = memoryview(b"")
        if numbers is not None:
            places = memoryview(numbers.buffers()[1]).cast("I")
            places = places[numbers.offset : numbers.offset + len(numbers)]
        return _column(encoded.indices.cast(pa.int64()), "int"), encoded.dictionary.to_pylist(), places

    def _faults(self) -> _Faults:
        return _Faults(self._arrow.ArrowException)


class _Faults:
    """What pyarrow finds wrong with a stream becomes a ValueError."""

    def __init__(self, kind: type[Exception]) -> None:
        self._kinds = (kind, OSError, StopIteration, MemoryError, UnicodeDecodeError)

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, problem: BaseException | None, __: object) -> None:
        if isinstance(problem, self._kinds):
            raise ValueError(f"the Arrow stream is damaged: {_line(problem)}") from None


def _unnamed(pa: Any, values: Any) -> Any:
    """The values of an extension type as what they are stored as."""
    while isinstance(values, pa.ExtensionArray):
        values = values.storage
    return values


def _spread(pa: Any, values: Any) -> int:
    """Bytes of the texts of a column whose rows may share them, counted for each row; 0 where none can.

    TypeError: a dictionary of something else than texts, bytes or numbers.
    """
    kind = values.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        if not (_is_text(pa, kind) or pa.types.is_primitive(kind) or pa.types.is_null(kind)):
            raise TypeError("a dictionary holds texts, bytes or numbers")
        if not _is_text(pa, kind):
            return 0
        from pyarrow import compute

        lengths = compute.binary_length(values.dictionary).cast(pa.int64())
        return compute.sum(lengths.take(values.indices)).as_py() or 0
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        views = memoryview(values.buffers()[1]).cast("B").cast("i")  # four numbers each: the length first
        lengths = views[4 * values.offset : 4 * (values.offset + len(values)) : 4]
        return sum(
            length for length, there in zip(lengths, values.is_valid().to_pylist(), strict=True) if there
        )
    return 0


def _is_text(pa: Any, kind: Any) -> bool:
    types = pa.types
    return any(
        check(kind)
        for check in (
            types.is_string,
            types.is_binary,
            types.is_large_string,
            types.is_large_binary,
            types.is_fixed_size_binary,
        )
    )


def _line(problem: BaseException) -> str:
    return (str(problem).splitlines() or [type(problem).__name__])[0][:300]


def _column(values: Any, kind: str) -> Column:
    buffers = values.buffers()
    data = None if kind == "int" else buffers[2]
    return Column(kind, len(values), values.offset, buffers[0], buffers[1], data)
