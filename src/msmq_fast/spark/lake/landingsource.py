"""The data source of the archive's streaming queries. It reads like `format("msmq")`, but its tasks write
what they read into files of the lake, and each row that the source returns describes such a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, InputPartition

from msmq_fast.spark.lake.landing import Landing
from msmq_fast.spark.options import Option, Options
from msmq_fast.spark.partitions import RowsPartition, read_rows
from msmq_fast.spark.schemas import spark_schema
from msmq_fast.spark.source import OPTIONS, MsmqStreamReader, columns_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

NAME: Final = "msmq_landing"
_OPTIONS: Final = (
    *OPTIONS,
    Option("lake", "text", None, "root of the lake"),
    Option("keepBodies", "flag", "true", "whether bodies are stored"),
    Option("redact", "text", None, "columns to write as null, separated by commas"),
)


class LandingSource(DataSource):
    """A data source that only the streams of the archive use."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return NAME

    def schema(self) -> str:
        """Return the columns of `Landed`."""
        return (
            "`table` STRING, `path` STRING, `rows` BIGINT, `size` BIGINT, `partition` STRING, `stats` STRING"
        )

    def streamReader(self, schema: StructType) -> LandingReader:
        """Return the reader for spark.readStream. Raises OptionError."""
        return LandingReader(Options(dict(self.options), _OPTIONS, NAME))


class LandingReader(MsmqStreamReader):
    """Plans batches in the same way as its base class, but its tasks write the rows to files. It is pickled
    to executors, without the connections of the driver.
    """

    def __init__(self, options: Options) -> None:
        super().__init__(options, spark_schema(columns_of(options)))
        self._landing = Landing(
            lake=options.need("lake", "give the root of the lake"),
            events=options["content"] == "events",
            bodies=options["keepBodies"],
            redacted=tuple(name for name in (options["redact"] or "").split(",") if name),
        )

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_landing": self._landing}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Write the rows of one partition to files, on an executor, and yield one row per file."""
        if isinstance(partition, RowsPartition):
            yield self._landing.land(read_rows(partition, self._reading))
