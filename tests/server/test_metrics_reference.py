"""The reference of metrics has each metric of a running server with its kind, labels and unit."""

from __future__ import annotations

import re
from pathlib import Path

from tests.server.scraping import scraped
from tests.support.processes.pair import free_port
from tests.support.processes.servers import Server, data_directory

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def test_the_page_has_every_metric_of_a_server_with_all_parts() -> None:
    environment = {
        "MSMQ_FAST_LISTEN__HTTP__PORT": "0",
        "MSMQ_FAST_TRACING__ENDPOINT": "http://127.0.0.1:9/v1/traces",
        "MSMQ_FAST_PGM__ENABLED": "true",
        "MSMQ_FAST_PGM__UDP_PORT": str(free_port()),
        "MSMQ_FAST_PGM__INTERFACES": "127.0.0.1",
    }
    with data_directory() as data:
        server = Server(data, environment=environment)
        try:
            text = scraped(server.start())
        finally:
            server.kill()
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    rows = {name: (kind, labels, unit) for name, kind, labels, unit, _ in ROW.findall(PAGE.read_text())}
    assert {name: kind for name, (kind, _, _) in rows.items()} == kinds
    for name, (_, labels, unit) in rows.items():
        stated = set(re.findall(r"`(\w+)`", labels))
        series = re.findall(rf"^{name}(?:_bucket)?\{{(.*)\}} ", text, re.MULTILINE)
        shown = {label for one in series for label in re.findall(r'(\w+)="', one)} - {"le"}
        assert shown <= stated, name
        base = name.removesuffix("_total")
        if base.endswith("timestamp_seconds"):
            assert unit == "Unix seconds"
        elif base.endswith("_seconds"):
            assert unit in ("seconds", "Unix seconds")
        elif base.endswith("_bytes"):
            assert unit == "bytes"
