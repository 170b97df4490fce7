"""The declarative pipeline beside the lake's own verbs: the same functions, tables of a catalog."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyarrow import dataset

from msmq_fast.spark.lake.layout import Lake
from tests.spark.conftest import SETTINGS, spark_environment
from tests.spark.fakeserver import serving

PROJECT = Path(__file__).parents[3] / "pipelines" / "archive_audit"
SAME = {
    "silver_events": ("silver/events", ("qm_guid", "incarnation", "feed_seq", "event", "message_id", "day")),
    "silver_lifecycle": ("silver/lifecycle", ("message_id", "dest", "state", "first_sent", "first_received")),
    "sender_and_receiver": ("gold/reconciliation", ("sender", "dest", "sent", "arrived", "received", "open")),
    "latency": ("gold/latency", ("dest", "leg", "n", "p50_ms", "max_ms")),
}
"""Tables of the pipeline, and the columns that they have in common with a table of the lake."""


def run(*words: str, project: Path) -> None:
    """One run of a command in the directory of the project."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name(words[0])), *words[1:]],
        cwd=project,
        env={**os.environ, **spark_environment(), "SPARK_CONF_DIR": str(project / "conf")},
        capture_output=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")[-6000:]


def rows(data: Any, columns: tuple[str, ...]) -> Counter[tuple[Any, ...]]:
    """The rows of a table. Spark's tables have times without UTC."""

    def plain(value: Any) -> Any:
        return value.replace(tzinfo=None) if isinstance(value, datetime) else value

    found = data.to_table(columns=list(columns)).to_pylist()
    return Counter(tuple(map(plain, row.values())) for row in found)


@pytest.mark.long(seconds=360)
@pytest.mark.timeout(3000)
def test_the_project_archives_and_audits_again_and_again(tmp_path: Path) -> None:
    """Three runs, with new events before each: every table has what the lake's own commands make of them."""
    project = tmp_path / "project"
    shutil.copytree(PROJECT, project)
    settings = {name: value for name, value in SETTINGS.items() if name != "spark.ui.showConsoleProgress"}
    settings["spark.local.dir"] = str(tmp_path / "scratch")
    with (project / "conf" / "spark-defaults.conf").open("a") as file:
        file.writelines(f"{name} {value}\n" for name, value in settings.items())
    lake = tmp_path / "lake"
    with serving() as server:
        spec = project / "spark-pipeline.yml"
        text = spec.read_text().replace("file:///var/lib/msmq-pipeline", f"file://{tmp_path}/storage")
        spec.write_text(text.replace("msmq+bulk://127.0.0.1:1802", server.url))
        manager = server.manager
        manager.create("orders")
        for _ in range(3):
            for number in range(40):
                manager.send("orders", b"%d" % number, source_machine=manager.guid)
            for _ in range(15):
                manager.receive("orders")
            run("spark-pipelines", "run", project=project)
            bronze = dataset.dataset(project / "spark-warehouse" / "bronze_events", format="parquet")
            known = rows(bronze, ("feed_seq",))
            assert known == Counter((number,) for number in range(1, len(manager.events) + 1))
        archive = ("--url", server.url, "--once", "--content", "events")
        run("msmq-lake", "archive", "--lake", str(lake), *archive, project=project)
    run("msmq-lake", "audit", "--lake", str(lake), project=project)
    for name, (table, columns) in SAME.items():
        found = dataset.dataset(project / "spark-warehouse" / name, format="parquet")
        expected = rows(Lake.open(str(lake)).dataset(table), columns)
        assert expected
        assert rows(found, columns) == expected, name
