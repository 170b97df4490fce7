"""The JSON of the lake's commands, as files in goldens/: its keys, their order and the kinds of their values.

MSMQ_FAST_WRITE_GOLDENS=1 writes the files anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from msmq_fast.protocol.exits import Exit
from msmq_fast.spark.lake import session, silver
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.main import main
from tests.spark.lake.lakes import write_batch
from tests.spark.lake.undelivered import Traffic

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


def test_the_json_of_the_lake(
    small: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "start", lambda name: small)
    lake = Lake.create(str(tmp_path / "lake"))
    traffic = Traffic()
    write_batch(lake, "events", 0, traffic.rows())
    write_batch(lake, "counters", 0, traffic.told())
    silver.merge(small, lake)
    wrong = []
    for verb in ("audit", "report", "compact", "verify"):
        capsys.readouterr()
        assert main([verb, "--lake", lake.root, "--json"]) in (Exit.OK, Exit.FAILURE)
        lines = capsys.readouterr().out.splitlines()
        text = "".join(json.dumps(kinds(json.loads(line)), indent=1) + "\n" for line in lines)
        file = GOLDENS / f"{verb}.json"
        if os.environ.get("MSMQ_FAST_WRITE_GOLDENS"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        elif file.read_text() != text:
            wrong.append(f"{file.name}:\n{text}")
    assert not wrong, "\n".join(wrong)
