"""docs/how-to/spark-every-day.md: its patterns, the lines for cron, the units of systemd."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from msmq_fast.spark.lake.main import COMMAND
from msmq_fast.terminal.commands import parse
from tests.spark.driving import batch_rows
from tests.spark.fakeserver import FakeServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "spark-every-day.md").read_text(encoding="utf-8")
UNITS = sorted((ROOT / "contrib" / "lake").iterdir())
PROGRAM = "/opt/msmq-fast/bin/msmq-lake "

PRIVATE = ("orders", "orders-again", "invoices", "test-1")
CHOSEN = {
    "all private queues of all servers": PRIVATE,
    "`orders`, on any server": ("orders",),
    "those that begin with `orders`": ("orders", "orders-again"),
    "`orders` and `invoices`": ("orders", "invoices"),
    "all but those that begin with `test`": ("orders", "orders-again", "invoices"),
    "all public queues": (),
}


def test_the_patterns_choose_what_the_page_says(fake: FakeServer) -> None:
    for name in PRIVATE:
        fake.manager.create(name)
        fake.manager.send(name, name.encode())
    rows = re.findall(
        r"^\| ([^|]+) \| `(\.\*\\.*|\[.*)` \|$", PAGE.replace(r"\|", "\N{BROKEN BAR}"), re.MULTILINE
    )
    rows = [(about, pattern.replace("\N{BROKEN BAR}", "|")) for about, pattern in rows]
    assert [about for about, _ in rows] == list(CHOSEN)
    for about, pattern in rows:
        found = batch_rows(url=fake.url, subscribePattern=pattern) if CHOSEN[about] else []
        assert sorted(row["body"].decode() for row in found) == sorted(CHOSEN[about]), pattern
        assert bool(re.fullmatch(pattern, "SERVER\\orders")) is (about == "all public queues"), pattern


@pytest.mark.long(seconds=15)
def test_a_pattern_in_sql_has_its_backslashes_twice(spark: SparkSession, fake: FakeServer) -> None:
    for name in PRIVATE:
        fake.manager.create(name)
        fake.manager.send(name, name.encode())
    (pattern,) = re.findall(r"`OPTIONS \(subscribePattern '(.*)'\)`", PAGE)
    spark.sql(
        f"create temporary view found using msmq options (url '{fake.url}', subscribePattern '{pattern}')"
    )
    bodies = spark.sql("select cast(body as string) from found").collect()
    assert sorted(row[0] for row in bodies) == ["orders", "orders-again"]


def scheduled() -> list[str]:
    """The command lines for cron, and those of the units."""
    (table,) = re.findall(r"^```text\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    lines = [line.split(None, 5)[5] for line in table.splitlines() if not line.startswith("#")]
    for unit in UNITS:
        lines += re.findall(r"^ExecStart=(.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE)
    return lines


def test_what_is_scheduled_is_understood() -> None:
    lines = scheduled()
    assert len(lines) == 6
    for line in lines:
        assert line.startswith(PROGRAM)
        parse(COMMAND, shlex.split(line.removeprefix(PROGRAM).removesuffix(" >/dev/null")))


@pytest.mark.long(seconds=5)
@pytest.mark.needs("systemd-analyze")
def test_the_units_are_valid(tmp_path: Path) -> None:
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8").replace(PROGRAM, "/bin/true ")  # it asks for the program
        (tmp_path / unit.name).write_text(text)
    (timer,) = [unit for unit in UNITS if unit.suffix == ".timer"]
    command = ["systemd-analyze", "verify", *(str(tmp_path / unit.name) for unit in UNITS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (when,) = re.findall(r"^OnCalendar=(.*)$", timer.read_text(encoding="utf-8"), re.MULTILINE)
    subprocess.run(["systemd-analyze", "calendar", when], capture_output=True, check=True)
