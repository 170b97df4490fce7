"""`msmq-lake migrate`: turns a lake of an earlier release, directories of Parquet files, into Delta tables.

1. Every complete batch of bronze, and every directory of silver and gold, is rewritten into its table. Each
   table is committed once: its mark `migrate` says that it is done, so that a killed command can be repeated.
2. The commit of a bronze table also has the marks of all runs of archives, and each checkpoint gets the name
   of its run: the archive goes on behind its last complete batch.
3. The old files are deleted, and the new version of the layout is written.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msmq_fast.protocol.columns import OLD_NAMES
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.spark.lake.checkpoints import CHECKPOINTS, RUN
from msmq_fast.spark.lake.delta import Mark
from msmq_fast.spark.lake.failures import explaining
from msmq_fast.spark.lake.layout import LAKE_VERSION, LAYERS, PARTITIONS, Lake
from msmq_fast.spark.lake.output import print_result
from msmq_fast.spark.lake.tables import SCHEMAS, table_schema
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import add_output
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH: Final = re.compile(r"(?:bronze|_quarantine)/[^/]+/run=([^/]+)/batch=(\d+)")
_SUCCESS: Final = "_SUCCESS"
_HEADERS_ONLY: Final = "-headers"
"""The suffix of old runs whose messages have no bodies in the lake."""
_MARK: Final = "migrate"
_MERGED: Final = "_state/silver.json"
_OLD: Final = ("_staging", "_arriving", "_state/runs", "_state/archives")
_OLD_FILES: Final = (_MERGED, "_state/expired.json", "_state/lock.json", "_state/.guard")
_LEFT: Final = ("part-", ".part-", "_SUCCESS", "._SUCCESS")
"""How names of old files in a directory of a day begin; new files in the same directory have other names."""
_ROWS: Final = 65_536


class _Batch(NamedTuple):
    run: str
    number: int
    path: str


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("--lake", required=True, metavar="DIR", help="directory of the lake")
    add_output(parser)


def _run(arguments: argparse.Namespace) -> int:
    """Migrates the lake. Returns exit code 0, also if there is nothing left to do."""
    lake = Lake(arguments.lake)
    version = lake.version()
    if version is None:
        raise CommandError(Exit.NOT_FOUND, f"no lake at {arguments.lake}")
    if version > LAKE_VERSION:
        raise CommandError(
            Exit.FAILURE, f"the lake at {arguments.lake} is of a later release: use that release"
        )
    rows = migrate(lake) if version < LAKE_VERSION else {}
    print_result({"lake": lake.root, "rows": rows}, arguments.form, text=_line)
    return Exit.OK


def migrate(lake: Lake) -> dict[str, int]:
    """Turns an old lake into Delta tables. Returns the number of rows by table; tables that an interrupted
    migration had done before are left out. Raises CommandError, if a renaming of the old lake is unfinished.
    """
    if lake.exists("_state/swap.json"):
        raise CommandError(
            Exit.FAILURE,
            f"a command of the earlier release was interrupted: run its `msmq-lake verify --lake "
            f"{lake.root}` first, and then migrate",
        )
    tables = [f"{layer}/{name}" for layer in LAYERS for name in lake.names(layer)]
    merged = lake.read_json(_MERGED) or {}
    counts: dict[str, int] = {}
    with Progress("migrate", len(tables)) as progress:
        for name in tables:
            done = _migrated(lake, name, merged)
            if done is not None:
                counts[name] = done
            progress.add(1)
    _take_over_runs(lake)
    for name in tables:
        _delete_old(lake, name)
    for directory in _OLD:
        lake.delete(directory)
    for path in _OLD_FILES:
        lake.delete_file(path)
    lake.write_version()
    return counts


def _delete_old(lake: Lake, name: str) -> None:
    for directory in lake.names(name):
        if directory.startswith("run="):
            lake.delete(f"{name}/{directory}")
    for directory in _day_directories(lake, name):
        for file in lake.names(directory):
            if file.startswith(_LEFT):
                lake.delete_file(f"{directory}/{file}")


def _migrated(lake: Lake, name: str, merged: dict[str, int]) -> int | None:
    """Migrates one table. Returns the number of its rows, None if it was migrated before."""
    from msmq_fast.spark.lake.files import Files

    table = lake.table(name)
    if table.marked(_MARK) is not None:
        return None
    batches = _batches(lake, name)
    files = Files(lake)
    schema = table_schema(SCHEMAS[name]) if name in SCHEMAS else _whole_schema(lake, name)
    if schema is None:
        return 0
    try:
        if name.startswith(("bronze/", "_quarantine/")):
            _land_batches(lake, files, name, batches)
        else:
            _land_days(lake, files, name, schema)
        landed = files.close()
    except BaseException:
        files.abandon()
        raise
    marks = [Mark(_MARK, 1)]
    if name != "bronze/bodies":
        last: dict[str, int] = {}
        for batch in batches:
            last[batch.run] = max(batch.number, last.get(batch.run, -1))
        marks += [Mark(run, number) for run, number in last.items()]
    if name == "silver/events":
        marks += _silver_marks(lake, merged)
    table.commit(landed, schema, removed=table.files(), marks=marks)
    return sum(file.rows for file in landed)


def _silver_marks(lake: Lake, merged: dict[str, int]) -> list[Mark]:
    """Returns the mark that silver has all events of bronze/events, if it has; otherwise the next audit
    merges all events again, which changes nothing but costs time.
    """
    batches = _batches(lake, "bronze/events")
    version = lake.table("bronze/events").since(None).version
    complete = all(batch.number <= merged.get(batch.run, -1) for batch in batches)
    return [Mark("bronze/events", version)] if complete and version >= 0 else []


def _batches(lake: Lake, name: str) -> list[_Batch]:
    """Returns the complete batches of an old bronze table."""
    found = []
    for run in lake.names(name):
        for number in lake.names(f"{name}/{run}") if run.startswith("run=") else ():
            path = f"{name}/{run}/{number}"
            match = _BATCH.fullmatch(path)
            if match and lake.exists(f"{path}/{_SUCCESS}"):
                found.append(_Batch(match[1], int(match[2]), path))
    return found


def _land_batches(lake: Lake, files: Any, name: str, batches: Sequence[_Batch]) -> None:
    import pyarrow as pa

    from msmq_fast.spark.lake.files import split
    from msmq_fast.spark.lake.landing import shaped, with_partitions

    by = PARTITIONS[name]
    columns = {column: kind for column, kind in SCHEMAS[name].items() if column not in by}
    for batch in batches:
        for rows in _rows(lake, batch.path):
            if name == "bronze/messages":
                kept = not batch.run.endswith(_HEADERS_ONLY)
                rows = rows.append_column("body_kept", pa.array([kept] * len(rows), pa.bool_()))
            for partition, part in split(with_partitions(name, shaped(rows, columns)), by):
                files.write(name, part, partition)


def _land_days(lake: Lake, files: Any, name: str, schema: pa.Schema) -> None:
    import pyarrow as pa

    table = lake.table(name)
    for directory in _day_directories(lake, name):
        partition = dict(part.split("=", 1) for part in directory.split("/")[2:])
        wanted = pa.schema([field for field in schema if field.name not in table.by])
        files.write(name, wanted.empty_table(), partition)
        for rows in _rows(lake, directory):
            arrays = [
                rows.column(field.name).cast(field.type)
                if field.name in rows.column_names
                else pa.nulls(len(rows), field.type)
                for field in wanted
            ]
            files.write(name, pa.table(arrays, schema=wanted), partition)


def _day_directories(lake: Lake, name: str) -> list[str]:
    """Returns the directories of an old table that have files, `name/day=…` or `name/day=…/qm=…`."""
    found = []
    for day in lake.names(name):
        if not day.startswith("day="):
            continue
        date.fromisoformat(day.removeprefix("day="))
        inner = [leaf for leaf in lake.names(f"{name}/{day}") if leaf.startswith("qm=")]
        found += [f"{name}/{day}/{leaf}" for leaf in inner] or [f"{name}/{day}"]
    return found


def _whole_schema(lake: Lake, name: str) -> pa.Schema | None:
    """Returns all columns that files of an old table have, and `day`; None if it has no files."""
    import pyarrow as pa
    from pyarrow import parquet

    schemas = []
    for directory in _day_directories(lake, name):
        for path in _parquet(lake, directory):
            with lake.open_file(path) as stream:
                schemas.append(parquet.read_schema(stream).remove_metadata())
    if not schemas:
        return None
    return pa.unify_schemas(schemas).append(pa.field("day", pa.date32()))


def _rows(lake: Lake, directory: str) -> Iterator[pa.Table]:
    """Yields the rows of the files of a directory, with the present names of their columns."""
    import pyarrow as pa
    from pyarrow import parquet

    for path in _parquet(lake, directory):
        with lake.open_file(path) as stream:
            for batch in parquet.ParquetFile(stream).iter_batches(_ROWS):
                names = [OLD_NAMES.get(column, column) for column in batch.schema.names]
                yield pa.Table.from_batches([batch]).rename_columns(names)


def _parquet(lake: Lake, directory: str) -> list[str]:
    """Returns the old files in a directory: all of a batch, and those that Spark wrote for a day."""
    batch = _BATCH.fullmatch(directory) is not None
    names = (name for name in lake.names(directory) if name.endswith(".parquet"))
    return [f"{directory}/{name}" for name in names if batch or name.startswith("part-")]


def _take_over_runs(lake: Lake) -> None:
    """Writes the name of its run into each checkpoint of an archive."""
    runs: dict[str, str] = {
        name.removesuffix(".json"): str((lake.read_json(f"_state/runs/{name}") or {}).get("run"))
        for name in lake.names("_state/runs")
        if name.endswith(".json")
    }
    contents: dict[str, list[str]] = defaultdict(list)
    for archive in lake.names(CHECKPOINTS):
        for content in lake.names(f"{CHECKPOINTS}/{archive}"):
            contents[archive].append(content)
    for archive, names in contents.items():
        for content in names:
            run = runs.get(f"{archive}-{content}")
            if run is not None:
                with lake.create_file(f"{CHECKPOINTS}/{archive}/{content}/{RUN}") as stream:
                    stream.write(run.encode("ascii"))


def _line(result: dict[str, Any]) -> str:
    if not result["rows"]:
        return f"{result['lake']}: nothing to migrate"
    rows = ", ".join(f"{count} of {name}" for name, count in result["rows"].items())
    return f"{result['lake']} has Delta tables now: {rows} rows"


COMMAND = Command(
    name="migrate",
    help="turn a lake of an earlier release into Delta tables",
    description="""Rewrites the Parquet files of the lake, once; afterwards all other commands accept it. Run
        it while no archive writes to the lake. If it is interrupted, the same command continues.""",
    run=explaining(_run),
    add_arguments=_add_arguments,
    examples=(Example("--lake lake", "the whole lake"),),
)
