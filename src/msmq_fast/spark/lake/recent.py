"""The hashes of bodies that a lake has got lately, by the log of bronze/bodies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
from pyarrow import parquet

from msmq_fast.spark.lake.delta import File
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.tables import COUNTED_ON_S

__all__ = ["RecentBodies"]

_MOST: Final = 250_000
"""The number of recent bodies that are searched."""
_TABLE: Final = "bronze/bodies"


class RecentBodies:
    """Follows the commits of bronze/bodies in a worker process, which executes many tasks."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._table = lake.table(_TABLE)
        self._version: int | None = None
        self._files: dict[str, File] = {}
        self._hashes: dict[str, pa.ChunkedArray] = {}

    def hashes(self, now: float) -> pa.ChunkedArray:
        """Returns the hashes of the bodies that were committed within COUNTED_ON_S seconds before `now`, a
        time in seconds since 1970: about 250,000 at most, the latest ones. Raises OSError.
        """
        self._follow()
        limit = now - COUNTED_ON_S
        self._files = {path: file for path, file in self._files.items() if file.modified >= limit}
        self._hashes = {path: found for path, found in self._hashes.items() if path in self._files}
        chunks: list[pa.Array] = []
        for path in sorted(self._files, key=lambda path: self._files[path].modified, reverse=True):
            if sum(map(len, chunks)) >= _MOST:
                break
            if path not in self._hashes:
                self._hashes[path] = self._read(path)
            chunks += self._hashes[path].chunks
        return pa.chunked_array(chunks, pa.string())

    def _follow(self) -> None:
        """Brings the files of the table up to date: the whole table is read once, then only new commits."""
        if self._version is None:
            found = self._table.delta()
            self._version = -1 if found is None else found.version()
            self._note(self._table.files())
            return
        for change in self._table.changes(self._version):
            self._version += 1
            for path in change.removed:
                self._files.pop(path, None)
            self._note(change.added)

    def _note(self, files: Iterable[File]) -> None:
        self._files |= {file.path: file for file in files if file.rows <= _MOST}

    def _read(self, path: str) -> pa.ChunkedArray:
        with self._lake.open_file(f"{_TABLE}/{path}") as stream:
            return parquet.ParquetFile(stream).read(["body_sha256"], use_threads=False).column(0)
