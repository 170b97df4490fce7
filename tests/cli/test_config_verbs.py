"""`msmq-fast config show` and `config schema`: what operators and editors see of a configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msmq_fast.config.schema import json_schema
from msmq_fast.protocol.exits import Exit
from tests.support.processes.servers import command

pytestmark = pytest.mark.smoke

TEXT = '[server]\nname = "ALPHA"\n[protection]\nkey = "0011"\n[limits]\nconnections = 77\n'


def test_show_prints_each_value_with_its_origin(tmp_path: Path) -> None:
    file = tmp_path / "msmq.toml"
    file.write_text(TEXT)
    environment = {"MSMQ_FAST_LOG__LEVEL": "debug"}
    done = command("config", "show", str(file), "--json", environment=environment)
    rows = {row["key"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert rows["server.name"] == {"key": "server.name", "value": "ALPHA", "origin": f"{file}:2"}
    assert (rows["log.level"]["value"], rows["log.level"]["origin"]) == ("debug", "MSMQ_FAST_LOG__LEVEL")
    assert (rows["listen.mqqb.max_connections"]["value"], rows["log.format"]["origin"]) == (77, "default")
    done = command("config", "show", str(file), "--changed", environment=environment)
    lines = done.stdout.decode().splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [
        ["server.name", '"ALPHA"'],
        ["listen.mqqb.max_connections", "77"],
        ["listen.http.port", '"off"'],  # set for all tests
        ["protection.key", '"(hidden)"'],
        ["log.level", '"debug"'],
    ]


def test_old_names_are_told_by_check_and_show(tmp_path: Path) -> None:
    file = tmp_path / "msmq.toml"
    file.write_text(TEXT)
    told = f'warning: {file}:6: "limits.connections" is an old name of "listen.mqqb.max_connections"'
    for words in (
        ("config", "check", "--config", str(file)),
        ("config", "show", "--config", str(file), "--data", str(tmp_path / "data")),
        ("config", "check", str(file)),  # former ways
        ("config", "show", str(file)),
        ("check-config", str(file)),
        ("check-config", "--config", str(file)),
    ):
        done = command(*words)
        assert (done.returncode, done.stderr.decode().startswith(told)) == (Exit.OK, True), words


def test_show_explains_mistakes(tmp_path: Path) -> None:
    file = tmp_path / "msmq.toml"
    file.write_text("[log]\nlevel = 5\n")
    done = command("config", "show", str(file))
    assert (done.returncode, done.stdout) == (Exit.USAGE, b"")
    assert f"{file}:2: log.level: expected one of" in done.stderr.decode()


@pytest.mark.parametrize("verb", ["check", "show"])
def test_the_file_is_named_as_elsewhere(verb: str, tmp_path: Path) -> None:
    page = command("config", verb, "--help").stdout.decode()
    assert "--config FILE" in page
    assert "--data DIR" in page
    assert "[FILE]" not in page
    done = command("config", verb, "a.toml", "--config", "b.toml")
    assert (done.returncode, done.stderr.count(b"\n")) == (Exit.USAGE, 1)
    assert b"name the file once" in done.stderr


def test_schema_prints_what_editors_read() -> None:
    assert json.loads(command("config", "schema").stdout) == json.loads(json.dumps(json_schema()))
