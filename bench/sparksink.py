"""Writing into queues with Spark: `python -m bench.sparksink [--rows N]`.

A fresh server and an empty queue; `local[2]`, two partitions of rows that Spark makes itself, with the same
body and a label of its own each. A turn is one job: to the stage from `save()` until the server has the last
row, as a whole until it has published the job, which is when receivers see it, and `save()` returns. Best and
median of the turns after two that warm up.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.process import family_cpu_s
from bench.server import Server
from bench.sparksource import QUEUE, WARM, session
from msmq_fast import sync

PARTITIONS: Final = 2
LOOK_S: Final = 0.05


@contextmanager
def _arriving(server: Server) -> Iterator[list[float]]:
    """Where the time goes at which the server had got everything of the stages, after the block."""
    ended = threading.Event()
    last: list[float] = []

    def look() -> None:
        bytes_in = -1.0
        while not ended.wait(LOOK_S):
            now, seen = time.perf_counter(), server.metrics()["msmq_fast_bulk_received_bytes_total"]
            if seen != bytes_in:
                bytes_in, last[:] = seen, [now]

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield last
    finally:
        ended.set()
        looking.join()


def _rates(what: str, rows: int, seconds: Sequence[float]) -> dict[str, float]:
    warm = sorted(seconds[WARM:])
    return {f"{what}_best": rows / warm[0], f"{what}_median": rows / statistics.median(warm)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one JSON object. RuntimeError: the queue does not have what was written."""
    parser = argparse.ArgumentParser(prog="python -m bench.sparksink", description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--body", type=int, default=1024, help="bytes (1024)")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args(arguments)
    with Server(given.directory, queues=[QUEUE]) as server:
        spark = session()
        rows = spark.range(0, given.rows, 1, PARTITIONS).selectExpr(
            f"cast(repeat('.', {given.body}) as binary) as body", "cast(id as string) as label"
        )
        staged: list[float] = []
        whole: list[float] = []
        used = 0.0
        for turn in range(WARM + given.turns):
            if turn == WARM:
                used = family_cpu_s(os.getpid())
            with _arriving(server) as last:
                begun = time.perf_counter()
                rows.write.format("msmq").mode("append").options(
                    url=f"msmq+bulk://127.0.0.1:{server.admin_port}", queue=QUEUE, jobId=f"turn {turn}"
                ).save()
                whole.append(time.perf_counter() - begun)
            staged.append(last[0] - begun)
        used = (family_cpu_s(os.getpid()) - used) / given.turns
        spark.stop()
        with sync.connect(f"unix:{server.socket}") as connection:
            depth = connection.admin.queues.get(QUEUE).messages
    if depth != given.rows * len(whole):
        raise RuntimeError(f"the queue has {depth} messages of {given.rows * len(whole)}")
    found = {"rows": given.rows, "cpu_us_per_row": used / given.rows * 1e6}
    found |= _rates("staged_per_s", given.rows, staged) | _rates("whole_per_s", given.rows, whole)
    print(json.dumps({name: round(value, 1) for name, value in found.items()}))


if __name__ == "__main__":
    main()
