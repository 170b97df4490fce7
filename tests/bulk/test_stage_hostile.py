"""Arrow streams that lie: sizes, dictionaries, changed bytes, very many columns and queues."""

from __future__ import annotations

import struct
import tracemalloc
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from msmq_fast._native.arrowcolumn import Column
from msmq_fast._native.stagecodec import Destination, RowBuilder
from msmq_fast.bulk import ipc, stagedecode
from msmq_fast.protocol.errors import MSMQError
from tests.bulk.uploads import (
    ORIGINAL,
    REMOTE,
    Uploads,
    nothing_left,
    schema_of,
    stream,
    uploads,
    workers,
    world,
)
from tests.support.timing import processor_time
from tests.support.worlds.stages import publish

__all__ = ["uploads", "workers", "world"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: b"GET / HTTP/1.1\r\n\r\n", "is not an Arrow IPC stream"),
        (lambda data: data[:-8], "incomplete: its end-of-stream mark is missing"),
        (lambda data: data[:300], "incomplete"),
        (lambda data: data + b"more", "continues after its end"),
        (lambda data: data[-8:], "has no schema"),
        (lambda data: b"\xff\xff\xff\xff\xf8\xff\xff\x7f", "bytes"),
        (lambda data: b"", "incomplete"),
    ],
)
def test_streams_that_are_none(uploads: Uploads, change: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        uploads.stage(change(stream(pa.table({"body": ["x"]}))), queue="plain")
    nothing_left(uploads.world)


def test_compressed_streams_are_refused(uploads: Uploads) -> None:
    data = stream(pa.table({"body": ["x" * 1000]}), compression="zstd")
    with pytest.raises(ValueError, match="write it without compression"):
        uploads.stage(data, queue="plain")


def test_what_a_message_says_of_its_size_and_rows_is_bounded(
    uploads: Uploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = stream(pa.table({"body": ["x" * 1000] * 50}))
    monkeypatch.setattr(ipc, "MOST_ROWS", 49)
    with pytest.raises(ValueError, match="50 rows: 49 is the limit, use smaller batches"):
        uploads.stage(data, queue="plain")
    monkeypatch.setattr(ipc, "MOST_MESSAGE_BYTES", 40_000)
    with pytest.raises(ValueError, match="40000 is the limit, use smaller batches"):
        uploads.stage(data, queue="plain")
    nothing_left(uploads.world)


def test_texts_that_rows_share_do_not_fill_the_memory(
    uploads: Uploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dictionary, a view: a few bytes on the wire could be gigabytes of texts."""
    monkeypatch.setattr(stagedecode, "MOST_MESSAGE_BYTES", 1 << 20)
    text, rows = b"x" * 10_000, 200
    shared = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))
    views = struct.pack("<i4sii", len(text), text[:4], 0, 0) * rows
    viewed = pa.Array.from_buffers(pa.binary_view(), rows, [None, pa.py_buffer(views), pa.py_buffer(text)])
    named = pa.ExtensionArray.from_storage(pa.opaque(shared.type, "t", "v"), shared)
    for column in (shared, viewed, named):
        data = stream(pa.table({"body": column}))
        assert len(data) < 20_000
        with pytest.raises(
            ValueError, match=r"have 2000000 bytes.*: 1048576 is the limit, use smaller batches"
        ):
            uploads.stage(data, queue="plain")
        with pytest.raises(ValueError, match="1048576 is the limit"):
            uploads.stage(stream(pa.table({"body": ["x"] * rows, "queue": column})))
        few = uploads.messages({"body": column.slice(0, 3)})
        assert [message.body for message in few] == [text] * 3
    nested = pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([[text]]))
    with pytest.raises(
        ValueError, match=r"column body of type .*: a dictionary holds texts, bytes or whole numbers"
    ):
        uploads.stage(stream(pa.table({"body": nested})), queue="plain")
    nothing_left(uploads.world)


def test_many_small_batches_behind_a_great_dictionary_do_not_fill_the_memory() -> None:
    """What each batch needs is copied for it, for one at a time."""
    words = pa.array([b"x" * (1 << 20)])
    small = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), words)
    data = stream(pa.table({"body": pa.chunked_array([small] * 50)}), 1)
    assert len(data) < 2 << 20
    tracemalloc.start()
    try:
        assert sum(message.dictionary is None for message in ipc.MessageCutter().feed(data)) == 50
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_very_many_columns_are_looked_through_once() -> None:
    columns = {f"column {number}": pa.array([], pa.null()) for number in range(20_000)}
    data = stream(pa.table({"body": pa.array([], pa.binary())} | columns))
    cutter, decoder = ipc.MessageCutter(), stagedecode.StageDecoder(strict=False)
    with processor_time() as spent:
        assert not list(cutter.feed(data))
        decoder.check_schema(schema_of(cutter))
    assert spent.seconds < 1.5


def test_changed_bytes_never_harm(uploads: Uploads) -> None:
    """Whatever comes, there is a stage or one line that says why not."""
    damage(uploads, 7, 200)


@pytest.mark.long(seconds=60)
def test_very_many_changed_bytes_never_harm(uploads: Uploads) -> None:
    damage(uploads, 8, 6000)


def damage(uploads: Uploads, seed: int, count: int) -> None:
    table = pa.table(
        {
            "body": ["héllo", None, "x" * 50],
            "queue": pa.array(["plain", "exact", None]).dictionary_encode(),
            "label": ["L", None, "é"],
            "priority": pa.array([7, None, 2], pa.int8()),
            "message_id": [ORIGINAL, None, None],
            "extension": [b"ext", None, b""],
            "acknowledge": [0, 1, None],
            "admin_queue": [None, REMOTE, None],
        }
    )
    lines: set[str] = set()
    good, random, taken = stream(table), Random(seed), 0
    for _ in range(count):
        data = bytearray(good)
        for _ in range(random.randint(1, 4)):
            data[random.randrange(len(data))] = random.choice((0, 1, 127, 128, 255, random.randrange(256)))
        try:
            staged = uploads.stage(bytes(data), queue="plain", step=random.choice((97, 5000)))
        except (ValueError, MSMQError) as refused:
            lines.add(str(refused))
        else:
            taken += 1
            assert uploads.world.finish(uploads.world.manager.staging.discard([staged.stage])) == 1
    assert 0 < taken < count
    assert all(lines)
    nothing_left(uploads.world)


@pytest.mark.parametrize(
    ("kind", "length", "offset", "validity", "values", "data"),
    [
        ("int", 3, 0, None, bytes(16), None),
        ("int", 2, 1, None, bytes(16), None),
        ("int", 9, 0, bytes(1), bytes(72), None),
        ("int", 1, 0, None, None, None),
        ("int", 1, (1 << 64) - 1, None, bytes(8), None),
        ("text", 1, 0, None, bytes(4), b""),
        ("text", 1, 0, None, (0).to_bytes(4, "little") + (5).to_bytes(4, "little"), b"four"),
        ("binary", 2, 0, None, b"\0\0\0\0\4\0\0\0\3\0\0\0", b"four"),
        ("binary", 1, 0, None, b"\xff\xff\xff\xff\4\0\0\0", b"four"),
        ("binary", 1, 0, None, b"\0\0\0\0\4\0\0\0", None),
        ("float", 1, 0, None, bytes(8), None),
    ],
)
def test_buffers_that_do_not_hold_what_they_should_are_refused(
    kind: str, length: int, offset: int, validity: bytes | None, values: bytes | None, data: bytes | None
) -> None:
    with pytest.raises(ValueError):
        Column(kind, length, offset, validity, values, data)


def test_columns_and_places_that_do_not_fit_are_refused() -> None:
    builder = RowBuilder(bytes(16), 60, {})
    here = Destination(bytes(16), 7, b"\4\0a\0\0\0\0\0", False, lambda text: (7, b""), True)
    body = Column("binary", 1, 0, None, b"\0\0\0\0\4\0\0\0", b"four")
    number = Column("int", 1, 0, None, (5).to_bytes(8, "little"), None)
    assert len(builder.build(1, {"body": body}, 0, [here], None)) == 1
    for arguments in (
        (2, {"body": body}, 0, [here], None),
        (1, {"body": body}, 0, [here], number),
        (1, {"body": number}, 0, [here], None),
        (1, {"body": body}, 0, [], None),
        (1, {"body": body}, 0, [here], None, number, ["one"]),
    ):
        with pytest.raises(ValueError):
            builder.build(*arguments)  # type: ignore[arg-type]


def test_pieces_are_small(uploads: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded by the pieces of a batch, not by the batch."""
    monkeypatch.setattr(stagedecode, "_SLICE_BYTES", 10_000)
    cutter, decoder = ipc.MessageCutter(), stagedecode.StageDecoder(strict=True)
    (message,) = cutter.feed(stream(pa.table({"body": [b"x" * 1000] * 100})))
    decoder.check_schema(schema_of(cutter))
    sizes = [rows.count for rows in decoder.decode(message)]
    assert sum(sizes) == 100
    assert max(sizes) <= 10


def test_rows_for_very_many_queues(uploads: Uploads) -> None:
    world = uploads.world
    names = [rf"DIRECT=TCP:10.9.9.{n % 250}\private$\q{n}" for n in range(300)]
    staged = uploads.stage(stream(pa.table({"body": names * 2, "queue": names * 2})))
    publish(world, stages=[staged.stage])
    assert all(world.bodies(name) == [name.encode("utf-16-le")] * 2 for name in names)
