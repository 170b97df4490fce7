"""Who may export, import, move and copy: a program with a token is no operator unless it is made one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast.protocol.exits import Exit
from tests.cli.operators import count, fill
from tests.support.processes.servers import Server, command, data_directory

CONFIG = """
[listen.app]
host = "127.0.0.1"
port = 0
[[users]]
name = "billing"
token_file = '{token}'
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "token").write_text("s3cret-token\n")
    (tmp_path / "msmq.toml").write_text(CONFIG.format(token=tmp_path / "token"))
    with data_directory() as data:
        data.mkdir()
        added = command("user", "add", "billing", "--data", str(data), "--no-password", stdin=b"")
        assert added.returncode == Exit.OK, added
        running = Server(data, "--config", str(tmp_path / "msmq.toml")).start()
        try:
            yield running
        finally:
            running.kill()


def as_billing(server: Server, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return command(
        *arguments,
        environment={
            "MSMQ_FAST_ENDPOINT": f"tcp://127.0.0.1:{server.port('app-tcp')}",
            "MSMQ_FAST_TOKEN": "s3cret-token",
        },
    )


def test_rights(server: Server, tmp_path: Path) -> None:
    for queue in ("source", "target"):
        fill(server, queue, 5)
        for right in ("receive", "peek", "send"):
            server.ok("acl", "deny", queue, "--user", "billing", "--right", right)
    file = str(tmp_path / "file")
    server.ok("export", "source", "--output", file)
    verbs = {
        "export": ("export", "source", "--output", str(tmp_path / "other")),
        "import": ("import", file, "--queue", "target", "--skip-existing"),
        "move": ("queue", "move", "source", "target"),
        "copy": ("queue", "copy", "source", "target"),
        "dead letters": ("dlq", "resubmit"),
        "trace": ("trace", r"{ca67622c-7290-4658-b39b-f700fff64801}\5"),
    }
    for verb in verbs.values():
        done = as_billing(server, *verb)
        assert done.returncode == Exit.REFUSED, (verb, done)
        assert b"MQ_ERROR_ACCESS_DENIED" in done.stderr
        assert done.stderr.count(b"\n") == 1
    assert not (tmp_path / "other").exists()
    assert (count(server, "source"), count(server, "target")) == (5, 5)
    for queue in ("source", "target"):
        server.ok("acl", "revoke", queue, "--user", "billing")
        server.ok(
            "acl",
            "grant",
            queue,
            "--user",
            "billing",
            "--right",
            "receive",
            "--right",
            "peek",
            "--right",
            "send",
        )
    assert as_billing(server, *verbs["export"]).returncode == Exit.OK
    assert as_billing(server, *verbs["import"]).returncode == Exit.REFUSED
    assert as_billing(server, *verbs["copy"]).returncode == Exit.REFUSED
    assert as_billing(server, *verbs["copy"], "--limit", "2").returncode == Exit.OK
    assert as_billing(server, *verbs["move"]).returncode == Exit.OK
    assert (count(server, "source"), count(server, "target")) == (0, 12)


def test_every_program_sees_the_status(server: Server) -> None:
    done = as_billing(server, "status", "--json")
    assert done.returncode == Exit.OK, done
    shown = json.loads(done.stdout)
    assert (shown["ready"], shown["transactions"]) == (True, None)
    assert b"not shown to you" in as_billing(server, "status").stdout
    assert as_billing(server, "top", "--count", "1").returncode == Exit.OK
