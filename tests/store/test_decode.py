"""The pure-Python decoder: golden records and stores, its mirror `records`, and what it does with damage."""

from __future__ import annotations

import ast
import contextlib
import json
import random
import shutil
import sys
from pathlib import Path

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast.store import decode, records
from msmq_fast.store.schema import SCHEMA_VERSION, MetaName, Table
from tests.support.worlds import golden_store as make
from tests.support.worlds.stores import open_store, queues_of, reserve_now

pytestmark = pytest.mark.smoke

GOLDEN = Path(__file__).parent / "golden"
RECORDS = {
    name: (bytes.fromhex(key), bytes.fromhex(value))
    for name, (key, value) in json.loads((GOLDEN / "records-1.json").read_text()).items()
}


def test_golden_records_are_still_what_is_written() -> None:
    assert make.golden_records() == json.loads((GOLDEN / f"records-{SCHEMA_VERSION}.json").read_text())


@pytest.mark.rule("KV-04", "KV-08", "KV-09")
def test_golden_records_of_outgoing_sequences_are_read() -> None:
    key, value = RECORDS["position_numbered"]
    assert decode.position_key(key) == (7, 0x0700000000000038)
    assert decode.position(value) == make.NUMBERED
    assert decode.position(value + b"later field") == make.NUMBERED
    key, value = RECORDS["outgoing_stream"]
    assert key == b"O" + decode.ORDINAL_KEY.pack(7)
    assert decode.outgoing_stream(value) == make.STREAM


@pytest.mark.rule("KV-04", "KV-05", "KV-01")
def test_golden_records_of_version_1_are_read() -> None:
    key, value = RECORDS["position"]
    assert decode.position_key(key) == (7, 0x0100000000000037)
    assert decode.position(value) == make.POSITION
    assert decode.position(value + b"later field") == make.POSITION
    key, value = RECORDS["content"]
    assert decode.content_key(key) == (2, 0)
    assert decode.content([value], 6) == b"packet"
    first, second = decode.feed(*RECORDS["feed"])
    assert first == make.EVENT
    assert second == make.EVENT._replace(number=101, kind=decode.EventKind.SENT)
    assert decode.feed(*RECORDS["feed_whole"]) == [make.WHOLE_EVENT]
    assert decode.history(*RECORDS["history"]) == [make.ITEM]
    assert decode.history(*RECORDS["history_marked"]) == [make.MARKED]
    key, value = RECORDS["queue"]
    assert (decode.queue_key(key), decode.queue(value)) == (7, make.QUEUE)
    assert decode.cold(RECORDS["meta"][1]) == make.GUID


def test_the_golden_store_of_version_1_is_opened_and_read(tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "store-1" / "data.mdb", tmp_path)
    store = open_store(tmp_path)
    assert (store.incarnation, store.is_copy, store.was_clean) == (2, True, True)
    assert reserve_now(store, MetaName.SEQUENCE_HW, 10) == (1000, 1010)
    assert queues_of(store) == [(7, make.QUEUE)]
    assert [item.number for item in store.load_history()] == [1, 2, 3]
    assert isinstance(store.tables, LmdbTables)
    for message, packet in make.PACKETS.items():
        value = store.tables.get(Table.POSITION, decode.POSITION_KEY.pack(7, message))
        assert value is not None
        assert decode.position(value).arrival_seq == make.POSITION.arrival_seq
        assert store.tables.read_content(message, len(packet)) == packet
    store.close()


def test_the_decoder_imports_the_standard_library_only() -> None:
    tree = ast.parse(Path(decode.__file__).read_text())
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= {*sys.stdlib_module_names, "collections.abc"}


COLD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=300)
    | st.binary(max_size=300),
    lambda inner: (
        st.lists(inner, max_size=20)
        | st.dictionaries(st.text(max_size=40) | st.integers(0, 1 << 32), inner, max_size=20)
    ),
    max_leaves=30,
)


@given(COLD)
def test_cold_values_are_read_as_msgpack_reads_them(value: object) -> None:
    assert decode.cold(records.cold(value)) == value


@pytest.mark.parametrize("size", [31, 32, 255, 256, 65535, 65536])
def test_every_length_of_string_binary_list_and_map(size: int) -> None:
    for value in ("x" * size, b"x" * size, [1] * size, dict.fromkeys(range(size))):
        assert decode.cold(records.cold(value)) == value


def test_events_say_what_follows_from_their_fields() -> None:
    event = make.WHOLE_EVENT
    assert (event.previous_number, event.origin) == (4_000_000_000, 0)
    assert (make.EVENT.previous_number, make.EVENT.sequence_id) == (0, 0)
    assert event._replace(kind=decode.EventKind.MOVED, sequence_id=12).origin == 12


def test_fields_that_a_later_version_adds_to_events_are_passed_over() -> None:
    layout = decode.FEED_ENTRY
    whole = layout.pack(*make.WHOLE_EVENT[1:])
    head = decode.PACK_HEAD.pack(1, 0, layout.size + 8, 2)
    events = decode.feed(decode.NUMBER_KEY.pack(100), head + (whole + bytes(8)) * 2)
    assert events == [make.WHOLE_EVENT, make.WHOLE_EVENT._replace(number=101)]


@given(st.binary(max_size=60), st.binary(max_size=12))
def test_noise_is_an_error_and_nothing_else(value: bytes, key: bytes) -> None:
    for function in (decode.position, decode.cold, decode.queue):
        for data in (value, b"\x01" + value):
            with contextlib.suppress(decode.DecodeError):
                function(data)
    for function in (decode.feed, decode.history):
        with contextlib.suppress(decode.DecodeError):
            function(key, b"\x01" + value)


@pytest.mark.parametrize("name", ["position_numbered", "outgoing_stream"])
def test_a_record_of_a_sequence_that_was_cut_or_is_of_a_later_version_is_refused(name: str) -> None:
    read = {"position_numbered": decode.position, "outgoing_stream": decode.outgoing_stream}[name]
    _, value = RECORDS[name]
    for data in (*(value[:end] for end in range(len(value))), b"\x03" + value[1:]):
        with pytest.raises(decode.DecodeError):
            read(data)


@pytest.mark.parametrize(
    "name", ["position", "feed", "feed_whole", "history", "history_marked", "queue", "meta"]
)
def test_a_record_that_was_cut_or_is_of_a_later_version_is_refused(name: str) -> None:
    key, value = RECORDS[name]
    read = {"position": decode.position, "queue": decode.cold, "meta": decode.cold}.get(name)
    name = name.removesuffix("_whole").removesuffix("_marked")
    for data in (*(value[:end] for end in range(len(value))), b"\x02" + value[1:]):
        with pytest.raises(decode.DecodeError):
            read(data) if read else getattr(decode, name)(key, data)
    with pytest.raises(decode.DecodeError):
        decode.cold(b"\x01" + msgpack.packb(msgpack.ExtType(5, b"x")))
    with pytest.raises(decode.DecodeError, match="nested"):
        decode.cold(b"\x01" + b"\x91" * 100 + b"\x01")
    with pytest.raises(decode.DecodeError, match="map key"):
        decode.cold(b"\x01\x81\x90\x01")


@given(st.binary(max_size=100), st.integers(0, 3))
def test_content_is_put_together_again(data: bytes, many: int) -> None:
    packet = data + bytes(random.Random(many).choice((0, decode.WHOLE_BYTES, decode.CHUNK_BYTES * many)))
    chunks = records.content(packet)
    assert len(chunks) == decode.chunk_count(len(packet))
    assert decode.content(chunks, len(packet)) == packet
    for wrong in (len(packet) + 1, max(len(packet) - 1, 0) if packet else 1):
        with pytest.raises(decode.DecodeError):
            decode.content(chunks, wrong)


@pytest.mark.parametrize("read", [decode.position_key, decode.content_key, decode.queue_key])
def test_keys_of_a_wrong_size_are_refused(read: object) -> None:
    for size in (0, 3, 5, 9, 11, 13):
        with pytest.raises(decode.DecodeError):
            read(bytes(size))  # type: ignore[operator]
