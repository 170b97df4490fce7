"""What a batch of the archive costs besides reading it: `python -m bench.landings [--before TREE]`.

One process lands rows as a task of the archive does, and commits the files as its driver does, batch after
batch in a lake on this machine. It prints the processor time of a task and of a commit, the median of the
batches, without Spark. `--before`: the directory of an earlier release with its sources, measured in turns
with this one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from msmq_fast.protocol.arrow import arrow_schema
from msmq_fast.protocol.columns import EVENT_COLUMNS, chosen
from msmq_fast.spark.lake.landing import Landing
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.writing import Landed, Placing

__all__ = ["measure"]

_FIRST_US: Final = 1_772_323_200_000_000
_QM: Final = str(uuid.uuid5(uuid.NAMESPACE_DNS, "receiver"))
_QUEUE: Final = "receiver\\private$\\orders"
_BODY: Final = 1024
_CUT: Final = 4096
"""The rows of a record batch, as a server sends them."""
_CASES: Final = (("messages", 10), ("messages", 20_000), ("events", 10), ("events", 20_000))


def measure(lake: Path, content: str, rows: int, batches: int) -> dict[str, list[float]]:
    """Archives `batches` batches, each of one task with so many rows, into a new lake. Returns the processor
    milliseconds of each task and of each commit.
    """
    given = {"lake": str(lake), "run": "bench", "events": content == "events"}
    known = {field.name for field in fields(Landing)}
    task = Landing(**{name: value for name, value in given.items() if name in known})  # type: ignore[arg-type]
    table = "events" if content == "events" else "messages"
    place = Placing(Lake.create(str(lake)), table, "bench", lambda count: None)
    found: dict[str, list[float]] = {"task": [], "commit": []}
    for number in range(batches):
        read = _rows(content, number * rows, rows)
        started = time.process_time()
        landed = task.land(read)
        ended = time.process_time()
        place.place([Landed(**row) for row in landed.to_pylist()], number)
        found["task"].append((ended - started) * 1e3)
        found["commit"].append((time.process_time() - ended) * 1e3)
    return found


def _rows(content: str, before: int, count: int) -> list[pa.RecordBatch]:
    number = np.arange(before + 1, before + count + 1)
    times = pa.array(_FIRST_US + number * 10, pa.timestamp("us", tz="UTC"))
    ids = pa.array([f"{{{_QM}}}\\{one}" for one in number])
    told: dict[str, Any] = {
        "qm_guid": [_QM] * count,
        "queue": [_QUEUE] * count,
        "queue_kind": ["queue"] * count,
        "message_id": ids,
        "arrival_seq": number,
        "lookup_id": number,
        "class": np.zeros(count, np.int32),
    }
    if content == "events":
        columns = EVENT_COLUMNS
        told |= {"event": ["arrived"] * count, "event_time": times, "feed_seq": number}
        told |= {"incarnation": np.ones(count, np.int32), "source_machine": [_QM] * count}
    else:
        columns = chosen("all", body=True)
        blob = os.urandom(_BODY * count)
        bodies = [blob[at : at + _BODY] for at in range(0, len(blob), _BODY)]
        told |= {"arrived_time": times, "sent_time": times, "label": ids, "body": bodies}
        told |= {"priority": np.full(count, 3, np.int8), "body_size": np.full(count, _BODY)}
    schema = arrow_schema(columns)
    arrays = [
        pa.array(told[field.name], field.type) if field.name in told else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.table(arrays, schema=schema).to_batches(max_chunksize=_CUT)


def _turn(tree: Path | None, content: str, rows: int, options: argparse.Namespace) -> dict[str, list[float]]:
    path = (
        [str(tree / "src"), str(Path(__file__).parents[1])] if tree else [part for part in sys.path if part]
    )
    with tempfile.TemporaryDirectory(prefix="msmq-bench-landings-", dir=options.dir) as scratch:
        words = ("--lake", f"{scratch}/lake", "--content", content, "--rows", str(rows))
        done = subprocess.run(
            [sys.executable, "-m", "bench.landings", *words, "--batches", str(options.batches)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
            stdout=subprocess.PIPE,
            check=True,
        )
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the medians of each kind of batch."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", type=int, default=40, help="batches of a turn (40)")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--before", type=Path, metavar="TREE", help="an earlier release to compare with")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="for the lakes")
    parser.add_argument("--lake", type=Path, help="measure only one kind of batch, in this lake, as JSON")
    parser.add_argument("--content", default="messages", choices=("messages", "events"))
    parser.add_argument("--rows", type=int, default=10)
    options = parser.parse_args(arguments)
    if options.lake:
        print(json.dumps(measure(options.lake, options.content, options.rows, options.batches)))
        return 0
    trees: dict[str, Path | None] = {"now": None} | ({"before": options.before} if options.before else {})
    for content, rows in _CASES:
        found: dict[str, list[float]] = {}
        for turn in range(options.turns):
            for name in sorted(trees, reverse=bool(turn % 2)):
                for part, values in _turn(trees[name], content, rows, options).items():
                    found.setdefault(f"{part} {name}", []).extend(values[1:])  # the first one makes the table
        shown = (f"{part} {statistics.median(values):.2f} ms" for part, values in sorted(found.items()))
        print(f"{rows:7} {content:9} {', '.join(shown)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
