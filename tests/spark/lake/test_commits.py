"""The driver of the archive is killed with SIGKILL at each step of the commits of a batch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.verify import damaged
from tests.support.lakes import contents
from tests.support.objects import s3_server

pytestmark = [pytest.mark.long(seconds=60), pytest.mark.timeout(600), pytest.mark.needs(modules=("moto",))]

DRIVER = """
import os, signal, sys
import pyarrow as pa
from msmq_fast.protocol.arrow import arrow_schema
from msmq_fast.protocol.columns import chosen
from msmq_fast.spark.lake.delta import Landed, Table
from msmq_fast.spark.lake.landing import Landing
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.writing import Placing

root, number, left = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def step():
    global left
    left -= 1
    if left == -1:
        os.kill(os.getpid(), signal.SIGKILL)

def around(whole):
    def call(*arguments, **more):
        step()
        found = whole(*arguments, **more)
        step()
        return found
    return call

lake = Lake.open(root)
place = Placing(lake, "messages", "run", lambda rows: None)
for batch in (2 * number, 2 * number + 1):
    last = lake.table("bronze/messages").marked("run")
    if last is not None and last >= batch:  # as for a batch that Spark repeats
        continue
    killed = batch % 2 == 1  # the first commit of a process takes another way than the others
    rows = [{"message_id": f"m{batch}-{row}", "body": b"%d" % (3 * batch + row)} for row in range(3)]
    schema = arrow_schema(chosen("message_id,body"))
    files = []
    for row in rows:  # each is a task
        read = pa.RecordBatch.from_pylist([row], schema=schema)
        files += [Landed(**row) for row in Landing(root, events=False).land([read]).to_pylist()]
        if killed:
            step()
    if killed:
        Table.commit, os.link = around(Table.commit), around(os.link)
    place.place(files, batch)
"""
STEPS = {"s3": 7, "local": 11}
"""After each of three tasks; before and after the commits of bodies and of messages. On a disk of this
machine also before and after the link that makes the commit.
"""


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with s3_server() as server, pytest.MonkeyPatch.context() as patched:
        for name, value in server.environment.items():
            patched.setenv(name, value)
        yield f"s3://{server.bucket()}"


def run(root: str, number: int, left: int) -> int:
    path = str(Path(__file__).parents[3])
    command = [sys.executable, "-c", DRIVER, root, str(number), str(left)]
    return subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, check=False, timeout=100
    ).returncode


@pytest.mark.parametrize("place", ["local", "s3"])
def test_a_batch_is_there_once_wherever_its_driver_is_killed(bucket: str, tmp_path: Path, place: str) -> None:
    root = f"{bucket}/killed" if place == "s3" else str(tmp_path / "killed")
    lake = Lake.create(root)
    steps = STEPS[place]
    committed = steps - (1 if place == "s3" else 2)
    """The first step behind the commit of the messages."""
    for left in range(steps):
        assert run(root, left, left) == -signal.SIGKILL
        whole = {row["message_id"].partition("-")[0] for row in contents(lake, "messages")}
        assert (f"m{2 * left + 1}" in whole) is (left >= committed)
        assert run(root, left, 100) == 0
    rows = contents(lake, "messages")
    expected = [f"m{batch}-{row}" for batch in range(2 * steps) for row in range(3)]
    assert sorted(row["message_id"] for row in rows) == sorted(expected)
    bodies = [row["body_sha256"] for row in contents(lake, "bodies")]
    assert {row["body_sha256"] for row in rows} == set(bodies)
    assert damaged(lake) == []
    assert lake.table("bronze/messages").strays()  # what the killed drivers left
