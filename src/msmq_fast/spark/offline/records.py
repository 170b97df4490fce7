"""Reads the tables `queues`, `writers` and `raw`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from msmq_fast.protocol.columns import Column
from msmq_fast.spark.offline.backend import Backend, every
from msmq_fast.spark.offline.catalogue import Catalogue, QueueEntry, metas
from msmq_fast.store import decode
from msmq_fast.store.decode import DecodeError
from msmq_fast.store.schema import MetaName, Table

QUEUE_COLUMNS: Final = (
    Column("qm_guid", "string"),
    Column("incarnation", "int32"),
    Column("queue", "string"),
    Column("queue_guid", "string"),
    Column("queue_kind", "string"),
    Column("ordinal", "int64"),
    Column("label", "string"),
    Column("type_guid", "string"),
    Column("transactional", "bool"),
    Column("journaling", "bool"),
    Column("authenticated", "bool"),
    Column("quota_kb", "int64"),
    Column("journal_quota_kb", "int64"),
    Column("created_time", "timestamp"),
    Column("modified_time", "timestamp"),
    Column("deleting", "bool"),
    Column("_corrupt", "binary"),
)
WRITER_COLUMNS: Final = (
    Column("qm_guid", "string"),
    Column("incarnation", "int32"),
    Column("writer", "string"),
    Column("epoch", "int64"),
    Column("batch", "int64"),
    Column("messages", "int64"),
    Column("published_time", "timestamp"),
    Column("owner", "string"),
    Column("_corrupt", "binary"),
)
RAW_COLUMNS: Final = (
    Column("table_name", "string"),
    Column("key", "binary"),
    Column("value", "binary"),
)
_SECRETS: Final = MetaName.SECRET  # sealed private keys are never exported


def queue_rows(backend: Backend, catalogue: Catalogue) -> Iterator[tuple[dict[str, Any], int]]:
    """Yields (row, 0) for every queue. The row of an unreadable record has the column `_corrupt`."""
    for ordinal, queue in sorted(catalogue.queues.items()):
        row: dict[str, Any] = {
            "qm_guid": catalogue.guid,
            "incarnation": catalogue.incarnation,
            "queue": queue.name,
            "queue_guid": queue.guid,
            "queue_kind": queue.kind,
            "ordinal": ordinal,
        }
        if queue.record is None:
            value = backend.get(Table.QUEUE, ordinal.to_bytes(4, "big"))
            yield row | {"_corrupt": value or b""}, 0
        else:
            yield row | _properties(queue, queue.record), 0


def _properties(queue: QueueEntry, record: dict[str, Any]) -> dict[str, Any]:
    stated = record.get("properties")
    properties = stated if isinstance(stated, dict) else record
    kind = properties.get("type")
    return {
        "label": _checked(properties, "label", str),
        "type_guid": str(UUID(bytes_le=kind)) if isinstance(kind, bytes) and len(kind) == 16 else None,
        "transactional": _checked(properties, "transactional", bool),
        "journaling": _checked(properties, "journaling", bool),
        "authenticated": _checked(properties, "authenticated", bool),
        "quota_kb": _checked(properties, "quota_kb", int),
        "journal_quota_kb": _checked(properties, "journal_quota_kb", int),
        "created_time": _seconds(record.get("created")),
        "modified_time": _seconds(record.get("modified")),
        "deleting": queue.deleting,
    }


def _checked(properties: dict[str, Any], name: str, kind: type) -> Any:
    value = properties.get(name)
    return value if type(value) is kind else None


def _seconds(value: Any) -> int | None:
    return value * 1_000_000 if type(value) is int and 0 < value < 1 << 32 else None


def writer_rows(backend: Backend, catalogue: Catalogue) -> Iterator[tuple[dict[str, Any], int]]:
    """Yields one pair for every writer that publishes staged batches: a row about the last batch that the
    writer published, and the size of the stored record in bytes.
    """
    for name, value in metas(backend, MetaName.WRITER):
        row: dict[str, Any] = {
            "qm_guid": catalogue.guid,
            "incarnation": catalogue.incarnation,
            "writer": name.decode(errors="replace"),
        }
        try:
            epoch, batch, messages, published_s, owner, *_ = decode.cold(value)
            row["published_time"] = int(published_s) * 1_000_000
            row |= {"epoch": int(epoch), "batch": int(batch), "messages": int(messages), "owner": str(owner)}
        except (DecodeError, TypeError, ValueError):
            row["_corrupt"] = value
        yield row, len(value)


def raw_rows(backend: Backend) -> Iterator[tuple[dict[str, Any], int]]:
    """Yields (row, size of key and value in bytes) for every record of every table, except the records of
    encrypted private keys.
    """
    for table in Table:
        for key, value in every(backend, table, step=64):
            if table is Table.META and key.startswith(_SECRETS):
                continue
            yield {"table_name": table.name.lower(), "key": key, "value": value}, len(key) + len(value)
