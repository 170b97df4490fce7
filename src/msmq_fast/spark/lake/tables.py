"""The columns of the lake's tables in Spark's DDL. Needs no PySpark."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.protocol.columns import BODY_COLUMNS, EVENT_COLUMNS, MESSAGE_COLUMNS, OLD_NAMES, Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader
    from pyspark.sql.types import StructType

_TYPES: Final = {
    "string": "STRING",
    "binary": "BINARY",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "bool": "BOOLEAN",
    "timestamp": "TIMESTAMP",
}

_KNOWN_LATER: Final = (
    Column("abort_count", "int32"),
    Column("prev_seq_no", "int64"),
    Column("reason", "string"),
    Column("subscription", "string"),
)
"""Columns of events. They are null if the queue manager does not report them."""


def _ddl(columns: tuple[Column, ...]) -> dict[str, str]:
    return {column.name: _TYPES[column.kind] for column in columns}


EVENTS: Final = {**_ddl(_KNOWN_LATER), **_ddl(EVENT_COLUMNS), "schema_version": "INT"}
"""The columns of bronze/events. silver/events has the same, except `day` and `qm`."""

MESSAGES: Final = {
    **{name: kind for name, kind in _ddl(MESSAGE_COLUMNS).items() if name not in BODY_COLUMNS},
    "body_sha256": "STRING",
    "schema_version": "INT",
}
"""The columns of bronze/messages: headers. `body_sha256` is the key in bronze/bodies.

Other columns of that size are left out.
"""

BODIES: Final = {"body_sha256": "STRING", "body": "BINARY"}

COUNTERS: Final = {
    "qm_guid": "STRING",
    "name": "STRING",
    "incarnation": "INT",
    "start": "BIGINT",
    "taken_at": "TIMESTAMP",
    "feed_first": "BIGINT",
    "feed_next": "BIGINT",
    "queue": "STRING",
    "queue_guid": "STRING",
    "queue_kind": "STRING",
    "count": "BIGINT",
    "bytes": "BIGINT",
}
"""The columns of bronze/counters: the counts that queue managers report about themselves, one row per
queue.
"""

LIFECYCLE: Final = (
    "day",
    "message_id",
    "sender",
    "receiver",
    "sent_to",
    "dest",
    "local",
    "waiting",
    "first_sent",
    "acked_time",
    "first_arrived",
    "first_received",
    "terminal_event",
    "terminal_time",
    "sent_to_arrived_ms",
    "arrived_to_received_ms",
    "total_ms",
    "deliveries",
    "aborts",
    "duplicates",
    "wire_duplicates",
    "moves",
    "seen_sent",
    "seen_arrived",
    "abort_count",
    "poison_queue",
    "first_abort",
    "last_abort",
    "reason",
    "dead_lettered",
    "state",
    "overdue",
    "proven",
)
"""The columns of silver/lifecycle."""

SILVER_EVENTS: Final = {**EVENTS, "day": "DATE", "qm": "STRING"}

GOLD: Final = (
    "queue_minute",
    "latency",
    "nack_by_class",
    "sequence_gaps",
    "duplicates",
    "poison",
    "undelivered",
    "reconciliation",
    "coverage",
    "counters",
    "waiting",
    "latency_day",
    "audits",
)


def ddl(columns: dict[str, str]) -> str:
    """Returns the schema of the columns `columns` in DDL, for `spark.read.schema`."""
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def load(reader: DataFrameReader, columns: dict[str, str], *paths: str) -> DataFrame:
    """Reads Parquet files with the columns of this release, in order.

    A column that a file has under its old name is read under that name. A column that a file lacks is null.
    """
    from pyspark.sql import functions as F

    before = {new: old for old, new in OLD_NAMES.items() if new in columns}
    rows = reader.schema(ddl(columns | {old: columns[new] for new, old in before.items()})).parquet(*paths)
    return rows.select(
        *(
            F.coalesce(F.col(name), F.col(before[name])).alias(name) if name in before else F.col(name)
            for name in columns
        )
    )


def struct(columns: dict[str, str]) -> StructType:
    """Returns the schema of these columns as a StructType, for declarative pipelines, in which Spark must not
    be asked to parse DDL.
    """
    from pyspark.sql import types

    kinds = {
        "STRING": types.StringType(),
        "BINARY": types.BinaryType(),
        "TINYINT": types.ByteType(),
        "SMALLINT": types.ShortType(),
        "INT": types.IntegerType(),
        "BIGINT": types.LongType(),
        "BOOLEAN": types.BooleanType(),
        "TIMESTAMP": types.TimestampType(),
        "DATE": types.DateType(),
    }
    return types.StructType([types.StructField(name, kinds[kind]) for name, kind in columns.items()])


@cache
def arrow(kind: str) -> Any:
    """Returns the pyarrow type for a column type in DDL."""
    import pyarrow as pa

    return {
        "STRING": pa.string(),
        "BINARY": pa.binary(),
        "TINYINT": pa.int8(),
        "SMALLINT": pa.int16(),
        "INT": pa.int32(),
        "BIGINT": pa.int64(),
        "BOOLEAN": pa.bool_(),
        "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    }[kind]
