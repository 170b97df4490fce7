"""Lakes made without a server: bronze tables as the archive writes them, by pyarrow alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from msmq_fast.spark.lake.layout import Lake, batch_directory
from msmq_fast.spark.lake.tables import COUNTERS, EVENTS, MESSAGES, arrow

TABLES = {"events": EVENTS, "counters": COUNTERS, "messages": MESSAGES}


def write_batch(
    lake: Lake,
    table: str,
    number: int,
    rows: list[dict[str, Any]],
    *,
    run: str = "test",
    success: bool = True,
) -> Path:
    """One batch directory; without `success` as a kill in the middle leaves it."""
    schema = pa.schema([pa.field(name, arrow(kind)) for name, kind in TABLES[table].items()])
    directory = Path(lake.path(batch_directory(table, run, number)))
    directory.mkdir(parents=True)
    parquet.write_table(pa.Table.from_pylist(rows, schema=schema), directory / "part-0.parquet")
    if success:
        (directory / "_SUCCESS").touch()
    return directory
