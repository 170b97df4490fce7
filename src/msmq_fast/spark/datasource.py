"""`format("msmq")`. PySpark imports this module whenever it looks up a format, of any data source, so other
modules are imported only when needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType


class MsmqDataSource(DataSource):
    """Queues as DataFrames. The options and columns are in docs/how-to/spark.md."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "msmq"

    def schema(self) -> StructType:
        """Return the columns that the options select. Raises OptionError."""
        from msmq_fast.spark.schemas import spark_schema
        from msmq_fast.spark.source import columns_of, source_options

        return spark_schema(columns_of(source_options(dict(self.options))))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader for spark.read. Raises OptionError."""
        from msmq_fast.spark.source import MsmqReader, checked_options

        return MsmqReader(checked_options(dict(self.options), schema), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader for spark.readStream. Raises OptionError."""
        from msmq_fast.spark.source import MsmqStreamReader, checked_options

        return MsmqStreamReader(checked_options(dict(self.options), schema), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer for DataFrame.write. Raises OptionError."""
        from msmq_fast.spark.sink import MsmqWriter, sink_options

        return MsmqWriter(sink_options(dict(self.options)), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the writer for DataFrame.writeStream. Raises OptionError."""
        from msmq_fast.spark.sink import MsmqStreamWriter, sink_options

        return MsmqStreamWriter(sink_options(dict(self.options)), schema, overwrite=overwrite)
