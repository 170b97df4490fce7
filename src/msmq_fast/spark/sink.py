"""Writers of `format("msmq")`: each row becomes a message, and each batch becomes visible as a whole, exactly
once.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from msmq_fast.client.bulk.client import BulkClient, BulkError, Endpoint, Fenced, TooLarge
from msmq_fast.client.bulk.stream import MOST_BATCH, slices
from msmq_fast.protocol.columns import DELIVERY_SEQUENCE, MESSAGE_COLUMNS, OLD_NAMES
from msmq_fast.spark.losses import log
from msmq_fast.spark.options import CONNECTION, Option, OptionError, Options, endpoints
from msmq_fast.spark.selection import explain

FORMAT: Final = "msmq"
OPTIONS: Final = (
    *CONNECTION,
    Option("queue", "text", None, "destination of rows without a column `queue` or with null in it"),
    Option("semantics", "exactlyOnce|atLeastOnce", "exactlyOnce", "whether a repeated batch is recognised"),
    Option("writerId", "text", None, "name of a stream; keep it across restarts"),
    Option("writerEpoch", "integer", "1", "greater for a stream with a new checkpoint"),
    Option("jobId", "text", None, "name of a batch job; a repeated job writes nothing"),
    Option("transactional", "auto|true|false", "auto", "auto: if the queue is transactional"),
    Option("transaction", "row|stage", "row", "unit of a transaction: one row, or all rows of a task"),
    Option(
        "keepMessageId",
        "flag",
        "false",
        "keep identifiers of column `message_id`; else note them in the extension",
    ),
    Option("ignoreUnknownColumns", "flag", "false", "ignore columns that messages do not have"),
    Option("maxStageBytes", "size", "64m", "bytes of rows that a task uploads in one request"),
    Option("label", "text", None, "default for rows without a label; likewise all following options"),
    Option("priority", "integer", None, "0 to 7"),
    Option("delivery", "express|recoverable", None, "express messages do not survive a restart"),
    Option("timeToReachQueue", "integer", None, "seconds", "ttrq"),
    Option("timeToBeReceived", "integer", None, "seconds", "ttbr"),
    Option("acknowledge", "integer", None, "bits of PROPID_M_ACKNOWLEDGE"),
    Option("journal", "integer", None, "bits of PROPID_M_JOURNAL"),
    Option("appSpecific", "integer", None, "PROPID_M_APPSPECIFIC"),
    Option("bodyType", "integer", None, "PROPID_M_BODY_TYPE"),
    Option("responseQueue", "text", None, "format name"),
    Option("adminQueue", "text", None, "format name"),
)
_DEFAULTS: Final = {
    "label": "label",
    "priority": "priority",
    "timeToReachQueue": "time_to_reach_queue",
    "timeToBeReceived": "time_to_be_received",
    "acknowledge": "acknowledge",
    "journal": "journal",
    "appSpecific": "app_specific",
    "bodyType": "body_type",
    "responseQueue": "response_queue",
    "adminQueue": "admin_queue",
}
_KNOWN: Final = frozenset(column.name for column in (DELIVERY_SEQUENCE, *MESSAGE_COLUMNS)) | OLD_NAMES.keys()
_PARTS: Final = 1 << 20
"""The largest number of stages of one task. The number of a part is the number of the task times this, plus
its own.
"""
_MOST_STAGES: Final = 10_000
"""The most stages of one batch; the server accepts no more."""
_ROW_BYTES: Final = 256
"""The approximate overhead of a message beside its columns, so that many short rows also fill a stage."""
_OF_SPARK: Final = ("checkpointlocation", "queryname")
"""Options that Spark itself reads from a stream, but also passes on."""
_BATCH_ID: Final = "streaming.sql.batchId"
_QUERY_ID: Final = "sql.streaming.queryId"
_RAISE_EPOCH: Final = (
    "a stream with another checkpoint needs a greater option 'writerEpoch', or another 'writerId'"
)


class SinkError(RuntimeError):
    """Raised if rows could not be written. The text of the error is one line."""


@dataclass
class Staged(WriterCommitMessage):
    """The result of one write task.

    `stages` are the stages that the task has uploaded, as (number of the part, name of the stage), in the
    order of its rows. A stage is a part of a batch that the server keeps invisible until the batch is
    published. `query` is the identifier of the streaming query, from its checkpoint. `rows` and `digest` are
    set if the job has an option `jobId`: the number of rows, and the sum of the checksums of their
    queues, labels and bodies. The sum does not depend on the order of the rows or the number of tasks.
    """

    stages: list[tuple[int, str]] = field(default_factory=list)
    query: str = ""
    rows: int = 0
    digest: int = 0


def sink_options(given: Mapping[str, str]) -> Options:
    """Returns the options of a query that writes. Raises OptionError."""
    if given.get("semantics", "").lower() == "idempotent":
        raise OptionError(
            "option 'semantics' must be exactlyOnce or atLeastOnce, not idempotent: a queue manager does not "
            "remember all message identifiers, and cannot recognise a repeated row by its identifier"
        )
    ours = {name: value for name, value in given.items() if name.lower() not in _OF_SPARK}
    return Options(ours, OPTIONS, FORMAT)


class _Writer:
    """The base class of both writers. It is pickled to executors, where it opens its own connections."""

    def __init__(self, options: Options, schema: StructType) -> None:
        found = endpoints(options)
        if len(found) > 1:
            raise OptionError(
                "option 'url' must have one address only: a batch is written to one queue manager"
            )
        self._endpoint: Endpoint = found[0]
        self._queue: str | None = options["queue"]
        self._once = options["semantics"] == "exactlyOnce"
        self._limit: int = options["maxStageBytes"]
        self._digested = options["jobId"] is not None
        if not self._once:
            names = ("jobId", "writerId", "writerEpoch")
            options.refuse(names, "goes with semantics=exactlyOnce: otherwise the writer is not recorded")
        self._defaults = _defaults(options)
        _check(schema.fieldNames(), self._queue, ignore=options["ignoreUnknownColumns"])

    def _bring(self, rows: Iterator[pa.RecordBatch], writer: str, batch: int) -> Staged:
        """Upload the rows of this task as stages of the batch `batch` of the writer `writer`. With
        semantics=atLeastOnce, publish them at once. Raises SinkError.
        """
        task = TaskContext.get()
        if task is None:
            raise SinkError("only the tasks of a query can write rows")
        staged = Staged()
        if self._digested:
            rows = _digesting(rows, staged, self._queue)
        with BulkClient(self._endpoint) as client:
            try:
                for number, piece in enumerate(_pieces(rows, self._limit)):
                    if number == _PARTS:
                        raise SinkError(f"a task has at most {_PARTS} stages: raise option 'maxStageBytes'")
                    part = task.partitionId() * _PARTS + number
                    stage = client.stage(
                        writer,
                        batch,
                        part,
                        task.taskAttemptId(),
                        piece[0].schema,
                        piece,
                        queue=self._queue,
                        defaults=self._defaults,
                    )
                    staged.stages.append((part, stage.stage))
                if not self._once and staged.stages:
                    client.publish(writer, 0, batch, [stage for _, stage in staged.stages], remember=False)
                    return Staged()
            except BulkError as error:
                raise SinkError(self._explained(error)) from None
        return staged

    def _publish(self, writer: str, epoch: int, batch: int, messages: list[Any], *, origin: str = "") -> None:
        """Makes the staged rows of all tasks visible, in the order of the tasks. Raises SinkError."""
        stages = sorted(stage for message in messages if message is not None for stage in message.stages)
        if len(stages) > _MOST_STAGES:
            raise SinkError(
                f"the tasks uploaded {len(stages)} stages, and a batch has at most {_MOST_STAGES}: write "
                "fewer partitions (coalesce), or raise option 'maxStageBytes'"
            )
        with BulkClient(self._endpoint) as client:
            try:
                done = client.publish(writer, epoch, batch, [name for _, name in stages], origin=origin)
            except Fenced as error:
                if self._digested:
                    raise SinkError(
                        f"a job with the same jobId {writer!r} has written other rows before; the rows of "
                        f"this job were not written ({error}); give a new job another jobId"
                    ) from None
                raise SinkError(f"{error}; {_RAISE_EPOCH}") from None
            except BulkError as error:
                raise SinkError(self._explained(error)) from None
        if done.dup and self._digested:
            log.warning("jobId %s: these rows were written before; nothing was written now", writer)
        if batch < done.last:  # Spark only ever repeats the last batch
            raise SinkError(
                f"the writer {writer} has already published batch {batch} and later ones up to batch "
                f"{done.last}: the checkpoint is older, and its batch {batch} may have other rows; "
                f"{_RAISE_EPOCH}"
            )

    def _discard(self, messages: list[Any]) -> None:
        stages = [name for message in messages if message is not None for _, name in message.stages]
        if stages:
            with BulkClient(self._endpoint) as client:
                try:
                    for first in range(0, len(stages), _MOST_STAGES):
                        client.discard(stages[first : first + _MOST_STAGES])
                except BulkError:
                    return  # the server deletes them when their lifetime ends

    def _explained(self, error: BulkError) -> str:
        text = explain(error, self._endpoint.url, right="the user of the token needs the right to send")
        if isinstance(error, TooLarge) and "use more parts" in text:
            text += " (a part has about as many bytes as option 'maxStageBytes' says)"
        return text


class MsmqWriter(_Writer, DataSourceArrowWriter):
    """Writes the rows of a batch job: they become visible together when all tasks have succeeded, or not at
    all.
    """

    def __init__(self, options: Options, schema: StructType, *, overwrite: bool) -> None:
        for name in ("writerId", "writerEpoch"):
            if name in options.given:
                raise OptionError(f"option {name!r} is for streams; for a batch job, use option 'jobId'")
        if overwrite:
            raise OptionError("messages are added to a queue, never replaced: use mode('append')")
        super().__init__(options, schema)
        self._job: str = options["jobId"] or f"spark-{uuid.uuid4()}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Uploads the rows of one task, on an executor. Raises SinkError."""
        return self._bring(iterator, self._job if self._once else _unnamed(), 0)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Publish the rows of all tasks, after all have succeeded. Raises SinkError."""
        if self._once:
            self._publish(self._job, 0, 0, messages, origin=_origin(messages) if self._digested else "")

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Discards the staged rows after a task has failed."""
        self._discard(messages)


class MsmqStreamWriter(_Writer, DataSourceStreamArrowWriter):
    """Writes the rows of a streaming query: each batch becomes visible as a whole, and a batch that Spark
    repeats is recognised and not written twice.
    """

    def __init__(self, options: Options, schema: StructType, *, overwrite: bool) -> None:
        if "jobId" in options.given:
            raise OptionError("option 'jobId' is for batch jobs; for a stream, use option 'writerId'")
        if overwrite:
            raise OptionError("messages are added to a queue, never replaced: use outputMode('append')")
        super().__init__(options, schema)
        self._name: str = ""
        if self._once:
            self._name = options.need(
                "writerId", "the queue manager recognises the stream by this name after a restart"
            )
        self._epoch: int = options["writerEpoch"]
        if self._epoch < 0:
            raise OptionError("option 'writerEpoch' must be a number from 0")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Uploads the rows of one task of one batch, on an executor. Raises SinkError."""
        staged = self._bring(iterator, self._name if self._once else _unnamed(), _batch_id())
        staged.query = _property(_QUERY_ID) or ""
        return staged

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Publishes a batch after all of its tasks have succeeded. Raises SinkError."""
        if self._once:
            queries = (message.query for message in messages if isinstance(message, Staged))
            origin = next(filter(None, queries), "")
            self._publish(self._name, self._epoch, batchId, messages, origin=origin)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Discards the staged rows of a batch after a task has failed."""
        self._discard(messages)


def _digesting(rows: Iterator[pa.RecordBatch], staged: Staged, queue: str | None) -> Iterator[pa.RecordBatch]:
    """Yields the rows unchanged, and adds their number and their checksums to `staged`. `queue` is the queue
    of rows that name none.
    """
    for batch in rows:
        bodies, labels, queues = (_values(batch, name) for name in ("body", "label", "queue"))
        staged.rows += len(bodies)
        for body, label, named in zip(bodies, labels, queues, strict=True):
            begin = zlib.crc32(f"{named or queue or ''}\0{label or ''}\0".encode())
            staged.digest += zlib.crc32(body.encode() if isinstance(body, str) else body or b"", begin)
        yield batch


def _values(batch: pa.RecordBatch, name: str) -> list[Any]:
    """Returns a column, or None for each row if there is no such column."""
    at = batch.schema.get_field_index(name)
    return [None] * batch.num_rows if at < 0 else list(batch.column(at).to_pylist())


def _origin(messages: list[Any]) -> str:
    """Returns a text that identifies the rows of a job with an option `jobId`. The text is the same if the
    same job is repeated, and different for another job with the same `jobId`.
    """
    staged = [message for message in messages if message is not None]
    rows, digest = sum(one.rows for one in staged), sum(one.digest for one in staged)
    return f"{rows} rows with checksum {digest:x}"


def _unnamed() -> str:
    return f"spark-{uuid.uuid4()}"


def _property(name: str) -> str | None:
    """Returns a property that Spark passes to the tasks of a query; None if it is not set."""
    task = TaskContext.get()
    return task.getLocalProperty(name) if task is not None else None


def _batch_id() -> int:
    text = _property(_BATCH_ID)
    if text is None:
        raise SinkError(f"this version of Spark does not pass the batch number ({_BATCH_ID}) to its tasks")
    return int(text)


def _defaults(options: Options) -> dict[str, str | int | bool]:
    found: dict[str, str | int | bool] = {
        column: options[name] for name, column in _DEFAULTS.items() if options[name] is not None
    }
    if options["delivery"] is not None:
        found["delivery"] = int(options["delivery"] == "recoverable")
    found["transactional"] = options["transactional"]
    found["transaction"] = options["transaction"]
    found["message_id"] = "keep" if options["keepMessageId"] else "extension"
    found["unknown"] = "ignore" if options["ignoreUnknownColumns"] else "error"
    return found


def _check(names: list[str], queue: str | None, *, ignore: bool) -> None:
    if "body" not in names:
        raise OptionError("the rows have no column 'body', which every message needs")
    if "queue" not in names and queue is None:
        raise OptionError("option 'queue' is missing, and the rows have no column 'queue'")
    unknown = [] if ignore else sorted(set(names) - _KNOWN)
    if unknown:
        raise OptionError(
            f"{unknown[0]!r} is not a column of messages: drop it, or set option 'ignoreUnknownColumns'"
        )


def _pieces(rows: Iterator[pa.RecordBatch], limit: int) -> Iterator[list[pa.RecordBatch]]:
    """Yields lists of batches, each to be uploaded as one stage with about `limit` bytes of messages."""
    piece: list[pa.RecordBatch] = []
    size = 0
    for batch in (part for whole in rows for part in slices(whole, min(limit, MOST_BATCH))):
        taken = batch.nbytes + batch.num_rows * _ROW_BYTES
        if piece and size + taken > limit:
            yield piece
            piece, size = [], 0
        piece.append(batch)
        size += taken
    if piece:
        yield piece
