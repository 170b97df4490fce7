"""The declarative pipeline beside the lake's own verbs: the same functions, tables of a catalog."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyarrow import dataset

from tests.spark.conftest import SETTINGS, spark_environment
from tests.spark.fakeserver import serving

PROJECT = Path(__file__).parents[3] / "pipelines" / "archive_audit"


def table(warehouse: Path, name: str) -> list[dict[str, Any]]:
    return list(dataset.dataset(warehouse / name, format="parquet").to_table().to_pylist())


@pytest.mark.long(seconds=120)
@pytest.mark.timeout(900)
def test_the_project_archives_and_audits(tmp_path: Path) -> None:
    project = tmp_path / "project"
    warehouse = project / "spark-warehouse"
    shutil.copytree(PROJECT, project)
    spec = project / "spark-pipeline.yml"
    lines = [line for line in spec.read_text().splitlines() if not line.startswith("storage:")]
    spec.write_text("\n".join([*lines, f"storage: file://{tmp_path}/storage", ""]))
    with serving() as server:
        manager = server.manager
        manager.create("orders")
        for number in range(40):
            manager.send("orders", b"%d" % number, source_machine=manager.guid)
        for _ in range(15):
            manager.receive("orders")
        conf = {
            **{name: value for name, value in SETTINGS.items() if name != "spark.ui.showConsoleProgress"},
            "spark.msmq.url": server.url,
            "spark.local.dir": str(tmp_path / "scratch"),
            "spark.driver.extraJavaOptions": f"-Dderby.system.home={tmp_path}",
        }
        arguments = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
        program = Path(sys.executable).with_name("spark-pipelines")
        done = subprocess.run(
            [str(program), "run", "--spec", str(spec), *arguments],
            cwd=project,
            env={**os.environ, **spark_environment()},
            capture_output=True,
            timeout=800,
            check=False,
        )
        assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")[-6000:]
        events = table(warehouse, "silver_events")
        assert sorted(row["feed_seq"] for row in events) == list(range(1, len(manager.events) + 1))
    lives = table(warehouse, "silver_lifecycle")
    assert sorted(row["state"] for row in lives) == ["open"] * 25 + ["received"] * 15
    (proof,) = table(warehouse, "coverage_of_feeds")
    assert proof["whole"]
    assert proof["from_first"]
    assert sum(row["arrived"] for row in table(warehouse, "sender_and_receiver")) == 40
