"""`format("msmq_store")`. PySpark imports this module whenever it looks up a format, of any data source, so
other modules are imported only when needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader
    from pyspark.sql.types import StructType


class StoreDataSource(DataSource):
    """The tables of a store that no server has open, as DataFrames. The options and columns are in
    docs/how-to/spark.md.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "msmq_store"

    def schema(self) -> StructType:
        """Returns the columns of the table that the options select. Raises OptionError."""
        from msmq_fast.spark.source import spark_schema
        from msmq_fast.spark.storereader import store_columns, store_options

        return spark_schema(store_columns(store_options(dict(self.options))))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Returns the reader for spark.read. Raises OptionError."""
        from msmq_fast.spark.storereader import store_options, store_reader

        return store_reader(store_options(dict(self.options)), schema)
