"""`msmq-lake replay`: sends archived messages to a queue again, in order. Each message is sent once, even if
the command is repeated.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.client.bulk.client import BulkClient, Endpoint
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.spark.lake import bronze, session
from msmq_fast.spark.lake.delta import File
from msmq_fast.spark.lake.failures import explaining
from msmq_fast.spark.lake.layout import REPLAYS, ROWS, Lake
from msmq_fast.spark.lake.output import print_result
from msmq_fast.spark.lake.sending import CHUNK, SENT, parts, send_part
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import add_output
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_MOST_CHUNK: Final = 100_000
_READ_ROWS: Final = 128
_ORDER: Final = ("queue", "qm_guid", "arrival_seq", "arrived_time", "message_id")
"""The columns that determine the order.

A restored store counts arrivals from an earlier number, so that the number alone would not determine which
message is first.
"""
_TIME: Final = "yyyy-MM-dd HH:mm:ss.SSSSSSXXX"


@dataclass(frozen=True)
class Request:
    """The parameters of a replay. Equal parameters identify the same replay; `name` distinguishes two replays
    whose other parameters are equal.
    """

    where: str
    queue: str
    qm: str
    chunk: int
    name: str = ""

    @property
    def writer(self) -> str:
        """The writer name, which is derived from the parameters. By this name, the queue manager recognises
        parts that were sent before.
        """
        parts = [self.where, self.queue, self.qm, self.chunk, self.name]
        return f"replay-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]}"


class Replay:
    """One replay from one lake. A file in the lake records which messages were selected, and how many were
    sent.

    `incarnation` is the incarnation of the target queue manager's store. If it has changed, the store was
    restored and may have lost parts: all parts are sent again, and the target recognises those that it still
    has.
    """

    def __init__(self, lake: Lake, request: Request, incarnation: int) -> None:
        self._lake = lake
        self._incarnation = incarnation
        self._request = request
        self._note_path = f"{REPLAYS}/{request.writer}.json"
        self._rows = f"{REPLAYS}/{request.writer}.{uuid.uuid4().hex}{ROWS}"
        self._files: list[File] = []

    def choose(self, spark: SparkSession, *, unsigned: bool) -> dict[str, Any]:
        """Selects the messages, writes them in order into a temporary directory of the lake, and checks them.
        Returns a summary.

        Raises CommandError for a condition that Spark does not understand, for messages that cannot be sent
        again, or if the selection differs from that at the first attempt of this replay. `unsigned`: signed
        and encrypted messages may be sent without signature and encryption.
        """
        from msmq_fast.spark.lake import frames

        note = self._lake.read_json(self._note_path)
        chosen = self._chosen(spark, None if note is None else note["upto"])
        self._files = frames.landed(frames.write(chosen, self._lake, self._rows))
        found = self._summary(frames.read(spark, self._lake, self._rows, chosen.schema, self._files))
        try:
            self._check(found, note, unsigned=unsigned)
        except CommandError:
            self.forget()
            raise
        known = note is not None and note.get("incarnation") == self._incarnation
        return found | {"done": note["done"] if known else 0}

    def send(self, client: BulkClient, found: dict[str, Any], progress: Progress, pace: Pace) -> int:
        """Sends the selected messages that the target does not have yet. `found` is the summary that `choose`
        returned. Returns how many messages were sent. Raises BulkError, and CommandError if an earlier
        attempt used parts of another size.
        """
        done = written = int(found["done"])
        progress.add(done)
        self._note(found, done)
        first = 0
        for number, rows in enumerate(self._chunks()):
            first += rows.num_rows
            if first <= done:
                continue
            if first - rows.num_rows < done:
                raise CommandError(
                    Exit.FAILURE,
                    "another release of msmq-lake began this replay with parts of another size: narrow "
                    "--where to the messages that were not sent yet, and give the replay a new --name",
                )
            pace.wait(done - written, rows.num_rows)
            send_part(client, self._request.writer, number, rows, self._request.queue)
            done = first
            self._note(found, done)
            progress.add(rows.num_rows)
        self.forget()
        return done - written

    def forget(self) -> None:
        """Deletes the temporary directory with the selected messages."""
        self._lake.delete(self._rows)

    def _chosen(self, spark: SparkSession, upto: dict[str, int] | None) -> DataFrame:
        from pyspark.errors import AnalysisException, ParseException
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        messages = bronze.table(spark, self._lake, "messages")
        try:
            rows = messages.where(self._request.where)
        except (AnalysisException, ParseException) as error:
            line = next((line for line in str(error).splitlines() if line.strip()), "")
            raise CommandError(Exit.USAGE, f"--where: {line}") from None
        if upto is not None:  # anything archived since the replay began belongs to another one
            limits = [(F.col("qm_guid") == qm) & (F.col("arrival_seq") <= seq) for qm, seq in upto.items()]
            condition = F.lit(False)
            for limit in limits:
                condition = condition | limit
            rows = rows.where(condition)
        # A message may be archived from its queue, from the journal, at its sender, at its receiver, and by
        # another archive. A message without an identifier is identified by its position.
        name = F.coalesce("message_id", F.concat_ws("/", "qm_guid", "queue", "arrival_seq", "arrived_time"))
        first = Window.partitionBy(name).orderBy("arrived_time", "qm_guid", "arrival_seq", "queue")
        rows = rows.withColumn("copy", F.row_number().over(first)).where("copy = 1").drop("copy")
        bodies = bronze.table(spark, self._lake, "bodies").dropDuplicates(["body_sha256"])
        whole = rows.join(bodies, "body_sha256", "left")
        kept = dict.fromkeys((*_ORDER, *SENT, "body", "body_size", "auth_level", "encrypted"))
        return whole.select(*kept).repartition(1).sortWithinPartitions(*_ORDER)

    def _summary(self, rows: DataFrame) -> dict[str, Any]:
        from pyspark.sql import functions as F

        one = F.xxhash64("qm_guid", "queue", "arrival_seq", "message_id").cast("decimal(38,0)")
        totals = rows.agg(
            F.count("*").alias("rows"),
            F.coalesce(F.sum("body_size"), F.lit(0)).alias("bytes"),
            F.count_if(F.col("body").isNull()).alias("bodyless"),
            F.count_if(F.coalesce(F.col("auth_level"), F.lit(0)) > 0).alias("signed"),
            F.count_if(F.coalesce(F.col("encrypted"), F.lit(False))).alias("encrypted"),
            F.date_format(F.min("arrived_time"), _TIME).alias(
                "first"
            ),  # as text: Python would convert it to local time
            F.date_format(F.max("arrived_time"), _TIME).alias("last"),
            F.coalesce(F.sum(one), F.lit(0)).cast("string").alias("digest"),
        ).collect()[0]
        ends = rows.groupBy("qm_guid").agg(F.max("arrival_seq").alias("upto")).collect()
        queues = rows.groupBy("queue").count().orderBy("queue").collect()
        return {
            **totals.asDict(),
            "upto": {row.qm_guid: row.upto for row in ends},
            "queues": {row.queue: row["count"] for row in queues},
        }

    def _check(self, found: dict[str, Any], note: dict[str, Any] | None, *, unsigned: bool) -> None:
        if found["bodyless"]:
            raise CommandError(
                Exit.FAILURE,
                f"the lake does not have the bodies of {found['bodyless']} of {found['rows']} messages",
            )
        if (found["signed"] or found["encrypted"]) and not unsigned:
            raise CommandError(
                Exit.REFUSED,
                f"{found['signed']} messages are signed and {found['encrypted']} were encrypted, and cannot "
                "be signed or encrypted again: give --drop-security to send them unsigned and unencrypted",
            )
        if note is not None and (note["rows"], note["digest"]) != (found["rows"], found["digest"]):
            raise CommandError(
                Exit.FAILURE,
                f"the lake has changed since this replay began: --where selected {note['rows']} messages "
                f"then, and selects {found['rows']} now, or others; narrow --where to the messages that were "
                "not sent yet, and give the replay a new --name",
            )

    def _note(self, found: dict[str, Any], done: int) -> None:
        kept = {name: found[name] for name in ("rows", "digest", "upto")}
        self._lake.write_json(self._note_path, {**kept, "done": done, "incarnation": self._incarnation})

    def _chunks(self) -> Iterator[pa.Table]:
        """Yields the selected messages in order, divided into the parts that are sent. The same selection
        always gives the same parts.
        """
        from pyarrow import parquet

        for file in self._files:
            with self._lake.open_file(f"{self._rows}/{file.path}") as stream:
                batches = parquet.ParquetFile(stream).iter_batches(_READ_ROWS, columns=[*SENT, "body"])
                yield from parts(batches, self._request.chunk)


class Pace:
    """Limits the number of messages per second to `rate`; None means no limit."""

    def __init__(
        self,
        rate: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        self._began: float | None = None

    def wait(self, before: int, count: int) -> None:
        """Waits until `count` more messages may be sent, after `before` messages of this run."""
        if self._rate is None:
            return
        if self._began is None:
            self._began = self._clock()
        ahead = self._began + (before + count) / self._rate - self._clock()
        if ahead > 0:
            self._sleep(ahead)


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("--lake", required=True, metavar="DIR", help="directory of the lake")
    parser.add_argument(
        "--url",
        required=True,
        metavar="msmq+bulk://HOST:PORT",
        help="address of the queue manager's admin port",
    )
    parser.add_argument(
        "--to", required=True, metavar="QUEUE", help="queue for the messages: path or format name"
    )
    parser.add_argument(
        "--where",
        default="true",
        metavar="SQL",
        help="condition on the columns of bronze/messages, in SQL; default: all messages",
    )
    parser.add_argument("--rate", type=_rate, metavar="N/s", help="maximum number of messages per second")
    parser.add_argument("--name", default="", help="name of the replay; a new name sends the messages again")
    parser.add_argument(
        "--drop-security",
        action="store_true",
        help="send signed and encrypted messages without signature and encryption",
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would be sent")
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="file with the token; default: the token in the environment variable MSMQ_FAST_TOKEN",
    )
    parser.add_argument("--ca-file", metavar="FILE", help="certificates to trust for https:// (PEM)")
    add_output(parser)


def _run(arguments: argparse.Namespace) -> int:
    """Runs the replay. Returns exit code 0 if all selected messages are in the queue."""
    lake = Lake.open(arguments.lake)
    try:
        endpoint = Endpoint(arguments.url, token_file=arguments.token_file, ca_file=arguments.ca_file)
    except ValueError as error:
        raise CommandError(Exit.USAGE, f"--url: {error}") from None
    with BulkClient(endpoint) as asked:
        target = asked.bounds()
    with BulkClient(endpoint, incarnation=target.incarnation) as client:  # a restore in the meantime ends it
        chunk = CHUNK if arguments.rate is None else max(1, min(int(arguments.rate), _MOST_CHUNK))
        request = Request(arguments.where, arguments.to, target.qm, chunk, arguments.name)
        replay = Replay(lake, request, target.incarnation)
        spark = session.start("replay")
        found = replay.choose(spark, unsigned=arguments.drop_security)
        result = {name: found[name] for name in ("rows", "bytes", "queues", "first", "last")}
        result |= {
            "to": request.queue,
            "written": 0,
            "before": found["done"],
            "dry_run": arguments.dry_run,
        }
        if arguments.dry_run:
            replay.forget()
        else:
            with Progress("replay", found["rows"]) as progress:
                result["written"] = replay.send(client, found, progress, Pace(arguments.rate))
    print_result(result, arguments.form, text=_line)
    return Exit.OK


def _rate(text: str) -> float:
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(?:/s)?", text)
    if match is None or float(match[1]) <= 0:
        raise argparse.ArgumentTypeError(f"a rate is messages per second, such as 500/s, not {text!r}")
    return float(match[1])


def _line(result: dict[str, Any]) -> str:
    what = f"{result['rows']} messages ({result['bytes']} bytes) of {len(result['queues'])} queues"
    if result["dry_run"]:
        return f"would write {what} into {result['to']}; {result['before']} of them are there"
    before = f"; {result['before']} had been written before" if result["before"] else ""
    return f"wrote {result['written']} of {what} into {result['to']}{before}"


COMMAND = Command(
    name="replay",
    help="send archived messages to a queue again, each once",
    description="""If the command is interrupted, the same command continues: each message is sent once. A
        replay with another --name sends them again.""",
    run=explaining(_run),
    add_arguments=_add_arguments,
    examples=(
        Example(
            "--lake lake --url msmq+bulk://orders01:1802 --to orders --where \"label = 'x'\" --dry-run",
            "what would be sent",
        ),
        Example(
            "--lake lake --url msmq+bulk://orders01:1802 --to orders --rate 100/s",
            "a hundred messages per second",
        ),
    ),
)
