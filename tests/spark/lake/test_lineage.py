"""`--lineage`: events of OpenLineage, as its public specification 2-0-2 describes them."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from msmq_fast.protocol.exits import Exit
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.lineage import Dataset, Lineage, datasets
from msmq_fast.spark.lake.main import COMMAND, main
from msmq_fast.terminal.commands import parse
from tests.spark.fakeserver import serving

SPEC = "https://openlineage.io/spec/"


class Service:
    """An HTTP service that keeps what is posted to it."""

    def __init__(self, status: int) -> None:
        self.posted: list[tuple[str, dict[str, str], Any]] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                service.posted.append((self.path, dict(self.headers), json.loads(body)))
                self.send_response(status)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@contextmanager
def listening(status: int = 201) -> Iterator[Service]:
    service = Service(status)
    thread = threading.Thread(target=service.server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield service
    finally:
        service.server.shutdown()
        thread.join()
        service.server.server_close()


def check_uri(text: Any) -> None:
    assert isinstance(text, str)
    assert urlsplit(text).scheme
    assert re.fullmatch(r"[!-~]+", text)


def check_facets(facets: dict[str, Any], required: dict[str, tuple[str, ...]]) -> None:
    """Each facet is a base facet with the fields that its own schema requires."""
    assert isinstance(facets, dict)
    for name, facet in facets.items():
        check_uri(facet["_producer"])
        assert re.fullmatch(SPEC + r"facets/\d+-\d+-\d+/(\w+)\.json#/\$defs/\1", facet["_schemaURL"])
        assert all(isinstance(facet[key], str) for key in required[name])


def check_event(event: dict[str, Any]) -> str:
    """Compare an event with what RunEvent requires; return its type."""
    assert set(event) == {
        "eventType",
        "eventTime",
        "producer",
        "schemaURL",
        "run",
        "job",
        "inputs",
        "outputs",
    }
    assert event["eventType"] in ("START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER")
    assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
    check_uri(event["producer"])
    assert event["schemaURL"] == f"{SPEC}2-0-2/OpenLineage.json#/$defs/RunEvent"
    assert str(UUID(event["run"]["runId"])) == event["run"]["runId"]
    check_facets(event["run"]["facets"], {"errorMessage": ("message", "programmingLanguage")})
    assert isinstance(event["job"]["namespace"], str)
    assert isinstance(event["job"]["name"], str)
    check_facets(event["job"]["facets"], {"jobType": ("processingType", "integration")})
    for dataset in (*event["inputs"], *event["outputs"]):
        assert set(dataset) == {"namespace", "name"}
        assert all(dataset.values())
    return str(event["eventType"])


def test_a_run_is_posted_as_two_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "the key")
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "shop")
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"body_b64": "aGVsbG8="}\n')
    with serving() as server, listening() as service:
        server.manager.create("orders")
        words = ["import", "--url", server.url, "--to", "orders", "--dry-run", str(rows)]
        assert main([*words, "--lineage", service.url]) == 0
        assert main(words) == 0  # off by default
        port = urlsplit(server.url).port
    assert [check_event(event) for _, _, event in service.posted] == ["START", "COMPLETE"]
    (path, headers, start), (_, _, complete) = service.posted
    assert path == "/api/v1/lineage"
    assert headers["Authorization"] == "Bearer the key"
    assert headers["Content-Type"] == "application/json"
    assert start["run"] == complete["run"]
    assert start["job"]["namespace"] == "shop"
    assert start["job"]["name"] == "msmq-lake.import"
    assert start["inputs"] == [{"namespace": "file", "name": str(rows)}]
    assert start["outputs"] == [{"namespace": f"msmq://127.0.0.1:{port}", "name": "orders"}]
    assert capsys.readouterr().err == ""


def test_a_failure_is_in_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    events = tmp_path / "events.jsonl"
    assert main(["report", "--lake", lake.root, "--lineage", str(events)]) == Exit.EMPTY
    start, fail = map(json.loads, events.read_text().splitlines())
    assert (check_event(start), check_event(fail)) == ("START", "FAIL")
    message = fail["run"]["facets"]["errorMessage"]["message"]
    assert capsys.readouterr().err == f"msmq-lake report: {message}\n"
    assert {"namespace": "file", "name": f"{lake.root}/gold/reconciliation"} in start["inputs"]


@pytest.mark.parametrize("status", [403, 500])
def test_a_service_that_refuses_does_not_end_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    with listening(status) as service:
        assert main(["report", "--lake", lake.root, "--lineage", f"{service.url}/lineage"]) == Exit.EMPTY
    assert [path for path, _, _ in service.posted] == ["/lineage"] * 2
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == 3
    assert shown[0].endswith(f"START was not delivered to {service.url}/lineage: HTTP status {status}")
    lineage = Lineage(service.url, "job")  # nothing listens there any more
    lineage.abort()
    assert "ABORT was not delivered" in capsys.readouterr().err


def test_each_command_names_what_it_reads_and_writes() -> None:
    lines = {
        "archive": "--lake hdfs://nn:1/lake --url msmq+bulk://a:1802,https://b:1802 --content events,journal",
        "audit": "--lake /lake",
        "report": "--lake /lake --html /page.html",
        "compact": "--lake /lake",
        "verify": "--lake /lake",
        "migrate": "--lake /lake",
        "settle": "--checkpoint /c --url msmq+bulk://a:1802 --subscription reports",
        "replay": "--lake /lake --url msmq+bulk://a:1802 --to again",
        "import": "--url msmq+bulk://a:1802 --to orders --apply /rows.jsonl",
    }
    assert set(lines) == set(COMMAND.commands)
    found = {}
    for verb, words in lines.items():
        _, arguments = parse(COMMAND, [verb, *words.split()])
        assert arguments.lineage is None
        found[verb] = datasets(verb, arguments)
        assert any(found[verb])
    inputs, outputs = found["archive"]
    assert inputs == [
        Dataset("msmq://a:1802", "events"),
        Dataset("msmq://a:1802", "journal"),
        Dataset("msmq://b:1802", "events"),
        Dataset("msmq://b:1802", "journal"),
    ]
    assert Dataset("hdfs://nn:1", "/lake/bronze/events") in outputs
    assert Dataset("file", "/lake/gold/reconciliation") in found["audit"][1]
    assert found["report"][1] == [Dataset("file", "/page.html")]
    assert found["settle"] == ([], [Dataset("msmq://a:1802", "reports")])
    assert found["replay"][1] == [Dataset("msmq://a:1802", "again")]


def test_a_target_is_an_address_or_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["report", "--lake", str(tmp_path), "--lineage", "ftp://host/x"])
    assert "expected http://HOST:PORT, https://HOST or a file" in capsys.readouterr().err
