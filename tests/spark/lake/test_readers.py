"""The lake for readers other than Spark: the same tables, the same counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from msmq_fast.spark.lake.main import main
from msmq_fast.spark.lake.tables import GOLD
from tests.spark.lake.feeds import DAY
from tests.spark.lake.plays import Play

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ask(query: str) -> tuple[Any, ...] | None:
    with duckdb.connect() as connection:
        return connection.execute(query).fetchone()


DAY_NAME = DAY.date().isoformat()


@pytest.mark.parametrize("table", ["silver/events", "silver/lifecycle", *(f"gold/{name}" for name in GOLD)])
def test_pyarrow_and_duckdb_count_as_spark_does(play: Play, small: SparkSession, table: str) -> None:
    rows = small.read.parquet(play.lake.path(table)).count()
    data = play.lake.dataset(table)
    assert data is not None
    assert data.count_rows() == rows
    files = f"{play.lake.path(table)}/**/*.parquet"
    assert ask(f"select count(*) from read_parquet('{files}', hive_partitioning = true)") == (rows,)  # noqa: S608
    if table == "silver/events":
        assert rows == len(play.rows) + len(play.scenes.rows)


def test_duckdb_sums_as_spark_does(play: Play, small: SparkSession) -> None:
    files = f"{play.lake.path('gold/reconciliation')}/**/*.parquet"
    query = "select sum(sent), sum(arrived), sum(received), sum(lost) from"
    by_duckdb = ask(f"{query} read_parquet('{files}')")
    small.read.parquet(play.lake.path("gold/reconciliation")).createOrReplaceTempView("reconciliation")
    by_spark = small.sql(f"{query} reconciliation").first()
    assert by_spark is not None
    assert by_duckdb == tuple(by_spark)
    assert by_duckdb[3] == play.summary["lost"] > len(play.truth().lost) > 0


def test_a_report_tells_what_was_found(
    play: Play, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, text = tmp_path / "report.html", tmp_path / "report.md"
    assert main(["report", "--lake", play.lake.root, "--html", str(page), "--markdown", str(text)]) == 0
    capsys.readouterr()
    assert main(["report", "--lake", play.lake.root, "--day", DAY_NAME, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    truth = play.truth()
    assert told["verdict"] == "lost"
    assert told["totals"]["lost"] == play.summary["lost"]
    gone = {message for message, state in play.scenes.states.items() if state.startswith("lost")}
    assert {row["message_id"] for row in told["lost"]} == truth.lost | gone
    assert told["duplicates"]["n"] == len(truth.duplicated)
    assert told["wire_duplicates"] == len(truth.wire)
    html = page.read_text()
    assert html.count("<svg") == 4  # depth, throughput, latency, nacks
    assert html.count("<polyline") >= 6
    assert "NACK_RECEIVE_TIMEOUT" in html
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")  # nothing is loaded from elsewhere
    assert f"{told['totals']['lost']} messages were taken over" in text.read_text()


def test_names_from_messages_are_no_markup(play: Play, tmp_path: Path) -> None:
    from msmq_fast.spark.lake.reporthtml import page
    from msmq_fast.spark.lake.summary import gather

    found = gather(play.lake, DAY.date())
    evil = "<script>alert(1)</script>"
    found["depth"] = {evil: next(iter(found["depth"].values()))}
    found["poison"]["rows"][0]["label"] = evil
    found["nacks"][0]["class_name"] = evil
    assert "<script" not in page(found)
