"""A lake: its root, the names of its tables, and its small files.

The tables are Delta tables (delta.py) below `bronze`, `silver`, `gold` and `_quarantine`, on a local disk, on
NFS or in an object store. `_state` has small JSON files and, if Spark can write there, checkpoints.
"""

from __future__ import annotations

import json
import time
import uuid
from datetime import date
from typing import Any, Final

from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.spark.lake.delta import Table
from msmq_fast.spark.lake.storage import file_system, normalized

LAKE_VERSION: Final = 2
"""The version of the lake's layout. Lakes of version 1 were directories of Parquet files; see migrate.py."""

PARTITIONS: Final = {
    "bronze/events": ("day", "qm"),
    "bronze/messages": ("day",),
    "bronze/bodies": (),
    "bronze/counters": ("day",),
    "_quarantine/events": (),
    "silver/events": ("day", "qm"),
}
"""The partition columns of tables; all other tables have `day`."""

REPLAYS: Final = "_state/replays"
ROWS: Final = ".rows"
"""The suffix of the directory with the messages that a replay has selected."""
_HEAD: Final = "_state/lake.json"
LAYERS: Final = ("bronze", "silver", "gold", "_quarantine")


class Lake:
    """One lake. Its methods take and return paths relative to the root of the lake; `path` returns absolute
    ones for Spark.
    """

    def __init__(self, root: str) -> None:
        try:
            self.root = normalized(root)
            self._fs = file_system(self.root)
        except (OSError, ValueError) as error:
            raise CommandError(Exit.USAGE, f"--lake {root}: {error}") from error
        self._tables: dict[str, Table] = {}

    @classmethod
    def create(cls, root: str) -> Lake:
        """Opens the lake in the directory `root`, or creates one if the directory is empty or does not exist.
        Raises CommandError if the directory contains anything else.
        """
        lake = cls(root)
        if lake.version() is None:
            if lake.names(""):
                raise CommandError(
                    Exit.USAGE,
                    f"{root} is neither a lake nor empty: give a lake or a new directory",
                )
            lake.write_version()
        return cls.open(root)

    @classmethod
    def open(cls, root: str) -> Lake:
        """Opens the existing lake in the directory `root`. Raises CommandError if there is none, if it has to
        be migrated, or if its layout is of a later program.
        """
        lake = cls(root)
        version = lake.version()
        if version is None:
            raise CommandError(
                Exit.NOT_FOUND, f"no lake at {root}: `msmq-lake archive --lake {root} --url …` makes one"
            )
        if version > LAKE_VERSION:
            raise CommandError(
                Exit.FAILURE,
                f"the lake at {root} has schema version {version}, but this program supports versions up to "
                f"{LAKE_VERSION}: use a newer release",
            )
        if version < LAKE_VERSION:
            raise CommandError(
                Exit.FAILURE,
                f"the lake at {root} is of an earlier release, without Delta tables: run `msmq-lake migrate "
                f"--lake {root}` once",
            )
        return lake

    def version(self) -> int | None:
        """Returns the version of the layout; None if the root is not a lake. Raises CommandError if the file
        that has it is damaged.
        """
        head = self.read_json(_HEAD)
        if head is None:
            return None
        version = head.get("schema_version") if isinstance(head, dict) else None
        if not isinstance(version, int):
            raise CommandError(Exit.FAILURE, f"{self.path(_HEAD)} is damaged: it has no schema_version")
        return version

    def write_version(self) -> None:
        """Makes the root a lake of the present layout."""
        self.write_json(_HEAD, {"schema_version": LAKE_VERSION})

    @property
    def local(self) -> bool:
        """Whether the lake is on a file system of this machine."""
        return "://" not in self.root

    def path(self, *parts: str) -> str:
        """Returns the absolute path, or the URL, of the joined `parts`."""
        return "/".join((self.root, *parts))

    def table(self, name: str) -> Table:
        """Returns the table `name`, such as `bronze/events`, whether it exists or not."""
        if name not in self._tables:
            self._tables[name] = Table(self.path(name), name, PARTITIONS.get(name, ("day",)))
        return self._tables[name]

    def tables(self) -> list[Table]:
        """Returns the tables that exist."""
        names = (f"{layer}/{name}" for layer in LAYERS for name in self.names(layer))
        return [self.table(name) for name in names if self.names(f"{name}/_delta_log")]

    def days(self, table: str) -> list[date]:
        """Returns the days of which a table has rows, in order."""
        return self.table(table).days()

    def dataset(self, name: str) -> Any:
        """Returns a table as a pyarrow dataset, or, as `TABLE/day=DAY`, one day of it without the column
        `day`. Returns None if there are no files.
        """
        from pyarrow.dataset import FileSystemDataset, ParquetFileFormat

        name, _, day = name.partition("/day=")
        table = self.table(name)
        found, schema = table.delta(), table.schema()
        if found is None or schema is None:
            return None
        files = file_system(table.uri)
        if not day:
            return found.to_pyarrow_dataset(filesystem=files) if table.files() else None
        paths = [file.path for file in table.files(day=day)]
        schema = schema.remove(schema.get_field_index("day"))
        return FileSystemDataset.from_paths(paths, schema, ParquetFileFormat(), files) if paths else None

    def names(self, directory: str) -> list[str]:
        """Returns the names in a directory, sorted; none if it does not exist."""
        from pyarrow import fs

        found = self._fs.get_file_info(fs.FileSelector(directory, allow_not_found=True))
        return sorted(info.base_name for info in found)

    def exists(self, path: str) -> bool:
        """Returns whether a file or a directory exists."""
        found = self._fs.get_file_info([path])[0]
        return bool(found.type.name != "NotFound")

    def age_s(self, directory: str) -> float:
        """Returns the seconds since a file in a directory was last changed; 0 if that is unknown."""
        from pyarrow import fs

        found = self._fs.get_file_info(fs.FileSelector(directory, allow_not_found=True))
        times = [info.mtime_ns for info in found if info.mtime_ns]
        return time.time() - max(times) / 1e9 if times else 0.0

    def delete(self, directory: str) -> None:
        """Deletes a directory and its content. Has no effect if it does not exist."""
        if self.names(directory):
            self._fs.delete_dir(directory)

    def delete_file(self, path: str) -> None:
        """Deletes a file. Has no effect if it does not exist."""
        if self.exists(path):
            self._fs.delete_file(path)

    def create_file(self, path: str) -> Any:
        """Creates a file, and its directory, and returns a pyarrow stream that writes it."""
        if self.local:
            self._fs.create_dir(path.rpartition("/")[0], recursive=True)
        return self._fs.open_output_stream(path)

    def open_file(self, path: str) -> Any:
        """Opens a file as a pyarrow file with random access."""
        return self._fs.open_input_file(path)

    def read_json(self, path: str) -> Any:
        """Returns the value of a small JSON file, None if it does not exist. Raises CommandError if it is
        damaged.
        """
        if not self.exists(path):
            return None
        with self._fs.open_input_file(path) as stream:
            text = stream.read()
        try:
            return json.loads(text)
        except ValueError as error:
            raise CommandError(Exit.FAILURE, f"{self.path(path)} is damaged: {error}") from error

    def write_json(self, path: str, value: Any) -> None:
        """Writes a small JSON file, and replaces an existing one atomically."""
        text = json.dumps(value, indent=1, sort_keys=True).encode()
        if not self.local:  # a store shows an object when all of it is there
            with self.create_file(path) as stream:
                stream.write(text)
            return
        aside = f"{path.rpartition('/')[0]}/.{uuid.uuid4().hex}"
        with self.create_file(aside) as stream:
            stream.write(text)
        self._fs.move(aside, path)
