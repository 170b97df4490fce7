"""Backup, restore, compaction, the feed, the watermark."""

from __future__ import annotations

import json
import random
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast._native.lmdbthreads import LmdbWriter
from msmq_fast.store import decode, records
from msmq_fast.store.backup import Backup, Manifest
from msmq_fast.store.compact import compact
from msmq_fast.store.errors import BackupError, StoreLockedError, StorePlaceError
from msmq_fast.store.feed import Feed
from msmq_fast.store.identity import DATA_NAME
from msmq_fast.store.restore import restore
from msmq_fast.store.schema import EventKind, Table
from msmq_fast.store.store import Store
from msmq_fast.store.watermark import Watermark, space_figures
from tests.support.worlds import stores
from tests.support.worlds.stores import commit, open_store


@pytest.fixture(autouse=True, params=[True, False], ids=["log", "no log"])
def _with_and_without_a_log(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "SMALL", replace(stores.SMALL, log=request.param))


def lmdb(store: Store) -> tuple[LmdbTables, LmdbWriter]:
    assert isinstance(store.tables, LmdbTables)
    assert isinstance(store.writer, LmdbWriter)
    return store.tables, store.writer


def put(store: Store, first: int, count: int, size: int = 3000) -> None:
    """Messages whose content and position belong together."""
    for message in range(first, first + count):
        with store.unit() as writer:
            writer.put_content(message, message.to_bytes(4, "big") * (size // 4))
            key = decode.POSITION_KEY.pack(1, message)
            fields = (1, 3, 0, 0, 0, message, size, 0, 0, 0, 0, bytes(16), 0, 0, message, 0, 0, 0, 0)
            writer.put_record(Table.POSITION, key, records.position(decode.Position(*fields)))


def messages(tables: LmdbTables) -> list[int]:
    """What a store holds, every body checked."""
    found = []
    for key, value in tables.scan(Table.POSITION, b"", None, 1 << 20):
        _queue, message = decode.position_key(key)
        size = decode.position(value).content_bytes
        assert tables.read_content(message, size) == message.to_bytes(4, "big") * (size // 4)
        found.append(message)
    return found


@pytest.mark.rule("KV-G4")
def test_a_backup_of_a_store_that_is_written_to_is_consistent(tmp_path: Path) -> None:
    store = open_store(tmp_path / "live")
    tables, writer = lmdb(store)
    put(store, 1, 500)
    assert commit(writer) == 0
    backup = Backup(tables, tmp_path / "backup", now_s=42, bytes_per_second=20 << 20)
    result: list[Manifest] = []
    thread = threading.Thread(target=lambda: result.append(backup.run()))
    thread.start()
    following = 501
    while thread.is_alive():
        put(store, following, 5)
        following += 5
        assert commit(writer) == 0
    thread.join()
    manifest = result[0]
    assert manifest == Manifest.read(tmp_path / "backup")
    assert (manifest.qm_guid, manifest.incarnation, manifest.created_s) == (store.guid.hex(), 1, 42)
    assert manifest.size == (tmp_path / "backup" / "data.mdb").stat().st_size
    store.close()

    assert restore(tmp_path / "backup", tmp_path / "restored", now_s=5) == manifest
    restored = open_store(tmp_path / "restored", seed=8)
    assert restored.guid == store.guid
    assert restored.incarnation == 2, "once, not again at its first start"
    assert restored.tx_timestamp > store.tx_timestamp
    found = messages(lmdb(restored)[0])
    assert found == list(range(1, len(found) + 1))
    assert 500 <= len(found) < following
    restored.close()


def test_a_compacting_backup_is_smaller(tmp_path: Path) -> None:
    store = open_store(tmp_path / "live")
    tables, writer = lmdb(store)
    put(store, 1, 400)
    commit(writer)
    tables.settle()
    for message in range(1, 390):
        writer.delete_record(Table.POSITION, decode.POSITION_KEY.pack(1, message))
        writer.delete_content(message, 3000)
    commit(writer)
    whole = Backup(tables, tmp_path / "whole", now_s=1).run()
    small = Backup(tables, tmp_path / "small", now_s=1, compact=True).run()
    for copy in ("whole", "small"):
        assert (tmp_path / copy / DATA_NAME).stat().st_mode & 0o777 == 0o600
    assert small.size < whole.size // 4
    store.close()
    restore(tmp_path / "small", tmp_path / "again", now_s=1)
    again = open_store(tmp_path / "again")
    assert messages(lmdb(again)[0]) == list(range(390, 401))
    again.close()


def test_a_backup_gives_up_when_the_store_grows_or_it_is_cancelled(tmp_path: Path) -> None:
    store = open_store(tmp_path / "live")
    tables, writer = lmdb(store)
    put(store, 1, 1000)
    commit(writer)
    growing = Backup(tables, tmp_path / "b1", now_s=1, bytes_per_second=4 << 20, max_growth=1 << 20)
    slow = Backup(tables, tmp_path / "b2", now_s=1, bytes_per_second=1)
    faults: list[str] = []

    def run(backup: Backup) -> None:
        try:
            backup.run()
        except BackupError as error:
            faults.append(str(error))

    threads = [threading.Thread(target=run, args=(one,)) for one in (growing, slow)]
    for thread in threads:
        thread.start()
    following = 1001
    while threads[0].is_alive():
        put(store, following, 100)
        following += 100
        commit(writer)
    slow.cancel()
    for thread in threads:
        thread.join()
    assert len(faults) == 2
    assert "grew by" in faults[0]
    assert "cancelled" in faults[1]
    assert not (tmp_path / "b1").exists()
    assert not (tmp_path / "b2").exists()
    store.close()


def test_what_is_no_backup_is_not_restored(tmp_path: Path) -> None:
    store = open_store(tmp_path / "live")
    Backup(lmdb(store)[0], tmp_path / "b", now_s=1).run()
    with pytest.raises(BackupError, match="cannot create"):
        Backup(lmdb(store)[0], tmp_path / "b", now_s=1).run()
    with pytest.raises(StoreLockedError):
        restore(tmp_path / "b", tmp_path / "live", now_s=1)
    store.close()
    with pytest.raises(BackupError, match="already holds a store"):
        restore(tmp_path / "b", tmp_path / "live", now_s=1)
    with pytest.raises(BackupError, match="complete backup"):
        restore(tmp_path / "live", tmp_path / "new", now_s=1)
    manifest = tmp_path / "b" / "manifest.json"
    good = json.loads(manifest.read_text())
    for change, text in (
        ({"schema_version": 99}, "schema version 99"),
        ({"sha256": "00"}, "damaged"),
        ({"size": 1}, "damaged"),
        ({"size": "1"}, "wrong type"),
        ({"more": 1}, "complete backup"),
    ):
        manifest.write_text(json.dumps({**good, **change}))
        with pytest.raises(BackupError, match=text):
            restore(tmp_path / "b", tmp_path / "new", now_s=1)
        assert not (tmp_path / "new" / "data.mdb").exists()
    manifest.write_text(json.dumps(good))
    restore(tmp_path / "b", tmp_path / "new", now_s=1)


def test_compaction_gives_the_disk_back_and_is_no_copy(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    tables, writer = lmdb(store)
    put(store, 1, 3000)
    commit(writer)
    tables.settle()
    for message in range(1, 2991):
        writer.delete_record(Table.POSITION, decode.POSITION_KEY.pack(1, message))
        writer.delete_content(message, 3000)
    commit(writer)
    tables.settle()
    figures = space_figures(tables, tmp_path)
    assert figures.reusable > 8 * figures.used
    with pytest.raises(StoreLockedError):
        compact(tmp_path)
    store.close()
    done = compact(tmp_path)
    assert done.before == figures.file
    assert done.after < done.before // 8
    names = {path.name for path in tmp_path.iterdir()} - {"log"}
    assert names == {"data.mdb", "lock.mdb", "store.lock"}
    store = open_store(tmp_path, seed=5)
    assert (store.incarnation, store.is_copy) == (1, False)
    assert messages(lmdb(store)[0]) == list(range(2991, 3001))
    put(store, 3001, 10)
    store.close()
    with pytest.raises(StorePlaceError, match="no store"):
        compact(tmp_path / "nothing")


def test_space_figures_add_up(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    tables, writer = lmdb(store)
    put(store, 1, 100)
    commit(writer)
    tables.settle()
    figures = space_figures(tables, tmp_path)
    assert figures.used + figures.reusable <= figures.file + 4096 * 4
    assert 100 * 3000 < figures.used < 100 * 3000 * 3
    assert figures.available > 0
    store.close()


def test_watermark_has_hysteresis() -> None:
    told: list[bool] = []
    mark = Watermark(100, 200, told.append)
    for available in (500, 100, 99, 150, 50, 199, 200, 150, 99):
        mark.update(available)
    assert told == [True, False, True]
    mark = Watermark(100, 200, told.append)
    told.clear()
    mark.storage_full()
    mark.update(150)
    mark.update(250)
    assert told == [True, False]
    with pytest.raises(ValueError, match="below"):
        Watermark(5, 5, told.append)


def fill_feed(store: Store, feed: Feed, commits: int, seed: int) -> list[decode.FeedEvent]:
    rng = random.Random(seed)
    events: list[decode.FeedEvent] = []
    for moment in range(commits):
        for _ in range(rng.choice((1, 2, 50))):
            event = decode.FeedEvent(
                len(events) + 1,
                EventKind.ARRIVED,
                1,
                0xC000,
                7,
                5,
                6,
                moment * 1_000_000,
                rng.randbytes(16),
                9,
                100,
            )
            assert store.writer.add_entry(Table.FEED, records.feed_entry(event)) == event.number
            events.append(event)
        store.commit()
    return events


def test_feed_is_read_by_ranges_and_trimmed() -> None:
    store = Store.in_memory(now_s=1, random=random.Random(1))
    feed = Feed(store)
    assert feed.bounds() == (1, 1)
    assert list(feed.read(1)) == []
    events = fill_feed(store, feed, 40, 3)
    total = len(events)
    assert feed.bounds() == (1, total + 1)
    for start, stop in ((1, None), (1, 2), (50, 60), (total, None), (total + 1, None), (0, 3), (7, 7)):
        assert list(feed.read(start, stop)) == [
            event for event in events if event.number >= start and (stop is None or event.number < stop)
        ]
    assert feed.trim(39_000_000, max_age_s=30, max_bytes=1 << 30) == 9, "records of seconds 0 to 8"
    store.commit()
    first, following = feed.bounds()
    assert following == total + 1
    assert [event.number for event in feed.read(1)] == list(range(first, following))
    assert next(feed.read(1)).time_us == 9_000_000
    feed.trim(39_000_000, max_age_s=1000, max_bytes=56 * 100)
    store.commit()
    first, following = feed.bounds()
    assert 100 - 50 <= following - first <= 100
    feed.trim(10**15, max_age_s=1, max_bytes=0)
    store.commit()
    first, following = feed.bounds()
    assert following == total + 1, "the numbering goes on"
    assert feed.append(EventKind.STOPPED, 5, queue=3) == total + 1
    store.commit()
    last = list(feed.read(total + 1))
    assert [(event.kind, event.queue, event.time_us) for event in last] == [(EventKind.STOPPED, 3, 5)]


def test_the_events_of_a_message_are_found_piece_by_piece() -> None:
    store = Store.in_memory(now_s=1, random=random.Random(1))
    feed = Feed(store)
    assert feed.find(bytes(16), 9, 0, 1000) == ([], 1)
    source = bytes(range(16))
    numbers = []
    for seed in range(6):
        fill_feed_again(store, seed)
        event = decode.FeedEvent(0, EventKind.ARRIVED, 1, 0, 7, 5, 6, 1, source, 9, 100)
        numbers.append(store.writer.add_entry(Table.FEED, records.feed_entry(event)))
        other = event._replace(ordinal=10)
        store.writer.add_entry(Table.FEED, records.feed_entry(other))
        store.commit()
    following = feed.bounds()[1]
    found, stop = feed.find(source, 9, 0, 1 << 30)
    assert ([event.number for event in found], stop) == (numbers, following)
    pieces: list[int] = []
    start, rounds = 0, 0
    while start < following:
        found, after = feed.find(source, 9, start, 100)
        assert after > start, "each request goes on"
        pieces += [event.number for event in found]
        start, rounds = after, rounds + 1
    assert pieces == numbers
    assert rounds > 3
    assert feed.find(source, 9, following, 100) == ([], following)


def fill_feed_again(store: Store, seed: int) -> None:
    """Events of other messages, in commits of different sizes."""
    rng = random.Random(seed)
    for _ in range(rng.choice((1, 5, 20))):
        for _ in range(rng.choice((1, 2, 50))):
            event = decode.FeedEvent(0, EventKind.ARRIVED, 1, 0, 7, 5, 6, 1, rng.randbytes(16), 9, 100)
            store.writer.add_entry(Table.FEED, records.feed_entry(event))
        store.commit()


def test_a_feed_that_is_off_writes_nothing() -> None:
    store = Store.in_memory(now_s=1, random=random.Random(1))
    assert Feed(store, enabled=False).append(EventKind.STARTED, 1) == 0
    store.commit()
    assert store.tables.count(Table.FEED) == 0
