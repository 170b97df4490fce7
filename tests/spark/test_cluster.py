"""spark-submit on a cluster of two workers, with the documented ways to ship the package; Connect."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from tests.spark.conftest import spark_environment
from tests.spark.realserver import RealServer, running
from tests.support.processes.servers import until

SPARK = Path(pyspark.__file__).parent
SOURCES = Path(__file__).parents[2] / "src"
JOB = Path(__file__).with_name("clusterjob.py")
ROWS = 1000
SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CONFIGURATION = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.executor.memory": "600m",
    "spark.driver.memory": "600m",
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": SMALL,
    "spark.driver.extraJavaOptions": SMALL,
    "spark.log.level": "ERROR",
}

pytestmark = [pytest.mark.long(seconds=150), pytest.mark.timeout(900)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **spark_environment(), "SPARK_DAEMON_MEMORY": "256m", **more}


class Cluster:
    """A master and two workers, as processes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.url = f"spark://127.0.0.1:{self.port}"
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        here = ["--host", "127.0.0.1", "--webui-port", "0"]
        self._run("master.Master", *here, "--port", str(self.port))
        until(lambda: self._listens(), 120, "the master")
        for number in (1, 2):
            work = self.directory / f"work{number}"
            resources = ["--cores", "1", "--memory", "1g", "--work-dir", str(work)]
            self._run("worker.Worker", *here, *resources, self.url)
        until(lambda: self._log().count("Registering worker") >= 2, 120, "both workers")

    def _run(self, name: str, *arguments: str) -> None:
        with self._logfile.open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments],
                    env=environment(SPARK_NO_DAEMONIZE="1", SPARK_LOG_DIR=str(self.directory)),
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    @property
    def _logfile(self) -> Path:
        return self.directory / "cluster.log"

    def _log(self) -> str:
        return self._logfile.read_text(errors="replace")

    def _listens(self) -> bool:
        assert all(process.poll() is None for process in self._processes), self._log()
        return listens(self.port)

    def submit(
        self, url: str, directory: Path, way: str, *options: str, python: str = sys.executable
    ) -> dict[str, Any]:
        """Run the job on the cluster; what it found."""
        settings = [word for name, value in CONFIGURATION.items() for word in ("--conf", f"{name}={value}")]
        command = [str(SPARK / "bin" / "spark-submit"), "--master", self.url, *settings, *options]
        return result_of(
            [*command, str(JOB), url, str(directory), way],
            {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": sys.executable},
        )

    def stop(self) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


def result_of(command: list[str], more: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(command, env=environment(**more), capture_output=True, text=True, timeout=600)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert lines, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return dict(json.loads(lines[-1].removeprefix("RESULT ")))


@pytest.fixture(scope="module")
def server() -> Iterator[RealServer]:
    with running() as found:
        found.create("orders")
        assert found.send("orders", [b"%d" % number for number in range(ROWS)])
        yield found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_the_package_on_every_node(cluster: Cluster, server: RealServer, tmp_path: Path) -> None:
    found = cluster.submit(server.url, tmp_path, "discover")
    assert (found["batch"], found["bodies"], found["stream"]) == (ROWS, ROWS, ROWS)
    assert found["executors"] == 2


def test_an_archive_of_an_environment(cluster: Cluster, server: RealServer, tmp_path: Path) -> None:
    """As `venv-pack` makes it; for the sake of speed the libraries stay where they are on this machine."""
    made = tmp_path / "environment"
    venv.create(made, symlinks=True)
    packages = next(made.glob("lib/python3*/site-packages"))
    copy_package(packages)
    here = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "libraries.pth").write_text("\n".join(here) + "\n")
    with tarfile.open(tmp_path / "environment.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.add(made, ".")
    found = cluster.submit(
        server.url,
        tmp_path,
        "discover",
        "--archives",
        f"{tmp_path / 'environment.tar.gz'}#environment",
        python="./environment/bin/python",
    )
    assert (found["batch"], found["bodies"], found["stream"]) == (ROWS, ROWS, ROWS)
    assert found["executors"] == 2
    assert all("/environment/lib/" in file for file in found["files"])


def test_python_files_and_register(cluster: Cluster, server: RealServer, tmp_path: Path) -> None:
    copy_package(tmp_path / "package")
    archive = tmp_path / "msmq.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in (tmp_path / "package").rglob("*.py"):
            packed.write(file, file.relative_to(tmp_path / "package"))
    found = cluster.submit(server.url, tmp_path, "register", "--py-files", str(archive))
    assert (found["batch"], found["bodies"], found["stream"]) == (ROWS, ROWS, ROWS)
    assert all("msmq.zip" in file for file in found["files"])


def test_spark_connect(server: RealServer, tmp_path: Path) -> None:
    port = free_port()
    settings = {**CONFIGURATION, "spark.connect.grpc.binding.port": str(port)}
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    kind = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]"]
    with (tmp_path / "connect.log").open("wb") as log:
        process = subprocess.Popen(
            [str(SPARK / "bin" / "spark-submit"), *kind, *words, "spark-internal"],
            env=environment(SPARK_DAEMON_MEMORY="800m"),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        until(lambda: process.poll() is not None or listens(port), 240, "the Connect server")
        assert process.poll() is None, (tmp_path / "connect.log").read_text()[-4000:]
        found = result_of([sys.executable, str(JOB), server.url, str(tmp_path), "discover", str(port)], {})
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
    assert (found["batch"], found["bodies"], found["stream"]) == (ROWS, ROWS, ROWS)


def copy_package(target: Path) -> None:
    """The plain Python of the package, and the modules by which PySpark finds it."""
    shutil.copytree(
        SOURCES / "msmq_fast", target / "msmq_fast", ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    for module in SOURCES.glob("pyspark_msmq*.py"):
        shutil.copy(module, target)
