"""The lake for readers other than Spark: the same tables, the same counts."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
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
    for plot in ("Depth of the deepest queues", "Throughput by minute", "Negative acknowledgments by class"):
        assert re.search(rf"<h3>{plot}[^<]*</h3><svg", html), plot
    assert html.count("<polyline") >= 6
    assert "NACK_RECEIVE_TIMEOUT" in html
    assert "http:" not in html.replace("http://www.w3.org/2000/svg", "")  # nothing is loaded from elsewhere
    assert "https:" not in html
    assert f"{told['totals']['lost']} messages were acknowledged" in text.read_text()


def test_names_from_messages_are_no_markup(play: Play, tmp_path: Path) -> None:
    from msmq_fast.spark.lake.reporthtml import page
    from msmq_fast.spark.lake.reporttext import markdown
    from msmq_fast.spark.lake.summary import gather

    found = gather(play.lake, DAY.date())
    evil = "<script>alert(1)</script>"
    found["depth"] = {evil: next(iter(found["depth"].values()))}
    found["poison"]["rows"][0]["label"] = evil
    found["nacks"][0]["class_name"] = evil
    assert "<script" not in page(found)
    found["poison"]["rows"][0]["label"] = f"a|b\n\n# [c](javascript:d) {evil}"
    text = markdown(found)
    assert "<script" not in text
    assert "a\\|b # \\[c](javascript:d) &lt;script" in text


def test_queues_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """Two queue managers send to one queue: each has an outgoing queue of its name."""
    from msmq_fast.spark.lake.layout import Lake
    from msmq_fast.spark.lake.summary import gather

    lake = Lake.create(str(tmp_path / "lake"))
    out, own = "DIRECT=OS:c\\private$\\q", "c\\private$\\price=high"
    counts = {"arrived": 1, "received": 0, "bytes": 10}
    minutes = [
        {"qm": qm, "queue": queue, "minute": DAY + timedelta(minutes=minute), "depth_end": depth, **counts}
        for qm, queue, minute, depth in (
            ("1", out, 0, 5),
            ("1", out, 1, 6),
            ("2", out, 0, 70),
            ("2", out, 1, 80),
            ("3", own, 0, 1),
        )
    ]
    sound = {"incarnation": 1, "from_seq": 1, "events": 9, "missing": 0, "dropped": 0, "restored": False}
    proof = [{"qm": qm, "name": f"host{qm}", "whole": True} | sound for qm in "12"]
    for table, rows in (("queue_minute", minutes), ("coverage", proof), ("reconciliation", [])):
        schema = None if rows else pa.schema([("verdict", pa.string())])
        lake.write_table(f"gold/{table}/day={DAY_NAME}", pa.Table.from_pylist(rows, schema))
    found = gather(lake, DAY.date())
    assert {name: [depth for _, depth in line] for name, line in found["depth"].items()} == {
        f"{out} (host2)": [70, 80],
        f"{out} (host1)": [5, 6],
        own: [1],
    }
    assert [tuple(sums) for _, *sums in found["throughput"]] == [(1, 0, 10)]


def test_faults_are_not_hidden_behind_sequences_that_began_again(tmp_path: Path) -> None:
    from msmq_fast.spark.lake.layout import Lake
    from msmq_fast.spark.lake.summary import SHOWN, gather

    lake = Lake.create(str(tmp_path / "lake"))
    rows = [{"kind": "restart", "first_seen": DAY + timedelta(seconds=n), "seq_id": n} for n in range(200)]
    rows += [{"kind": "gap", "first_seen": DAY + timedelta(hours=1), "seq_id": 1000}]
    lake.write_table(f"gold/sequence_gaps/day={DAY_NAME}", pa.Table.from_pylist(rows))
    lake.write_table(f"gold/reconciliation/day={DAY_NAME}", pa.table({"verdict": pa.array([], pa.string())}))
    found = gather(lake, DAY.date())
    assert found["sequence_kinds"] == {"gap": 1, "restart": 200}
    assert found["sequence_gaps"]["n"] == 201
    shown = found["sequence_gaps"]["rows"]
    assert len(shown) == SHOWN
    assert [row["seq_id"] for row in shown[:3]] == [1000, 0, 1]
    assert found["verdict"] == "unproven"
