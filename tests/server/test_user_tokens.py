"""Tokens in the users file: made by `msmq-fast user token`, valid and revoked while the server runs."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast.protocol.exits import Exit
from msmq_fast.security.users import MAX_TOKENS
from tests.support.processes.servers import Server, command, data_directory


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    file = tmp_path / "msmq.toml"
    file.write_text('[listen.app]\nhost = "127.0.0.1"\nport = 0\n')
    with data_directory() as data:
        running = Server(data, "--config", str(file)).start()
        try:
            yield running
        finally:
            running.kill()


def user(server: Server, *words: str) -> dict[str, object]:
    done = command("user", *words, "--data", str(server.data), "--json")
    assert done.returncode == Exit.OK, done.stderr
    return dict(json.loads(done.stdout))


def stats(server: Server, token: object) -> subprocess.CompletedProcess[bytes]:
    endpoint = f"tcp://127.0.0.1:{server.port('app-tcp')}"
    return command("stats", "--json", "--endpoint", endpoint, environment={"MSMQ_FAST_TOKEN": str(token)})


def test_a_token_is_valid_at_once_until_it_is_revoked(server: Server) -> None:
    assert "no user has a token yet" in server.log.read_text()
    user(server, "add", "billing", "--no-password")
    first = user(server, "token", "billing")
    second = user(server, "token", "billing")
    assert (first["tokens"], second["tokens"]) == (1, 2)
    assert [stats(server, made["token"]).returncode for made in (first, second)] == [Exit.OK, Exit.OK]
    third = user(server, "token", "billing", "--replace")
    assert [stats(server, made["token"]).returncode for made in (first, second)] == [Exit.REFUSED] * 2
    assert stats(server, third["token"]).returncode == Exit.OK
    assert user(server, "token", "billing", "--revoke") == {"name": "billing", "tokens": 0}
    assert stats(server, third["token"]).returncode == Exit.REFUSED


def test_the_file_holds_hashes_only(server: Server) -> None:
    user(server, "add", "billing", "--no-password")
    token = str(user(server, "token", "billing")["token"])
    file = server.data / "users.toml"
    assert token.startswith("msmq_")
    assert token not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert token not in server.log.read_text()


def test_a_program_has_the_groups_of_its_user(server: Server) -> None:
    user(server, "add", "operator", "--no-password", "--group", "administrators")
    user(server, "add", "billing", "--no-password")
    for name, code in (("operator", Exit.OK), ("billing", Exit.REFUSED)):
        endpoint = f"tcp://127.0.0.1:{server.port('app-tcp')}"
        token = str(user(server, "token", name)["token"])
        done = command("config", "reload", "--endpoint", endpoint, environment={"MSMQ_FAST_TOKEN": token})
        assert done.returncode == code, done.stderr


def test_a_user_has_a_bounded_number_of_tokens(server: Server) -> None:
    user(server, "add", "billing", "--no-password")
    for _ in range(MAX_TOKENS):
        user(server, "token", "billing")
    done = command("user", "token", "billing", "--data", str(server.data))
    assert (done.returncode, done.stderr.count(b"\n")) == (Exit.USAGE, 1)
    assert b"revoke them first" in done.stderr
    done = command("user", "token", "nobody", "--data", str(server.data))
    assert done.returncode == Exit.NOT_FOUND


def test_the_old_place_of_tokens_is_told(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "msmq.toml"
    file.write_text(file.read_text() + '\n[[users]]\nname = "billing"\ntoken = "a token of billing"\n')
    answer = command("config", "reload", "--endpoint", f"unix:{server.data}/app.sock")
    told = f'{file}:5: "[[users]]" is an old place for tokens'
    assert (answer.returncode, told in answer.stderr.decode()) == (Exit.OK, True)
    assert stats(server, "a token of billing").returncode == Exit.OK
