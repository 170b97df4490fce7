"""`format("msmq_pcap")`. PySpark imports this at each look-up of a format: the rest is imported later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader
    from pyspark.sql.types import StructType


class CaptureDataSource(DataSource):
    """Captures of network traffic as DataFrames. Options and columns: docs/how-to/spark.md."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "msmq_pcap"

    def schema(self) -> StructType:
        """The columns of the table that the options choose. OptionError."""
        from msmq_fast.spark.pcap.source import capture_columns, capture_options
        from msmq_fast.spark.source import spark_schema

        return spark_schema(capture_columns(capture_options(dict(self.options))))

    def reader(self, schema: StructType) -> DataSourceReader:
        """For spark.read. OptionError."""
        from msmq_fast.spark.pcap.source import capture_options, capture_reader

        return capture_reader(capture_options(dict(self.options)), schema)
