"""The Spark session of the lake's commands."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}
_LOCAL: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.extraJavaOptions": "-Xss4m",
    "spark.python.authenticate.socketTimeout": "60s",
    "spark.sql.shuffle.partitions": "8",
}
"""Settings if no master is chosen: the commands of the lake run on one machine."""


def start(name: str) -> SparkSession:
    """Returns the session of `spark-submit` if there is one, otherwise a local one that uses all
    processors.
    """
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(f"msmq-lake {name}")
    if not SparkConf().contains("spark.master"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # no other machine may connect to it
        # Otherwise Spark's workers run the `python3` of PATH, which under cron or systemd may not have this
        # package.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.master("local[*]")
        for key, value in _LOCAL.items():
            builder = builder.config(key, value)
    return prepared(builder.getOrCreate())


def prepared(spark: SparkSession) -> SparkSession:
    """Sets the settings of the session on which the lake's jobs rely. Settings that the user has set are
    kept.
    """
    from pyspark.errors import PySparkException

    with contextlib.suppress(
        PySparkException, NotImplementedError
    ):  # with Spark Connect each client has its own settings
        spark = spark.newSession()
    for key, value in _SETTINGS.items():
        spark.conf.set(key, value)
    return spark
