"""The directories of a lake's tables, and how whole directories are replaced, even if a process is killed.

A lake consists of directories of Parquet files on a file system that renames directories and that Spark and
pyarrow both read: a local path or NFS, `file:`, `hdfs:`. An object store copies keys one by one, so it cannot
hold a lake. A batch is part of its table as soon as its directory has a file `_SUCCESS`. The replacement of a
directory is first written to `_staging`. A file in `_state` lists the renames, and the next command that
locks the lake completes renames that a kill interrupted. Readers do not look at that file: between the
deletion and the rename of a directory of silver or gold, they find the directory missing.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.spark.lake.locks import claim

SCHEMA_VERSION: Final = 1
"""Increases when the meaning of a column changes. Columns are only ever added."""

SUCCESS: Final = "_SUCCESS"
FOLDED: Final = "compacted"
"""The run of the batch into which `compact` has merged all bodies."""
RECENT: Final = 32
"""The number of latest batches of bodies that are searched before a body is stored. `compact` keeps them."""
REPLAYS: Final = "_state/replays"
HEADERS_ONLY: Final = "-headers"
"""The suffix of runs whose messages have no bodies in the lake."""
_SCHEMES: Final = ("", "file", "hdfs", "viewfs")
_HEAD: Final = "_state/lake.json"
_SWAP: Final = "_state/swap.json"
_LOCK: Final = "_state/lock.json"
_BATCH: Final = re.compile(r"bronze/[^/]+/run=([^/]+)/batch=(\d+)")


class Batch(NamedTuple):
    """A complete batch of a bronze table: the directory `path` with the files of micro-batch `number` of the
    archive run `run`.
    """

    run: str
    number: int
    path: str


class Swap(NamedTuple):
    """A replacement of directories: first `deletions` are deleted, then `moves`, pairs (source, target), are
    renamed. An existing target is replaced.
    """

    deletions: list[str]
    moves: list[tuple[str, str]]


class Lake:
    """One lake. Its methods take and return paths relative to the root of the lake; `path` returns absolute
    ones for Spark.
    """

    def __init__(self, root: str) -> None:
        if urlsplit(root).scheme not in _SCHEMES:
            raise CommandError(
                Exit.USAGE,
                f"--lake {root}: a lake must be a local, NFS or HDFS directory (a path, file: or hdfs:), "
                "because its directories are renamed, which an object store cannot do",
            )
        self.root = (
            root.rstrip("/") if "://" in root or root.startswith("file:") else str(Path(root).resolve())
        )
        try:
            self._fs, self._base = _file_system(self.root)
        except (OSError, ValueError) as error:
            raise CommandError(Exit.USAGE, f"--lake {root}: {error}") from error

    @classmethod
    def create(cls, root: str) -> Lake:
        """Opens the lake in the directory `root`, or creates one if the directory is empty or does not exist.
        Raises CommandError if the directory contains anything else.
        """
        lake = cls(root)
        head = lake.read_json(_HEAD)
        if head is None:
            if lake.names(""):
                raise CommandError(
                    Exit.USAGE,
                    f"{root} is neither a lake nor empty: give a lake or a new directory",
                )
            lake.write_json(_HEAD, {"schema_version": SCHEMA_VERSION})
        return cls.open(root)

    @classmethod
    def open(cls, root: str) -> Lake:
        """Opens the existing lake in the directory `root`. Raises CommandError if there is none, or its
        schema version is later than that of this program.
        """
        lake = cls(root)
        head = lake.read_json(_HEAD)
        if not isinstance(head, dict):
            raise CommandError(
                Exit.NOT_FOUND, f"no lake at {root}: `msmq-lake archive --lake {root} --url …` makes one"
            )
        version = head.get("schema_version")
        if not isinstance(version, int) or version > SCHEMA_VERSION:
            raise CommandError(
                Exit.FAILURE,
                f"the lake at {root} has schema version {version}, but this program supports versions up to "
                f"{SCHEMA_VERSION}: use a newer release",
            )
        return lake

    @contextmanager
    def exclusive(self, what: str) -> Iterator[None]:
        """Locks the lake while the context is open: only one command at a time may change silver and gold, or
        clean up bronze. `what` is the name of the command.

        First completes the renames that a killed command left unfinished. Raises CommandError if the command
        that holds the lock is running on this machine, or may be running on another one.
        """

        def refusal(what: str, holder: str) -> str:
            return (
                f"{self.root} is being changed by `msmq-lake {what}` ({holder}); if that is gone, delete "
                f"{self.path(_LOCK)}"
            )

        with claim(self, _LOCK, what, refusal):
            self._finish_swap()
            for name in self.names("_staging"):
                self.delete(f"_staging/{name}")
            for name in self.names(REPLAYS):
                if name.endswith(".rows"):  # bodies that a killed replay has left behind
                    self.delete(f"{REPLAYS}/{name}")
            yield

    @contextmanager
    def archiving(self, name: str) -> Iterator[None]:
        """Locks the name of an archive while the context is open: two archives with the same name would
        delete each other's files.

        Raises CommandError if another archive with this name is running.
        """
        path = f"_state/archives/{name}.json"

        def refusal(_: str, holder: str) -> str:
            return (
                f"an archive named {name!r} is filling {self.root} already ({holder}): wait for its end, or "
                f"give this one another --name; if that is gone, delete {self.path(path)}"
            )

        with claim(self, path, "archive", refusal, renewed=True):
            yield

    @property
    def directory(self) -> Path | None:
        """The root if it is on the local file system, otherwise None."""
        from pyarrow import fs

        return Path(self._base) if isinstance(self._fs, fs.LocalFileSystem) else None

    def path(self, *parts: str) -> str:
        """Returns the absolute path of the joined `parts` in the form that Spark accepts."""
        return "/".join((self.root, *parts))

    def names(self, directory: str) -> list[str]:
        """Returns the names in a directory, sorted; none if it does not exist."""
        found = self._fs.get_file_info(_selector(self._at(directory), recursive=False))
        return sorted(info.base_name for info in found)

    def exists(self, path: str) -> bool:
        """Returns whether a file or a directory exists."""
        found = self._fs.get_file_info([self._at(path)])[0]
        return bool(found.type.name != "NotFound")

    def delete(self, directory: str) -> None:
        """Deletes a directory and its content. Has no effect if it does not exist."""
        if self.exists(directory):
            self._fs.delete_dir(self._at(directory))

    def delete_file(self, path: str) -> None:
        """Deletes a file. Has no effect if it does not exist."""
        if self.exists(path):
            self._fs.delete_file(self._at(path))

    def create_file(self, path: str) -> Any:
        """Creates a file, and its directory, and returns a pyarrow stream that writes it."""
        self._fs.create_dir(self._at(path.rpartition("/")[0]), recursive=True)
        return self._fs.open_output_stream(self._at(path))

    def move(self, source: str, target: str) -> None:
        """Moves a file to the path `target`, whose directory is created if necessary."""
        self._fs.create_dir(self._at(target.rpartition("/")[0]), recursive=True)
        self._fs.move(self._at(source), self._at(target))

    def relative(self, path: str) -> str:
        """Returns the relative path of an absolute one that `path` returned."""
        return path[len(self.root) + 1 :]

    def files(self, directory: str) -> list[tuple[str, int]]:
        """Returns the Parquet files below a directory as (path, size in bytes)."""
        selector = _selector(self._at(directory), recursive=True)
        found = [
            info for info in self._fs.get_file_info(selector) if info.is_file and info.extension == "parquet"
        ]
        return [(info.path[len(self._base) + 1 :], info.size) for info in found]

    def read_json(self, path: str) -> Any:
        """Returns the value of a small JSON file, None if it does not exist. Raises CommandError if it is
        damaged.
        """
        if not self.exists(path):
            return None
        with self._fs.open_input_file(self._at(path)) as stream:
            text = stream.read()
        try:
            return json.loads(text)
        except ValueError as error:
            raise CommandError(Exit.FAILURE, f"{self.path(path)} is damaged: {error}") from error

    def write_json(self, path: str, value: Any) -> None:
        """Writes a small JSON file, and replaces an existing one atomically."""
        directory = path.rpartition("/")[0]
        aside = f"{directory}/.{uuid.uuid4().hex}"
        with self.create_file(aside) as stream:
            stream.write(json.dumps(value, indent=1, sort_keys=True).encode())
        self._fs.move(self._at(aside), self._at(path))

    def write_table(self, directory: str, table: Any) -> None:
        """Writes a small pyarrow table as a complete batch."""
        from pyarrow import parquet

        with self.create_file(f"{directory}/part-0.parquet") as stream:
            parquet.write_table(table, stream)
        self.create_file(f"{directory}/{SUCCESS}").close()

    def open_file(self, path: str) -> Any:
        """Opens a file as a pyarrow file with random access."""
        return self._fs.open_input_file(self._at(path))

    def dataset(self, directory: str) -> Any:
        """Returns the table in a directory as a pyarrow dataset with partition columns such as `day`; None if
        the directory has no Parquet files.
        """
        from pyarrow import dataset

        if not self.files(directory):
            return None
        return dataset.dataset(
            self._at(directory), filesystem=self._fs, format="parquet", partitioning="hive"
        )

    def newest(self, directory: str, column: str) -> Any:
        """Returns the greatest value of a column in the files below a directory, from the files' statistics;
        None if the statistics do not tell it.
        """
        from pyarrow import parquet

        values = []
        for path, _ in self.files(directory):
            with self.open_file(path) as stream:
                groups = parquet.ParquetFile(stream).metadata
                index = groups.schema.to_arrow_schema().get_field_index(column)
                for number in range(groups.num_row_groups):
                    found = groups.row_group(number).column(index).statistics
                    if found is None or not found.has_min_max:
                        return None
                    values.append(found.max)
        return max(values, default=None)

    def batches(self, table: str) -> list[Batch]:
        """Returns the complete batches of a bronze table, ordered by run and number."""
        return [Batch(run, number, self.path(path)) for path, run, number, done in self._found(table) if done]

    def recent(self, table: str, count: int) -> list[Batch]:
        """Returns the `count` most recently completed batches of a bronze table, or all if there are fewer.
        Batches of all runs are compared, but only the last `count` directories of each run are looked at.
        """
        marks = {}
        for run in self.names(f"bronze/{table}"):
            for name in self.names(f"bronze/{table}/{run}")[-count:]:
                path = f"bronze/{table}/{run}/{name}"
                if match := _BATCH.fullmatch(path):
                    mark = self._at(f"{path}/{SUCCESS}")
                    marks[mark] = Batch(match[1], int(match[2]), self.path(path))
        found = [info for info in self._fs.get_file_info(list(marks)) if info.is_file]
        found.sort(key=lambda info: (info.mtime_ns or 0, info.path))
        return [marks[info.path] for info in found[-count:]]

    def age_s(self, batch: Batch) -> float:
        """Returns the seconds since a batch was completed."""
        (mark,) = self._fs.get_file_info([self._at(f"{self.relative(batch.path)}/{SUCCESS}")])
        return (time.time_ns() - (mark.mtime_ns or 0)) / 1e9

    def torn(self, table: str) -> list[str]:
        """Returns the directories of batches that were not completed; the run to which they belong writes
        them again.
        """
        return [path for path, _, _, done in self._found(table) if not done]

    def staging(self) -> str:
        """Returns a new directory below `_staging`."""
        return f"_staging/{uuid.uuid4().hex}"

    def swap(self, swap: Swap, *, then: tuple[str, Any] | None = None) -> None:
        """Carries out a Swap and then writes `then`, a pair (path, value) for a JSON file. If the process is
        killed, the next command that locks the lake completes the rest.
        """
        self.write_json(_SWAP, {"deletions": swap.deletions, "moves": swap.moves, "then": then})
        self._finish_swap()

    def _finish_swap(self) -> None:
        note = self.read_json(_SWAP)
        if note is None:
            return
        for directory in note["deletions"]:
            self.delete(directory)
        for source, target in note["moves"]:
            if self.exists(source):
                self.delete(target)
                self._fs.create_dir(self._at(target.rpartition("/")[0]), recursive=True)
                self._fs.move(self._at(source), self._at(target))
        if note["then"] is not None:
            self.write_json(*note["then"])
        self._fs.delete_file(self._at(_SWAP))

    def _found(self, table: str) -> list[tuple[str, str, int, bool]]:
        """Returns all batches of a bronze table as (path, run, number, whether complete), from one directory
        listing.
        """
        selector = _selector(self._at(f"bronze/{table}"), recursive=True)
        paths = {info.path[len(self._base) + 1 :] for info in self._fs.get_file_info(selector)}
        matches = ((path, _BATCH.fullmatch(path)) for path in paths)
        found = [(path, m[1], int(m[2]), f"{path}/{SUCCESS}" in paths) for path, m in matches if m]
        return sorted(found, key=lambda batch: batch[1:3])

    def _at(self, path: str) -> str:
        return f"{self._base}/{path}" if path else self._base


def _selector(path: str, *, recursive: bool) -> Any:
    from pyarrow import fs

    return fs.FileSelector(path, allow_not_found=True, recursive=recursive)


def _file_system(root: str) -> tuple[Any, str]:
    from pyarrow import fs  # late: `--help` works without it

    scheme = urlsplit(root).scheme
    if not scheme:
        return fs.LocalFileSystem(), root
    if scheme == "file":
        return fs.LocalFileSystem(), urlsplit(root).path
    found, base = fs.FileSystem.from_uri(root)
    return found, base.rstrip("/")


def batch_directory(table: str, run: str, number: int) -> str:
    """Returns the directory of a batch of a bronze table."""
    return f"bronze/{table}/run={run}/batch={number:010d}"


def latest(batches: Iterable[Batch]) -> dict[str, int]:
    """Returns the number of the last batch of each run."""
    last: dict[str, int] = {}
    for batch in batches:
        last[batch.run] = max(batch.number, last.get(batch.run, -1))
    return last
