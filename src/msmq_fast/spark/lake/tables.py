"""The columns of the lake's tables, as Spark's DDL; no pyspark is needed to know them."""

from __future__ import annotations

from typing import Final

from msmq_fast.bulk.schema import EVENT_COLUMNS, MESSAGE_COLUMNS, Column

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
"""Of events: null wherever the queue manager does not tell them."""

_BODY_COLUMNS: Final = ("body", "raw_packet", "compound_body", "soap_envelope")
"""Of messages: kept apart, by their hash, or not at all."""


def _ddl(columns: tuple[Column, ...]) -> dict[str, str]:
    return {column.name: _TYPES[column.kind] for column in columns}


EVENTS: Final = {**_ddl(_KNOWN_LATER), **_ddl(EVENT_COLUMNS), "schema_version": "INT"}
"""bronze/events, and silver/events beside `day` and `qm`."""

MESSAGES: Final = {
    **{name: kind for name, kind in _ddl(MESSAGE_COLUMNS).items() if name not in _BODY_COLUMNS},
    "body_sha256": "STRING",
    "schema_version": "INT",
}
"""bronze/messages: headers; `body_sha256` leads to bronze/bodies."""

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
"""bronze/counters: what queue managers said of themselves, one row per queue."""

SILVER_EVENTS: Final = {**EVENTS, "day": "DATE", "qm": "STRING"}

GOLD: Final = (
    "queue_minute",
    "latency",
    "nack_by_class",
    "sequence_gaps",
    "duplicates",
    "poison",
    "reconciliation",
    "coverage",
    "counters",
)


def ddl(columns: dict[str, str]) -> str:
    """A schema for `spark.read.schema`."""
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
