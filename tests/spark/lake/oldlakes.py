"""Lakes as releases before Delta tables wrote them: directories of Parquet files with `_SUCCESS`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from msmq_fast.protocol.columns import OLD_NAMES
from msmq_fast.spark.lake.tables import EVENTS, table_schema
from tests.support.lakes import TABLES


class OldLake:
    """A lake of version 1 below `root`. With `old_names`, as the first releases named columns."""

    def __init__(self, root: Path, *, old_names: bool = False) -> None:
        self.root = root
        self._old = {new: old for old, new in OLD_NAMES.items()} if old_names else {}
        self.note("_state/lake.json", {"schema_version": 1})

    def note(self, path: str, value: Any) -> None:
        """A small JSON file."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value))

    def batch(
        self, table: str, run: str, number: int, rows: list[dict[str, Any]], *, success: bool = True
    ) -> None:
        """A batch of a bronze table; without `success` it was never completed."""
        columns = {name: kind for name, kind in TABLES[table].items() if name != "body_kept"}
        data = pa.Table.from_pylist(rows, schema=table_schema(columns))
        self._write(f"bronze/{table}/run={run}/batch={number:010d}", data, success=success)

    def day(self, table: str, directory: str, rows: list[dict[str, Any]]) -> None:
        """A directory of silver or gold."""
        schema = table_schema(EVENTS) if table == "silver/events" else None
        self._write(f"{table}/{directory}", pa.Table.from_pylist(rows, schema), success=True)

    def _write(self, path: str, data: pa.Table, *, success: bool) -> None:
        directory = self.root / path
        directory.mkdir(parents=True)
        renamed = data.rename_columns([self._old.get(name, name) for name in data.column_names])
        parquet.write_table(renamed, directory / "part-0.parquet")
        if success:
            (directory / "_SUCCESS").touch()
