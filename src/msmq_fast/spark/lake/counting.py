"""Writes bronze/counters: the message counts of the queue managers, which an audit compares with their
events.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from msmq_fast.client.bulk.client import Bounds, BulkClient
from msmq_fast.spark.lake.layout import PARTITIONS, Lake
from msmq_fast.spark.lake.tables import COUNTERS, SCHEMAS, table_schema

_TABLE: Final = "bronze/counters"
_CONTENTS: Final = ("messages", "journal", "deadletter")


def look(client: BulkClient) -> list[dict[str, Any]]:
    """Returns the counts of a queue manager: one row per queue, or one row without a queue if it has no
    queues. Raises BulkError.

    Each kind of queue is a separate request. `feed_next` in a row is the position of the event feed at which
    the messages of this queue were counted. `taken_at` is the time before the first request: the counts
    include all events up to this time.
    """
    now = datetime.now(UTC)
    looks = [
        client.bounds(pattern=None if content == "deadletter" else ".*", content=content)
        for content in _CONTENTS
    ]
    rows = [row for bounds in looks for row in _rows(bounds, now)]
    return rows or [_head(client.bounds(content="events"), now)]


def note(lake: Lake, rows: Iterable[dict[str, Any]]) -> None:
    """Adds the rows to bronze/counters, all or none. Raises OSError and Conflict."""
    import pyarrow as pa

    from msmq_fast.spark.lake.files import Files, split
    from msmq_fast.spark.lake.landing import with_partitions

    table = with_partitions(_TABLE, pa.Table.from_pylist(list(rows), schema=table_schema(COUNTERS)))
    files = Files(lake)
    for partition, part in split(table, PARTITIONS[_TABLE]):
        files.write(_TABLE, part, partition)
    lake.table(_TABLE).commit(files.close(), table_schema(SCHEMAS[_TABLE]))


def _rows(bounds: Bounds, now: datetime) -> list[dict[str, Any]]:
    head = _head(bounds, now)
    return [
        {
            **head,
            "queue": queue.name,
            "queue_guid": queue.guid,
            "queue_kind": queue.kind,
            "count": queue.messages,
            "bytes": queue.bytes,
        }
        for queue in bounds.queues
    ]


def _head(bounds: Bounds, now: datetime) -> dict[str, Any]:
    return {
        "qm_guid": bounds.qm,
        "name": bounds.name,
        "incarnation": bounds.incarnation,
        "start": bounds.start,
        "taken_at": now,
        "feed_first": bounds.feed_first,
        "feed_next": bounds.feed_next,
    }
