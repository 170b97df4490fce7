"""Archived messages come into a queue again: all of them, once, in order, also when it was interrupted."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from msmq_fast.cli.exits import CommandError
from msmq_fast.cli.progress import Progress
from msmq_fast.spark.bulk import BulkClient
from msmq_fast.spark.lake.archive import Archive, Source
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.replay import Pace, Replay, Request
from tests.spark.lake.lakes import write_batch
from tests.spark.realserver import RealServer, running

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
    job = Replay(lake, wanted)
    with BulkClient(server.url) as client, Progress("replay", 1, io.StringIO()) as progress:
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


def test_what_cannot_be_sent_again(small: SparkSession, server: RealServer, tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    row = {"qm_guid": "q", "queue": "orders", "arrival_seq": 1, "message_id": "a", "body_sha256": "0"}
    write_batch(lake, "messages", 0, [row])
    with pytest.raises(CommandError, match="bodies of 1 of 1"):
        replay(small, lake, server, request(server, "none"))
    with pytest.raises(CommandError, match=r"--where: .*colour"):
        Replay(lake, Request("colour = 1", "none", "q", 10)).choose(small, unsigned=False)


def test_the_pace_is_kept() -> None:
    now = [100.0]
    pace = Pace(500, lambda: now[0], lambda seconds: now.__setitem__(0, now[0] + seconds))
    for first in range(0, 5000, 500):
        now[0] += 0.3  # what writing takes
        pace.wait(first, 500)
    assert now[0] - 100 == pytest.approx(10.3)
