"""Rows that the store source reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msmq_fast.spark.source import spark_schema
from msmq_fast.spark.storereader import StoreReader, store_columns, store_options, store_reader
from tests.spark import stores

Row = dict[str, Any]


def reader(directory: Path, **options: str) -> StoreReader:
    checked = store_options({"path": str(directory), "computerName": stores.COMPUTER, **options})
    return store_reader(checked, spark_schema(store_columns(checked)))


def rows(directory: Path, **options: str) -> list[Row]:
    """All rows, as tasks of a query would give them."""
    one = reader(directory, **options)
    found: list[Row] = []
    for partition in one.partitions():
        for batch in one.read(partition):
            assert batch.num_rows
            found += batch.to_pylist()
    return found
