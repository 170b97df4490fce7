"""DataFrames over the files of a lake, without a jar.

Spark itself reads the files of a local lake. Of an object store, tasks in Python read them. Tasks in Python
write all files, so that they are the same everywhere. In a session for few rows (`session.IN_DRIVER`), the
driver reads and writes the files with the same functions, because starting Python workers, and the Parquet
reader of the JVM, costs more than the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from msmq_fast.spark.lake.delta import File, Landed, Partition
from msmq_fast.spark.lake.files import LANDED, Files, groups, landed_rows, split
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.session import IN_DRIVER
from msmq_fast.spark.lake.tables import struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["LakeFiles", "arrow_of", "kept", "landed", "read", "whole", "write"]

_TASK_BYTES: Final = 64 << 20
_ROWS: Final = 16_384
_DRIVER_ROWS: Final = 50_000
"""The maximum number of rows that the driver reads: it holds them in memory."""
_DDL: Final = ", ".join(
    f"`{field.name}` {'STRING' if pa.types.is_string(field.type) else 'BIGINT'}" for field in LANDED
)


def read(
    spark: SparkSession,
    lake: Lake,
    table: str,
    columns: dict[str, str] | StructType,
    files: Iterable[File],
) -> DataFrame:
    """Returns the rows of files of a table, with the columns `columns`; those that a file lacks are null."""
    files = list(files)
    schema = struct(columns) if isinstance(columns, dict) else columns
    if not files:
        return _local(spark, (), schema)
    if _in_driver(spark) and sum(file.rows for file in files) <= _DRIVER_ROWS:
        reader = _Reader(lake.root, table, [], arrow_of(schema))
        share = _Share([(file.path, file.size, file.partition) for file in files])
        return _local(spark, reader.read(share), schema)
    if lake.local:
        paths = [lake.path(table, file.path) for file in files]
        rows = spark.read.schema(schema).option("basePath", lake.path(table)).parquet(*paths)
        return rows.select(schema.names)
    spark.dataSource.register(LakeFiles)
    given = json.dumps([[file.path, file.size, file.partition] for file in files])
    source = spark.read.format(LakeFiles.name()).schema(schema)
    return source.options(lake=lake.root, table=table, files=given).load()


def whole(spark: SparkSession, lake: Lake, table: str, columns: dict[str, str] | StructType) -> DataFrame:
    """Returns all rows of a table as of now."""
    return read(spark, lake, table, columns, lake.table(table).files())


def kept(rows: DataFrame) -> DataFrame:
    """Returns an intermediate result that is computed once. Call `unpersist` when it is no longer needed."""
    from pyspark import StorageLevel

    if _in_driver(rows.sparkSession):
        return _local(rows.sparkSession, rows.toArrow().to_batches(), rows.schema)
    return rows.persist(StorageLevel.DISK_ONLY)


def _in_driver(spark: SparkSession) -> bool:
    return spark.conf.get(IN_DRIVER, "false") == "true"


def _local(spark: SparkSession, batches: Iterable[pa.RecordBatch], schema: StructType) -> DataFrame:
    """Returns rows of the driver. Without any batch, PySpark could not tell the types of lists."""
    empty = pa.RecordBatch.from_pylist([], schema=arrow_of(schema))
    return spark.createDataFrame(pa.Table.from_batches(list(batches) or [empty]), schema)


def write(
    rows: DataFrame, lake: Lake, table: str, *, by: Sequence[str] = (), partition: Partition | None = None
) -> list[Landed]:
    """Writes the rows as files of a table, which are not committed, and returns their descriptions.

    The partition of a row is `partition`, with the values of its columns `by`. Writes one file without rows
    if there are no rows and no columns `by`.
    """
    filing = _Filing(lake.root, table, tuple(by), partition or {})
    if _in_driver(rows.sparkSession):
        found = filing.file(rows.toArrow().to_batches())
    else:
        found = [Landed(*row) for row in rows.mapInArrow(filing, _DDL).collect()]
    if not found and not by:
        files = Files(lake)
        files.write(table, arrow_of(rows.schema).empty_table(), partition)
        found = files.close()
    return found


def landed(files: Iterable[Landed]) -> list[File]:
    """Returns files that were written as files to read, before they are committed."""
    return [File(file.path, file.rows, file.size, 0.0, json.loads(file.partition)) for file in files]


def arrow_of(schema: StructType, **more: pa.DataType) -> pa.Schema:
    """Returns the Arrow schema of a Spark schema, with the columns `more` behind its columns."""
    from pyspark.sql.pandas.types import to_arrow_schema

    found = to_arrow_schema(schema, timezone="UTC")
    for name, kind in more.items():
        found = found.append(pa.field(name, kind))
    return found


@dataclass(frozen=True)
class _Filing:
    """A function for mapInArrow: writes the rows of a task, and returns descriptions of the files."""

    lake: str
    table: str
    by: tuple[str, ...]
    partition: Partition

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield landed_rows(self.file(batches))

    def file(self, batches: Iterable[pa.RecordBatch]) -> list[Landed]:
        """Writes the rows, and returns descriptions of the files. Raises OSError, after deleting them."""
        files = Files(Lake(self.lake))
        try:
            for rows in groups(batches):
                if rows.num_rows:
                    for partition, part in split(rows, self.by):
                        files.write(self.table, part, self.partition | partition)
            return files.close()
        except BaseException:
            files.abandon()
            raise


class LakeFiles(DataSource):
    """Reads files of a table in an object store. `files` is a JSON list of (path, size, partition)."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "msmq_lake_files"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader for spark.read."""
        options = self.options
        return _Reader(options["lake"], options["table"], json.loads(options["files"]), arrow_of(schema))


@dataclass
class _Share(InputPartition):
    """The files of one task."""

    files: list[tuple[str, int, Partition]]


class _Reader(DataSourceReader):
    def __init__(self, lake: str, table: str, files: list[Any], schema: pa.Schema) -> None:
        self._lake = lake
        self._table = table
        self._files = files
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Return shares of about 64 MiB each."""
        shares: list[_Share] = []
        room = 0
        for path, size, partition in self._files:
            if size > room or not shares:
                shares.append(_Share([]))
                room = _TASK_BYTES
            shares[-1].files.append((path, size, partition))
            room -= size
        return shares

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the files of one task."""
        from pyarrow import parquet

        assert isinstance(partition, _Share)  # noqa: S101 - made by `partitions`
        lake = Lake(self._lake)
        for path, _, values in partition.files:
            with lake.open_file(f"{self._table}/{path}") as stream:
                file = parquet.ParquetFile(stream)
                wanted = [name for name in self._schema.names if name in file.schema_arrow.names]
                for batch in file.iter_batches(_ROWS, columns=wanted):
                    yield self._conformed(batch, values)

    def _conformed(self, batch: pa.RecordBatch, values: Partition) -> pa.RecordBatch:
        arrays = []
        for field in self._schema:
            if field.name in values:
                value: Any = values[field.name]
                if value is not None and pa.types.is_date(field.type):
                    value = date.fromisoformat(value)
                arrays.append(pa.repeat(pa.scalar(value, field.type), batch.num_rows))
            elif field.name in batch.schema.names:
                arrays.append(batch.column(field.name).cast(field.type))
            else:
                arrays.append(pa.nulls(batch.num_rows, field.type))
        return pa.record_batch(arrays, schema=self._schema)
