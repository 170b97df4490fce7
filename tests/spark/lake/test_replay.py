"""Archived messages come into a queue again: all of them, once, in order, also when it was interrupted."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from msmq_fast.bulk.ipc import MessageCutter
from msmq_fast.client.bulk.client import BulkClient
from msmq_fast.client.bulk.stream import arrow_parts
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.spark.lake import session
from msmq_fast.spark.lake.archive import Archive, Source
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.main import main
from msmq_fast.spark.lake.replay import Pace, Replay, Request
from msmq_fast.spark.lake.sending import parts, send_part
from msmq_fast.terminal.progress import Progress
from tests.spark.fakeserver import FakeServer
from tests.spark.realserver import RealServer, running
from tests.support.lakes import write_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = 250


@pytest.fixture(scope="module")
def server() -> Iterator[RealServer]:
    with running() as found:
        yield found


@pytest.fixture(scope="module")
def lake(small: SparkSession, server: RealServer, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The messages of two queues, of which one keeps a journal: there some of them are a second time."""
    server.create("orders", journal=True)
    server.create("other")
    for number in range(COUNT):
        server.send("orders", [b"%d" % number], label=f"order {number}", priority=number % 8)
    server.send("other", [b"other"])
    found = Lake.create(str(tmp_path_factory.mktemp("lake") / "lake"))
    archive(small, found, server)
    for _ in range(10):
        server.receive("orders")
    archive(small, found, server)
    return found


def archive(spark: SparkSession, lake: Lake, server: RealServer) -> None:
    job = Archive(spark, lake, "main", Source((server.url,), ("messages", "journal")))
    with Progress("archive", 1, io.StringIO()) as progress:
        job.once(progress)


def request(server: RealServer, queue: str, **more: Any) -> Request:
    with BulkClient(server.url) as client:
        return Request("queue like '%orders%'", queue, client.bounds().qm, 100, **more)


def replay(spark: SparkSession, lake: Lake, server: RealServer, wanted: Request) -> int:
    with BulkClient(server.url) as client, Progress("replay", 1, io.StringIO()) as progress:
        job = Replay(lake, wanted, client.bounds().incarnation)
        return job.send(client, job.choose(spark, unsigned=False), progress, Pace(None))


def content(server: RealServer, queue: str) -> list[tuple[bytes, str, int]]:
    with server.receiving(queue) as opened:
        found = [opened.receive(timeout=0) for _ in range(server.count(queue))]
    return [(bytes(message.body), message.label, message.priority) for message in found]


def in_order() -> list[tuple[bytes, str, int]]:
    """As they come out of a queue: priority first, then arrival."""
    sent = [(b"%d" % number, f"order {number}", number % 8) for number in range(COUNT)]
    return sorted(sent, key=lambda message: (-message[2], int(message[0])))


def test_each_message_once_and_in_order(small: SparkSession, lake: Lake, server: RealServer) -> None:
    server.create("again")
    wanted = request(server, "again")
    assert replay(small, lake, server, wanted) == COUNT
    assert replay(small, lake, server, wanted) == 0
    assert content(server, "again") == in_order()
    assert replay(small, lake, server, request(server, "again", name="second")) == COUNT


@pytest.mark.long(seconds=15)
def test_an_interrupted_replay_goes_on(
    small: SparkSession, lake: Lake, server: RealServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once before a part is published, and once behind it, when nobody has noted it yet."""
    server.create("torn")
    wanted = request(server, "torn")
    published = BulkClient.publish

    def before(*_: Any) -> None:
        raise KeyboardInterrupt

    def behind(*arguments: Any) -> None:
        published(*arguments)
        raise KeyboardInterrupt

    for broken in (before, behind, behind):
        monkeypatch.setattr(BulkClient, "publish", broken)
        with pytest.raises(KeyboardInterrupt):
            replay(small, lake, server, wanted)
    assert server.count("torn") == 100
    monkeypatch.setattr(BulkClient, "publish", published)
    assert replay(small, lake, server, wanted) == COUNT
    assert content(server, "torn") == in_order()


def test_a_target_that_was_restored_is_offered_all_parts_again(
    small: SparkSession, server: RealServer, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have lost some of them; what it has it does not take twice."""
    server.create("restored")
    wanted = request(server, "restored")
    noted = Replay._note

    def stop(self: Replay, found: dict[str, Any], done: int) -> None:
        noted(self, found, done)
        if done == 200:
            raise KeyboardInterrupt

    monkeypatch.setattr(Replay, "_note", stop)
    with pytest.raises(KeyboardInterrupt):
        replay(small, lake, server, wanted)
    monkeypatch.setattr(Replay, "_note", noted)
    with BulkClient(server.url) as client, Progress("replay", 1, io.StringIO()) as progress:
        incarnation = client.bounds().incarnation
        assert Replay(lake, wanted, incarnation).choose(small, unsigned=False)["done"] == 200
        job = Replay(lake, wanted, incarnation + 1)
        found = job.choose(small, unsigned=False)
        assert found["done"] == 0
        job.send(client, found, progress, Pace(None))
    assert content(server, "restored") == in_order()


@pytest.mark.parametrize("turned", [False, True])
def test_messages_of_one_number_have_an_order(small: SparkSession, tmp_path: Path, turned: bool) -> None:
    """A store that was restored counts its arrivals a second time."""
    lake = Lake.create(str(tmp_path / "lake"))
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    named = {"qm_guid": "q", "queue": "orders", "arrival_seq": 1, "body_sha256": "h", "body_size": 1}
    rows = [
        {**named, "message_id": name, "arrived_time": noon + timedelta(seconds=at)}
        for name, at in (("b", 0), ("a", 1), ("c", 1), (None, 2), (None, 3))
    ]
    write_batch(lake, "messages", 0, rows[::-1] if turned else rows)
    write_batch(lake, "bodies", 0, [{"body_sha256": "h", "body": b"x"}])
    Replay(lake, Request("true", "to", "q", 10), 1).choose(small, unsigned=False)
    (chosen,) = Path(lake.root).glob("_state/replays/*.rows/*.parquet")
    table = parquet.read_table(chosen, columns=["message_id"])
    assert table["message_id"].to_pylist() == ["b", "a", "c", None, None]


class Taking:
    """A client that takes messages as a server does."""

    def __init__(self) -> None:
        self.bodies: list[int] = []

    def stage(
        self, _writer: str, _number: int, _part: int, _now: int, schema: pa.Schema, rows: Any, **_: Any
    ) -> SimpleNamespace:
        cutter = MessageCutter()
        for piece in arrow_parts(schema, self._seen(rows)):
            for _ in cutter.feed(bytes(piece)):
                pass
        return SimpleNamespace(stage=1)

    def _seen(self, rows: Any) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            self.bodies += [len(body.as_py()) for body in batch["body"]]
            yield batch

    def publish(self, *_: Any) -> SimpleNamespace:
        return SimpleNamespace(rows=len(self.bodies))


@pytest.mark.parametrize("size", [5_000, 10_000, 50_000, 1 << 20])
def test_no_part_is_more_than_a_server_takes_at_once(size: int) -> None:
    count = (80 << 20) // size
    body = b"b" * size
    given = pa.table({"label": ["x" * 40] * count, "body": pa.array([body] * count, pa.binary())})
    client = Taking()
    for number, part in enumerate(parts(given.to_batches(max_chunksize=128))):
        send_part(cast(BulkClient, client), "writer", number, part, "orders")
    assert client.bodies == [size] * count


def test_what_cannot_be_sent_again(small: SparkSession, server: RealServer, tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    row = {"qm_guid": "q", "queue": "orders", "arrival_seq": 1, "message_id": "a", "body_sha256": "0"}
    write_batch(lake, "messages", 0, [row])
    with pytest.raises(CommandError, match="bodies of 1 of 1"):
        replay(small, lake, server, request(server, "none"))
    with pytest.raises(CommandError, match=r"--where: .*colour"):
        Replay(lake, Request("colour = 1", "none", "q", 10), 1).choose(small, unsigned=False)
    assert not list(Path(lake.root).glob("_state/replays/*.rows"))


def test_a_message_is_one_wherever_it_was_seen(small: SparkSession, tmp_path: Path) -> None:
    """On its way at its sender, and in the queue of its receiver; without an identifier each is its own."""
    lake = Lake.create(str(tmp_path / "lake"))
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def row(qm: str, queue: str, number: int, message: str | None) -> dict[str, Any]:
        named = {"qm_guid": qm, "queue": queue, "arrival_seq": number, "message_id": message}
        return {**named, "arrived_time": noon + timedelta(seconds=number), "body_sha256": "h", "body_size": 1}

    rows = [row("a", "DIRECT=OS:b\\q", 1, "m"), row("b", "b\\q", 2, "m")]
    rows += [row("b", "b\\q", number, None) for number in (3, 4, 5)]
    write_batch(lake, "messages", 0, rows)
    write_batch(lake, "bodies", 0, [{"body_sha256": "h", "body": b"x"}])
    job = Replay(lake, Request("true", "to", "q", 10), 1)
    found = job.choose(small, unsigned=False)
    assert found["rows"] == 1 + 3
    assert found["first"] == "2026-03-01 12:00:01.000000Z"  # wherever the command runs
    assert found["last"] == "2026-03-01 12:00:05.000000Z"
    job.forget()


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=40),
    st.lists(st.integers(1, 7), min_size=1, max_size=5),
    st.integers(1, 8),
    st.integers(1, 20),
)
def test_parts_are_the_same_however_rows_come(
    sizes: list[int], pieces: list[int], rows: int, most: int
) -> None:
    table = pa.table({"body": pa.array([b"x" * size for size in sizes], pa.binary())})
    batches, begin = [], 0
    for piece in itertools.cycle(pieces):
        batches += table.slice(begin, piece).to_batches()
        begin += piece
        if begin >= len(table):
            break

    def split(given: list[pa.RecordBatch]) -> list[list[int]]:
        return [[len(body) for body in part["body"].to_pylist()] for part in parts(given, rows, most)]

    found = split(batches)
    assert [size for part in found for size in part] == sizes
    assert found == split(table.to_batches())
    assert all(len(part) <= rows and (sum(part) <= most or len(part) == 1) for part in found)
    for part, following in itertools.pairwise(found):
        assert len(part) == rows or sum(part) + following[0] > most


def test_the_pace_is_kept() -> None:
    now = [100.0]
    pace = Pace(500, lambda: now[0], lambda seconds: now.__setitem__(0, now[0] + seconds))
    for first in range(0, 5000, 500):
        now[0] += 0.3  # what writing takes
        pace.wait(first, 500)
    assert now[0] - 100 == pytest.approx(10.3)


def test_a_restore_of_the_target_ends_a_replay(
    fake: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was noted as done is of the earlier store: going on would leave the restored one with a part."""
    lake = Lake.create(str(tmp_path / "lake"))
    fake.manager.create("again")
    rows = {"message_id": ["m"], "label": ["x"], "body": [b"body"]}
    found = {
        "rows": 1,
        "digest": "0",
        "upto": {},
        "bytes": 4,
        "queues": {},
        "first": "",
        "last": "",
        "done": 0,
    }

    def restored(name: str) -> None:
        fake.manager.incarnation += 1

    monkeypatch.setattr(session, "start", restored)
    monkeypatch.setattr(Replay, "choose", lambda *_, **__: dict(found))
    monkeypatch.setattr(Replay, "_chunks", lambda _: iter([pa.table(rows)]))
    replayed = ("replay", "--lake", lake.root, "--url", fake.url, "--to", "again")
    assert main(replayed) == Exit.FAILURE
    assert "incarnation" in capsys.readouterr().err
    assert fake.manager.look_up("again", "messages").held == {}
    monkeypatch.setattr(session, "start", lambda name: None)
    assert main(replayed) == Exit.OK  # again, into the store as it is now
    assert len(fake.manager.look_up("again", "messages").held) == 1
