"""docs/reference/bulk-api.md: its calls, codes and metrics are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from msmq_fast.bulk.errors import STATUS
from msmq_fast.client.bulk import errors as bulkerrors
from tests.support.http import bulk as api
from tests.support.processes.servers import Server

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "bulk-api.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table behind a text."""
    lines = TEXT.split(heading, 1)[1].splitlines()
    table = []
    for line in lines:
        if line.startswith("|"):
            table.append([cell.strip() for cell in line.strip("|").split(" | ")])
        elif table:
            break
    return table[2:]


def test_every_code_has_its_status_and_its_class_in_the_client() -> None:
    told = {
        code: int(row[0].strip("| "))
        for row in rows("An error is")
        for code in re.findall(r"`([A-Z_]+)`", row[1])
    }
    assert told == STATUS
    known = {getattr(bulkerrors, name).code for name in bulkerrors.__all__ if name[0].isupper()}
    assert set(STATUS) - known == {"METHOD_NOT_ALLOWED", "BUSY", "FAILED"}


def test_metrics(bulk_server: Server) -> None:
    part = TEXT.split("## 8. Metrics", 1)[1]
    names = {name.replace("…", "msmq_fast") for name in re.findall(r"`((?:msmq_fast|…)_\w+)", part)}
    shown = {line.split()[2] for line in api.metrics(bulk_server).splitlines() if line.startswith("# TYPE")}
    wanted = {name.removesuffix("_total") for name in names}
    assert wanted <= {name.removesuffix("_total") for name in shown}
    bulk = {name for name in shown if name.startswith("msmq_fast_bulk_")}
    assert {name.removesuffix("_total") for name in bulk} <= wanted


CALLS = re.findall(r"(GET|POST|PUT|DELETE) (/[\w/]+)", TEXT)


@pytest.mark.parametrize(("method", "path"), sorted(set(CALLS)), ids=" ".join)
def test_every_call_exists(bulk_server: Server, method: str, path: str) -> None:
    answer = api.ask(bulk_server, method, path)
    assert answer.status in (200, 400, 404), answer
    assert answer.content.get("error") not in ("NOT_FOUND", "METHOD_NOT_ALLOWED"), answer
