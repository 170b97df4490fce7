"""The decoder of staged Arrow streams beside pyarrow, and arrays whose lengths and offsets lie."""

from __future__ import annotations

import io
import struct
import tracemalloc
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast._native.arrowcolumn import Column, fixed, gather, integers, places, strings, views
from msmq_fast._native.stagecodec import Destination, RowBuilder
from msmq_fast.bulk.ipc import MessageCutter
from msmq_fast.bulk.stagedecode import Rows, StageDecoder
from msmq_fast.packet import Message

TEXTS = st.one_of(
    st.none(), st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20)
)
BYTES = st.one_of(st.none(), st.binary(max_size=20))
NUMBERS = st.one_of(st.none(), st.integers(0, 7))
TEXT_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.uint16(), pa.large_string()),
]
BYTE_TYPES = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int32(), pa.binary())]
NUMBER_TYPES = [
    pa.int8(),
    pa.uint8(),
    pa.int16(),
    pa.uint16(),
    pa.int32(),
    pa.uint32(),
    pa.int64(),
    pa.uint64(),
]
# Three rows of columns that nothing is taken from: their buffers have to be counted all the same.
STRANGE = [
    *(
        pa.nulls(3, kind)
        for kind in (
            pa.null(),
            pa.list_(pa.struct([("a", pa.int8()), ("b", pa.string_view())])),
            pa.map_(pa.string(), pa.int64()),
            pa.list_(pa.float32(), 3),
            pa.large_list(pa.bool_()),
            pa.list_view(pa.int8()),
            pa.decimal128(10, 2),
            pa.dictionary(pa.int8(), pa.string()),
            pa.binary_view(),
            pa.timestamp("us"),
            pa.run_end_encoded(pa.int32(), pa.string()),
        )
    ),
    pa.UnionArray.from_dense(
        pa.array([0, 1, 0], pa.int8()),
        pa.array([0, 0, 1], pa.int32()),
        [pa.array([1, 2], pa.int8()), pa.array(["x"])],
    ),
    pa.UnionArray.from_sparse(pa.array([0, 0, 0], pa.int8()), [pa.array([1, 2, 3], pa.int8())]),
]


def stream(batches: list[pa.RecordBatch]) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return out.getvalue()


def decoded(data: bytes, *, strict: bool = True) -> list[Rows]:
    cutter, decoder = MessageCutter(), StageDecoder(strict=strict)
    messages = list(cutter.feed(data))
    assert cutter.schema is not None
    decoder.check_schema(cutter.schema)
    return [rows for message in messages for rows in decoder.decode(message)]


def packets(rows: Rows) -> list[Message]:
    """The messages of rows, each sent to its queue's place."""
    here = [
        Destination(bytes(16), 7, b"\4\0a\0\0\0\0\0", False, lambda _: (7, b""), True) for _ in rows.queues
    ]
    builder = RowBuilder(bytes(16), 60, {"body_type": 0})
    return [
        Message.from_packet(packet)
        for packet in builder.build(rows.count, rows.columns, 0, here, rows.targets)
    ]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_values_of_every_type_are_those_that_pyarrow_has(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 12))
    drawn = {
        "body": (data.draw(st.lists(BYTES, min_size=count, max_size=count)), st.sampled_from(BYTE_TYPES)),
        "label": (data.draw(st.lists(TEXTS, min_size=count, max_size=count)), st.sampled_from(TEXT_TYPES)),
        "queue": (data.draw(st.lists(TEXTS, min_size=count, max_size=count)), st.sampled_from(TEXT_TYPES)),
        "extension": (
            data.draw(st.lists(BYTES, min_size=count, max_size=count)),
            st.sampled_from(BYTE_TYPES),
        ),
        "priority": (
            data.draw(st.lists(NUMBERS, min_size=count, max_size=count)),
            st.sampled_from(NUMBER_TYPES),
        ),
    }
    columns = {name: pa.array(values, data.draw(kinds)) for name, (values, kinds) in drawn.items()}
    names = data.draw(st.permutations(list(columns)))
    start = data.draw(st.integers(0, count))
    batch = pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)
    parts = decoded(stream([batch.slice(0, start), batch.slice(start)]))
    found = [
        (message.body, message.label, message.extension, message.priority, rows.queues[rows.places[row]])
        for rows in parts
        for row, message in enumerate(packets(rows))
    ]
    wanted = [
        (
            row["body"] or b"",
            row["label"] or "",
            row["extension"] or b"",
            3 if row["priority"] is None else row["priority"],
            row["queue"],
        )
        for row in batch.to_pylist()
    ]
    assert found == wanted


def test_columns_that_nothing_is_taken_from_do_not_shift_the_others() -> None:
    texts = ["a long text that stands in a buffer", "x", ""]
    shared = pa.array(texts, pa.string_view())
    names = [f"other {number}" for number in range(len(STRANGE))]
    for before in range(len(STRANGE)):
        arrays = [*STRANGE[: before + 1], shared, pa.array([b"1", b"22", b"333"]), *STRANGE[before + 1 :]]
        columns = [*names[: before + 1], "label", "body", *names[before + 1 :]]
        (found,) = decoded(stream([pa.RecordBatch.from_arrays(arrays, names=columns)]), strict=False)
        assert [message.body for message in packets(found)] == [b"1", b"22", b"333"]
        assert [message.label for message in packets(found)] == texts


def test_a_dictionary_may_be_replaced_but_not_added_to() -> None:
    def coded(words: list[str]) -> pa.RecordBatch:
        column = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(words))
        return pa.RecordBatch.from_arrays([column], names=["body"])

    found = decoded(stream([coded(["a", "b"]), coded(["c", "d"])]))
    assert [message.body for rows in found for message in packets(rows)] == [b"a", b"b", b"c", b"d"]
    out = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_stream(out, coded(["a", "b"]).schema, options=options) as writer:
        writer.write_batch(coded(["a", "b"]))
        writer.write_batch(coded(["a", "b", "c"]))
    with pytest.raises(ValueError, match="write each dictionary as a whole"):
        decoded(out.getvalue())


# ---- arrays that lie


def view(size: int, buffer: int = 0, start: int = 0) -> bytes:
    return struct.pack("<i4sii", size, b"YYYY", buffer, start)


@pytest.mark.parametrize("size", [-1, -3000, -4096, -(1 << 31)])
def test_a_null_row_with_a_view_of_negative_length_overflows_nothing(size: int) -> None:
    """pyarrow's cast of such a column wrote behind its buffer."""
    count, text = 100, b"Y" * 40
    content = view(size) + view(40) * count
    validity = (((1 << (count + 1)) - 1) & ~1).to_bytes(16, "little")
    arrays = [pa.py_buffer(validity), pa.py_buffer(content), pa.py_buffer(text)]
    body = pa.Array.from_buffers(pa.binary_view(), count + 1, arrays, null_count=1)
    (rows,) = decoded(stream([pa.RecordBatch.from_arrays([body], names=["body"])]))
    assert [message.body for message in packets(rows)] == [b""] + [text] * count


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: views("text", 1, None, view(-1), [b"x" * 40], 100), "negative length"),
        (lambda: views("text", 1, None, view(40, 1), [b"x" * 40], 100), "refers to a missing buffer"),
        (lambda: views("text", 1, None, view(40, -1), [b"x" * 40], 100), "refers to a missing buffer"),
        (lambda: views("text", 1, None, view(40, 0, 1), [b"x" * 40], 100), "exceeds its buffer"),
        (lambda: views("text", 1, None, view(40, 0, -1), [b"x" * 80], 100), "exceeds its buffer"),
        (lambda: views("text", 2, None, view(4), [], 100), "too short"),
        (lambda: views("text", 9, bytes(1), view(4) * 9, [], 100), "bitmap"),
        (lambda: strings("text", 1, None, struct.pack("<qq", 0, 1 << 40), b"x", True), "exceed its data"),
        (lambda: strings("text", 1, None, struct.pack("<qq", -1, 1), b"x", True), "exceed its data"),
        (lambda: strings("text", 1, None, struct.pack("<qq", 0, 2), b"x", True), "exceed its data"),
        (lambda: strings("text", 2, None, struct.pack("<qqq", 0, 1, 0), b"x", True), "decrease"),
        (lambda: strings("text", 2, None, struct.pack("<qq", 0, 1), b"x", True), "too short"),
        (lambda: fixed("binary", 3, None, bytes(8), 3), "too short"),
        (lambda: fixed("binary", 1 << 20, None, bytes(8), 1 << 20), "too long"),
        (lambda: integers(3, None, bytes(5), 2, True), "too short"),
        (lambda: integers(1, None, bytes(8), 3, True), "3 bytes"),
        (lambda: integers(1, None, b"\xff" * 8, 8, False), "does not fit into a signed"),
        (lambda: gather(number(2), text(2), 100), "out of range"),
        (lambda: gather(number(-1), text(2), 100), "out of range"),
        (lambda: gather(text(1), text(1), 100), "integers"),
        (lambda: places(number(1), True), "texts"),
        (lambda: places(Column("text", 1, 0, None, struct.pack("<ii", 0, 1), b"\xff"), False), "utf-8"),
        (lambda: text(2).slice(1, 2), "exceeds its column"),
        (lambda: text(2).slice(3, 0), "exceeds its column"),
    ],
)
def test_arrays_that_lie_are_refused(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def number(value: int) -> Column:
    return Column("int", 1, 0, None, struct.pack("<q", value), None)


def text(count: int) -> Column:
    return Column("text", count, 0, None, struct.pack(f"<{count + 1}i", *range(count + 1)), b"x" * count)


def test_rows_that_share_bytes_are_counted_each() -> None:
    shared = [b"x" * 40]
    with pytest.raises(OverflowError, match="80"):
        views("text", 2, None, view(40) * 2, shared, 79)
    assert views("text", 2, None, view(40) * 2, shared, 80).nbytes == 80
    with pytest.raises(OverflowError, match="2"):
        gather(Column("int", 2, 0, None, bytes(16), None), text(1), 1)


@pytest.mark.parametrize("step", [1, 7, 4096, 16 << 10, 100_000])
def test_a_stream_in_any_steps_has_the_same_bodies_and_takes_little_more_memory(step: int) -> None:
    data = stream([pa.record_batch({"body": pa.array([b"x" * 1000] * 100), "label": ["L"] * 100})] * 2)
    whole = [message.body() for message in MessageCutter().feed(data)]
    cutter, found = MessageCutter(), []
    tracemalloc.start()
    try:
        for at in range(0, len(data), step):
            found += [message.body() for message in cutter.feed(data[at : at + step])]
        assert tracemalloc.get_traced_memory()[1] < 3 * len(data)
    finally:
        tracemalloc.stop()
    assert cutter.ended
    assert found == whole
