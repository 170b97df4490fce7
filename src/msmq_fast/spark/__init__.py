"""The Spark side: data sources, sink and pipeline; used beside the server, on drivers and executors.

Where the package is installed, PySpark finds the formats by itself. Where it came with `--py-files`:

    import msmq_fast.spark
    msmq_fast.spark.register(spark)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make `msmq`, `msmq_store` and `msmq_pcap` known to a session.

    A driver that runs several streams calls it before the `load()` of each: while streams start, Spark lets
    those of one registration write to one Java map without a lock, and where two do so at the same moment
    every task of both fails with an `OptionalDataException`.
    """
    from msmq_fast.spark.datasource import MsmqDataSource
    from msmq_fast.spark.pcap.datasource import CaptureDataSource
    from msmq_fast.spark.storesource import StoreDataSource

    for source in (MsmqDataSource, CaptureDataSource, StoreDataSource):
        spark.dataSource.register(source)
