"""The columns of the lake's tables in Spark's DDL. Needs no PySpark."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.protocol.columns import BODY_COLUMNS, EVENT_COLUMNS, MESSAGE_COLUMNS, Column

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

SCHEMA_VERSION: Final = 1
"""Increases when the meaning of a column changes. Columns are only ever added."""

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
"""The columns of an event."""

MESSAGES: Final = {
    **{name: kind for name, kind in _ddl(MESSAGE_COLUMNS).items() if name not in BODY_COLUMNS},
    "body_sha256": "STRING",
    "body_kept": "BOOLEAN",
    "schema_version": "INT",
}
"""The columns of bronze/messages: headers. `body_sha256` is the key in bronze/bodies. `body_kept`: whether
the archive stored the body there.

Other columns of that size are left out.
"""

BODIES: Final = {"body_sha256": "STRING", "body": "BINARY"}

COUNTED_ON_S: Final = 3600.0
"""Seconds after its commit for which a file of bodies is searched before a body is stored. A journal or
dead-letter copy usually follows soon. `compact` finds other duplicates.
"""

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


SCHEMAS: Final = {
    "bronze/events": SILVER_EVENTS,
    "bronze/messages": MESSAGES | {"day": "DATE"},
    "bronze/bodies": BODIES,
    "bronze/counters": COUNTERS | {"day": "DATE"},
    "_quarantine/events": EVENTS | {"why": "STRING"},
    "silver/events": SILVER_EVENTS,
}
"""The columns of tables, with their partition columns. The columns of other tables result from an audit."""


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
        "DATE": pa.date32(),
    }[kind]


def table_schema(columns: dict[str, str]) -> Any:
    """Returns the pyarrow schema of columns in DDL."""
    import pyarrow as pa

    return pa.schema([(name, arrow(kind)) for name, kind in columns.items()])
