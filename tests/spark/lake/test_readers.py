"""The lake for readers other than Spark: the same tables, the same counts."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars
import pyarrow as pa
import pytest

from msmq_fast.spark.lake.main import main
from msmq_fast.spark.lake.tables import GOLD
from tests.spark.lake.feeds import DAY
from tests.spark.lake.plays import Play
from tests.support.lakes import write_day

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_NAME = DAY.date().isoformat()
AUDITED = ("silver/events", "silver/lifecycle", *(f"gold/{name}" for name in GOLD))


def digest(rows: Iterable[Iterable[Any]]) -> str:
    """A hash of rows, whatever their order."""
    lines = sorted(repr([_plain(value) for value in row]) for row in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """A value as all readers can say it: times as microseconds since 1970."""
    if value is None or value is pd.NaT or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, pd.Timestamp):
        return value.value // 1000
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (aware - EPOCH) // timedelta(microseconds=1)
    if isinstance(value, date):
        return value.isoformat()
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


@pytest.mark.long(seconds=25)
@pytest.mark.parametrize("table", AUDITED)
def test_four_readers_see_the_same_rows(play: Play, small: SparkSession, table: str) -> None:
    """Spark by the list of files, without a jar; DuckDB over the dataset; Polars and pandas."""
    found = play.lake.table(table).delta()
    assert found is not None
    names = [
        field.name
        for field in found.schema().fields
        if not str(field.type).startswith("ArrayType")  # each reader has its own kind of list
    ]
    root = play.lake.path(table)
    spark = small.read.option("basePath", root).parquet(*found.file_uris()).select(*names)
    hashes = {"spark": digest(spark.collect())}
    data = found.to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        columns = ", ".join(f'"{name}"' for name in names)
        hashes["duckdb"] = digest(connection.execute(f"select {columns} from data").fetchall())  # noqa: S608
    hashes["polars"] = digest(polars.read_delta(root).select(names).rows())
    hashes["pandas"] = digest(found.to_pandas(columns=names).itertuples(index=False))
    assert len(set(hashes.values())) == 1, hashes
    assert data.count_rows() == spark.count()
    if table == "silver/events":
        assert data.count_rows() == len(play.rows) + len(play.scenes.rows)


def test_time_travel_to_each_batch(play: Play, small: SparkSession) -> None:
    """The play was archived in two batches."""
    from deltalake import DeltaTable

    root = play.lake.path("bronze/events")
    counts = []
    for version in range(3):
        found = DeltaTable(root, version=version)
        files = found.file_uris()
        by_spark = small.read.option("basePath", root).parquet(*files).count() if files else 0
        assert (
            found.to_pyarrow_dataset().count_rows()
            == by_spark
            == len(polars.read_delta(root, version=version))
        )
        counts.append(by_spark)
    third = (len(play.rows) + len(play.scenes.rows)) // 3
    whole = len(play.rows) + len(play.scenes.rows)
    assert counts == [0, 2 * third, 2 * third + whole - third]


def test_columns_have_comments(play: Play) -> None:
    for table in play.lake.tables():
        found = table.delta()
        assert found is not None
        bare = [field.name for field in found.schema().fields if not field.metadata.get("comment")]
        assert bare == [], table.name


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
        write_day(lake, f"gold/{table}", DAY_NAME, pa.Table.from_pylist(rows, schema))
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
    write_day(lake, "gold/sequence_gaps", DAY_NAME, pa.Table.from_pylist(rows))
    write_day(lake, "gold/reconciliation", DAY_NAME, pa.table({"verdict": pa.array([], pa.string())}))
    found = gather(lake, DAY.date())
    assert found["sequence_kinds"] == {"gap": 1, "restart": 200}
    assert found["sequence_gaps"]["n"] == 201
    shown = found["sequence_gaps"]["rows"]
    assert len(shown) == SHOWN
    assert [row["seq_id"] for row in shown[:3]] == [1000, 0, 1]
    assert found["verdict"] == "unproven"
