"""`format("msmq_pcap")`. PySpark imports this module whenever it looks up a format, of any data source, so
other modules are imported only when needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader
    from pyspark.sql.types import StructType


class CaptureDataSource(DataSource):
    """Captures of network traffic as DataFrames. The options and columns are in docs/how-to/spark.md."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "msmq_pcap"

    def schema(self) -> StructType:
        """Returns the columns of the table that the options select. Raises OptionError."""
        from msmq_fast.spark.pcap.source import capture_columns, capture_options
        from msmq_fast.spark.source import spark_schema

        return spark_schema(capture_columns(capture_options(dict(self.options))))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Returns the reader for spark.read. Raises OptionError."""
        from msmq_fast.spark.pcap.source import capture_options, capture_reader

        return capture_reader(capture_options(dict(self.options)), schema)
