"""`msmq-lake import`: sends messages of another system, from Parquet or JSON lines, to a queue, each once.

The columns are those of `format("msmq")`. In JSON lines, binary values are in base64 under the name of their
column with the suffix `_b64`, and times are ISO 8601. Needs no Spark.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.client.bulk.client import BulkClient, Endpoint
from msmq_fast.protocol.columns import MESSAGE_COLUMNS
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.spark.lake.failures import explaining
from msmq_fast.spark.lake.output import print_result
from msmq_fast.spark.lake.sending import CHUNK, CHUNK_BYTES, SENT, parts, send_part
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import add_output
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

_KINDS: Final = {column.name: column.kind for column in MESSAGE_COLUMNS}
_MARK: Final = "_b64"
_MOST_BODY: Final = 0x0040_0000
"""The largest body of a message in bytes. The queue manager checks the other fields."""
_MOST_LINE: Final = 16 << 20
_READ_ROWS: Final = 128
_READ: Final = (*SENT, "body", "arrived_time", "time_to_be_received", "auth_level", "encrypted", "xact_id")


@dataclass
class Checks:
    """The results of checking all messages before the first one is written: the number of messages with each
    problem, the total size of the bodies, and a hash of the files.
    """

    rows: int = 0
    size: int = 0
    bodyless: int = 0
    too_large: int = 0
    duplicates: int = 0
    expired: int = 0
    signed: int = 0
    transactional: int = 0
    digest: str = ""
    _seen: set[bytes] = field(default_factory=set, repr=False)

    def look(self, rows: pa.Table, now: datetime) -> None:
        """Checks some messages and adds the results. A message counts as expired if its time to live ended
        before `now`.
        """
        self.rows += rows.num_rows
        for row in rows.to_pylist():
            body = row["body"]
            self.bodyless += body is None
            self.size += len(body or b"")
            self.too_large += len(body or b"") > _MOST_BODY
            self.signed += bool(row["auth_level"] or row["encrypted"])
            self.transactional += row["xact_id"] is not None
            arrived, lives = row["arrived_time"], row["time_to_be_received"]
            if arrived is not None and lives is not None:
                self.expired += now - arrived > timedelta(seconds=lives)
            if row["message_id"] is not None:
                name = hashlib.sha256(row["message_id"].encode()).digest()[:16]
                self.duplicates += name in self._seen
                self._seen.add(name)

    def refuse(self, *, unsigned: bool) -> None:
        """Raises CommandError if the messages cannot be written. `unsigned`: signed and encrypted messages
        may be written without signature and encryption.
        """
        for count, what in (
            (self.bodyless, "messages have no body"),
            (self.too_large, f"messages have a body of more than {_MOST_BODY} bytes"),
            (self.duplicates, "messages have an identifier that occurs twice"),
        ):
            if count:
                raise CommandError(Exit.REFUSED, f"{count} of {self.rows} {what}; nothing was written")
        if self.signed and not unsigned:
            raise CommandError(
                Exit.REFUSED,
                f"{self.signed} messages are signed or were encrypted, and cannot be signed or encrypted "
                "again: give --drop-security to send them unsigned and unencrypted",
            )


def _add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="*.parquet or *.jsonl files, or directories that contain such files",
    )
    parser.add_argument(
        "--url",
        required=True,
        metavar="msmq+bulk://HOST:PORT",
        help="address of the queue manager's admin port",
    )
    parser.add_argument("--to", required=True, metavar="QUEUE", help="path of the queue for the messages")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--dry-run", action="store_true", help="check everything, write nothing")
    mode.add_argument("--apply", action="store_true", help="check everything, then write")
    parser.add_argument("--name", default="", help="name of the import; a new name writes the messages again")
    parser.add_argument(
        "--drop-security", action="store_true", help="write signed messages without their signatures"
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="file with the token; default: the token in the environment variable MSMQ_FAST_TOKEN",
    )
    parser.add_argument("--ca-file", metavar="FILE", help="certificates to trust for https:// (PEM)")
    add_output(parser)


def _run(arguments: argparse.Namespace) -> int:
    """Checks all messages and, with --apply, imports them. Returns exit code 0 if all messages are in the
    queue or, without --apply, could be written.
    """
    files = _files(arguments.files)
    try:
        endpoint = Endpoint(arguments.url, token_file=arguments.token_file, ca_file=arguments.ca_file)
    except ValueError as error:
        raise CommandError(Exit.USAGE, f"--url: {error}") from None
    with BulkClient(endpoint) as client:
        bounds = client.bounds([arguments.to])
        checks = check(files, datetime.now(UTC))
        wrong_kind = (
            checks.rows - checks.transactional if bounds.queues[0].transactional else checks.transactional
        )
        written = 0
        checks.refuse(unsigned=arguments.drop_security)
        if arguments.apply:
            parts = json.dumps([checks.digest, bounds.qm, arguments.to, arguments.name])
            writer = f"import-{hashlib.sha256(parts.encode()).hexdigest()[:32]}"
            with Progress("import", checks.rows) as progress:
                for number, rows in enumerate(parts_of(files)):
                    written += send_part(client, writer, number, rows.select([*SENT, "body"]), arguments.to)
                    progress.add(rows.num_rows)
    result = {
        "to": arguments.to,
        "rows": checks.rows,
        "bytes": checks.size,
        "expired": checks.expired,
        "of_the_other_kind": wrong_kind,
        "written": written,
        "dry_run": arguments.dry_run,
    }
    print_result(result, arguments.form, text=_line)
    return Exit.OK


def check(files: list[Path], now: datetime) -> Checks:
    """Checks every message in `files` and returns the results. Raises CommandError for an invalid file."""
    checks = Checks()
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while piece := stream.read(1 << 20):
                digest.update(piece)
    checks.digest = digest.hexdigest()
    for rows in parts_of(files):
        checks.look(rows, now)
    return checks


def parts_of(files: list[Path]) -> Iterator[pa.Table]:
    """Yields the messages of all files in order, divided into the parts that are sent. Equal files always
    give equal parts, so that a repeated import recognises the parts that were sent.
    """
    for file in files:
        yield from parts(_lines(file) if file.suffix == ".jsonl" else _parquet(file))


def _files(names: list[str]) -> list[Path]:
    found: list[Path] = []
    for name in names:
        path = Path(name)
        inside = [file for kind in ("*.parquet", "*.jsonl") for file in path.glob(kind)]
        found += sorted(inside) if path.is_dir() else [path]
    for file in found:
        if file.suffix not in (".parquet", ".jsonl") or not file.is_file():
            raise CommandError(Exit.NOT_FOUND, f"{file} is not a *.parquet or *.jsonl file")
    if not found:
        raise CommandError(Exit.NOT_FOUND, f"{names[0]} contains no *.parquet or *.jsonl files")
    return found


def _shaped(rows: pa.RecordBatch, file: Path) -> pa.RecordBatch:
    import pyarrow as pa

    from msmq_fast.protocol.arrow import arrow_schema

    schema = arrow_schema(tuple(column for column in MESSAGE_COLUMNS if column.name in _READ))
    columns = []
    for wanted in schema:
        index = rows.schema.get_field_index(wanted.name)
        try:
            columns.append(
                pa.nulls(rows.num_rows, wanted.type) if index < 0 else rows.column(index).cast(wanted.type)
            )
        except pa.ArrowException as error:
            line = str(error).splitlines()[0]
            raise CommandError(Exit.USAGE, f"{file}: column {wanted.name!r}: {line}") from None
    return pa.record_batch(columns, schema=schema)


def _parquet(file: Path) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        opened = parquet.ParquetFile(file)
        names = [name for name in opened.schema_arrow.names if name in _READ]
        for batch in opened.iter_batches(_READ_ROWS, columns=names):
            yield _shaped(batch, file)
    except (pa.ArrowException, OSError) as error:
        raise CommandError(Exit.USAGE, f"{file}: {str(error).splitlines()[0]}") from None


def _lines(file: Path) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    held: list[dict[str, Any]] = []
    size = 0
    with file.open("rb") as stream:
        number = 0
        while line := stream.readline(_MOST_LINE + 1):
            number += 1
            try:
                held.append(_row(line))
            except (ValueError, TypeError) as error:
                raise CommandError(Exit.USAGE, f"{file}, line {number}: {error}") from None
            size += len(line)
            if len(held) == CHUNK or size > CHUNK_BYTES:
                yield pa.RecordBatch.from_pylist(held, _schema())
                held, size = [], 0
    if held:
        yield pa.RecordBatch.from_pylist(held, _schema())


def _schema() -> Any:
    from msmq_fast.protocol.arrow import arrow_schema

    return arrow_schema(tuple(column for column in MESSAGE_COLUMNS if column.name in _READ))


def _row(line: bytes) -> dict[str, Any]:
    """Returns the columns of the message in one line of JSON. Raises ValueError if the line is invalid."""
    if len(line) > _MOST_LINE:
        raise ValueError(f"a line has more than {_MOST_LINE} bytes")
    try:
        given = json.loads(line)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(given, dict):
        raise ValueError("a message must be a JSON object")
    row: dict[str, Any] = {}
    for key, value in given.items():
        name = key.removesuffix(_MARK)
        kind = _KINDS.get(name)
        if kind is None:
            raise ValueError(f"{key!r} is not a column of messages")
        if name not in _READ or value is None:
            continue
        row[name] = _value(key, kind, value)
    return row


def _value(key: str, kind: str, value: Any) -> Any:
    if (kind == "binary") != key.endswith(_MARK):
        raise ValueError(
            f"{key!r} must be named {key.removesuffix(_MARK)}{_MARK if kind == 'binary' else ''}"
        )
    if kind == "binary" and isinstance(value, str):
        return base64.b64decode(value, validate=True)
    if kind == "timestamp" and isinstance(value, str):
        moment = datetime.fromisoformat(value)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if kind == "string" and isinstance(value, str):
        value.encode()  # half of a surrogate pair is an error of this line
        return value
    if kind == "bool" and isinstance(value, bool):
        return value
    if kind.startswith("int") and isinstance(value, int) and not isinstance(value, bool):
        bits = int(kind.removeprefix("int")) - 1
        if -(1 << bits) <= value < 1 << bits:
            return value
        raise ValueError(f"{key!r} has the value {value}, which is out of range")
    raise ValueError(f"{key!r} has a value of the wrong type")


def _line(result: dict[str, Any]) -> str:
    what = f"{result['rows']} messages ({result['bytes']} bytes)"
    notes = [f"{result['expired']} have exceeded their time to live"] if result["expired"] else []
    if result["of_the_other_kind"]:
        notes.append(
            f"{result['of_the_other_kind']} were sent to a queue of the other kind (transactional or not)"
        )
    done = f"would write {what}" if result["dry_run"] else f"wrote {result['written']} of {what}"
    return "; ".join([f"{done} into {result['to']}", *notes])


COMMAND = Command(
    name="import",
    help="put the messages of Parquet files or JSON lines into a queue, each once",
    description="""Checks every file before it writes. If the command is interrupted, the same command
        continues: each message is written once.""",
    run=explaining(_run),
    add_arguments=_add_arguments,
    examples=(
        Example(
            "messages.parquet --url msmq+bulk://orders01:1802 --to orders --dry-run",
            "check everything, write nothing",
        ),
        Example("messages.parquet --url msmq+bulk://orders01:1802 --to orders --apply", "check, then write"),
    ),
)
