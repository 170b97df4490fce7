"""A lake on a disk of four megabytes, which is full for a while: `… fulldisk DISK WHAT`.

To be run where DISK is such a disk. Prints one JSON object: what was said when it was full, what was left
then, and what the lake had when there was room again. `tasks`: without Spark; `archive`: the whole verb.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from msmq_fast.protocol.arrow import arrow_schema
from msmq_fast.protocol.columns import chosen
from msmq_fast.spark.lake.delta import Landed
from msmq_fast.spark.lake.failures import explained
from msmq_fast.spark.lake.landing import Landing
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.main import main
from msmq_fast.spark.lake.writing import Placing
from tests.spark.fakeserver import serving
from tests.support.lakes import contents

LEFT = 400_000
"""Bytes that are free while the disk is full."""
BODIES = [random.Random(number).randbytes(1000) for number in range(1000)]


@contextmanager
def full(directory: Path) -> Iterator[None]:
    """Somebody else's file takes the room."""
    ballast = directory / "ballast"
    with ballast.open("wb") as file:
        file.write(bytes(os.statvfs(directory).f_bavail * os.statvfs(directory).f_frsize - LEFT))
    try:
        yield
    finally:
        ballast.unlink()


def rows_of(lake: Lake, table: str) -> int:
    return len(contents(lake, table))


def tasks(directory: Path) -> dict[str, Any]:
    """One task and its driver."""
    lake = Lake.create(str(directory / "lake"))
    rows = [{"message_id": f"m{number}", "body": body} for number, body in enumerate(BODIES)]
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(chosen("message_id,body")))
    landing = Landing(lake.root, events=False)
    said = ""
    with full(directory):
        try:
            landing.land([batch])
        except OSError as error:
            said = str(explained(error))
        left = [str(path) for path in Path(lake.root).rglob("*.parquet")]
    landed = landing.land([batch]).to_pylist()
    Placing(lake, "messages", "r", lambda rows: None).place([Landed(**row) for row in landed], 0)
    return {"said": said, "left": left, "messages": rows_of(lake, "messages")}


def archive(directory: Path) -> dict[str, Any]:
    """`msmq-lake archive --once`, twice."""
    lake = str(directory / "lake")
    with serving() as server, full(directory):
        server.manager.create("orders")
        for body in BODIES:
            server.manager.send("orders", body)
        command = ["archive", "--lake", lake, "--url", server.url, "--content", "messages,events"]
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            failed = main(command)
        counted = rows_of(Lake.open(lake), "messages")
        os.truncate(directory / "ballast", 0)
        went_on = main([*command, "--json"])
    found = {table: rows_of(Lake.open(lake), table) for table in ("messages", "bodies", "events")}
    return {"said": said.getvalue(), "codes": [failed, went_on], "counted_when_full": counted, **found}


if __name__ == "__main__":
    print(json.dumps({"tasks": tasks, "archive": archive}[sys.argv[2]](Path(sys.argv[1]))))
