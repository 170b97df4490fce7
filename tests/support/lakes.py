"""Lakes made without a server: bronze tables as the archive writes them, without Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from msmq_fast.spark.lake.delta import Landed, Mark
from msmq_fast.spark.lake.files import Files, split
from msmq_fast.spark.lake.landing import shaped, with_partitions
from msmq_fast.spark.lake.layout import PARTITIONS, Lake
from msmq_fast.spark.lake.tables import BODIES, COUNTERS, EVENTS, MESSAGES, SCHEMAS, table_schema

TABLES = {"events": EVENTS, "counters": COUNTERS, "messages": MESSAGES, "bodies": BODIES}


def write_batch(
    lake: Lake,
    table: str,
    number: int,
    rows: list[dict[str, Any]],
    *,
    run: str = "test",
    success: bool = True,
) -> list[Landed]:
    """One batch; without `success` as a kill before its commit leaves it."""
    name = f"bronze/{table}"
    whole = shaped(pa.Table.from_pylist(rows, schema=table_schema(TABLES[table])), TABLES[table])
    files = Files(lake)
    for partition, part in split(with_partitions(name, whole), PARTITIONS[name]):
        files.write(name, part, partition)
    landed = files.close()
    if success:
        lake.table(name).commit(landed, table_schema(SCHEMAS[name]), marks=[Mark(run, number)])
    return landed


def write_day(lake: Lake, table: str, day: str, rows: pa.Table) -> None:
    """The part of one day of a table, as an audit writes it."""
    files = Files(lake)
    files.write(table, rows, {"day": day})
    schema = rows.schema.append(pa.field("day", pa.date32()))
    lake.table(table).commit(files.close(), schema, removed=lake.table(table).files(day=day))


def contents(lake: Lake, table: str) -> list[dict[str, Any]]:
    """The rows of a bronze table."""
    found = lake.dataset(f"bronze/{table}")
    return [] if found is None else list(found.to_table().to_pylist())
