"""Numbered parts of a request into a queue: each becomes visible as a whole, and once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

    from msmq_fast.spark.bulk import BulkClient

SENT: Final = (
    "message_id",
    "label",
    "priority",
    "correlation_id",
    "app_specific",
    "body_type",
    "extension",
    "delivery",
    "resp_format_name",
)
"""Columns that a message takes from the one that it repeats, beside the body. Times to live and
acknowledgments are left behind: the old times are over, and nobody waits for the acknowledgments.
"""
CHUNK: Final = 10_000
"""Messages of a part."""


def send_part(client: BulkClient, writer: str, number: int, rows: pa.Table, queue: str) -> int:
    """Part `number` of `writer`; how many messages, 0 if it had been written before. Raises BulkError."""
    stage = client.stage(
        writer,
        number,
        0,
        time.time_ns(),
        rows.schema,
        rows.to_batches(),
        queue=queue,
        defaults={"message_id": "extension"},
    )
    return client.publish(writer, 0, number, [stage.stage]).rows
