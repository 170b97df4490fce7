"""`format("msmq_store")`. PySpark imports this at each look-up of a format: the rest is imported later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader
    from pyspark.sql.types import StructType


class StoreDataSource(DataSource):
    """A store that no server runs on, as DataFrames. Options and columns: docs/how-to/spark.md."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "msmq_store"

    def schema(self) -> StructType:
        """The columns of the table that the options choose. OptionError."""
        from msmq_fast.spark.source import spark_schema
        from msmq_fast.spark.storereader import store_columns, store_options

        return spark_schema(store_columns(store_options(dict(self.options))))

    def reader(self, schema: StructType) -> DataSourceReader:
        """For spark.read. OptionError."""
        from msmq_fast.spark.storereader import store_options, store_reader

        return store_reader(store_options(dict(self.options)), schema)
