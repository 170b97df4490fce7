"""`user list` reads a file: people are told which one when there is none."""

from __future__ import annotations

from pathlib import Path

from msmq_fast.protocol.exits import Exit
from tests.support.processes.servers import command


def test_a_missing_users_file_is_named(tmp_path: Path) -> None:
    done = command("user", "list", "--data", str(tmp_path))
    assert done.returncode == Exit.OK
    assert done.stdout.decode().split() == ["NAME", "SID", "UID", "GROUPS", "PASSWORD", "TOKENS"]
    assert done.stderr.decode() == (
        f"msmq-fast user list: {tmp_path / 'users.toml'} does not exist; --data selects another\n"
    )
    added = command("user", "add", "alice", "--no-password", "--data", str(tmp_path))
    assert added.returncode == Exit.OK
    assert command("user", "list", "--data", str(tmp_path)).stderr == b""
