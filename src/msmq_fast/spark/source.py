"""Readers of `format("msmq")`: they read queues of one or several queue managers, as a batch or a stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from msmq_fast.client.bulk.client import BulkClient, BulkError
from msmq_fast.protocol.arrow import arrow_schema
from msmq_fast.protocol.columns import DELIVERY_SEQUENCE, Column, chosen, chosen_events
from msmq_fast.spark.decoding import BODY_TEXT
from msmq_fast.spark.lag import Lag
from msmq_fast.spark.limits import Limits
from msmq_fast.spark.losses import Losses, SourceError
from msmq_fast.spark.offsets import Offset
from msmq_fast.spark.options import (
    COLUMNS,
    CONNECTION,
    GROUPS,
    Option,
    OptionError,
    Options,
    check_columns,
    endpoints,
)
from msmq_fast.spark.partitions import Reading, RowsPartition, packed, read_rows
from msmq_fast.spark.queue_managers import QueueManagers
from msmq_fast.spark.read_modes.events import EventsMode
from msmq_fast.spark.read_modes.keep import KeepMode
from msmq_fast.spark.read_modes.remove import RemoveMode
from msmq_fast.spark.schemas import spark_schema as spark_schema
from msmq_fast.spark.selection import Positions, Selection, explain, position_options

FORMAT: Final = "msmq"
OPTIONS: Final = (
    *CONNECTION,
    Option("subscribe", "text", None, "path names of queues, separated by commas"),
    Option("subscribePattern", "text", None, "regular expression that path names must match"),
    Option("assign", "json", None, 'queues of each queue manager, `{"url": ["queue"]}`'),
    Option("content", "messages|journal|deadletter|events", "messages", "what to read from the queues"),
    *COLUMNS,
    Option("decode", "none|text|utf16|xml|json", "none", "the column `body_text`"),
    Option(
        "startingOffsets",
        "positions",
        None,
        "earliest, latest or JSON; default: latest (stream), earliest (batch)",
    ),
    Option("endingOffsets", "positions", None, "for a batch: latest or JSON"),
    Option("startingTimestamp", "integer", None, "milliseconds since 1970, by arrival time"),
    Option("endingTimestamp", "integer", None, "end of a batch, likewise; not included"),
    Option("startingOffsetsByTimestamp", "json", None, 'milliseconds by queue, `{"orders": 1700000000000}`'),
    Option("endingOffsetsByTimestamp", "json", None, "for a batch, likewise"),
    Option("maxRowsPerTrigger", "count", None, "rows of one batch"),
    Option("maxBytesPerTrigger", "size", None, "bytes of one batch; at least one row of a queue is read"),
    Option("minRowsPerTrigger", "count", None, "smallest number of rows of a batch"),
    Option("maxTriggerDelay", "duration", "15m", "longest wait for minRowsPerTrigger"),
    Option("minPartitions", "count", None, "smallest number of tasks of one batch"),
    Option("maxRowsPerPartition", "count", None, "rows of one task"),
    Option("onSourceCommit", "keep|remove", "keep", "keep or remove messages that were processed"),
    Option("subscription", "text", None, "name under which messages are leased, or events are kept"),
    Option("lease", "duration", "15m", "how long messages of a batch stay locked"),
    Option("failOnDataLoss", "flag", "true", "fail the query if rows are or may be lost"),
)

POLL_S: Final = 0.05
"""Seconds between two polls of an idle query. Spark itself would poll a hundred times per second."""


T = TypeVar("T")


class Engine(Protocol):
    """The planner of a query: `KeepMode`, `RemoveMode` or `EventsMode`."""

    @property
    def mode(self) -> str:
        """The mode of the engine's offsets: keep, remove or events."""

    @property
    def lag(self) -> Lag:
        """How far the query was behind when `latest` was called last."""

    def initial(self) -> Offset:
        """Returns the offset at which the query begins."""

    def prepare(self) -> None:
        """Limits the query to the rows that exist now."""

    def latest(self, start: Offset, *, limited: bool) -> Offset:
        """Returns the end of the next batch, or `start` if there is nothing to read. `limited`: the limits of
        the options apply.
        """

    def partitions(self, start: Offset, stop: Offset) -> list[RowsPartition]:
        """Returns the partitions of the batch between two offsets, one for each task."""

    def confirm(self, offset: Offset) -> None:
        """Called when the query has processed all rows up to `offset`. Never raises."""


def source_options(given: Mapping[str, str]) -> Options:
    """Returns the options of a query that reads. Raises OptionError."""
    return Options(given, OPTIONS, FORMAT)


def checked_options(given: Mapping[str, str], schema: StructType) -> Options:
    """Returns the options of a query that reads. Raises OptionError, also if the options select other columns
    than `schema`.
    """
    options = source_options(given)
    if schema.fieldNames() != spark_schema(columns_of(options)).fieldNames():
        raise OptionError(
            "format 'msmq' has its own columns: select them with option 'columns', not a schema"
        )
    return options


def columns_of(options: Options) -> tuple[Column, ...]:
    """Returns the columns that the options select. Raises OptionError for an unknown column."""
    try:
        if options["content"] == "events":
            options.refuse(["decode", *GROUPS], "cannot be combined with content=events")
            return chosen_events(options["columns"])
        check_columns(options)
        columns = chosen(
            options["columns"],
            body=options["includeBody"],
            raw=options["includeRaw"],
            security=options["includeSecurity"],
        )
    except ValueError as error:
        raise OptionError(f"option 'columns': {error}") from None
    before = (DELIVERY_SEQUENCE,) if options["onSourceCommit"] == "remove" else ()
    behind = (BODY_TEXT,) if options["decode"] != "none" else ()
    return (*before, *columns, *behind)


class _Reader:
    """The base class of both readers. It is pickled to executors, without the connections of the driver."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._endpoints = endpoints(options)
        selection = Selection(options)
        selection.check_urls(endpoint.url for endpoint in self._endpoints)
        self._limits = _limits(options)
        self._managers = QueueManagers([BulkClient(endpoint) for endpoint in self._endpoints], selection)
        self._reading = Reading(
            options["content"],
            tuple(schema.fieldNames()),
            arrow_schema(columns_of(options)),
            options["failOnDataLoss"],
            None if options["decode"] == "none" else options["decode"],
        )

    def __getstate__(self) -> dict[str, Any]:
        return {"_reading": self._reading}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of one partition, on an executor."""
        if isinstance(partition, RowsPartition):
            yield from read_rows(partition, self._reading)

    def _losses(self) -> Losses:
        return Losses(fail=self._options["failOnDataLoss"])

    def _url(self) -> str:
        return ", ".join(endpoint.url for endpoint in self._endpoints)


def _limits(options: Options) -> Limits:
    limits = Limits(
        options["maxRowsPerTrigger"],
        options["maxBytesPerTrigger"],
        options["minRowsPerTrigger"],
        options["maxTriggerDelay"],
        options["minPartitions"],
        options["maxRowsPerPartition"],
    )
    if limits.min_rows is None:
        options.refuse(["maxTriggerDelay"], "requires option 'minRowsPerTrigger'")
    if limits.max_rows and limits.min_rows and limits.min_rows > limits.max_rows:
        raise OptionError("option 'minRowsPerTrigger' must not be greater than 'maxRowsPerTrigger'")
    return limits


_STREAM_ONLY: Final = (
    "maxRowsPerTrigger",
    "maxBytesPerTrigger",
    "minRowsPerTrigger",
    "maxTriggerDelay",
    "subscription",
    "lease",
)
_BATCH_ONLY: Final = position_options("ending")


class MsmqReader(_Reader, DataSourceReader):
    """Reads, as a batch, the rows that exist between two positions when the query is planned."""

    def __init__(self, options: Options, schema: StructType) -> None:
        for name in _STREAM_ONLY:
            if name in options.given:
                raise OptionError(f"option {name!r} is for streams only: use spark.readStream")
        if options["onSourceCommit"] == "remove":
            raise OptionError(
                "option 'onSourceCommit' cannot be remove in a batch query, because Spark does not confirm "
                "that a batch query has succeeded: use spark.readStream with trigger(availableNow=True)"
            )
        super().__init__(options, schema)

    def partitions(self) -> list[InputPartition]:
        """Plans the query, which reads only rows that exist now, and returns one partition for each task."""
        options = self._options
        starting = Positions(options, "starting", "earliest")
        ending = Positions(options, "ending", "latest")
        kind = EventsMode if options["content"] == "events" else KeepMode
        engine = kind(self._managers, starting, self._limits, self._losses())
        try:
            end = engine.whole(ending)
            return [*packed(engine.partitions(Offset(engine.mode), end), self._limits)]
        except BulkError as error:
            raise SourceError(explain(error, self._url())) from None
        finally:
            self._managers.close()


class MsmqStreamReader(_Reader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the rows of a streaming query. Spark keeps one reader in a Python process of the driver, which
    plans the batches; copies of the reader read the partitions on executors.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        for name in _BATCH_ONLY:
            if name in options.given:
                raise OptionError(f"option {name!r} is for batch queries only: use spark.read")
        super().__init__(options, schema)
        self._engine = self._planner()
        self._source = f"{self._engine.mode} {self._managers.selection} at {self._url()}"
        self._looked = False
        self._asked = 0.0
        self.poll_s = POLL_S

    def _planner(self) -> Engine:
        options, losses = self._options, self._losses()
        remove = options["onSourceCommit"] == "remove"
        starting = Positions(options, "starting", "latest")
        if options["content"] == "events":
            if remove:
                raise OptionError(
                    "option 'onSourceCommit' cannot be remove with content=events: events are never removed"
                )
            options.refuse(["lease"], "requires onSourceCommit=remove")
            return EventsMode(self._managers, starting, self._limits, losses, options["subscription"])
        if not remove:
            for name in ("subscription", "lease"):
                if name in options.given:
                    raise OptionError(f"option {name!r} requires onSourceCommit=remove or content=events")
            return KeepMode(self._managers, starting, self._limits, losses)
        for name in position_options("starting"):
            if name in options.given:
                raise OptionError(
                    f"option {name!r} cannot be combined with onSourceCommit=remove, which reads all messages"
                )
        subscription = options.need("subscription", "onSourceCommit=remove leases messages under this name")
        return RemoveMode(self._managers, subscription, options["lease"], self._limits, losses)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Returns the limit that Spark passes to `latestOffset`. This limit only shows whether the batch is
        limited; `latestOffset` applies the limits of the options.
        """
        if self._limits.max_rows:
            return ReadMaxRows(self._limits.max_rows)
        return ReadMaxBytes(self._limits.max_bytes) if self._limits.max_bytes else ReadAllAvailable()

    def initialOffset(self) -> dict[str, Any]:
        """Returns the offset at which a query without a checkpoint begins."""
        return self._guarded(lambda: self._engine.initial()).to_json()

    def prepareForTriggerAvailableNow(self) -> None:
        """Limits the query to the rows that exist now."""
        self._guarded(lambda: self._engine.prepare())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Returns the offset at the end of the next batch, or `start` if there is nothing to read. The query
        has processed all rows up to `start`, so the engine confirms them to the server.
        """
        self._pace()
        begin = self._offset(start)
        limited = not isinstance(limit, ReadAllAvailable) or self._limits.min_rows is not None
        end = self._guarded(lambda: self._engine.latest(begin, limited=limited))
        self._looked = True
        if end != begin:
            self._asked = 0.0
            return end.to_json()
        return start

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Returns what Spark shows as `latestOffset` in the progress report of the query: what it reads, and
        how many rows were waiting behind its end when the last batch was planned (`Lag`).
        """
        return self._engine.lag.to_json(self._source) if self._looked else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Returns the partitions of the batch between two offsets. If Spark repeats a batch, it is planned
        again.
        """
        begin, stop = self._offset(start), self._offset(end)
        return [*packed(self._guarded(lambda: self._engine.partitions(begin, stop)), self._limits)]

    def commit(self, end: dict[str, Any]) -> None:
        """Called by Spark when the query has processed all rows up to `end`."""
        self._engine.confirm(self._offset(end))

    def stop(self) -> None:
        """Closes the connections when the query ends."""
        self._managers.close()

    def _offset(self, value: dict[str, Any]) -> Offset:
        return Offset.from_json(value, self._engine.mode)

    def _guarded(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except BulkError as error:
            raise SourceError(explain(error, self._url())) from None

    def _pace(self) -> None:
        wait = self._asked + self.poll_s - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        self._asked = time.monotonic()
