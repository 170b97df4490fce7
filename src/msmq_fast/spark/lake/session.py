"""The Spark session of the lake's commands."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Mapping, MutableMapping
from contextvars import ContextVar
from enum import Enum
from typing import TYPE_CHECKING, Final

from msmq_fast.spark.lake import jvm

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
    "spark.python.authenticate.socketTimeout": "60s",
    "spark.sql.shuffle.partitions": "8",
}
"""Settings on one machine, unless the user's configuration has others."""
_MASTER: Final = "local[*,3]"
"""All processors, and three attempts for each task: on a busy machine a Python worker may start too late."""

VERBOSE: Final = ContextVar("VERBOSE", default=False)
"""Whether the running command shows what Spark and its Java write."""

_SMALL_JAVA: Final = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
    "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""The optimizing compiler of Java would cost more than it saves, as would other collectors, and verifying the
20,000 classes of Spark's jars takes a tenth of the time of a small audit.
"""
_SMALL_CORE: Final = {
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
}
_SMALL: Final = {
    # Compiling the code of a query takes longer than interpreting it for a few rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.parquet.compression.codec": "snappy",
}
"""Settings for a small lake. A session with them takes a third of the processor time for the audit of a few
messages, but several times as long for millions of events.
"""
IN_DRIVER: Final = "spark.msmq.lake.inDriver"
"""The setting of a session in which the driver reads and writes the files of the lake (frames.py)."""
FEW: Final = {IN_DRIVER: "true", "spark.sql.leafNodeDefaultParallelism": "1"}
"""Settings for few rows, in addition to those for a small lake."""


class Data(Enum):
    """How much data a session has to process: as few rows as the driver can hold, so little data that a
    session for much would cost more than the data, or any amount.
    """

    FEW = "few"
    SMALL = "small"
    LARGE = "large"


def start(name: str, *, data: Data = Data.LARGE) -> SparkSession:
    """Returns the session of `spark-submit` if there is one, otherwise a local one that uses all processors,
    unless the configuration of Spark names another master. `data` is ignored on a cluster. Raises
    CommandError if Java does not start.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    tuned = _SETTINGS
    small = data is not Data.LARGE
    if SparkSession.getActiveSession() is None and not _is_remote():
        _complete(os.environ)
        gateway = jvm.launch(os.environ, verbose=VERBOSE.get(), options=_SMALL_JAVA if small else "")
        known = gateway.jvm.SparkConf(True)
        chosen = SparkConf().setAppName(f"msmq-lake {name}")
        master = known.get("spark.master", "local[*]")
        if master == "local[*]":  # also what Spark sets where nothing is chosen
            chosen.setMaster(_MASTER)
        if master.startswith("local"):
            settings = {
                **_LOCAL,
                **(_SMALL_CORE if small else {}),
                "spark.log.level": "WARN" if VERBOSE.get() else "ERROR",
                "spark.sql.warehouse.dir": f"{tempfile.gettempdir()}/msmq-lake-warehouse",  # never used
            }
            for key, value in settings.items():
                if not known.contains(key):
                    chosen.set(key, value)
            tuned = _SETTINGS | (_SMALL if small else {}) | (FEW if data is Data.FEW else {})
        SparkContext(conf=chosen, gateway=gateway)
    return prepared(SparkSession.builder.getOrCreate(), tuned)


def _is_remote() -> bool:
    """Returns whether a session is one of Spark Connect, so that no Java of this process is needed."""
    return "SPARK_REMOTE" in os.environ or "SPARK_CONNECT_MODE_ENABLED" in os.environ


def _complete(environment: MutableMapping[str, str]) -> None:
    """Sets the variables that Spark needs and that cron and systemd do not set."""
    # No other machine may connect to the driver. Spark would otherwise look up the name of this machine.
    environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Otherwise Spark's workers run the `python3` of PATH, which may not have this package.
    environment.setdefault("PYSPARK_PYTHON", sys.executable)


def prepared(spark: SparkSession, settings: Mapping[str, str] = _SETTINGS) -> SparkSession:
    """Sets the settings of the session on which the lake's jobs rely. Settings that the user has set are
    kept.
    """
    from pyspark.errors import PySparkException

    with contextlib.suppress(
        PySparkException, NotImplementedError
    ):  # with Spark Connect each client has its own settings
        spark = spark.newSession()
    for key, value in settings.items():
        spark.conf.set(key, value)
    return spark
