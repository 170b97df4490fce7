"""Sends the messages of an import or a replay to a queue in numbered parts. Each part becomes visible as a
whole, exactly once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from msmq_fast.client.bulk.stream import MOST_BATCH, slices

if TYPE_CHECKING:
    import pyarrow as pa

    from msmq_fast.client.bulk.client import BulkClient

SENT: Final = (
    "message_id",
    "label",
    "priority",
    "correlation_id",
    "app_specific",
    "body_type",
    "extension",
    "delivery",
    "response_queue",
)
"""Columns that a message takes from the message that it repeats, in addition to the body.

Times to live and acknowledgments are left out: the old times have passed, and nothing reads the
acknowledgments.
"""
CHUNK: Final = 10_000
"""The number of messages of a part."""
CHUNK_BYTES: Final = 64 << 20
"""The bytes of the bodies of a part, which are held in memory and sent to a server at once
(`bulk.max_stage_bytes`).
"""


def parts(
    batches: Iterable[pa.RecordBatch], rows: int = CHUNK, size: int = CHUNK_BYTES
) -> Iterator[pa.Table]:
    """Yields the rows of all batches in parts of `rows` messages, or of fewer if their bodies would exceed
    `size` bytes in total.

    The same rows always form the same parts, however they are divided into batches.
    """
    import pyarrow as pa
    from pyarrow import compute

    held: list[pa.RecordBatch] = []
    count = held_bytes = 0
    for batch in batches:
        lengths = compute.fill_null(compute.binary_length(batch.column("body")), 0).to_pylist()
        begin = 0
        for place, length in enumerate(lengths):
            if count and (count == rows or held_bytes + length > size):
                held.append(batch.slice(begin, place - begin))
                yield pa.Table.from_batches(held).combine_chunks()
                held, begin, count, held_bytes = [], place, 0, 0
            count += 1
            held_bytes += length
        held.append(batch.slice(begin))
    if count:
        yield pa.Table.from_batches(held).combine_chunks()


def send_part(client: BulkClient, writer: str, number: int, rows: pa.Table, queue: str) -> int:
    """Sends the part with the number `number` of the writer `writer`. Returns the number of messages written,
    0 if this part was written before. Raises BulkError.
    """
    stage = client.stage(
        writer,
        number,
        0,
        time.time_ns(),
        rows.schema,
        (part for whole in rows.to_batches() for part in slices(whole, MOST_BATCH)),
        queue=queue,
        defaults={"message_id": "extension"},
    )
    return client.publish(writer, 0, number, [stage.stage]).rows
