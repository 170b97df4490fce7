"""msmq-fast-spark: plain Python for the drivers and executors of a Spark that is there already."""

from __future__ import annotations

import email
import os
import subprocess
import sys
import venv
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.spark.conftest import spark_environment
from tests.spark.fakeserver import serving

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.long(seconds=60), pytest.mark.timeout(600)]

IMPORTS = """
import importlib, pkgutil, sys
import pyspark_msmq, pyspark_msmq_pcap, pyspark_msmq_store, msmq_fast.spark
for module in pkgutil.walk_packages(msmq_fast.spark.__path__, "msmq_fast.spark."):
    if module.name not in ("msmq_fast.spark.offline.plain", "msmq_fast.spark.offline.native"):
        importlib.import_module(module.name)
print(sorted({"lxml", "uvloop", "lmdb", "aiohttp", "cryptography", "msgpack", "pandas"} & set(sys.modules)))
"""
READS = """
import sys
from pyspark.sql import SparkSession, functions as F
import msmq_fast.spark
from msmq_fast.spark.functions import msmq_text

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
for register in (False, True):  # found by the names of its modules, and registered
    if register:
        msmq_fast.spark.register(spark)
    rows = spark.read.format("msmq").option("url", sys.argv[1]).option("subscribe", "orders").load()
    print(rows.count(), rows.select(msmq_text("body", F.lit(0))).first()[0])
rows = rows.select("body").withColumn("label", F.lit("again"))
rows.write.format("msmq").mode("append").option("url", sys.argv[1]).option("queue", "again").save()
print(msmq_fast.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made of an sdist, as an index would have it."""
    made = tmp_path_factory.mktemp("dist")
    source = ROOT / "packaging" / "spark"
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", made, source]
    subprocess.run(build, cwd=made, capture_output=True, check=True)
    (found,) = made.glob("*.whl")
    return found


def libraries(folder: Path, *names: str) -> Path:
    """A folder with these packages of this environment and nothing else."""
    folder.mkdir()
    for name in names:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        (folder / name).symlink_to(Path(spec.origin).parent)
    return folder


def test_the_wheel_is_plain_python_for_every_system(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        (points,) = [name for name in names if name.endswith(".dist-info/entry_points.txt")]
        about = email.message_from_bytes(archive.read(metadata))
        assert b"msmq-lake = " in archive.read(points)
    rooms = {name.split("/")[1] for name in names if name.startswith("msmq_fast/") and name.count("/") > 1}
    assert rooms == {"bodies", "client", "packet", "protocol", "spark", "store", "terminal"}
    assert {name for name in names if "/" not in name} == {
        "pyspark_msmq.py",
        "pyspark_msmq_pcap.py",
        "pyspark_msmq_store.py",
    }
    assert not [name for name in names if name.endswith((".so", ".pyx", ".c"))]
    assert about["Name"] == "msmq-fast-spark"
    needed = [one for one in about.get_all("Requires-Dist") if "extra" not in one]
    assert [one.partition(">")[0] for one in needed] == ["pyarrow"]
    assert "msmq_fast/py.typed" in names


def test_it_imports_with_pyspark_and_pyarrow_alone(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    beside = libraries(tmp_path / "beside", "pyspark", "py4j", "pyarrow")
    paths = f"import sys; sys.path[:0] = {[str(tmp_path / 'site'), str(beside)]!r}\n"
    command = [sys.executable, "-I", "-S", "-c", paths + IMPORTS]  # -S: no site-packages
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "[]\n", done.stderr


def test_a_bare_environment_reads_and_writes_queues(wheel: Path, tmp_path: Path) -> None:
    binaries = tmp_path / "bare" / "bin"
    venv.create(binaries.parent, with_pip=True)
    without = {**os.environ, "CC": "/bin/false", "PATH": str(binaries)}
    command = [binaries / "pip", "install", "--quiet", "--only-binary", ":all:", wheel]
    done = subprocess.run(command, env=without, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    (packages,) = (tmp_path / "bare").glob("lib/python3*/site-packages")
    cluster = libraries(tmp_path / "cluster", "pyspark", "py4j", "pandas", "numpy")
    (packages / "cluster.pth").write_text(f"{cluster}\n")
    shown = subprocess.run([binaries / "msmq-lake", "--help"], capture_output=True, text=True, check=True)
    assert "archive" in shown.stdout
    with serving() as server:
        again = server.manager.create("again")
        server.manager.create("orders")
        for number in range(30):
            server.manager.send("orders", b"<order id='%d'/>" % number)
        python = str(binaries / "python")
        environment = {**os.environ, **spark_environment(), "PYSPARK_PYTHON": python, "PYTHONPATH": ""}
        done = subprocess.run(
            [python, "-c", READS, server.url],
            env={**environment, "PYSPARK_DRIVER_PYTHON": python},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        first = "30 <order id='0'/>"
        assert done.stdout.splitlines()[:2] == [first, first], done.stderr[-3000:]
        assert len(again.held) == 30
    assert Path(done.stdout.splitlines()[2]).is_relative_to(tmp_path / "bare")
