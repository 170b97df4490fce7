"""`msmq-lake` as cron, systemd and containers run it: by its full path, in an almost empty environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.spark.lake.jvm import java_home
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.main import COMMAND
from tests.spark.conftest import spark_environment
from tests.spark.fakeserver import serving
from tests.spark.lake.leases import leased

PROGRAM = Path(sys.executable).with_name("msmq-lake")
SHUFFLES = "spark.sql.shuffle.partitions"
JAVA = """#!/bin/sh
env > "$(dirname "$0")/../environment"
echo "NOTE: Picked up a bad day" >&2
echo "Error: this is no Java" >&2
exit 1
"""


def run(directory: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """One verb with `env -i PATH=/usr/bin:/bin` and these variables, in an empty directory."""
    here = directory / "here"
    here.mkdir(exist_ok=True)
    done = subprocess.run(
        [str(PROGRAM), *words],
        env={"PATH": "/usr/bin:/bin", **environment},
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert not list(here.iterdir())
    return done


def java(home: Path, version: str | None) -> Path:
    """A directory that looks like that of a Java."""
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(JAVA)
    (home / "bin" / "java").chmod(0o755)
    if version is not None:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


def test_java_is_what_the_environment_says(tmp_path: Path) -> None:
    good, old = java(tmp_path / "good", "17.0.15"), java(tmp_path / "old", "1.8.0_392")
    unknown = java(tmp_path / "unknown", None)
    roots = (f"{tmp_path}/found/*",)
    assert java_home({"JAVA_HOME": str(good), "PATH": "/nowhere"}, roots) is None
    assert java_home({"PATH": f"{good}/bin"}, roots) is None
    assert java_home({"PATH": f"{unknown}/bin"}, roots) is None  # Java itself will say what it is
    with pytest.raises(CommandError, match="is Java 8: Spark needs Java 17 or newer"):
        java_home({"JAVA_HOME": str(old), "PATH": f"{good}/bin"}, roots)


def test_java_is_looked_for(tmp_path: Path) -> None:
    old = java(tmp_path / "old", "11.0.2")
    roots = (f"{tmp_path}/none/*", f"{tmp_path}/found/*")
    with pytest.raises(CommandError, match="no Java was found"):
        java_home({"PATH": "/nowhere"}, roots)
    with pytest.raises(CommandError, match="old is too old"):
        java_home({"PATH": f"{old}/bin"}, roots)
    java(tmp_path / "found" / "a", "11.0.2")
    java(tmp_path / "found" / "b", "21.0.1")
    chosen = java(tmp_path / "found" / "c", "17.0.15")
    java(tmp_path / "found" / "d", None)
    (chosen.parent / "e").mkdir()
    for path in ("/nowhere", f"{old}/bin"):
        assert java_home({"PATH": path}, roots) == chosen


def test_a_java_that_does_not_start_is_one_line(tmp_path: Path) -> None:
    home = java(tmp_path / "java", "17.0.15")
    lake = Lake.create(str(tmp_path / "lake")).root
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    given = {"JAVA_HOME": str(home), "TMPDIR": str(temporary)}
    done = run(tmp_path, "verify", "--lake", lake, **given)
    assert (done.returncode, done.stdout) == (Exit.FAILURE, "")
    assert done.stderr == (
        f"msmq-lake verify: Spark's Java ({home}) did not start: Error: this is no Java; "
        "-v shows all that it writes\n"
    )
    known = dict(line.partition("=")[::2] for line in (home / "environment").read_text().splitlines())
    assert known["PYSPARK_PYTHON"] == sys.executable
    assert known["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert f"-Djava.io.tmpdir={temporary}" in known["JDK_JAVA_OPTIONS"]
    assert not list(temporary.iterdir())


@pytest.mark.long(seconds=6)
def test_verbose_shows_what_java_says_and_other_settings_are_kept(tmp_path: Path) -> None:
    home = java(tmp_path / "java", "17.0.15")
    lake = Lake.create(str(tmp_path / "lake")).root
    given = {"PYSPARK_PYTHON": "/opt/python", "SPARK_LOCAL_IP": "10.0.0.1", "JDK_JAVA_OPTIONS": "-Dx=y"}
    done = run(tmp_path, "verify", "-v", "--lake", lake, JAVA_HOME=str(home), **given)
    assert done.returncode == Exit.FAILURE
    assert "NOTE: Picked up a bad day\nError: this is no Java\n" in done.stderr
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("msmq-lake verify: Spark needs Java 17")
    known = dict(line.partition("=")[::2] for line in (home / "environment").read_text().splitlines())
    assert (known["PYSPARK_PYTHON"], known["SPARK_LOCAL_IP"]) == ("/opt/python", "10.0.0.1")
    assert known["JDK_JAVA_OPTIONS"].endswith(" -Dx=y")


@pytest.mark.long(seconds=240)
@pytest.mark.timeout(900)
def test_verbs_run_with_an_empty_environment(tmp_path: Path) -> None:
    """As cron and systemd run them: by the entry point's path, with an ordinary PATH."""
    home, temporary = spark_environment().get("JAVA_HOME"), tmp_path / "temporary"
    temporary.mkdir()
    environment = {"TMPDIR": str(temporary), **({"JAVA_HOME": home} if home else {})}
    lake = ("--lake", str(tmp_path / "lake"))
    with serving() as server:
        server.manager.create("orders")
        server.manager.create("again")
        for number in range(3):
            server.manager.send("orders", b"%d" % number)
        url = ("--url", server.url)
        rows = tmp_path / "rows.jsonl"
        rows.write_text('{"body_b64": "aGVsbG8="}\n')
        held, settle = leased(server, tmp_path / "checkpoint")
        (tmp_path / "checkpoint" / "commits" / "0").write_text("v1\n{}")
        verbs = (
            ("archive", *lake, *url, "--once", "--queues", r".*orders"),
            ("audit", *lake),
            ("report", *lake, "--markdown", str(tmp_path / "report.md")),
            ("compact", *lake),
            ("verify", *lake),
            ("migrate", *lake),
            ("replay", *lake, *url, "--to", "again"),
            ("import", *url, "--to", "again", "--apply", str(rows)),
            settle,
        )
        assert {verb[0] for verb in verbs} == set(COMMAND.commands)
        for verb in verbs:
            done = run(tmp_path, *verb, "--quiet", **environment)
            assert (done.returncode, done.stderr) == (0, ""), (verb[0], done.stderr[-2000:])
            assert len(done.stdout.splitlines()) == 1, (verb[0], done.stdout)
        assert len(held.held) == 2


@pytest.mark.long(seconds=20)
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("words", "master"), [(("--master", "local[1]"), "local[1]"), ((), "local[*,3]")])
def test_the_master_of_spark_submit_is_kept(tmp_path: Path, words: tuple[str, ...], master: str) -> None:
    job = tmp_path / "job.py"
    job.write_text(
        "from msmq_fast.spark.lake import session\n"
        "spark = session.start('job')\n"
        f"print('MASTER', spark.sparkContext.master, spark.conf.get({SHUFFLES!r}))\n"
    )
    done = subprocess.run(
        [
            str(PROGRAM.with_name("spark-submit")),
            *words,
            "--conf",
            f"{SHUFFLES}=3",
            str(job),
        ],
        env={**os.environ, **spark_environment()},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"MASTER {master} 3\n" in done.stdout, done.stderr[-2000:]
