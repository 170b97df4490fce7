"""The Delta tables of a lake, through the package deltalake (delta-rs; no JVM).

Tasks write Parquet files below the directory of a table (files.py). A file belongs to the table as soon as a
commit names it, and readers see all files of a commit or none:

1. `commit` adds files, and removes the files that they replace, in one step.
2. A Mark makes a commit happen once: a name and a number that grows with each commit of that name. A commit
   whose number is not greater than the last one of its name is not repeated, also after a kill.
3. On a disk of this machine, most commits that only add files are written without deltalake (appends.py).
4. Two processes that change a table at the same time are both right if they only add. If they replace the
   same files, or use the same mark, one of them fails with Conflict and leaves only files that `vacuum`
   deletes.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msmq_fast.spark.lake.appends import CHECKPOINT_EVERY, Appends, Landed, Mark

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

__all__ = ["Conflict", "File", "Fresh", "Landed", "Mark", "Partition", "Table"]

Partition = dict[str, str | None]
"""Values of partition columns as text, the form in which paths and logs have them."""

RETENTION_H: Final = 168
"""Hours for which files that left a table are kept, for readers and time travel."""
FILE_BYTES: Final = 256 << 20
"""Approximate size of a file that `compact` makes, in bytes."""
_READERS: Final = 16
_SETTINGS: Final = {
    "delta.deletedFileRetentionDuration": f"interval {RETENTION_H} hours",
    "delta.logRetentionDuration": "interval 30 days",
    "delta.checkpointInterval": str(CHECKPOINT_EVERY),
}


class Conflict(Exception):
    """Another process changed the same part of a table at the same time: nothing was committed."""


class File(NamedTuple):
    """A file of a table. `path` is relative to the root of the table, `modified` in seconds since 1970."""

    path: str
    rows: int
    size: int
    modified: float
    partition: Partition


class Fresh(NamedTuple):
    """What was added to a table since a version: the current `version`, the `files` that have the new rows
    (and perhaps old ones), and the number of `commits` that added rows.
    """

    version: int
    files: list[File]
    commits: int


class Change(NamedTuple):
    """What one commit did to the files of a table: `removed` are paths."""

    added: list[File]
    removed: list[str]


class Table:
    """One table of a lake: `uri` is its root, `name` its path in the lake, such as `bronze/events`, and `by`
    its partition columns.
    """

    def __init__(self, uri: str, name: str, by: Sequence[str]) -> None:
        self.uri = uri
        self.name = name
        self.by = tuple(by)
        self._open: DeltaTable | None = None
        self._appends: Appends | None = None

    def delta(self, version: int | None = None) -> DeltaTable | None:
        """Returns the table as of now, or as of `version`; None if it does not exist."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            if version is not None:
                return DeltaTable(self.uri, version=version)
            if self._open is None:
                self._open = DeltaTable(self.uri)
            else:
                self._open.update_incremental()
        except TableNotFoundError:
            return None
        return self._open

    def schema(self) -> pa.Schema | None:
        """Returns the columns of the table, partition columns included; None if it does not exist."""
        import pyarrow as pa

        table = self.delta()
        return None if table is None else pa.schema(table.schema())

    def files(self, version: int | None = None, **partition: str | None) -> list[File]:
        """Returns the files of the table, or those of one partition; none if the table does not exist."""
        table = self.delta(version)
        if table is None:
            return []
        return [file for file in _files(table) if partition.items() <= file.partition.items()]

    def days(self) -> list[date]:
        """Returns the days of which the table has files, in order."""
        found = {day for file in self.files() if (day := file.partition.get("day"))}
        return sorted(date.fromisoformat(day) for day in found)

    def marked(self, name: str) -> int | None:
        """Returns the number of the last commit with a mark of this name; None if there is none."""
        table = self.delta()
        return None if table is None else table.transaction_version(name)

    def commit(
        self,
        added: Iterable[Landed],
        schema: pa.Schema,
        *,
        removed: Iterable[File] = (),
        marks: Sequence[Mark] = (),
        seen: Mapping[str, int | None] | None = None,
    ) -> bool:
        """Adds and removes files in one step. Returns False, without an effect, if the first of the `marks`
        is not newer than the last one of its name. Creates the table, or adds columns to it, if necessary.

        `schema` has the columns of the files and the partition columns. `seen`: the last numbers of marks on
        which the caller relied, by name. Raises Conflict, also if these numbers have changed.
        """
        from deltalake.exceptions import CommitFailedError
        from deltalake.transaction import AddAction, CommitProperties, RemoveAction, Transaction

        added, removed = list(added), list(removed)
        plain = not removed and not seen
        if plain and self._appends is not None:
            done = self._appends.commit(added, schema.names, marks)
            if done is not None:
                return done
        table = self._ready(schema)
        known = table.transaction_version(marks[0].name) if marks else None
        if known is not None and known >= marks[0].number:
            return False
        if seen and any(table.transaction_version(name) != last for name, last in seen.items()):
            raise Conflict(f"{self.name}: another process has done the same work")
        if removed and not {file.path for file in removed} <= {file.path for file in _files(table)}:
            raise Conflict(f"{self.name}: another process has replaced files of the table")
        now = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [
            AddAction(file.path, file.size, json.loads(file.partition), now, True, file.stats)
            for file in added
        ]
        actions += [RemoveAction(file.path, True, now, file.size, file.partition) for file in removed]
        properties = CommitProperties(app_transactions=[Transaction(*mark) for mark in marks])
        try:
            table.create_write_transaction(
                actions, "append", table.schema(), list(self.by), commit_properties=properties
            )
        except CommitFailedError as error:
            self._open = None
            if marks and self.marked(marks[0].name) == marks[0].number:
                return False  # the same commit by another process
            raise Conflict(f"{self.name}: {_line(error)}") from error
        if plain and "://" not in self.uri:
            table.update_incremental()
            self._appends = Appends(Path(self.uri), table, marks)
        return True

    def remove(self, files: Sequence[File]) -> None:
        """Removes files from the table. Raises Conflict."""
        schema = self.schema()
        assert schema is not None  # noqa: S101 - it has files
        self.commit([], schema, removed=files)

    def since(self, version: int | None) -> Fresh:
        """Returns what was added after `version`, None for everything.

        Files that `compact` has merged meanwhile are found in the file that replaced them, with the old rows
        of that file.
        """
        table = self.delta()
        if table is None:
            return Fresh(-1, [], 0)
        active, last = _files(table), table.version()
        added: set[str] = set()
        merged: set[str] = set()
        commits = 0
        for actions in self._log(range(0 if version is None else version + 1, last + 1)):
            if actions is None:  # the log begins later: everything may be new
                return Fresh(last, active, max(commits, 1))
            adds = [action["add"] for action in actions if "add" in action]
            new = {add["path"] for add in adds if add["dataChange"]}
            commits += bool(new)
            added |= new
            merged |= {add["path"] for add in adds if not add["dataChange"]}
        paths = {file.path for file in active}
        wanted = added if added <= paths else added | merged
        return Fresh(last, [file for file in active if file.path in wanted], commits)

    def changes(self, version: int) -> Iterator[Change]:
        """Yields what each commit after `version` did, in order. Reads their files of the log one by one,
        which costs less than to bring the whole table up to date.
        """
        while (actions := _actions(self._store, version := version + 1)) is not None:
            yield Change(
                [_added(action["add"]) for action in actions if "add" in action],
                [action["remove"]["path"] for action in actions if "remove" in action],
            )

    def compact(self) -> int:
        """Merges small files of each partition. Returns how many files there are fewer. Raises Conflict."""
        from deltalake import WriterProperties
        from deltalake.exceptions import CommitFailedError

        table = self.delta()
        if table is None:
            return 0
        properties = WriterProperties(compression="ZSTD", compression_level=1)
        try:
            found = table.optimize.compact(target_size=FILE_BYTES, writer_properties=properties)
        except CommitFailedError as error:
            self._open = None
            raise Conflict(f"{self.name}: {_line(error)}") from error
        return int(found["numFilesRemoved"]) - int(found["numFilesAdded"])

    def vacuum(self) -> None:
        """Deletes files that left the table, or never belonged to it, more than RETENTION_H hours ago."""
        if (table := self.delta()) is not None:
            table.vacuum(retention_hours=RETENTION_H, dry_run=False, full=True)

    def strays(self) -> list[str]:
        """Returns the paths of files in the table's directory that no commit named."""
        table = self.delta()
        if table is None:
            return []

        def unused(*, full: bool) -> set[str]:
            return set(table.vacuum(retention_hours=0, enforce_retention_duration=False, full=full))

        return sorted(unused(full=True) - unused(full=False))

    def _ready(self, schema: pa.Schema) -> DeltaTable:
        """Returns the table, after it was created or has got the columns that it lacks."""
        from deltalake import DeltaTable, Schema
        from deltalake.exceptions import CommitFailedError, DeltaError

        from msmq_fast.spark.lake.comments import commented

        table = self.delta()
        if table is not None and self._has(table, schema.names):
            return table
        wanted = commented(schema)
        if table is None:
            with contextlib.suppress(DeltaError):  # another process has just created it
                DeltaTable.create(
                    self.uri,
                    wanted,
                    partition_by=list(self.by),
                    name=self.name.replace("/", "_"),
                    configuration=_SETTINGS,
                )
            table = self.delta()
            assert table is not None  # noqa: S101 - created by this process or by another one
        known = {field.name for field in table.schema().fields}
        new = [field for field in Schema.from_arrow(wanted).fields if field.name not in known]
        if new:
            try:
                table.alter.add_columns(new)
            except CommitFailedError as error:
                raise Conflict(f"{self.name}: {_line(error)}") from error
            table.update_incremental()
        return table

    @staticmethod
    def _has(table: DeltaTable, columns: Sequence[str]) -> bool:
        return {*columns} <= {field.name for field in table.schema().fields}

    def _log(self, versions: Iterable[int]) -> Iterator[list[dict[str, Any]] | None]:
        """Yields, for each version in order, the actions of its commit; None if the log no longer has it."""
        from concurrent.futures import ThreadPoolExecutor

        store = self._store
        with ThreadPoolExecutor(_READERS) as pool:  # of an object store, each file is a request
            yield from pool.map(lambda version: _actions(store, version), versions)

    @cached_property
    def _store(self) -> Any:
        """The file system below the root of the table."""
        from msmq_fast.spark.lake.storage import file_system

        return file_system(self.uri)


def _actions(store: Any, version: int) -> list[dict[str, Any]] | None:
    """Returns the actions of a commit; None if the log does not have it."""
    try:
        with store.open_input_file(f"_delta_log/{version:020d}.json") as stream:
            return [json.loads(line) for line in stream.read().splitlines()]
    except FileNotFoundError:
        return None


def _added(add: dict[str, Any]) -> File:
    rows = json.loads(add.get("stats") or "{}").get("numRecords", 0)
    return File(add["path"], rows, add["size"], add["modificationTime"] / 1000, add["partitionValues"])


def _files(table: DeltaTable) -> list[File]:
    import pyarrow as pa

    by = table.metadata().partition_columns
    names = ["path", "num_records", "size_bytes", "modification_time", *(f"partition.{name}" for name in by)]
    columns = pa.table(table.get_add_actions(flatten=True)).select(names).to_pydict()
    values = [[_text(value) for value in columns[f"partition.{name}"]] for name in by]
    times = [moment / 1000 for moment in columns["modification_time"]]
    rows = [count or 0 for count in columns["num_records"]]
    partitions = [dict(zip(by, each, strict=True)) for each in zip(*values, strict=True)]
    return [
        File(*found)
        for found in zip(
            columns["path"],
            rows,
            columns["size_bytes"],
            times,
            partitions or [{} for _ in rows],
            strict=True,
        )
    ]


def _text(value: Any) -> str | None:
    return value.isoformat() if isinstance(value, date) else value


def _line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")
