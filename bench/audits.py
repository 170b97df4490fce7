"""What an audit costs: `python -m bench.audits [--messages 3] [--days 1] [--before TREE]`.

Makes a lake in which a queue manager sends to another one, each message with four events, and measures the
processor time of `msmq-lake audit --day` on copies of it: of the command, its Java and its Python workers.
`--before`: the directory of an earlier release with its sources, audited in turns with this one. The lake is
of the first layout, which every release reads or migrates, so that both audit the same rows. Processor time
depends less on other load than the time on the clock, which is not measured.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import multiprocessing
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from msmq_fast.spark.lake.landing import shaped
from msmq_fast.spark.lake.tables import COUNTERS, EVENTS

__all__ = ["cpu_s_of", "make_lake"]

_FIRST: Final = datetime(2026, 3, 1, tzinfo=UTC)
_SENDER, _RECEIVER = (str(uuid.uuid5(uuid.NAMESPACE_DNS, name)) for name in ("sender", "receiver"))
_DEST: Final = "receiver\\private$\\orders"
_OUTGOING: Final = "DIRECT=OS:receiver\\private$\\orders"
_REST_S: Final = 79_200.0
"""Seconds of a day in which messages are sent."""
_BATCH: Final = 200_000
"""Messages of one batch of the archive."""
_SUBREAPER: Final = 36
"""PR_SET_CHILD_SUBREAPER: Java outlives the command that started it, and is to be waited for here."""


def make_lake(root: Path, messages: int, days: int) -> None:
    """Makes a lake of the first layout with so many messages on each of the days."""
    head = root / "_state" / "lake.json"
    head.parent.mkdir(parents=True)
    head.write_text(json.dumps({"schema_version": 1}))
    number = 0
    for day in range(days):
        for first in range(0, messages, _BATCH):
            before = day * messages + first
            count = min(_BATCH, messages - first)
            _batch(root, "events", number, _events(before, count, day, first / messages, count / messages))
            number += 1
        at = _FIRST + timedelta(days=day + 1, minutes=5)
        _batch(root, "counters", day, _counts((day + 1) * messages, at))


def _batch(root: Path, table: str, number: int, rows: pa.Table) -> None:
    columns = EVENTS if table == "events" else COUNTERS
    directory = root / "bronze" / table / "run=bench" / f"batch={number:010d}"
    directory.mkdir(parents=True)
    parquet.write_table(shaped(rows, columns), directory / "part-0.parquet", compression="zstd")
    (directory / "_SUCCESS").touch()


def _events(before: int, count: int, day: int, start: float, share: float) -> pa.Table:
    """The events of `count` messages behind `before` others; `start` and `share`: their part of the day."""
    ordinal = np.arange(before + 1, before + count + 1)
    begin = int((_FIRST + timedelta(days=day, hours=1)).timestamp() * 1e6)
    sent = begin + ((start + share * np.arange(count) / count) * _REST_S * 1e6).astype(np.int64)
    ids = pa.array([f"{{{_SENDER}}}\\{number}" for number in ordinal])
    known = {"message_id": ids, "class": np.zeros(count, np.int32), "packet_size": np.full(count, 1000)}

    def told(event: str, qm: str, queue: str, kind: str, place: int, delay_us: int) -> pa.Table:
        return pa.table(
            {
                "event": [event] * count,
                "qm_guid": [qm] * count,
                "source_machine": [_SENDER] * count,
                "incarnation": np.ones(count, np.int32),
                "feed_seq": 2 * ordinal - 1 + place,
                "event_time": pa.array(sent + delay_us, pa.timestamp("us", tz="UTC")),
                "queue": [queue] * count,
                "queue_kind": [kind] * count,
                "lookup_id": ordinal,
                "arrival_seq": ordinal,
                **known,
            }
        )

    return pa.concat_tables(
        [
            told("sent", _SENDER, _OUTGOING, "outgoing", 0, 0),
            told("arrived", _RECEIVER, _DEST, "queue", 0, 1_000),
            told("acked", _SENDER, _OUTGOING, "outgoing", 1, 2_000),
            told("received", _RECEIVER, _DEST, "queue", 1, 50_000),
        ]
    )


def _counts(messages: int, at: datetime) -> pa.Table:
    queues = ((_SENDER, "sender", _OUTGOING, "outgoing"), (_RECEIVER, "receiver", _DEST, "queue"))
    return pa.Table.from_pylist(
        [
            {
                "qm_guid": qm,
                "name": name,
                "incarnation": 1,
                "start": 1,
                "taken_at": at,
                "feed_first": 1,
                "feed_next": 2 * messages + 1,
                "queue": queue,
                "queue_kind": kind,
                "count": 0,
                "bytes": 0,
            }
            for qm, name, queue, kind in queues
        ]
    )


def cpu_s_of(command: Sequence[str], environment: dict[str, str]) -> tuple[float, str]:
    """Runs a command. Returns the processor seconds of it and of everything that it started, and its output.
    Raises RuntimeError with its errors if it fails.

    A process of its own waits for the command and its descendants: this one may have other children.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_measured, command, environment).result()


def _measured(command: Sequence[str], environment: dict[str, str]) -> tuple[float, str]:
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with code {done.returncode}: {done.stderr[-4000:]}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime, done.stdout


class _Tree:
    """The sources of one release."""

    def __init__(self, root: Path | None) -> None:
        path = [str(root / "src")] if root else [part for part in sys.path if part]
        self._environment = os.environ | {"PYTHONPATH": os.pathsep.join(path)}

    def run(self, verb: str, lake: Path, *words: str) -> tuple[float, str]:
        """Runs one verb of the lake's commands: processor seconds, output."""
        program = (sys.executable, "-m", "msmq_fast.spark.lake.main")
        return cpu_s_of([*program, verb, "--lake", str(lake), *words], self._environment)


def _copy(lake: Path, directory: Path) -> Path:
    target = directory / uuid.uuid4().hex
    shutil.copytree(lake, target)
    return target


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the processor seconds of each audit, and their medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=3, help="messages of a day (3)")
    parser.add_argument("--days", type=int, default=1, help="days in the lake; the last one is audited (1)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", type=Path, metavar="TREE", help="an earlier release to compare with")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="for the lakes")
    options = parser.parse_args(arguments)
    day = str((_FIRST + timedelta(days=options.days - 1)).date())
    trees = {"now": _Tree(None)} | ({"before": _Tree(options.before)} if options.before else {})
    used: dict[str, list[float]] = {name: [] for name in trees}
    with tempfile.TemporaryDirectory(prefix="msmq-bench-audits-", dir=options.dir) as scratch:
        directory = Path(scratch)
        lakes = {"before": directory / "first"}
        make_lake(lakes["before"], options.messages, options.days)
        lakes["now"] = _copy(lakes["before"], directory)
        trees["now"].run("migrate", lakes["now"])
        for turn in range(options.rounds):
            for name in sorted(trees, reverse=bool(turn % 2)):
                copy = _copy(lakes[name], directory)
                cpu_s, said = trees[name].run("audit", copy, "--day", day, "--json")
                shutil.rmtree(copy)
                _check(json.loads(said.splitlines()[-1]), options.messages)
                used[name].append(cpu_s)
                print(f"{name:7} {cpu_s:7.1f} s", flush=True)
    medians = {name: statistics.median(found) for name, found in used.items()}
    for name, median in medians.items():
        print(f"{name}: median {median:.1f} s, least {min(used[name]):.1f} s")
    if options.before:
        print(f"now to before: {medians['now'] / medians['before']:.2f}")
    return 0


def _check(found: dict[str, Any], messages: int) -> None:
    """Raises RuntimeError if an audit did not find the messages, each of them received."""
    if (found["sent"], found["received"], found["lost"]) != (messages, messages, 0):
        raise RuntimeError(f"the audit is wrong: {found}")


if __name__ == "__main__":
    sys.exit(main())
