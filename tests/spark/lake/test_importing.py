"""Messages of files into a queue of a real server: checked first, written once. Without Spark."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from msmq_fast.client.bulk.client import BulkClient
from msmq_fast.protocol.exits import Exit
from msmq_fast.spark.lake.main import main
from tests.spark.realserver import RealServer, running


@pytest.fixture(scope="module")
def server() -> Iterator[RealServer]:
    with running() as found:
        yield found


def run(capsys: pytest.CaptureFixture[str], server: RealServer, *arguments: object) -> tuple[int, Any]:
    """Exit code, and the result or the complaint."""
    code = main(["import", *map(str, arguments), "--url", server.url, "--json"])
    shown = capsys.readouterr()
    return code, json.loads(shown.out) if code == Exit.OK else shown.err


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def row(number: int, **more: Any) -> dict[str, Any]:
    body = base64.b64encode(b"%d" % number).decode()
    return {
        "message_id": f"{{00000000-0000-0000-0000-00000000000a}}\\{number}",
        "label": f"L{number}",
        "body_b64": body,
        **more,
    }


def test_json_lines_are_checked_and_written_once(
    server: RealServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.create("lines")
    old = datetime(2020, 1, 1, tzinfo=UTC).isoformat()
    rows = [row(1, priority=5), row(2, arrived_time=old, time_to_be_received=10), row(3, queue="elsewhere")]
    file = lines(tmp_path / "a.jsonl", *rows)
    code, found = run(capsys, server, file, "--to", "lines", "--dry-run")
    assert (code, found["rows"], found["expired"], found["written"]) == (Exit.OK, 3, 1, 0)
    assert server.count("lines") == 0
    for written in (3, 0):
        _, found = run(capsys, server, file, "--to", "lines", "--apply")
        assert found["written"] == written
    with server.receiving("lines") as opened:
        got = [opened.receive(timeout=0) for _ in range(server.count("lines"))]
    assert [(bytes(message.body), message.label) for message in got] == [
        (b"1", "L1"),
        (b"2", "L2"),
        (b"3", "L3"),
    ]
    assert got[0].extension.endswith(rows[0]["message_id"].encode())
    _, found = run(capsys, server, file, "--to", "lines", "--apply", "--name", "again")
    assert found["written"] == 3


def test_parquet_as_the_source_makes_it(
    server: RealServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.create("made")
    server.create("copied")
    server.send("made", [b"%d" % number for number in range(100)], label="x")
    with BulkClient(server.url) as client:
        parquet.write_table(pa.Table.from_batches(client.rows("made", 0, 1 << 50)), tmp_path / "a.parquet")
    assert run(capsys, server, tmp_path, "--to", "copied", "--apply")[1]["written"] == 100
    with server.receiving("copied") as opened:
        assert [bytes(opened.receive(timeout=0).body) for _ in range(100)] == [b"%d" % n for n in range(100)]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row(1), row(1)], "1 of 2 messages have an identifier that occurs twice"),
        ([{"label": "x"}], "1 of 1 messages have no body"),
        ([row(1, auth_level=2)], "--drop-security"),
        ([row(1, colour="red")], "line 1: 'colour' is not a column of messages"),
        ([row(1), {"body": "text"}], "line 2: 'body' must be named body_b64"),
        ([row(1, priority="high")], "'priority' has a value of the wrong type"),
        ([row(1), row(2, priority=300)], "line 2: 'priority' has the value 300, which is out of range"),
        ([row(1, priority=True)], "'priority' has a value of the wrong type"),
        ([row(1, label="\ud800")], "line 1: "),
        ([row(1, arrived_time="noon")], "line 1"),
        ([[1]], "a message must be a JSON object"),
    ],
)
def test_what_is_wrong_keeps_all_of_it_out(
    server: RealServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: list[Any], said: str
) -> None:
    if not any(queue.name.endswith("refused") for queue in _queues(server)):
        server.create("refused")
    code, text = run(capsys, server, lines(tmp_path / "a.jsonl", *rows), "--to", "refused", "--apply")
    assert code != Exit.OK
    assert said in text
    assert text.count("\n") == 1
    assert server.count("refused") == 0


def _queues(server: RealServer) -> Any:
    with BulkClient(server.url) as client:
        return client.bounds(pattern=".*").queues


def test_files_and_queues_that_are_not_there(
    server: RealServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = lines(tmp_path / "a.jsonl", row(1))
    assert run(capsys, server, file, "--to", "nowhere", "--apply")[0] == Exit.NOT_FOUND
    assert run(capsys, server, tmp_path / "b.jsonl", "--to", "nowhere", "--apply")[0] == Exit.NOT_FOUND
    (tmp_path / "c.parquet").write_bytes(b"no parquet")
    server.create("there")
    code, text = run(capsys, server, tmp_path / "c.parquet", "--to", "there", "--apply")
    assert code == Exit.USAGE
    assert "c.parquet" in text
