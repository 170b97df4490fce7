"""An executor that got the plain Python of the package only: stores and captures are read all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.spark import stores, traffic
from tests.spark.conversations import conversation

PROGRAM = """
import sys
sys.modules["msmq_fast._native"] = None  # as if it were not there
from msmq_fast.spark.pcap.tables import Scan, read
scan = Scan("frames", (sys.argv[1],), frozenset((1801,)))
frames = [row for batch in read(scan) for row in batch.to_pylist()]
print(sum(row["packet_type"] == "user" for row in frames), frames[4]["label"])

from msmq_fast.spark.source import spark_schema
from msmq_fast.spark.storereader import store_columns, store_options, store_reader
options = store_options({"path": sys.argv[2], "queues": "orders"})
reader = store_reader(options, spark_schema(store_columns(options)))
rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
print(len(rows), {row["_corrupt"] for row in rows})

from msmq_fast.spark import functions
print(functions.msmq_class_name.plain(2))
"""


def test_stores_captures_and_bodies(tmp_path: Path) -> None:
    capture = traffic.write(tmp_path / "a.pcap", conversation(9).packets)
    directory = tmp_path / "store"
    directory.mkdir()
    keeper = stores.Keeper(directory)
    keeper.queue(r".\private$\orders")
    keeper.fill(r".\private$\orders", 12)
    keeper.close()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(capture), str(directory)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.splitlines() == ["9 number 1", "12 {None}", "ACK_REACH_QUEUE"], done.stderr
