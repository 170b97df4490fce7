"""The input of one task: a range of numbers in one queue, whose rows it reads as Arrow batches without
conversion.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from msmq_fast.client.bulk.client import (
    BulkClient,
    BulkError,
    Endpoint,
    GoneEvents,
    LeaseLost,
    QueueNotFound,
    Unavailable,
    WrongIncarnation,
)
from msmq_fast.spark.decoding import BODY_TEXT, NEEDS, body_texts
from msmq_fast.spark.limits import Limits
from msmq_fast.spark.losses import Losses, SourceError, log
from msmq_fast.spark.offsets import Offset
from msmq_fast.spark.queue_managers import QueueManagers
from msmq_fast.spark.selection import explain


class RowsPartition(InputPartition):
    """The range of numbers that one task reads: from `begin` up to but not including `end`. `rows`: how many
    rows the range should have.

    The numbers depend on `mode`: in "keep" they are arrival numbers of a queue, in "remove" delivery numbers
    of `subscription`, in "events" numbers of the event feed.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        incarnation: int,
        mode: str,
        queue: str,
        begin: int,
        end: int,
        rows: int,
        subscription: str = "",
    ) -> None:
        super().__init__(None)
        self.endpoint = endpoint
        self.incarnation = incarnation
        self.mode = mode
        self.queue = queue
        self.begin = begin
        self.end = end
        self.rows = rows
        self.subscription = subscription


def dense_partitions(
    managers: QueueManagers, limits: Limits, start: Offset, stop: Offset, subscription: str = ""
) -> list[RowsPartition]:
    """Returns the partitions of the batch between two consecutive offsets, in modes in which each number is a
    row. The ranges are those in `stop`.
    """
    if start == stop:
        return []
    spots = [(guid, m, s) for guid, m in stop.managers.items() for s in m.queues.values() if s.rows]
    total = sum(spot.rows for _, _, spot in spots)
    partitions = []
    for guid, manager, spot in spots:
        endpoint = managers.client_of(guid, manager.name).endpoint
        partitions += [
            RowsPartition(
                endpoint, manager.incarnation, stop.mode, spot.path, begin, end, end - begin, subscription
            )
            for begin, end in limits.cuts(spot.begin, spot.rows, total)
        ]
    return partitions


@dataclass(frozen=True)
class Reading:
    """The parameters that all tasks of a query share. `columns` are the names of the columns of the query;
    `schema` is the Arrow schema that Spark expects.
    """

    content: str
    columns: tuple[str, ...]
    schema: pa.Schema
    fail_on_loss: bool
    decode: str | None = None
    pause: Callable[[float], None] = time.sleep


_KEYS: Final = {"keep": "arrival_seq", "remove": "delivery_seq", "events": "feed_seq"}


def read_rows(partition: RowsPartition, reading: Reading) -> Iterator[pa.RecordBatch]:
    """Yields the rows of one partition. If the connection breaks, continues after the last received row.

    Raises SourceError if the server cannot be reached or rejects the request, and DataLoss, a SourceError, if
    planned rows are lost and failOnDataLoss is true.
    """
    url = partition.endpoint.url
    losses = Losses(fail=reading.fail_on_loss)
    position, seen, failures = partition.begin, 0, 0
    with BulkClient(partition.endpoint, incarnation=partition.incarnation) as client:
        while True:
            try:
                for batch in _request(client, partition, position, reading):
                    if batch.num_rows:
                        position = batch.column(_KEYS[partition.mode])[-1].as_py() + 1
                        seen += batch.num_rows
                        failures = 0
                        yield _conformed(batch, reading)
                break
            except Unavailable as error:
                failures += 1
                if failures > partition.endpoint.retries:
                    raise SourceError(explain(error, url)) from None
                log.warning("%s; continuing from %d", error, position)
                reading.pause(partition.endpoint.retry_interval_ms / 1000)
            except GoneEvents as error:
                losses.report(f"{url}: {error}", "the query goes on with the first event that is left")
                position = min(max(position, error.first or partition.end), partition.end)
            except BulkError as error:
                if not _gone(error, partition, losses):
                    raise SourceError(explain(error, url)) from None
                break
    _check_count(partition, seen, losses)


def _request(
    client: BulkClient, partition: RowsPartition, position: int, reading: Reading
) -> Iterator[pa.RecordBatch]:
    """Yields the batches of a partition from the number `position` on. They always include the column with
    this number, because it gives the position from which to continue.
    """
    end, key = partition.end, _KEYS[partition.mode]
    if position >= end:
        return
    more = NEEDS if reading.decode else ()
    wanted = (name for name in (key, *reading.columns, *more) if name not in ("delivery_seq", BODY_TEXT.name))
    columns = ",".join(dict.fromkeys(wanted))
    if partition.mode == "events":
        batches = client.events(position, end, columns=columns)
    elif partition.mode == "remove":
        batches = client.leased(partition.subscription, partition.queue, position, end, columns=columns)
    else:
        batches = client.rows(partition.queue, position, end, content=reading.content, columns=columns)
    with closing(batches):
        yield from batches


def _conformed(batch: pa.RecordBatch, reading: Reading) -> pa.RecordBatch:
    """Returns a batch with the columns in the order and the types of `reading.schema`. Columns that already
    have their type are not copied.
    """
    schema = reading.schema
    if reading.decode:
        batch = batch.append_column(BODY_TEXT.name, body_texts(batch, reading.decode))
    if batch.schema.equals(schema):
        return batch
    arrays = [batch.column(field.name) for field in schema]
    arrays = [a if a.type == f.type else a.cast(f.type) for a, f in zip(arrays, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _gone(error: BulkError, partition: RowsPartition, losses: Losses) -> bool:
    """Returns whether an error means that the rows of the partition are lost, after reporting the loss.
    Returns False for any other error.
    """
    where = f"{partition.queue or 'the event feed'} at {partition.endpoint.url}"
    if isinstance(error, QueueNotFound):
        losses.report(f"{where} was deleted before it was read", "its rows are left out")
    elif isinstance(error, WrongIncarnation):
        losses.report(f"{where}: the store was restored or copied: {error}", "the rows are left out")
    elif isinstance(error, LeaseLost):
        losses.report(
            f"{where}: {error}; its messages are back in the queue. Use a longer lease (option 'lease')",
            "the batch does without them; they come again in a later one",
        )
    else:
        return False
    return True


def _check_count(partition: RowsPartition, seen: int, losses: Losses) -> None:
    missing = partition.rows - seen
    if missing <= 0:
        return
    where = f"{partition.queue or 'the event feed'} at {partition.endpoint.url}"
    if partition.mode == "remove":
        log.warning(
            "%s: %d of %d deliveries were purged or expired meanwhile, or cannot be read (see its log)",
            where,
            missing,
            partition.rows,
        )
        return
    losses.report(
        f"{where}: {missing} of {partition.rows} rows between {partition.begin} and {partition.end - 1} went "
        "between planning and reading: received, expired or purged; or they cannot be read (see its log)",
        "the batch does without them",
    )
