"""The input of one task: ranges of numbers in queues, whose rows it reads as Arrow batches without
conversion.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Final, NamedTuple

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

PACK_RANGES: Final = 250
"""The most queues that one task reads one after the other."""
PACK_ROWS: Final = 10_000
PACK_BYTES: Final = 16 << 20
"""The most rows, and bytes of messages, of queues that are read in one task; a queue with more has tasks of
its own.
"""


class QueueRange(NamedTuple):
    """Numbers in one queue: from `begin` up to but not including `end`. `rows` is the number of rows that the
    range should have, `bytes` about their size (0 if unknown).
    """

    queue: str
    begin: int
    end: int
    rows: int
    bytes: int = 0


class RowsPartition(InputPartition):
    """The input of one task: `ranges` of numbers in queues of one queue manager.

    The numbers depend on `mode`: in "keep" they are arrival numbers of a queue, in "remove" delivery numbers
    of `subscription`, in "events" numbers of the event feed.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        incarnation: int,
        mode: str,
        ranges: tuple[QueueRange, ...],
        subscription: str = "",
    ) -> None:
        super().__init__(None)
        self.endpoint = endpoint
        self.incarnation = incarnation
        self.mode = mode
        self.ranges = ranges
        self.subscription = subscription

    @property
    def rows(self) -> int:
        """The number of rows that the ranges should have."""
        return sum(part.rows for part in self.ranges)

    def joins(self, other: RowsPartition) -> bool:
        """Whether one task can read this partition and `other`."""
        mine = (self.endpoint, self.incarnation, self.mode, self.subscription)
        return mine == (other.endpoint, other.incarnation, other.mode, other.subscription)


def packed(partitions: list[RowsPartition], limits: Limits) -> list[RowsPartition]:
    """Returns the partitions with small ones joined, so that a batch of many queues with few rows each has
    few tasks. The order of the ranges stays; `limits` may demand smaller or more tasks.
    """
    total = sum(partition.rows for partition in partitions)
    most = min(PACK_ROWS, limits.partition_rows or PACK_ROWS, limits.share_of(total) or PACK_ROWS)
    result: list[RowsPartition] = []
    ranges: list[QueueRange] = []
    rows = size = 0
    last: RowsPartition | None = None
    for partition in partitions:
        more = sum(part.bytes for part in partition.ranges)
        full = rows + partition.rows > most or size + more > PACK_BYTES or len(ranges) >= PACK_RANGES
        if last is not None and (full or not last.joins(partition)):
            result.append(_joined(last, ranges))
            ranges, rows, size = [], 0, 0
        ranges += partition.ranges
        rows, size, last = rows + partition.rows, size + more, partition
    return [*result, _joined(last, ranges)] if last is not None else []


def _joined(one: RowsPartition, ranges: list[QueueRange]) -> RowsPartition:
    return RowsPartition(one.endpoint, one.incarnation, one.mode, tuple(ranges), one.subscription)


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
                endpoint,
                manager.incarnation,
                stop.mode,
                (QueueRange(spot.path, begin, end, end - begin),),
                subscription,
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
    """Yields the rows of one partition, one range after the other. If the connection breaks, continues after
    the last received row.

    Raises SourceError if the server cannot be reached or rejects the request, and DataLoss, a SourceError, if
    planned rows are lost and failOnDataLoss is true.
    """
    with BulkClient(partition.endpoint, incarnation=partition.incarnation) as client:
        places = [_Place(part, part.begin) for part in partition.ranges]
        if len(places) > 1 and partition.mode != "events":
            yield from _read_together(client, partition, places, reading)
        for place in places:
            if not place.done:
                yield from _read_range(client, partition, place, reading)


@dataclass
class _Place:
    """How far a range has been read: `position` is the next number, `seen` the number of rows so far."""

    part: QueueRange
    position: int
    seen: int = 0
    done: bool = False

    def pass_over(self, batch: pa.RecordBatch, mode: str) -> None:
        """Note the rows of a batch as read."""
        self.position = batch.column(_KEYS[mode])[-1].as_py() + 1
        self.seen += batch.num_rows


def _read_together(
    client: BulkClient, partition: RowsPartition, places: list[_Place], reading: Reading
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of several ranges, which it reads in one stream. If anything fails, it ends early: the
    caller reads the rest one by one, and so finds out what is wrong with which range.
    """
    losses = Losses(fail=reading.fail_on_loss)
    left = iter(places)
    try:
        batches = client.rows_of(
            [(place.part.queue, place.part.begin, place.part.end) for place in places],
            content=reading.content,
            subscription=partition.subscription or None,
            columns=_columns(partition, reading),
        )
        with closing(batches):
            place = next(left)
            for batch in batches:
                if batch.num_rows:
                    place.pass_over(batch, partition.mode)
                    yield _conformed(batch, reading)
                    continue
                place.done = True
                _check_count(partition, place, losses)
                place = next(left, place)
    except BulkError as error:
        log.info("%s; reading queue by queue", error)


def _read_range(
    client: BulkClient, partition: RowsPartition, place: _Place, reading: Reading
) -> Iterator[pa.RecordBatch]:
    url, part = partition.endpoint.url, place.part
    losses = Losses(fail=reading.fail_on_loss)
    failures = 0
    while True:
        try:
            for batch in _request(client, partition, place, reading):
                if batch.num_rows:
                    place.pass_over(batch, partition.mode)
                    failures = 0
                    yield _conformed(batch, reading)
            break
        except Unavailable as error:
            failures += 1
            if failures > partition.endpoint.retries:
                raise SourceError(explain(error, url)) from None
            log.warning("%s; continuing from %d", error, place.position)
            reading.pause(partition.endpoint.retry_interval_ms / 1000)
        except GoneEvents as error:
            losses.report(f"{url}: {error}", "the query goes on with the first event that is left")
            place.position = min(max(place.position, error.first or part.end), part.end)
        except BulkError as error:
            if not _gone(error, _where(partition, part), losses):
                raise SourceError(explain(error, url)) from None
            break
    _check_count(partition, place, losses)


def _columns(partition: RowsPartition, reading: Reading) -> str:
    """Returns the columns to request. They always include the one with the number of a row, because it gives
    the position from which to continue.
    """
    more = NEEDS if reading.decode else ()
    key = _KEYS[partition.mode]
    wanted = (name for name in (key, *reading.columns, *more) if name not in ("delivery_seq", BODY_TEXT.name))
    return ",".join(dict.fromkeys(wanted))


def _request(
    client: BulkClient, partition: RowsPartition, place: _Place, reading: Reading
) -> Iterator[pa.RecordBatch]:
    """Yields the batches of a range from its position on."""
    position, part, columns = place.position, place.part, _columns(partition, reading)
    end = part.end
    if position >= end:
        return
    if partition.mode == "events":
        batches = client.events(position, end, columns=columns)
    elif partition.mode == "remove":
        batches = client.leased(partition.subscription, part.queue, position, end, columns=columns)
    else:
        batches = client.rows(part.queue, position, end, content=reading.content, columns=columns)
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


def _where(partition: RowsPartition, part: QueueRange) -> str:
    return f"{part.queue or 'the event feed'} at {partition.endpoint.url}"


def _gone(error: BulkError, where: str, losses: Losses) -> bool:
    """Returns whether an error means that the rows of a range are lost, after reporting the loss. Returns
    False for any other error.
    """
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


def _check_count(partition: RowsPartition, place: _Place, losses: Losses) -> None:
    part, missing = place.part, place.part.rows - place.seen
    if missing <= 0:
        return
    where = _where(partition, part)
    if partition.mode == "remove":
        log.warning(
            "%s: %d of %d deliveries were purged or expired meanwhile, or cannot be read (see its log)",
            where,
            missing,
            part.rows,
        )
        return
    losses.report(
        f"{where}: {missing} of {part.rows} rows between {part.begin} and {part.end - 1} went between "
        "planning and reading: received, expired or purged; or they cannot be read (see its log)",
        "the batch does without them",
    )
