"""Drivers, executors and servers are killed at random moments while an archive writes a lake, on this machine
and on S3, and while a replay reads it. What the lake holds is compared with what was sent, and with what the
server says happened: nothing is missing, and nothing is there twice.

The lake is read with deltalake and pyarrow, without this package.
"""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from msmq_fast.client.bulk.client import BulkClient
from tests.spark.conftest import SETTINGS
from tests.spark.killharness import PATIENCE, SIX, Flow, Job, Stream, begun, carnage
from tests.spark.realserver import running
from tests.support.objects import S3, s3_server

CONTENTS = ("events", "messages")
QUEUES = ("orders", "audit")


class Content(Stream):
    """One query of the archive, seen by its checkpoint."""

    def batches(self) -> int:
        return begun(self.directory)


class VerbJob(Job):
    """A verb of `msmq-lake`, as often as it is started."""

    def __init__(
        self, directory: Path, url: str, queries: list[Stream], environment: dict[str, str], *, cluster: bool
    ) -> None:
        super().__init__(directory, url, queries, cluster=cluster, environment=environment)
        conf = directory / "conf"
        conf.mkdir()
        settings = {**SETTINGS, **self.settings, "spark.master": self.master}
        (conf / "spark-defaults.conf").write_text(
            "\n".join(f"{key} {value}" for key, value in settings.items())
        )
        self.environment["SPARK_CONF_DIR"] = str(conf)

    def _verb(self, *words: str) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "msmq_fast.spark.lake.main", *words],
                env=self.environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )


class ArchiveJob(VerbJob):
    """`msmq-lake archive --follow`; at its end `--once`."""

    def __init__(self, directory: Path, url: str, lake: str, environment: dict[str, str]) -> None:
        checkpoints = directory / "checkpoints"
        queries = [Content(name, "", {}, checkpoints / "main" / name) for name in CONTENTS]
        super().__init__(directory, url, list(queries), environment, cluster=True)
        self._words = ["archive", "--url", url, "--lake", lake, "--checkpoints", str(checkpoints)]
        self._words += ["--content", ",".join(CONTENTS)]

    def start(self) -> None:
        self._verb(*self._words, "--max-rows", "100", "--follow", "--interval", "0 seconds")

    def wait_for_batches(self, more: int, check: Callable[[], None]) -> None:
        """A start of the server that takes longer than the repetitions of a request ends the verb, too: it is
        then started again, as an operator would.
        """

        def check_both() -> None:
            check()
            assert self._process is not None
            if self._process.poll() is not None and "Connection refused" in self.tail().splitlines()[-1]:
                self.kill()
                self.start()

        super().wait_for_batches(more, check_both)

    def ended(self) -> None:
        self.kill()
        self._verb(*self._words, "--max-rows", "50000", "--once")  # what is left, in a few batches
        self.wait_for_the_end()


class ReplayJob(VerbJob):
    """`msmq-lake replay`, a part of a hundred messages each second."""

    def __init__(self, directory: Path, url: str, lake: str, to: str, environment: dict[str, str]) -> None:
        super().__init__(directory, url, [], environment, cluster=False)
        self._words = ["replay", "--url", url, "--lake", lake, "--to", to, "--rate", "100/s"]

    def start(self) -> None:
        """Unless it runs. The end of a server may end it, too."""
        if self._process is None or self._process.poll() is not None:
            self.kill()
            self._verb(*self._words)

    def ended(self) -> None:
        self.start()
        self.wait_for_the_end()


def feed(url: str) -> list[dict[str, Any]]:
    """The events that the server has."""
    client = BulkClient(url)
    bounds = client.bounds(content="events")
    return [row for batch in client.events(bounds.feed_first, bounds.feed_next) for row in batch.to_pylist()]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with s3_server() as server:
        yield server


@pytest.mark.needs(modules=("moto",))
@pytest.mark.long(seconds=240)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("place", "seed"), [("local", 5), ("local", 6), ("s3", 7), ("s3", 8)])
def test_six_kills_of_an_archive(s3: S3, tmp_path: Path, place: str, seed: int) -> None:
    lake = f"s3://{s3.bucket()}/lake" if place == "s3" else str(tmp_path / "lake")

    def rows(table: str, *columns: str) -> list[dict[str, Any]]:
        found = DeltaTable(f"{lake}/bronze/{table}", storage_options=s3.environment)
        return list(found.to_pyarrow_table(columns=list(columns)).to_pylist())

    with running() as server:
        for queue in QUEUES:
            server.create(queue)
        job, flow = (
            ArchiveJob(tmp_path, server.url, lake, s3.environment),
            Flow(server, list(QUEUES), chunk=3),
        )
        toll = carnage(job, flow, SIX, seed)
        told = feed(server.url)
    assert (toll.kills, toll.batches >= 12) == (SIX, True)

    names = ("feed_seq", "event", "message_id", "lookup_id")
    events = sorted(rows("events", *names), key=lambda row: row["feed_seq"])
    assert [row["feed_seq"] for row in events] == list(range(1, len(told) + 1))
    assert [[row[name] for name in names] for row in events] == [
        [row[name] for name in names] for row in told
    ]

    bodies: dict[str, bytes] = {}
    for row in rows("bodies", "body_sha256", "body"):
        assert hashlib.sha256(row["body"]).hexdigest() == row["body_sha256"]
        bodies[row["body_sha256"]] = row["body"]
    messages = rows("messages", "message_id", "queue", "body_sha256", "arrival_seq")
    assert max(Counter(row["message_id"] for row in messages).values()) == 1
    messages.sort(key=lambda row: row["arrival_seq"])
    for queue in QUEUES:
        own = [row for row in messages if row["queue"].rpartition("\\")[2] == queue]
        flow.check(queue, [bodies[row["body_sha256"]] for row in own])
    arrived = Counter(row["message_id"] for row in events if row["event"] == "arrived")
    assert arrived == Counter(row["message_id"] for row in messages)
    print(
        f"archive {place}: {toll.kills}, {toll.batches} batches between them, {len(messages)} messages once"
    )


@pytest.mark.needs(modules=("moto",))
@pytest.mark.long(seconds=200)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("place", "seed"), [("local", 9), ("s3", 10)])
def test_six_kills_of_a_replay(s3: S3, tmp_path: Path, place: str, seed: int) -> None:
    """From a lake into a queue: three of the driver, and three of the server, each after a further part."""
    lake = f"s3://{s3.bucket()}/lake" if place == "s3" else str(tmp_path / "lake")
    chance = random.Random(seed)
    victims = ["driver", "server"] * 3
    chance.shuffle(victims)
    bodies = [b"order %d" % number for number in range(3000)]
    directories = [tmp_path / name for name in ("archive", "replay")]
    for directory in directories:
        directory.mkdir()
    with running() as server:
        server.create("orders")
        server.create("again")
        assert server.send("orders", bodies)
        ArchiveJob(directories[0], server.url, lake, s3.environment).ended()
        job = ReplayJob(directories[1], server.url, lake, "again", s3.environment)
        toll: Counter[str] = Counter()
        try:
            for victim in victims:
                there = server.count("again")
                deadline = time.monotonic() + PATIENCE
                while server.count("again") == there:
                    job.start()
                    assert time.monotonic() < deadline, job.tail()
                    time.sleep(0.05)
                time.sleep(chance.random() * 0.5)
                assert server.count("again") < len(bodies)
                if victim == "server":
                    server.forget()
                    server.kill()
                else:
                    job.kill()
                toll[victim] += 1
        finally:
            job.kill()
        job.ended()
        count = server.count("again")
        with server.receiving("again") as opened, opened.subscribe(acknowledge=False) as messages:
            found = [bytes(message.body) for message in islice(messages, count)]
    assert toll == {"driver": 3, "server": 3}
    assert found == bodies
    print(f"replay {place}: {toll}, {len(found)} messages once, in order")
