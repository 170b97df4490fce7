"""`msmq-lake archive`: copies events and messages of queue managers into bronze tables, each batch once."""

from __future__ import annotations

import argparse
import signal
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.client.bulk.client import BulkClient, Endpoint
from msmq_fast.protocol.columns import chosen
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.spark.lake import counting, session
from msmq_fast.spark.lake.checkpoints import Checkpoints
from msmq_fast.spark.lake.failures import explaining
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.output import print_result
from msmq_fast.spark.lake.tables import MESSAGES
from msmq_fast.spark.restarting import Restarts
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import add_output
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.progress import Progress
from msmq_fast.terminal.values import number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

EVENTS: Final = "events"
MESSAGES_OF: Final = ("messages", "journal", "deadletter")
_NEEDED: Final = (
    "qm_guid",
    "incarnation",
    "queue",
    "arrival_seq",
    "arrived_time",
    "message_id",
    "body_kept",
    "schema_version",
)
_LOOK_S: Final = 60.0
"""Seconds between two records of the queue managers' own counters with --follow."""
_TASK_ROWS: Final = 250_000
"""Rows of one task: a larger backlog is read by several tasks."""


@dataclass(frozen=True)
class Source:
    """What an archive reads: the addresses of the queue managers, the kinds of content, and the options."""

    urls: tuple[str, ...]
    contents: tuple[str, ...] = (EVENTS, *MESSAGES_OF)
    pattern: str = ".*"
    bodies: bool = True
    redacted: tuple[str, ...] = ()
    token_file: str | None = None
    ca_file: str | None = None
    subscription: str | None = None
    max_rows: int = 1_000_000
    max_bytes: str = "256m"

    def clients(self) -> list[BulkClient]:
        """Return one client for each queue manager. Raises CommandError if an address is invalid."""
        try:
            return [
                BulkClient(Endpoint(url, token_file=self.token_file, ca_file=self.ca_file))
                for url in self.urls
            ]
        except ValueError as error:
            raise CommandError(Exit.USAGE, f"--url: {error}") from None

    def stream(self, spark: SparkSession, content: str, lake: Lake) -> DataFrame:
        """Return a streaming DataFrame for one kind of content. Its tasks write the content to files, and
        each of its rows describes one of these files. If events were lost, the stream does not fail:
        the coverage of the lake shows which ones are missing.
        """
        from msmq_fast.spark.lake.landingsource import NAME, LandingSource

        # Queries that share a registration write to one map of Spark's without a lock while they start. If
        # two of them damage that map, every task fails. Therefore each query gets a registration of its own.
        spark.dataSource.register(LandingSource)
        options = {
            "lake": lake.root,
            "url": ",".join(self.urls),
            "content": content,
            "startingOffsets": "earliest",
            "maxRowsPerTrigger": str(self.max_rows),
            "maxRowsPerPartition": str(_TASK_ROWS),
            "failOnDataLoss": "false",
            "auth.tokenFile": self.token_file,
            "tls.caFile": self.ca_file,
        }
        if content == EVENTS:
            options["subscription"] = self.subscription
        else:
            options |= {
                "subscribePattern": None if content == "deadletter" else self.pattern,
                "columns": ",".join(self._columns()),
                "maxBytesPerTrigger": self.max_bytes,
                "keepBodies": str(self.bodies).lower(),
                "redact": ",".join(self.redacted) or None,
            }
        given = {name: value for name, value in options.items() if value is not None}
        return spark.readStream.format(NAME).options(**given).load()

    def _columns(self) -> list[str]:
        hashed = self.bodies or "body_sha256" not in self.redacted
        names = [column.name for column in chosen("all", body=hashed)]
        return [name for name in names if name in MESSAGES or name == "body"]


class Archive:
    """One archive job of a lake: a streaming query for each kind of content, with its checkpoints."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        name: str,
        source: Source,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self._spark = spark
        self._lake = lake
        self._name = name
        self._source = source
        self._checkpoints = checkpoints or Checkpoints(lake, name)
        self.archived = dict.fromkeys(source.contents, 0)
        self._shown = 0

    def once(self, progress: Progress) -> None:
        """Archives everything that the queue managers have now. Restarts a query that Spark could not start
        in time.
        """
        from pyspark.errors import StreamingQueryException

        self.look()
        for content in sorted(self._source.contents, key=lambda content: content == EVENTS):
            restarts = Restarts()  # events last: they describe all that was archived
            while True:
                before = self.archived[content]
                try:
                    self._drain(content, progress)
                    break
                except StreamingQueryException as error:
                    if not restarts.again(error, worked=self.archived[content] > before):
                        raise

    def _drain(self, content: str, progress: Progress) -> None:
        query = self._start(content, availableNow=True)
        try:
            while not query.awaitTermination(1):
                self._show(progress)
            self._show(progress)
        finally:
            query.stop()

    def follow(self, interval: str, progress: Progress, ended: threading.Event) -> None:
        """Archives until a query fails or `ended` is set. Restarts a query that Spark could not start in
        time, as `once` does.
        """
        queries = {
            content: self._start(content, processingTime=interval) for content in self._source.contents
        }
        restarts = {content: Restarts() for content in queries}
        looked = 0.0
        try:
            while not ended.wait(1):
                for content, query in queries.items():
                    if not query.isActive:
                        worked = query.lastProgress is not None
                        if not restarts[content].again(query.exception(), worked=worked):
                            query.awaitTermination()  # raises the error that ended it
                            return
                        queries[content] = self._start(content, processingTime=interval)
                if time.monotonic() - looked >= _LOOK_S:
                    self.look()
                    looked = time.monotonic()
                self._show(progress)
        finally:
            for query in queries.values():
                query.stop()

    def look(self) -> None:
        """Requests the message counts of all queue managers and writes them to bronze/counters. Raises
        BulkError.
        """
        rows = []
        for client in self._source.clients():
            with client:
                rows += counting.look(client)
        counting.note(self._lake, rows)

    def _start(self, content: str, **trigger: Any) -> StreamingQuery:
        table = EVENTS if content == EVENTS else "messages"
        from msmq_fast.spark.lake.writing import Placing  # imported late: pyarrow is not needed for --help

        run = self._checkpoints.run(content)
        lake = Lake(self._lake.root)  # queries run in threads of their own, and so each has its own tables
        place = Placing(lake, table, run, lambda rows: self._count(content, rows))
        return (
            self._source.stream(self._spark, content, self._lake)
            .writeStream.queryName(f"{self._name} {content}")
            .foreachBatch(place)
            .option("checkpointLocation", self._checkpoints.path(content))
            .trigger(**trigger)
            .start()
        )

    def _count(self, content: str, rows: int) -> None:
        self.archived[content] += rows

    def _show(self, progress: Progress) -> None:
        done = sum(self.archived.values())
        if done > self._shown:
            progress.add(done - self._shown)
            self._shown = done


def _add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--lake",
        required=True,
        metavar="DIR",
        help="directory of the lake: a path, or a URL such as s3://bucket/lake",
    )
    parser.add_argument(
        "--url",
        required=True,
        action="append",
        metavar="msmq+bulk://HOST:PORT",
        help="address of a queue manager's admin port; may be repeated, or list several with commas",
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--once", action="store_true", help="archive what the queue managers have now, then end (default)"
    )
    mode.add_argument("--follow", action="store_true", help="archive until SIGINT or SIGTERM")
    parser.add_argument(
        "--interval", default="5 seconds", help="time between two batches of --follow; default: 5 seconds"
    )
    parser.add_argument(
        "--content",
        default=",".join((EVENTS, *MESSAGES_OF)),
        help="what to archive, separated by commas; default: everything",
    )
    parser.add_argument(
        "--queues",
        default=".*",
        metavar="REGEX",
        help="archive the messages of these queues only; default: all",
    )
    parser.add_argument(
        "--no-bodies", action="store_true", help="archive headers and hashes of bodies, not the bodies"
    )
    parser.add_argument(
        "--redact",
        default="",
        metavar="COLUMNS",
        help="columns of messages to write as null, separated by commas",
    )
    parser.add_argument(
        "--subscription", help="name of a feed subscription: servers keep events until they are archived"
    )
    parser.add_argument(
        "--name", default="main", help="name of this job, if several write to one lake; default: main"
    )
    parser.add_argument(
        "--checkpoints",
        metavar="DIR",
        help="directory for the progress of this job; default: in the lake, or for a lake in an object store "
        "below ~/.local/state/msmq-lake",
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="file with the token; default: the token in the environment variable MSMQ_FAST_TOKEN",
    )
    parser.add_argument("--ca-file", metavar="FILE", help="certificates to trust for https:// (PEM)")
    parser.add_argument(
        "--max-rows",
        type=number(1, 1_000_000_000),
        default=1_000_000,
        help="maximum number of rows of one batch; default: 1000000",
    )
    add_output(parser)


def _run(arguments: argparse.Namespace) -> int:
    """Archives what there is now, or, with --follow, until SIGINT or SIGTERM. Returns exit code 0."""
    source = _source(arguments)
    Lake(arguments.lake)  # rejects a path that cannot hold a lake before any server is asked
    total = _reach(source)
    lake = Lake.create(arguments.lake)
    checkpoints = Checkpoints(lake, arguments.name, arguments.checkpoints)
    with checkpoints.alone(), Progress("archive", total) as progress:
        archive = Archive(session.start("archive"), lake, arguments.name, source, checkpoints)
        if arguments.follow:
            archive.follow(arguments.interval, progress, _asked_to_end())
        else:
            archive.once(progress)
    result = {"lake": lake.root, "seconds": round(progress.seconds, 1), **archive.archived}
    print_result(result, arguments.form, text=lambda found: _line(found, archive.archived))
    return Exit.OK


def _asked_to_end() -> threading.Event:
    """Returns an event that SIGINT and SIGTERM set. PySpark's own handler would interrupt a running call to
    the JVM.
    """
    ended = threading.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, lambda *_: ended.set())
    return ended


def _source(arguments: argparse.Namespace) -> Source:
    contents = tuple(dict.fromkeys(part.strip() for part in arguments.content.split(",") if part.strip()))
    wrong = [content for content in contents if content not in (EVENTS, *MESSAGES_OF)]
    if wrong or not contents:
        known = ", ".join((EVENTS, *MESSAGES_OF))
        raise CommandError(
            Exit.USAGE, f"--content must be one or several of {known}, not {wrong[0] if wrong else ''!r}"
        )
    redacted = tuple(part.strip() for part in arguments.redact.split(",") if part.strip())
    unknown = [name for name in redacted if name not in (*MESSAGES, "body")]
    if unknown:
        raise CommandError(Exit.USAGE, f"--redact: there is no message column {unknown[0]!r}")
    needed = [name for name in redacted if name in _NEEDED]
    if needed:
        raise CommandError(Exit.USAGE, f"--redact: {needed[0]!r} is needed to identify messages")
    if not arguments.name.replace("-", "").replace("_", "").isalnum():
        raise CommandError(
            Exit.USAGE, f"--name may have letters, digits, - and _ only, not {arguments.name!r}"
        )
    urls = tuple(part.strip().rstrip("/") for url in arguments.url for part in url.split(",") if part.strip())
    return Source(
        urls=urls,
        contents=contents,
        pattern=arguments.queues,
        bodies=not arguments.no_bodies,
        redacted=redacted,
        token_file=arguments.token_file,
        ca_file=arguments.ca_file,
        subscription=arguments.subscription,
        max_rows=arguments.max_rows,
    )


def _reach(source: Source) -> int:
    """Connects to every queue manager, so that a wrong address is reported before Spark is started. Returns
    the approximate number of rows to archive. Raises BulkError.
    """
    total = 0
    for client in source.clients():
        with client:
            bounds = client.bounds(pattern=source.pattern)
        total += bounds.feed_next - bounds.feed_first + sum(queue.messages for queue in bounds.queues)
    return total


def _line(result: dict[str, Any], archived: dict[str, int]) -> str:
    counts = ", ".join(f"{count} of {content}" for content, count in archived.items())
    return f"archived into {result['lake']}: {counts} ({result['seconds']} s)"


COMMAND = Command(
    name="archive",
    help="copy the events and messages of queue managers into the lake",
    description="""Copies what is there now, or follows the queue managers until SIGINT or SIGTERM. Each
        event and message is in the lake once, however often the command is interrupted.""",
    run=explaining(_run),
    add_arguments=_add_arguments,
    examples=(
        Example("--lake lake --url msmq+bulk://orders01:1802", "events and messages of one queue manager"),
        Example(
            "--lake lake --url msmq+bulk://orders01:1802 --follow --interval '1 minute'",
            "go on, with a batch each minute",
        ),
        Example(
            "--lake lake --url msmq+bulk://orders01:1802 --no-bodies --redact label",
            "headers only, without labels",
        ),
    ),
)
