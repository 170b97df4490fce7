"""The JSON of the lake's commands, as files in goldens/: its keys, their order and the kinds of their values.

MSMQ_FAST_WRITE_GOLDENS=1 writes the files anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from msmq_fast.protocol.exits import Exit
from msmq_fast.spark.lake import session, silver
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.main import COMMAND, main
from msmq_fast.terminal.commands import Command
from msmq_fast.terminal.parser import Parser
from tests.spark import realserver
from tests.spark.fakeserver import serving
from tests.spark.lake.leases import leased
from tests.spark.lake.undelivered import Traffic
from tests.support.lakes import write_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(400)  # an audit

GOLDENS = Path(__file__).parent / "goldens"


def kinds(value: Any) -> Any:
    """The value with the kind of each part in its place; a list has the kinds that occur in it."""
    if isinstance(value, dict):
        return {name: kinds(item) for name, item in value.items()}
    if isinstance(value, list):
        found: list[Any] = []
        for item in map(kinds, value):
            if item not in found:
                found.append(item)
        return found
    return None if value is None else f"<{type(value).__name__}>"


class Runner:
    """Runs commands and compares their JSON with the files."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.wrong: list[str] = []

    def check(self, verb: str, *words: str) -> None:
        """Run one command, whose audit may fail, and note in `wrong` if its JSON differs from its file."""
        self._capsys.readouterr()
        assert main([verb, *words, "--json"]) in (Exit.OK, Exit.FAILURE)
        lines = self._capsys.readouterr().out.splitlines()
        text = "".join(json.dumps(kinds(json.loads(line)), indent=1) + "\n" for line in lines)
        assert text, f"{verb} printed no JSON"
        file = GOLDENS / f"{verb}.json"
        if os.environ.get("MSMQ_FAST_WRITE_GOLDENS"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        elif file.read_text() != text:
            self.wrong.append(f"{file.name}:\n{text}")


def test_the_json_of_the_lake(
    small: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "start", lambda name, **_: small)
    lake = Lake.create(str(tmp_path / "lake"))
    traffic = Traffic()
    write_batch(lake, "events", 0, traffic.rows())
    write_batch(lake, "counters", 0, traffic.told())
    silver.merge(small, lake)
    goldens = Runner(capsys)
    for verb in ("audit", "report", "compact", "verify", "migrate"):
        goldens.check(verb, "--lake", lake.root)
    assert not goldens.wrong, "\n".join(goldens.wrong)


@pytest.mark.long(seconds=25)
def test_the_json_of_commands_that_read_or_write_queues(
    small: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "start", lambda name, **_: small)
    goldens = Runner(capsys)
    root = str(tmp_path / "lake")
    with realserver.running() as server:
        for name in ("orders", "again", "imported"):
            server.create(name)
        server.send("orders", [b"one", b"two"], label="order")
        goldens.check("archive", "--lake", root, "--url", server.url)
        wanted = ("--url", server.url, "--to", "again", "--where", "queue like '%orders%'")
        goldens.check("replay", "--lake", root, *wanted)
        assert server.count("again") == 2
        rows = tmp_path / "rows.jsonl"
        message = {"message_id": f"{{{UUID(int=10)}}}\\1", "label": "L", "body_b64": "YQ=="}
        rows.write_text(json.dumps(message) + "\n")
        goldens.check("import", str(rows), "--url", server.url, "--to", "imported", "--apply")
        assert server.count("imported") == 1
    with serving() as fake:
        queue, (verb, *settle) = leased(fake, tmp_path / "checkpoint")
        (tmp_path / "checkpoint" / "commits" / "0").write_text("v1\n{}")
        goldens.check(verb, *settle)
        assert len(queue.held) == 2
    assert not goldens.wrong, "\n".join(goldens.wrong)


def test_every_command_of_the_lake_has_a_golden() -> None:
    """Each command of the group has --json, and a file that a test above compares."""
    for name, command in COMMAND.commands.items():
        assert isinstance(command, Command)
        parser = Parser(prog=name)
        command.add_arguments(parser)
        assert "--json" in parser.format_help(), name
    assert {file.stem for file in GOLDENS.glob("*.json")} == set(COMMAND.commands)
