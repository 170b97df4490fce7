"""The Spark integration: data sources, sink and pipeline, for drivers and executors.

If the package is installed, PySpark finds the formats by itself. If it is passed with `--py-files`, call:

    import msmq_fast.spark
    msmq_fast.spark.register(spark)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msmq_fast.spark.restarting import run_stream

__all__ = ["register", "run_stream"]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Register the formats `msmq`, `msmq_store` and `msmq_pcap` in a session.

    A driver that runs several streams must call this before each `load()`. While streams start, Spark lets
    all streams of one registration write to the same Java map without a lock. If two write at the same
    moment, every task of both streams fails with an `OptionalDataException`.
    """
    from msmq_fast.spark.datasource import MsmqDataSource
    from msmq_fast.spark.pcap.datasource import CaptureDataSource
    from msmq_fast.spark.storesource import StoreDataSource

    for source in (MsmqDataSource, CaptureDataSource, StoreDataSource):
        spark.dataSource.register(source)
