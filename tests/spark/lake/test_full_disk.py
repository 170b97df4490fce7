"""A disk that is really full: one clear line, nothing torn, and a lake that goes on when there is room."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import SETTINGS, spark_environment

APART = ("unshare", "--user", "--map-root-user", "--mount")
MOUNT = 'mount -t tmpfs -o size=4m tmpfs "$1" && exec "$2" -m tests.spark.lake.fulldisk "$1" "$3"'
FULL = (
    "the disk of the lake is full; the batch that was being written does not count: "
    "make room and run it again"
)


def on_a_small_disk(directory: Path, what: str, **environment: str) -> dict[str, Any]:
    """In a mount namespace of its own, so that nobody needs to be root."""
    disk = directory / "disk"
    disk.mkdir()
    found = subprocess.run(
        [
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            MOUNT,
            "sh",
            disk,
            sys.executable,
            what,
        ],
        env={**os.environ, **spark_environment(), **environment},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert found.returncode == 0, found.stderr.decode(errors="replace")[-3000:]
    result: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    return result


@pytest.mark.needs("unshare", rights=["mount namespace"])
def test_a_task_leaves_nothing_behind(tmp_path: Path) -> None:
    assert on_a_small_disk(tmp_path, "tasks") == {"said": FULL, "left": [], "messages": 1000}


@pytest.mark.long(seconds=60)
@pytest.mark.timeout(400)
@pytest.mark.needs("unshare", rights=["mount namespace"])
def test_the_archive_says_one_line_and_goes_on_where_it_was(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    lines = [f"{name} {value}" for name, value in SETTINGS.items()]
    lines += ["spark.master local[2]", f"spark.local.dir {tmp_path / 'scratch'}"]
    (conf / "spark-defaults.conf").write_text("\n".join(lines))
    found = on_a_small_disk(tmp_path, "archive", SPARK_CONF_DIR=str(conf))
    assert found["codes"] == [1, 0]
    said = [line for line in found["said"].splitlines() if line.startswith("msmq-lake")]
    said = [line for line in said if "running for" not in line]  # on a slow machine
    assert said == [f"msmq-lake archive: {FULL}"]
    assert found["counted_when_full"] == 0
    assert found["messages"] == found["bodies"] == 1000
    assert found["events"] >= 1000
