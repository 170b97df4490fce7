"""`msmq-fast support-bundle`: what it has, what it must not have, and servers that do not answer."""

from __future__ import annotations

import json
import socket
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast.client.supportbundle import LARGEST, Bundle
from msmq_fast.config.sections import LISTS, NEEDED, SECTIONS, keys_of
from msmq_fast.protocol.exits import Exit
from tests.support.processes.servers import Server, command, data_directory

TOKEN = "inline-token-of-billing-93461"  # noqa: S105
FILED = "filed-token-of-shipping-11873"
PASSWORD = "password-of-alice-70012"  # noqa: S105
CONFIG = """
[[users]]
name = "billing"
token = "{token}"
[[users]]
name = "shipping"
token_file = '{filed}'
"""
EVERY = {
    "configuration.jsonl", "server.json", "stats.json", "queues.jsonl", "outgoing.jsonl", "audit.jsonl",
    "version.json", "metrics.txt", "disk.jsonl", "missing.txt", "sessions.jsonl", "transactions.jsonl",
}  # fmt: skip


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A server with secrets of every kind, and a configuration file that names its ports."""
    folder = tmp_path_factory.mktemp("bundle")
    (folder / "filed").write_text(FILED)
    (folder / "filed").chmod(0o600)
    file = folder / "msmq.toml"
    file.write_text(CONFIG.format(token=TOKEN, filed=folder / "filed"))
    file.chmod(0o600)
    with data_directory() as data:
        own = ("--data", str(data))
        data.mkdir()
        added = command("user", "add", "alice", *own, stdin=f"{PASSWORD}\n".encode())
        assert added.returncode == 0, added
        running = Server(data, "--name", "ALPHA", "--config", str(file)).start()
        file.write_text(
            file.read_text()
            + f"[server]\ndata = '{data}'\n"
            + f"[listen.admin]\nhost = '127.0.0.1'\nport = {running.port('admin')}\n"
        )
        try:
            running.ok("queue", "create", "orders")
            running.ok("send", "orders", "--body", "body-of-a-message", "--recoverable")
            yield running, file
        finally:
            running.kill()


def files(archive: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with tarfile.open(archive) as bundle:
        for entry in bundle:
            content = bundle.extractfile(entry)
            assert content is not None
            found[Path(entry.name).name] = content.read()
    return found


def test_the_archive_has_everything_but_secrets(configured: tuple[Server, Path], tmp_path: Path) -> None:
    server, config = configured
    archive = tmp_path / "support.tar.gz"
    done = command("support-bundle", str(archive), "--config", str(config), "--json")
    assert done.returncode == Exit.OK, done
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    shown = json.loads(done.stdout)
    assert (shown["missing"], set(shown["files"]), shown["bytes"]) == ([], EVERY, archive.stat().st_size)
    found = files(archive)
    assert set(found) == EVERY
    keys = {row["key"]: row["value"] for row in map(json.loads, found["configuration.jsonl"].splitlines())}
    assert keys["users[0].token"] == "(hidden)"
    assert any(json.loads(line)["name"].endswith("orders") for line in found["queues.jsonl"].splitlines())
    assert json.loads(found["server.json"])["name"] == "ALPHA"
    assert b"create queue" in found["audit.jsonl"]
    assert b"msmq_fast_build_info" in found["metrics.txt"]
    assert any(json.loads(line)["kind"] == "program" for line in found["sessions.jsonl"].splitlines())
    assert {"total", "free"} <= json.loads(found["disk.jsonl"].splitlines()[0]).keys()
    users = (server.data / "users.toml").read_text()
    hashes = [part for part in users.replace('"', " ").replace("$", " ").split() if len(part) >= 16]
    assert hashes
    everything = b"\n".join(found.values())
    for secret in (TOKEN, FILED, PASSWORD, "body-of-a-message", *hashes):
        assert secret.encode() not in everything, secret


def test_a_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    done = command("support-bundle", str(tmp_path / "there"))
    assert done.returncode == Exit.USAGE
    assert b"exists already" in done.stderr
    assert (tmp_path / "there").read_text() == "mine"


def test_without_a_server_the_archive_has_the_rest(tmp_path: Path) -> None:
    archive = tmp_path / "support.tar.gz"
    done = command("support-bundle", str(archive), "--data", str(tmp_path))
    assert done.returncode == Exit.UNREACHABLE
    assert b"missing: server: no queue manager at" in done.stderr
    found = files(archive)
    assert {"configuration.jsonl", "version.json", "disk.jsonl", "missing.txt"} <= set(found)
    assert b"server: no queue manager at" in found["missing.txt"]


def test_a_server_that_hangs_costs_the_timeout_only(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        archive = tmp_path / "support.tar.gz"
        done = command("support-bundle", str(archive), "--endpoint", endpoint, "--timeout", "200ms")
    assert done.returncode == Exit.UNREACHABLE
    assert b"no answer within 0.2 s" in done.stderr
    assert "version.json" in files(archive)


def test_mistakes_of_the_configuration_are_not_quoted(tmp_path: Path) -> None:
    config = tmp_path / "msmq.toml"
    config.write_text(f"[[users]]\nname = 'billing'\ntoken = ['{TOKEN}']\n")
    archive = tmp_path / "support.tar.gz"
    done = command("support-bundle", str(archive), "--config", str(config))
    assert done.returncode == Exit.USAGE
    assert TOKEN.encode() not in done.stderr + b"".join(files(archive).values())
    assert b"msmq-fast config check" in done.stderr


MARKER = "s3cr3t-0123456789abcdef"


def test_no_secret_key_and_no_file_with_a_secret_leaks(tmp_path: Path) -> None:
    """Every key that the configuration declares secret, and every file that a key names, holds the marker."""
    lines, secret_keys, files_named = [], 0, 0
    for sections, head in ((SECTIONS, "[{}]"), (LISTS, "[[{}]]")):
        for name, section in sections.items():
            needed = [f"{key} = 'x{number}'" for number, key in enumerate(NEEDED.get(name, ()))]
            held = []
            for key, entry in keys_of(section).items():
                if entry.metadata["secret"]:
                    secret_keys += 1
                    held.append(f"{key} = '{MARKER}'")
                elif name in SECTIONS and (key.endswith("_file") or key in ("tls_key", "tls_certificate")):
                    files_named += 1
                    path = tmp_path / f"{name}-{key}"
                    path.write_text(MARKER)
                    held.append(f"{key} = '{path}'")
            if held:
                lines += [head.format(name), *needed, *held]
    assert secret_keys >= 2
    assert files_named >= 8
    config = tmp_path / "msmq.toml"
    config.write_text("\n".join(lines) + f"\n[server]\ndata = '{tmp_path}'\n")
    archive = tmp_path / "support.tar.gz"
    environment = {"MSMQ_FAST_PROTECTION__KEY": MARKER}
    done = command("support-bundle", str(archive), "--config", str(config), environment=environment)
    assert done.returncode == Exit.UNREACHABLE, done  # the configuration is valid, no server runs
    found = files(archive)
    assert {"configuration.jsonl", "disk.jsonl"} <= set(found)
    assert MARKER.encode() not in done.stdout + done.stderr + b"".join(found.values())
    assert found["configuration.jsonl"].count(b"(hidden)") == secret_keys


def test_each_file_has_a_limit_and_says_so() -> None:
    bundle = Bundle()
    bundle.add("queues.jsonl", ("x" * 1023 for _ in range(100_000)))
    assert len(bundle.files["queues.jsonl"]) == LARGEST
    assert bundle.missing == [f"queues.jsonl: ends after {LARGEST} bytes"]
    assert len(bundle.archive()) < LARGEST
