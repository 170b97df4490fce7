"""Stores as tables, without a JVM: native and plain reading agree, with each other and with the server."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from msmq_fast.qm.access import Access
from msmq_fast.spark.offline.backend import opened
from msmq_fast.spark.offline.catalogue import event_stretches, message_stretches, read_catalogue
from msmq_fast.spark.offline.errors import OfflineError
from msmq_fast.spark.offline.place import usable_directory
from msmq_fast.spark.offline.tables import Request, Task, read, table_columns
from msmq_fast.spark.options import OptionError
from msmq_fast.spark.source import spark_schema
from msmq_fast.spark.storereader import store_columns, store_options, store_reader
from msmq_fast.store.decode import EventKind
from tests.spark import stores
from tests.spark.storerows import Row, reader, rows

GOLDEN = Path(__file__).parents[1] / "store" / "golden"
DECODERS = ("native", "plain")


def in_order(found: list[Row]) -> list[Row]:
    return sorted(found, key=lambda row: (row.get("store_key") or b"", row.get("feed_seq") or 0))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stopped store: 300 messages of every sort, a journal, dead letters, a subqueue, an outgoing queue."""
    directory = tmp_path_factory.mktemp("kept")
    keeper = stores.Keeper(directory)
    keeper.queue(r".\private$\orders", label="Aufträge", quota_kb=1 << 20)
    keeper.queue(r".\private$\taken", journaling=True)
    keeper.queue(r".\private$\exact", transactional=True)
    keeper.fill(r".\private$\orders", 300)
    keeper.fill(r".\private$\taken", 20, seed=2)
    keeper.fill(r"DIRECT=TCP:192.0.2.1\private$\far", 10, seed=3)
    taking = keeper.open(r".\private$\taken", Access.RECEIVE)
    for _ in range(5):
        taking.receive(0)
        keeper.settle()
    taking.close()
    # Messages that came and were not taken are in no queue: one that nobody knows, one that came again.
    told = keeper.manager.ledger.turned_away
    told(EventKind.NACKED, 0, bytes(range(16)), 7, 100, 0x8000, 0x8000)
    told(EventKind.DUPLICATE, 1, bytes(range(16)), 8, 100, 0, 0, 5 << 32 | 6, 3)
    keeper.close()
    return directory


def test_native_and_plain_reading_agree(kept: Path) -> None:
    tables = {"messages": {"columns": "all", "includeRaw": "true", "includeSecurity": "true"}}
    for table in ("messages", "events", "queues", "raw"):
        options = {"table": table, **tables.get(table, {})}
        native, plain = (in_order(rows(kept, decoder=one, **options)) for one in DECODERS)
        assert len(native) == len(plain) > 5
        for left, right in zip(native, plain, strict=True):
            assert left == right
        assert {row.get("_corrupt") for row in native} == {None}


def test_what_the_messages_say(kept: Path) -> None:
    found = rows(kept, columns="all")
    orders = [row for row in found if row["queue"] == r"HOST\private$\orders"]
    assert len(orders) == 300
    assert {row["queue_kind"] for row in found} == {"queue", "journal", "outgoing"}
    assert {row["state"] for row in found} == {"available"}
    by_number = {row["app_specific"]: row for row in orders}
    row = by_number[6 * 977]
    assert (row["priority"], row["label"], row["acknowledge"], row["journal"]) == (6, "größe 𝄞", 6, 2)
    assert (row["time_to_reach_queue"], row["time_to_be_received"]) == (1006, 100_006)
    assert row["admin_queue"] == "PRIVATE=00000000-0000-0000-0000-00000000004d\\0000000a"
    assert (row["sender_id_type"], row["body_type"]) == (2, 8)
    assert by_number[9 * 977]["destination_queues"].startswith("PUBLIC=")
    # Queue order is (priority descending, arrival).
    (only,) = reader(kept, partitions="1", queues="orders").partitions()
    keys = [row["store_key"] for batch in reader(kept).read(only) for row in batch.to_pylist()]
    assert keys == sorted(keys)
    assert len(keys) == 300


def test_what_the_events_say(kept: Path) -> None:
    found = rows(kept, table="events")
    assert sorted(row["feed_seq"] for row in found) == list(range(1, len(found) + 1))
    kinds = [row["event"] for row in found]
    assert kinds.count("received") == 5
    journal = r"HOST\private$\taken;JOURNAL"
    assert [row["event"] for row in found if row["queue"] == journal].count("journaled") == 5
    assert {row["queue"] for row in found if row["event"] == "received"} == {r"HOST\private$\taken"}
    (nacked,) = (row for row in found if row["event"] == "nacked")
    (again,) = (row for row in found if row["event"] == "duplicate")
    sender = str(UUID(bytes_le=bytes(range(16))))
    assert [row["message_id"] for row in (nacked, again)] == [f"{{{sender}}}\\{number}" for number in (7, 8)]
    assert (again["seq_id"], again["seq_no"], again["prev_seq_no"]) == (5 << 32 | 6, 3, 2)
    assert {row["transport"] for row in (nacked, again)} == {"srmp"}
    assert {row["lookup_id"] for row in (nacked, again)} == {None}


def test_the_tables_of_queues_and_records(kept: Path) -> None:
    queues = {row["queue"]: row for row in rows(kept, table="queues")}
    orders = queues[r"HOST\private$\orders"]
    assert (orders["label"], orders["transactional"], orders["quota_kb"]) == ("Aufträge", False, 1 << 20)
    assert queues[r"HOST\private$\exact"]["transactional"]
    assert queues[r"HOST\private$\taken;JOURNAL"]["queue_kind"] == "journal"
    assert queues[r"HOST\system$;deadletter"]["queue_kind"] == "deadletter"
    assert queues[r"DIRECT=TCP:192.0.2.1\private$\far"]["queue_kind"] == "outgoing"
    assert rows(kept, table="writers") == []
    raw = rows(kept, table="raw")
    position = {row["key"]: row["value"] for row in raw if row["table_name"] == "position"}
    assert position == stores.records(kept, "position")


@pytest.mark.parametrize("tasks", ["1", "3", "40"])
def test_every_message_is_in_one_task(kept: Path, tasks: str) -> None:
    for table, column in (("messages", "store_key"), ("events", "feed_seq")):
        found = [row[column] for row in rows(kept, table=table, partitions=tasks)]
        assert len(found) == len(set(found))
        assert sorted(found) == sorted(row[column] for row in rows(kept, table=table, decoder="plain"))
    assert len(reader(kept, partitions=tasks).partitions()) <= int(tasks)


def test_tasks_have_equally_much_to_do(kept: Path) -> None:
    one = reader(kept, partitions="2", queues="orders")
    sizes = [sum(batch.num_rows for batch in one.read(part)) for part in one.partitions()]
    assert sum(sizes) == 300
    assert min(sizes) > 100


def test_queues_by_name(kept: Path) -> None:
    for text in (r"HOST\private$\orders", r"private$\ORDERS", "orders", r".\private$\orders", "*orders"):
        assert {row["queue"] for row in rows(kept, queues=text)} == {r"HOST\private$\orders"}, text
    journal = rows(kept, queues=r"private$\taken;journal")
    assert {row["queue_kind"] for row in journal} == {"journal"}
    assert len(journal) == 5
    both = {row["queue"] for row in rows(kept, queues=r"orders, private$\taken")}
    assert both == {r"HOST\private$\orders", r"HOST\private$\taken"}
    with pytest.raises(OptionError, match="the store has no queue 'none'; it has "):
        rows(kept, queues="none")


def test_columns_are_chosen(kept: Path) -> None:
    assert "body" not in rows(kept, includeBody="false")[0]
    assert list(rows(kept, columns="label,message_id")[0]) == [
        "label",
        "message_id",
        "store_key",
        "state",
        "_corrupt",
    ]
    with pytest.raises(OptionError, match="there is no column 'labels'"):
        rows(kept, columns="labels")


# -- damage


@pytest.fixture
def damaged(kept: Path, tmp_path: Path) -> dict[str, Any]:
    """Four messages that cannot be read: no position, no content, a content that is too short, no packet."""
    shutil.copy(kept / "data.mdb", tmp_path)
    (ordinal,) = {
        row["ordinal"] for row in rows(kept, table="queues") if row["queue"] == r"HOST\private$\orders"
    }
    positions = sorted(
        key for key in stores.records(tmp_path, "position") if key[:4] == ordinal.to_bytes(4, "big")
    )
    chosen = positions[10], positions[90], positions[170], positions[299]
    values = stores.records(tmp_path, "position")
    stores.damage(tmp_path, "position", chosen[0], b"\x09 of a version that is not known")
    contents = [values[key][8:16][::-1] + b"\0\0" for key in chosen]
    packet = stores.records(tmp_path, "content")[contents[3]]
    stores.damage(tmp_path, "content", contents[1], None)
    stores.damage(tmp_path, "content", contents[2], b"\x01cut")
    broken = packet[:5] + b"????" + packet[9:]
    stores.damage(tmp_path, "content", contents[3], broken)
    return {"directory": tmp_path, "keys": chosen, "packet": broken[1:]}


@pytest.mark.parametrize("decoder", DECODERS)
def test_damaged_messages(damaged: dict[str, Any], decoder: str) -> None:
    directory, keys = damaged["directory"], damaged["keys"]
    found = rows(directory, decoder=decoder, queues="orders")
    assert len(found) == 300
    corrupt = {row["store_key"]: row for row in found if row["_corrupt"] is not None}
    assert sorted(corrupt) == sorted(keys)
    assert [corrupt[key]["_corrupt"] for key in keys] == [
        b"\x09 of a version that is not known",
        b"",
        b"",
        damaged["packet"],
    ]
    assert {row["message_id"] for row in corrupt.values()} == {None}
    assert {row["queue"] for row in corrupt.values()} == {r"HOST\private$\orders"}
    dropped = rows(directory, decoder=decoder, queues="orders", mode="DROPMALFORMED")
    assert len(dropped) == 296
    assert {row["_corrupt"] for row in dropped} == {None}
    with pytest.raises(OfflineError, match=r"the message with the key [0-9a-f]{24} in the store in"):
        rows(directory, decoder=decoder, queues="orders", mode="FAILFAST")


@pytest.mark.parametrize("decoder", DECODERS)
def test_damaged_events_and_queues(kept: Path, tmp_path: Path, decoder: str) -> None:
    shutil.copy(kept / "data.mdb", tmp_path)
    feed = sorted(stores.records(tmp_path, "feed").items())
    key, value = feed[len(feed) // 2]
    stores.damage(tmp_path, "feed", key, value[:-3])
    queue = sorted(stores.records(tmp_path, "queue"))[-1]
    stores.damage(tmp_path, "queue", queue, b"\x01\xc1")
    whole = rows(kept, table="events")
    found = rows(tmp_path, table="events", decoder=decoder)
    assert [row["_corrupt"] for row in found if row["_corrupt"]] == [value[:-3]]
    first = int.from_bytes(key, "big")
    lost = {row["feed_seq"] for row in whole} - {row["feed_seq"] for row in found}
    assert min(lost) == first
    assert len(rows(tmp_path, table="events", decoder=decoder, mode="DROPMALFORMED")) == len(found) - 1
    with pytest.raises(OfflineError, match="a record of events"):
        rows(tmp_path, table="events", decoder=decoder, mode="FAILFAST")
    corrupt = [row for row in rows(tmp_path, table="queues", decoder=decoder) if row["_corrupt"]]
    assert [row["_corrupt"] for row in corrupt] == [b"\x01\xc1"]


def test_a_file_that_was_cut_is_refused(kept: Path, tmp_path: Path) -> None:
    data = (kept / "data.mdb").read_bytes()
    for size in (0, 100, 5000, len(data) // 2):
        (tmp_path / "data.mdb").write_bytes(data[:size])
        with pytest.raises(
            OfflineError,
            match=r"was truncated: it has|no store of a queue manager|cannot open",
        ):
            rows(tmp_path)


def test_what_is_no_store(tmp_path: Path, kept: Path) -> None:
    with pytest.raises(OfflineError, match="there is no store in"):
        rows(tmp_path)
    (tmp_path / "data.mdb").write_bytes(b"text" * 5000)
    with pytest.raises(OfflineError, match="cannot open the store"):
        rows(tmp_path)
    (tmp_path / "other").mkdir()
    stores.damage(tmp_path / "other", "meta", b"x", b"y")
    with pytest.raises(OfflineError, match="has no store of a queue manager"):
        rows(tmp_path / "other")
    shutil.copy(kept / "data.mdb", tmp_path)
    stores.damage(tmp_path, "meta", b"schema_version", b"\x01\x7f")
    with pytest.raises(OfflineError, match="schema version 127, but this program supports"):
        rows(tmp_path)
    with pytest.raises(OptionError, match="option 'path' is missing"):
        store_reader(store_options({}), spark_schema(store_columns(store_options({}))))


def test_a_damaged_snapshot_is_refused(kept: Path, tmp_path: Path) -> None:
    shutil.copy(kept / "data.mdb", tmp_path)
    (tmp_path / "manifest.json").write_text('{"size": 7}')
    with pytest.raises(OfflineError, match=r"damaged: data.mdb has \d+ bytes, not 7"):
        rows(tmp_path)


def test_a_store_that_changes_between_plan_and_task(kept: Path, tmp_path: Path) -> None:
    shutil.copy(kept / "data.mdb", tmp_path)
    one = reader(tmp_path)
    partitions = one.partitions()
    stores.damage(tmp_path, "meta", b"x", b"\x01\x01")
    with pytest.raises(OfflineError, match="has changed since the query was planned"):
        list(one.read(partitions[0]))


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_store_that_changes_while_a_task_reads(kept: Path, tmp_path: Path, decoder: str) -> None:
    """Rows of two commits are no one point in time, even if each of them is sound."""
    shutil.copy(kept / "data.mdb", tmp_path)
    one = reader(tmp_path, partitions="1", decoder=decoder)
    (partition,) = one.partitions()
    batches = one.read(partition)
    assert next(batches).num_rows
    change = "import sys; from tests.spark.stores import *; damage(Path(sys.argv[1]), 'meta', b'x', b'y')"
    subprocess.run(
        [sys.executable, "-c", change, str(tmp_path)], cwd=Path(__file__).parents[2], check=True, timeout=60
    )
    with pytest.raises(OfflineError, match="has changed since the query was planned"):
        list(batches)


HOLDER = """
import sys
from pathlib import Path
from tests.spark.stores import Keeper
keeper = Keeper(Path(sys.argv[1]))
keeper.queue(r".\\private$\\orders")
keeper.fill(r".\\private$\\orders", 40)
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """A store that another process holds."""
    directory = tmp_path / "live"
    directory.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield directory
        process.kill()


def test_a_live_store_is_refused_or_copied(held: Path, tmp_path: Path) -> None:
    with pytest.raises(OfflineError, match=r"a server runs on the store in .*: read a snapshot of it"):
        rows(held)
    copies = tmp_path / "copies"
    copies.mkdir()
    for decoder in DECODERS:
        found = rows(held, allowLive="true", copyDirectory=str(copies), decoder=decoder, queues="orders")
        assert len(found) == 40
    assert len(list(copies.iterdir())) == 2
    assert {file.name for file in held.iterdir()} >= {"data.mdb", "store.lock"}


def test_a_store_of_this_very_process_is_never_opened(tmp_path: Path) -> None:
    keeper = stores.Keeper(tmp_path)
    try:
        with pytest.raises(OfflineError, match="open in this process"):
            usable_directory(str(tmp_path), allow_live=True)
    finally:
        keeper.close()


@pytest.mark.parametrize("version", ["managed-0", "managed-1"])
def test_golden_stores(tmp_path: Path, version: str) -> None:
    """Stores of every version of the schema, by both decoders."""
    shutil.copy(GOLDEN / version / "data.mdb", tmp_path)
    native = in_order(rows(tmp_path, columns="all", includeRaw="true"))
    plain = in_order(rows(tmp_path, columns="all", includeRaw="true", decoder="plain"))
    assert native == plain
    counts: dict[str, int] = {}
    for row in native:
        counts[row["queue"].rpartition("\\")[2]] = counts.get(row["queue"].rpartition("\\")[2], 0) + 1
    assert (counts["orders"], counts["taken"]) == (4, 3)
    assert {row["_corrupt"] for row in native} == {None}
    assert rows(tmp_path, table="events", decoder="plain") == rows(tmp_path, table="events")


def test_a_purge_that_is_under_way(kept: Path, tmp_path: Path) -> None:
    """What a purge has doomed is told apart, though its records are still there."""
    from msmq_fast.store import decode, records

    shutil.copy(kept / "data.mdb", tmp_path)
    (entry,) = [row for row in rows(kept, table="queues") if row["queue"] == r"HOST\private$\orders"]
    key = entry["ordinal"].to_bytes(4, "big")
    record = decode.queue(stores.records(tmp_path, "queue")[key])
    numbers = sorted(row["arrival_seq"] for row in rows(kept, queues="orders"))
    stores.damage(tmp_path, "queue", key, records.cold({**record, "purged_to": numbers[99]}))
    states = [row["state"] for row in rows(tmp_path, queues="orders")]
    assert (states.count("purged"), states.count("available")) == (100, 200)


@pytest.mark.parametrize("decoder", DECODERS)
def test_what_writers_published(kept: Path, tmp_path: Path, decoder: str) -> None:
    from msmq_fast.store import records

    shutil.copy(kept / "data.mdb", tmp_path)
    stores.damage(tmp_path, "meta", b"writer:job", records.cold([2, 17, 4000, 1_700_000_000, "me", "of"]))
    stores.damage(tmp_path, "meta", b"writer:other", records.cold([1]))
    first, second = rows(tmp_path, table="writers", decoder=decoder)
    assert (first["writer"], first["epoch"], first["batch"], first["messages"]) == ("job", 2, 17, 4000)
    assert (first["published_time"].timestamp(), first["owner"]) == (1_700_000_000, "me")
    assert (second["writer"], second["_corrupt"]) == ("other", records.cold([1]))


def test_batches_are_bounded(kept: Path) -> None:
    columns = table_columns("messages")
    request = Request(kept, "messages", columns, stores.COMPUTER)
    for decoder in DECODERS:
        with opened(kept, decoder) as backend:
            stretches = tuple(message_stretches(backend, 1))
        sizes = [batch.nbytes for batch in read(Task(replace(request, decoder=decoder), stretches))]
        assert max(sizes) < 6 << 20


def test_hash_over_all_bodies(kept: Path) -> None:
    """The same sums whichever way it is read."""
    sums = set()
    for decoder in DECODERS:
        for tasks in ("1", "7"):
            digest = hashlib.sha256()
            for row in in_order(rows(kept, decoder=decoder, partitions=tasks)):
                digest.update(row["message_id"].encode() + row["body"])
            sums.add(digest.hexdigest())
    assert len(sums) == 1


def test_an_empty_store(tmp_path: Path) -> None:
    stores.Keeper(tmp_path).close()
    for decoder in DECODERS:
        assert rows(tmp_path, decoder=decoder) == []
        assert rows(tmp_path, decoder=decoder, table="queues")
        with opened(tmp_path, decoder) as backend:
            assert read_catalogue(backend, ".").queue(99).name is None
            assert list(message_stretches(backend, 4)) == []
            assert list(event_stretches(backend, 4))
