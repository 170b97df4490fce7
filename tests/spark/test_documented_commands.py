"""The way of docs/how-to/spark.md from nothing to the first report, and back into a queue.

100,000 mixed messages, one command for each step.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow.dataset as ds
import pytest

import msmq_fast
from tests.spark.conftest import SETTINGS, spark_environment
from tests.spark.realserver import RealServer, running

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "spark"
RECOVERABLE, EXPRESS, TRANSACTIONS = 50_000, 20_000, 60  # of 500 messages
RECEIVED = 3_000
SECONDS = 600


def bodies(count: int) -> Iterator[tuple[bytes, int]]:
    """Bodies of many kinds and sizes with their body types; none twice, that they can be told apart."""
    noise = random.Random(5)
    for number in range(count):
        kinds = (
            (b"<order id='%d'/>" % number, 0),
            (f"text {number}".encode("utf-16-le"), 8),
            (b'{"n": %d}' % number, 0),
            (b"%d " % number + noise.randbytes(noise.choice((10, 1024, 20_000))), 0),
        )
        yield noise.choice(kinds)


def fill(server: RealServer) -> None:
    connection = server.connection()
    server.create("orders", journal=True)
    server.create("fast")
    server.create("money", transactional=True)
    server.create("again")
    server.create("money-again", transactional=True)
    for queue, count, delivery in (
        ("orders", RECOVERABLE, msmq_fast.RECOVERABLE),
        ("fast", EXPRESS, msmq_fast.EXPRESS),
    ):
        with connection.open(queue, msmq_fast.Access.SEND) as opened:
            opened.send_many(
                msmq_fast.Message(body, body_type=kind, priority=number % 8, delivery=delivery)
                for number, (body, kind) in enumerate(bodies(count))
            )
    with connection.open("money", msmq_fast.Access.SEND) as opened:
        for outer in range(TRANSACTIONS):
            with connection.transaction() as transaction:
                for inner in range(500):
                    opened.send(msmq_fast.Message(b"%d-%d" % (outer, inner)), transaction=transaction)
    with connection.open("orders", msmq_fast.Access.RECEIVE) as opened:
        for _ in range(RECEIVED):
            opened.receive(0)


def contents(server: RealServer, queue: str) -> list[bytes]:
    count = server.count(queue)
    with server.receiving(queue) as opened, opened.subscribe(acknowledge=False) as messages:
        return [bytes(message.body) for message in islice(messages, count)]


@pytest.mark.long(seconds=420)
@pytest.mark.timeout(1800)
def test_each_step_is_one_command(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    settings = {**SETTINGS, "spark.master": "local[2]", "spark.driver.memory": "2g"}
    (conf / "spark-defaults.conf").write_text("\n".join(" ".join(setting) for setting in settings.items()))
    environment = {**os.environ, **spark_environment(), "SPARK_CONF_DIR": str(conf)}
    lake, parquet = str(tmp_path / "lake"), tmp_path / "parquet"

    def run(*command: str) -> str:
        done = subprocess.run(
            command,
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def lake_command(verb: str, *more: str) -> dict[str, object]:
        command = (sys.executable, "-m", "msmq_fast.spark.lake.main", verb, "--lake", lake, "--json", *more)
        return dict(json.loads(run(*command).splitlines()[-1]))

    with running() as server:
        fill(server)
        url, queues = server.url, "orders,fast,money"
        there = RECOVERABLE + EXPRESS + TRANSACTIONS * 500 - RECEIVED

        shown = run(sys.executable, str(EXAMPLES / "read.py"), url, queues)
        assert sum(int(row.split("|")[3]) for row in shown.splitlines() if "private$" in row) == there

        run(sys.executable, str(EXAMPLES / "to_parquet.py"), url, queues, str(parquet))
        rows = ds.dataset(parquet / "data", format="parquet", partitioning="hive").to_table(["message_id"])
        assert (rows.num_rows, len(set(rows["message_id"].to_pylist()))) == (there, there)

        lake_command("archive", "--url", url, "--once")
        audited = json.dumps(lake_command("audit"))
        assert '"lost": 0' in audited, audited
        assert f'"sent": {there + RECEIVED}' in audited, audited
        page = tmp_path / "report.html"
        lake_command("report", "--html", str(page))
        assert "<svg" in page.read_text()

        for queue, target in (("orders", "again"), ("money", "money-again")):
            lake_command("replay", "--url", url, "--to", target, "--where", f"queue like '%{queue}'")
        lake_command("verify")
        assert contents(server, "money-again") == contents(server, "money")  # in order
        # What was received of `orders` is in its journal, which is no queue of this name.
        assert sorted(contents(server, "again")) == sorted(contents(server, "orders"))
