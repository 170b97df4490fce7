"""A store with damage inside: refused with one clear line, or opened without what is damaged."""

from __future__ import annotations

import logging
import os
import random
import select
import shutil
from pathlib import Path
from typing import cast

import pytest

from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast._native.lmdbthreads import LmdbWriter
from msmq_fast.packet import Message
from msmq_fast.qm.access import Access
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.settings import QueueManagerSettings
from msmq_fast.store import decode
from msmq_fast.store.compact import compact
from msmq_fast.store.datafile import check_data_file
from msmq_fast.store.errors import StoreError
from msmq_fast.store.schema import MetaName, Table
from msmq_fast.store.store import Store
from tests.support.worlds.stores import commit, crash, open_store

TABLES = [Table.META, Table.POSITION, Table.CONTENT, Table.QUEUE, Table.HISTORY, Table.FEED, Table.DIRECTORY]


class Clock:
    def monotonic(self) -> float:
        return 1000.0

    def wall_us(self) -> int:
        return 1_700_000_000_000_000


def start(store: Store) -> QueueManager:
    manager = QueueManager(store, QueueManagerSettings(computer_name="HOST"), Clock(), random.Random(1))
    manager.start()
    return manager


def turn(store: Store) -> None:
    """What is gathered becomes durable, what is read arrives."""
    store.commit()
    while select.select([store.reader.fileno()], [], [], 0.02)[0]:  # type: ignore[attr-defined]
        store.reader.complete()
    store.commit()


def receive_all(store: Store, manager: QueueManager) -> list[bytes]:
    got: list[bytes] = []
    for queue in list(manager.queues()):
        access = Access.RECEIVE if queue.key else Access.RECEIVE_ADMIN
        if queue.key.startswith("private$\\q"):
            handle = manager.open(queue.name, access)
            handle.subscribe(
                lambda batch: got.extend(Message.from_packet(message.packet).body for message in batch),
                1000,
                acknowledge=False,
            )
    for _ in range(4):
        manager.tick()
        manager.before_submit()
        turn(store)
    return got


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two queues, ten messages in each, and an outgoing queue with one."""
    directory = tmp_path_factory.mktemp("good")
    store = open_store(directory)
    manager = start(store)
    for name in ("q1", "q2"):
        manager.create_queue(name)
        sender = manager.open(name, Access.SEND)
        for number in range(10):
            sender.send(Message(body=b"%d" % number * (30_000 if number == 5 else 1), delivery=1))
    manager.open("DIRECT=OS:there\\private$\\q", Access.SEND).send(Message(body=b"out", delivery=1))
    store.commit()
    crash(store)
    return directory


def edit(directory: Path, changes: list[tuple[int, bytes, bytes | None]]) -> None:
    tables = LmdbTables(directory, map_size=1 << 30)
    writer = LmdbWriter(tables)
    for table, key, value in changes:
        if value is None:
            writer.delete_record(table, key)
        else:
            writer.put_record(table, key, value)
    assert commit(writer) == 0
    writer.close()
    tables.close()


def records_of(directory: Path, table: int) -> list[tuple[bytes, bytes]]:
    tables = LmdbTables(directory, map_size=1 << 30)
    found = tables.scan(table)
    tables.close()
    return found


def damage(rng: random.Random, key: bytes, value: bytes) -> tuple[bytes, bytes | None]:
    """One way in which a record can be wrong."""
    changed = bytearray(value)
    way = rng.randrange(7)
    if way == 0:
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    elif way == 1:
        changed[:] = rng.randbytes(len(changed))
    elif way == 2:
        changed[1:] = rng.randbytes(len(changed) - 1)
    elif way == 3:
        del changed[rng.randrange(len(changed)) :]
    elif way == 4:
        changed[1:1] = rng.randbytes(8)
    elif way == 5:
        at = rng.randrange(len(changed))
        changed[at : at + 8] = rng.choice((b"\0", b"\xff")) * 8
    else:
        return rng.choice((key[:-1], key + b"x", rng.randbytes(len(key)))) or b"x", value
    return key, bytes(changed) or None


@pytest.mark.parametrize("runs", [8, pytest.param(200, marks=pytest.mark.long(seconds=120))])
@pytest.mark.parametrize("table", TABLES)
def test_damaged_records_are_refused_or_set_aside(
    good: Path, tmp_path: Path, table: Table, runs: int
) -> None:
    rng = random.Random(int(table))
    lines: list[str] = []
    for run in range(runs):
        directory = tmp_path / str(run)
        shutil.copytree(good, directory)
        found = records_of(directory, table) or [(bytes(8), b"\1\0\x18\0\0\0\0\0")]
        changes = [(int(table), *damage(rng, *rng.choice(found))) for _ in range(rng.choice((1, 1, 3)))]
        edit(directory, changes)
        try:
            store = open_store(directory)
        except StoreError as error:
            lines.append(str(error))
            continue
        try:
            list(store.load_history())
            manager = start(store)
            got = receive_all(store, manager)
            assert len(got) <= 20
            if table in (Table.HISTORY, Table.FEED):
                assert len(got) == 20
            manager.expire(manager.monotonic())
            turn(store)
        except StoreError as error:
            lines.append(str(error))
        finally:
            crash(store)
        shutil.rmtree(directory)
    assert not lines or table in (Table.META, Table.HISTORY, Table.FEED)
    assert all(line and "\n" not in line for line in lines)


def test_what_is_set_aside_is_told_and_counted(
    good: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "copy"
    shutil.copytree(good, directory)
    positions = records_of(directory, Table.POSITION)
    contents = records_of(directory, Table.CONTENT)
    queue, other = (
        key
        for key, value in records_of(directory, Table.QUEUE)
        if str(decode.queue(value).get("part")).startswith("private$\\q")
        and not decode.queue(value).get("parent")
    )
    ordinal = decode.queue_key(queue)
    own = [(key, value) for key, value in positions if decode.position_key(key)[0] == ordinal]
    assert len(own) == 10
    edit(
        directory,
        [
            (Table.POSITION, own[0][0], own[0][1][:50]),
            (Table.POSITION, own[1][0], b"\x63" + own[1][1][1:]),
            (Table.CONTENT, contents[2][0], None),
            (Table.CONTENT, contents[3][0], b"\1" + bytes(len(contents[3][1]) - 1)),
            (Table.QUEUE, other, b"\1\xc1"),
        ],
    )
    store = open_store(directory)
    with caplog.at_level(logging.ERROR):
        manager = start(store)
        got = receive_all(store, manager)
    assert len(got) == 6
    assert manager.damage == {"position": 2, "packet": 2, "queue": 1, "orphan": 10}
    lines = [record.message for record in caplog.records if record.message.startswith("not loaded: ")]
    assert len(lines) == 6
    kept = store.tables.scan(Table.POSITION)  # type: ignore[attr-defined]
    assert len(kept) == 21 - 6, "what was set aside stays where it is"
    crash(store)


def test_a_message_of_an_unknown_queue_comes_back_with_its_record(good: Path, tmp_path: Path) -> None:
    directory = tmp_path / "copy"
    shutil.copytree(good, directory)
    (key, value) = records_of(directory, Table.QUEUE)[-3]
    edit(directory, [(Table.QUEUE, key, None)])
    store = open_store(directory)
    manager = start(store)
    lost = manager.damage["orphan"]
    assert lost == 10
    crash(store)
    edit(directory, [(Table.QUEUE, key, value)])
    store = open_store(directory)
    assert len(receive_all(store, start(store))) == 20
    crash(store)


# ---- the file


def _cut(directory: Path, size: int) -> None:
    with (directory / "data.mdb").open("r+b") as file:
        file.truncate(size)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.7, 0.99])
def test_a_file_that_was_cut_is_refused(good: Path, tmp_path: Path, share: float) -> None:
    directory = tmp_path / "copy"
    shutil.copytree(good, directory)
    size = (directory / "data.mdb").stat().st_size
    _cut(directory, int(size * share))
    with pytest.raises(StoreError, match=r"data\.mdb is truncated: it has \d+ bytes") as caught:
        open_store(directory)
    assert "\n" not in str(caught.value)
    with pytest.raises(StoreError, match="is truncated"):
        compact(directory)
    assert (directory / "data.mdb").stat().st_size == int(size * share), "left as it was found"


def test_free_pages_at_the_end_may_miss(tmp_path: Path) -> None:
    """LMDB does not write pages that one transaction took from the end and gave back."""
    store = open_store(tmp_path)
    tables = cast(LmdbTables, store.tables)
    for number in range(40):
        store.writer.put_content(number + 1, bytes(60_000))
        store.commit()
        tables.settle()
    for number in range(40):
        store.writer.delete_content(number + 1, 60_000)
        store.commit()
        tables.settle()
    crash(store)
    path = tmp_path / "data.mdb"
    whole = path.read_bytes()
    size = len(whole)
    while True:
        _cut(tmp_path, size - 4096)
        try:
            check_data_file(tmp_path, used=True)
        except StoreError:
            break
        size -= 4096
    assert size < len(whole) - 10 * 4096
    path.write_bytes(whole[:size])
    store = open_store(tmp_path)
    assert store.tables.scan(Table.CONTENT) == []
    store.writer.put_content(1, bytes(1_000_000))
    store.commit()
    crash(store)
    check_data_file(tmp_path, used=True)


def test_an_empty_file_of_a_store_that_never_was_is_a_new_store(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").touch()
    open_store(tmp_path).close()
    assert os.path.getsize(tmp_path / "data.mdb") > 0


def test_noise_in_place_of_the_free_list_is_refused(good: Path, tmp_path: Path) -> None:
    rng = random.Random(3)
    for run in range(30):
        directory = tmp_path / str(run)
        shutil.copytree(good, directory)
        size = (directory / "data.mdb").stat().st_size
        with (directory / "data.mdb").open("r+b") as file:
            file.seek(8192)
            file.write(rng.randbytes(size - 8192))
            file.truncate(size - 4096)
        with pytest.raises(StoreError, match="is truncated"):
            check_data_file(directory, used=True)


def test_a_damaged_meta_record_names_itself(good: Path, tmp_path: Path) -> None:
    directory = tmp_path / "copy"
    shutil.copytree(good, directory)
    edit(directory, [(Table.META, MetaName.GUID, b"\1\xc4\x02ab")])
    with pytest.raises(StoreError, match="the store is damaged: its record qm_guid is not a GUID"):
        open_store(directory)
