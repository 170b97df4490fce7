"""The redo log in front of LMDB against plain models: what is read, what a crash leaves, what damage does."""

from __future__ import annotations

import contextlib
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast._native.lmdbstore import LmdbTables, status_is_full
from msmq_fast._native.lmdbthreads import LmdbReader, LmdbWriter
from msmq_fast._native.tables import StoreError
from msmq_fast.store import decode, records
from msmq_fast.store.redotail import LogNotApplied, wait_applied
from msmq_fast.store.schema import MetaName, Table
from tests.support import redomodel
from tests.support.worlds.stores import commit, read

SMALL_LOG = 1 << 17  # two segments of 64 KiB

KEYS = st.binary(min_size=1, max_size=3)
VALUES = st.one_of(st.binary(max_size=40), st.sampled_from([bytes(3000), bytes(9000)]))
TABLES = st.sampled_from([1, 5, 8])
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), TABLES, KEYS, VALUES),
        st.tuples(st.just("delete"), TABLES, KEYS, st.just(b"")),
        st.tuples(st.just("entry"), st.just(3), st.just(b""), st.binary(min_size=56, max_size=56)),
    ),
    max_size=8,
)
STEPS = st.lists(
    st.one_of(
        OPERATIONS,
        OPERATIONS,
        st.sampled_from(["settle", "crash", "close", "close, no log", "large", "fill"]),
    ),
    max_size=12,
)


class Logged:
    """A store with a redo log, and what it must hold."""

    def __init__(self, directory: Path, log_size: int = SMALL_LOG) -> None:
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self.log_size = log_size
        self.model: dict[int, dict[bytes, bytes]] = {1: {}, 5: {}, 8: {}}
        self.contents: dict[int, bytes] = {}
        self.entries: list[bytes] = []
        self.open()
        self.writer.put_record(Table.META, MetaName.SCHEMA, records.cold(1))
        assert commit(self.writer) == 0
        self.tables.start_log(log_size)

    def open(self, *, log: bool = False) -> None:
        self.tables = LmdbTables(self.directory, map_size=1 << 26)
        self.writer = LmdbWriter(self.tables)
        self.reader = LmdbReader(self.tables)
        if log:
            self.tables.start_log(self.log_size)

    def shut(self, *, crash: bool = False) -> None:
        if crash:
            self.writer.abandon()
        else:
            self.writer.close()
        self.reader.close()
        self.tables.close()

    def perform(self, operations: list[tuple[str, int, bytes, bytes]]) -> None:
        for kind, table, key, value in operations:
            if kind == "entry":
                self.writer.add_entry(table, value)
                self.entries.append(value)
            elif kind == "put":
                self.writer.put_record(table, key, value)
                self.model[table][key] = value
            else:
                self.writer.delete_record(table, key)
                self.model[table].pop(key, None)
        assert commit(self.writer) == 0

    def add_content(self, content_id: int, packet: bytes) -> None:
        self.writer.put_content(content_id, packet)
        self.contents[content_id] = packet
        assert commit(self.writer) == 0

    def remove_content(self, content_id: int) -> None:
        self.writer.delete_content(content_id, len(self.contents.pop(content_id)))
        assert commit(self.writer) == 0

    def step(self, step: object) -> None:
        if isinstance(step, list):
            self.perform(step)
        elif step == "settle":
            self.tables.settle()
            assert self.tables.space()["log_bytes"] == 0
        elif step == "large":  # more than a quarter of a segment: past the log
            self.add_content(max(self.contents, default=0) + 1, bytes(100_000))
        elif step == "fill":  # more than the log holds
            for _ in range(12):
                self.add_content(max(self.contents, default=0) + 1, bytes(15_000))
                if len(self.contents) > 3:
                    self.remove_content(min(self.contents))
        else:
            self.shut(crash=step == "crash")
            self.open(log=step != "close, no log")

    def check(self) -> None:
        tables = self.tables
        for table, expected in self.model.items():
            found = tables.scan(table, b"", None, 10_000)
            assert found == sorted(expected.items())
            assert tables.count(table) == len(expected)
            assert tables.last(table) == (found[-1] if found else None)
            assert tables.scan(table, b"", None, 2) == found[:2]
            assert (
                tables.scan(table, b"a", b"\xe0", 3) == [row for row in found if b"a" <= row[0] < b"\xe0"][:3]
            )
            for key in {*expected, b"a", b"\xff"}:
                assert tables.get(table, key) == expected.get(key)
        entries, number = [], 1
        for key, value in tables.scan(Table.FEED, b"", None, 10_000):
            assert int.from_bytes(key, "big") == number
            count = int.from_bytes(value[4:8], "little")
            entries += [value[8 + 56 * i : 64 + 56 * i] for i in range(count)]
            number += count
        assert entries == self.entries
        assert tables.next_number(Table.FEED) == number
        assert tables.last_content() == max(self.contents, default=0)
        wanted = [(content_id, len(packet)) for content_id, packet in self.contents.items()]
        assert read(self.reader, wanted) == [(packet, 0) for packet in self.contents.values()]
        assert all(tables.read_content(*one) == self.contents[one[0]] for one in wanted)


@contextlib.contextmanager
def logged(log_size: int = SMALL_LOG) -> Iterator[Logged]:
    with tempfile.TemporaryDirectory() as directory:
        store = Logged(Path(directory), log_size)
        try:
            yield store
        finally:
            store.shut(crash=True)


@given(STEPS)
@settings(max_examples=40, deadline=None)
def test_log_and_lmdb_are_one_dict(steps: list[object]) -> None:
    """Whatever is applied already, and whatever happens between."""
    with logged() as store:
        for step in steps:
            store.step(step)
            store.check()
        store.step("crash")
        store.check()


@given(st.lists(OPERATIONS, min_size=1, max_size=10), st.integers(0, 9))
@settings(max_examples=25, deadline=None)
def test_the_files_are_what_their_documentation_says(batches: list[object], settled: int) -> None:
    """A plain reader of the segments over what LMDB holds finds what opening the store finds."""
    with logged() as store:
        for number, batch in enumerate(batches):
            store.step(batch)
            if number == settled:
                store.step("settle")
        store.shut(crash=True)
        tables = LmdbTables(store.directory, map_size=1 << 26, read_only=True)
        state = {table: dict(tables.scan(table, b"", None, 10_000)) for table in (1, 5, 8)}
        applied = decode.cold(tables.get(Table.META, MetaName.LOG_APPLIED) or b"")
        pending = [
            record
            for one in redomodel.read_log(store.directory)
            for record in one.records
            if record.number > applied
        ]
        if pending:
            with pytest.raises(LogNotApplied, match="not stopped cleanly"):
                wait_applied(store.directory, lambda name: tables.get(Table.META, name))
        else:
            wait_applied(store.directory, lambda name: tables.get(Table.META, name))
        tables.close()
        assert [record.number for record in pending] == list(range(applied + 1, applied + 1 + len(pending)))
        for record in pending:
            for table, key, value in record.operations:
                if table in state and value is not None:
                    state[table][key] = value
                elif table in state:
                    state[table].pop(key, None)
        assert state == store.model
        store.open()
        store.check()


def test_a_clean_close_leaves_a_store_that_needs_no_log(tmp_path: Path) -> None:
    store = Logged(tmp_path)
    store.perform([("put", 5, b"key", b"value")])
    assert store.tables.get(Table.META, MetaName.SCHEMA) == records.cold(2)
    store.shut()
    shutil.rmtree(tmp_path / "log")
    store.open()
    assert store.tables.get(Table.META, MetaName.SCHEMA) == records.cold(1)
    store.check()
    store.shut()


def test_what_comes_and_goes_before_it_is_applied_never_reaches_lmdb(tmp_path: Path) -> None:
    store = Logged(tmp_path, 1 << 22)
    for number in range(1, 50):
        store.add_content(number, bytes(1000))
        store.remove_content(number)
    before = store.writer.statistics()["log"]["applied_operations"]
    store.tables.settle()
    assert store.writer.statistics()["log"]["applied_operations"] == before
    assert store.writer.statistics()["missing_deletes"] == 0
    store.shut()


def crashed(directory: Path, seed: int = 0) -> Logged:
    """A store that ended with records in its log; the model knows all of them."""
    rng = random.Random(seed)
    store = Logged(directory)
    for number in range(30):
        store.perform([("put", 5, b"%d" % rng.randrange(20), rng.randbytes(rng.randrange(1, 1500)))])
        if number == 10:
            store.tables.settle()
    store.shut(crash=True)
    return store


@pytest.mark.parametrize("second", [SMALL_LOG, SMALL_LOG * 8])
def test_a_crash_after_a_change_of_the_size_loses_nothing(tmp_path: Path, second: int) -> None:
    """Both segments held records of the first size, and only one is used again before the crash."""
    store = Logged(tmp_path, SMALL_LOG * 4)
    for _ in range(2):
        for number in range(20):
            store.perform([("put", 5, b"%d" % number, bytes(1000))])
        store.tables.settle()
    store.shut(crash=True)
    for _ in range(2):
        store.log_size = second
        store.open(log=True)
        store.perform([("put", 5, b"last", b"value")])
        store.shut(crash=True)
    store.open()
    store.check()
    store.shut()


def states(directory: Path) -> dict[int, dict[bytes, bytes]]:
    """What table 5 holds after each record."""
    found: dict[int, dict[bytes, bytes]] = {}
    state: dict[bytes, bytes] = {}
    for segment in redomodel.read_log(directory):
        for record in segment.records:
            for _table, key, value in record.operations:
                assert value is not None
                state[key] = value
            found[record.number] = dict(state)
    return found


@pytest.mark.parametrize("runs", [40, pytest.param(1500, marks=pytest.mark.long(seconds=60))])
def test_damage_is_refused_or_does_no_harm(tmp_path: Path, runs: int) -> None:
    """A flipped bit, a run of zeros or noise, a cut. Records may be lost from one on if all of them are
    damaged: a torn one looks the same.
    """
    store = crashed(tmp_path / "good")
    after = states(store.directory)
    lines: list[str] = []
    for run in range(runs):
        rng = random.Random(run)
        directory = tmp_path / str(run)
        shutil.copytree(store.directory, directory)
        path = rng.choice(sorted((directory / "log").iterdir()))
        data = bytearray(path.read_bytes())
        segment = redomodel.read_segment(path)
        assert segment is not None
        used = segment.records[-1].at + segment.records[-1].length
        at = rng.randrange(rng.choice((80, used)))
        damage = rng.choice((bytes(1), bytes(512), rng.randbytes(64), None))
        if damage is None:
            del data[at:]
        elif len(damage) == 1:
            data[at] ^= 1 << rng.randrange(8)
        else:
            data[at : at + len(damage)] = damage
        before = path.read_bytes()
        path.write_bytes(data)
        harmed = [
            record.number
            for record in segment.records
            if before[record.at : record.at + record.length] != data[record.at : record.at + record.length]
        ]
        allowed = [after[max(after)]]
        if harmed and harmed[-1] == max(after):
            allowed.append(after[harmed[0] - 1])
        try:
            tables = LmdbTables(directory, map_size=1 << 26)
        except StoreError as error:
            lines.append(str(error))
        else:
            assert dict(tables.scan(5, b"", None, 1000)) in allowed, run
            tables.close()
        shutil.rmtree(directory)
    assert 0 < len(lines) < runs
    assert all("redo log" in line and "\n" not in line for line in lines)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8, 1.0])
def test_a_torn_record_is_as_if_it_had_never_begun(tmp_path: Path, share: float) -> None:
    """Sectors of the last record are old or new: the commit was not acknowledged."""
    for seed in range(8):
        rng = random.Random(seed)
        store = crashed(tmp_path / f"{seed}", seed)
        segment = redomodel.read_log(store.directory)[-1]
        last = segment.records[-1]
        data = bytearray(segment.path.read_bytes())
        for at in range(last.at - last.at % 512, last.at + last.length, 512):
            if rng.random() >= share:
                begin = max(at, last.at)
                data[begin : at + 512] = rng.choice((bytes(512), rng.randbytes(512)))[: at + 512 - begin]
        segment.path.write_bytes(data)
        ((table, key, value),) = last.operations
        store.open()
        found = store.tables.get(table, key)
        if found != value:
            expected = [
                one.operations[0][2]
                for other in redomodel.read_log(store.directory)
                for one in other.records
                if one.operations[0][1] == key and one.number < last.number
            ]
            assert found in (None, *expected)
            store.model[table].pop(key)
            if found is not None:
                store.model[table][key] = found
        store.check()
        store.shut()


def test_a_log_that_is_missing_is_refused(tmp_path: Path) -> None:
    store = crashed(tmp_path)
    (tmp_path / "log").rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match=r"is missing: .* put it back"):
        LmdbTables(tmp_path, map_size=1 << 26)
    (tmp_path / "elsewhere").rename(tmp_path / "log")
    store.open()
    store.check()
    store.shut()


def test_the_log_of_another_store_is_refused(tmp_path: Path) -> None:
    one, other = crashed(tmp_path / "one"), crashed(tmp_path / "other")
    shutil.rmtree(tmp_path / "one" / "log")
    shutil.copytree(tmp_path / "other" / "log", tmp_path / "one" / "log")
    with pytest.raises(StoreError, match="belongs to another store"):
        LmdbTables(one.directory, map_size=1 << 26)
    other.open()
    other.check()
    other.shut()


def test_an_older_data_file_does_not_go_with_a_later_log(tmp_path: Path) -> None:
    """It is refused while it needs a log; if it was closed in order, it counts, and the log is moved away."""
    store = Logged(tmp_path)
    store.perform([("put", 5, b"a", b"1")])
    crashing = (tmp_path / "data.mdb").read_bytes()
    store.shut()
    closed = (tmp_path / "data.mdb").read_bytes()
    store.open(log=True)
    for number in range(200):
        store.perform([("put", 5, b"b%d" % number, bytes(1000))])
    store.shut(crash=True)
    (tmp_path / "data.mdb").write_bytes(crashing)
    with pytest.raises(StoreError, match="redo log"):
        LmdbTables(tmp_path, map_size=1 << 26)
    (tmp_path / "data.mdb").write_bytes(closed)
    store.open()
    assert store.tables.scan(5) == [(b"a", b"1")]
    assert store.tables.start_log(SMALL_LOG) == 1
    assert (tmp_path / "log.aside-1").is_dir()
    store.shut()


def test_replaying_twice_is_replaying_once(tmp_path: Path) -> None:
    """A crash between the segments of a replay is followed by another one."""
    store = crashed(tmp_path)
    again = tmp_path.with_name("again")
    shutil.copytree(tmp_path, again)
    store.open()
    store.check()
    store.shut()
    # The data file as the replay left it, with the schema that says that the log is still in use.
    tables = LmdbTables(tmp_path, map_size=1 << 26)
    writer = LmdbWriter(tables)
    writer.put_record(Table.META, MetaName.SCHEMA, records.cold(2))
    assert commit(writer) == 0
    writer.close()
    tables.close()
    store.open()
    store.check()
    store.shut()
    shutil.rmtree(again)


def test_a_map_that_fills_up_behind_the_log_loses_nothing(tmp_path: Path) -> None:
    """Batches are refused while nothing can be applied; what was acknowledged stays; deletions make room."""
    store = Logged(tmp_path, 1 << 20)
    store.shut()
    tables = LmdbTables(tmp_path, map_size=1 << 20)
    writer = LmdbWriter(tables)
    tables.start_log(1 << 20)
    kept, status = 0, 0
    while status == 0:
        writer.put_content(kept + 1, bytes([kept % 256]) * 50_000)
        status = commit(writer)
        kept += status == 0
        assert kept < 100
    assert status_is_full(status)
    assert not writer.failed
    assert kept > 15, "more than the map holds"
    assert tables.count(Table.CONTENT) == kept
    for content_id in range(1, kept + 1):
        assert tables.read_content(content_id, 50_000) == bytes([(content_id - 1) % 256]) * 50_000
    for content_id in range(1, kept):
        writer.delete_content(content_id, 50_000)
        assert commit(writer) == 0, "what needs no room is taken all the same"
    writer.put_content(kept + 1, bytes(50_000))
    assert commit(writer) == 0
    assert tables.count(Table.CONTENT) == 2
    writer.abandon()
    tables.close()
    tables = LmdbTables(tmp_path, map_size=1 << 20)
    assert tables.count(Table.CONTENT) == 2
    tables.close()


def test_a_store_whose_map_is_too_small_for_its_log_opens_with_a_larger_one(tmp_path: Path) -> None:
    Logged(tmp_path, 1 << 20).shut()
    tables = LmdbTables(tmp_path, map_size=1 << 20)
    writer = LmdbWriter(tables)
    tables.start_log(1 << 20)
    kept = 0
    while True:
        writer.put_content(kept + 1, bytes(50_000))
        if commit(writer):
            break
        kept += 1
    writer.close()
    tables.close()
    with pytest.raises(StoreError, match="MDB_MAP_FULL"):
        LmdbTables(tmp_path, map_size=1 << 20)
    tables = LmdbTables(tmp_path, map_size=1 << 24)
    assert tables.count(Table.CONTENT) == kept
    tables.close()
