"""The commands of the tutorial and of the guides, run in their order at one server."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import pytest

from msmq_fast import sync
from tests.support.processes.guides import Reader, blocks, matches, steps

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def reader() -> Iterator[Reader]:
    with tempfile.TemporaryDirectory(prefix="msmq") as folder:  # short: a Unix socket's path is limited
        reading = Reader(Path(folder))
        try:
            yield reading
        finally:
            reading.close()


def test_the_tutorial_does_what_it_says(reader: Reader) -> None:
    page = DOCS / "tutorial" / "first-queue.md"
    assert reader.follow(page) > 15
    (program,) = blocks(page, "python")
    assert reader.python(program) == "b'from Python'\n"


def test_the_calls_beside_the_cmdlets_exist(reader: Reader) -> None:
    page = (DOCS / "how-to" / "migrate-from-windows.md").read_text(encoding="utf-8")
    calls = set(re.findall(r"`(?:with )?(connection|queue)\.([\w.]+)\(", page))
    assert len(calls) > 15
    reader.follow(DOCS / "tutorial" / "first-queue.md")
    assert reader.server is not None
    with sync.connect(reader.server.endpoint) as connection, connection.open("orders") as queue:
        places = {"connection": connection, "queue": queue}
        assert [call for call in calls if not callable(attrgetter(call[1])(places[call[0]]))] == []


@pytest.mark.parametrize(
    "name", ["how-to/migrate-from-windows", "how-to/my-message-did-not-arrive", "project/upgrading"]
)
def test_a_guide_does_what_it_says(reader: Reader, name: str) -> None:
    assert reader.follow(DOCS / f"{name}.md") > 5


def test_commands_and_what_they_print_are_told_apart() -> None:
    block = "$ msmq-fast queue list   # all\nNAME  MESSAGES\n…  1\n$ true\n"
    assert list(steps(block)) == [("msmq-fast queue list", ["NAME  MESSAGES", "…  1"]), ("true", [])]
    assert matches("NAME     MESSAGES\norders  1\n", ["NAME MESSAGES", "… 1"])
    assert not matches("NAME     MESSAGES\norders  2\n", ["NAME MESSAGES", "… 1"])
    assert not matches("NAME MESSAGES\n", ["NAME MESSAGES", "… 1"])
