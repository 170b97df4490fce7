"""`msmq-fast backup push|pull|list|prune|restore` with a server that speaks S3, and kills in the middle."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.objects import S3, SECRET, answering, s3_server
from tests.support.processes.servers import Server, command, data_directory, inherited, until

pytestmark = pytest.mark.needs(modules=("obstore", "moto"))


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with s3_server() as running:
        yield running


@pytest.fixture
def url(s3: S3) -> str:
    return f"s3://{s3.bucket()}/mq1"


@pytest.fixture(scope="module")
def stopped() -> Iterator[Path]:
    """The data directory of a server with 20 messages, 60 MB in all, and a backup beside it."""
    with data_directory() as directory:
        server = Server(directory).start()
        try:
            server.ok("queue", "create", "orders")
            body = directory.parent / "body"
            body.write_bytes(os.urandom(3_000_000))
            server.ok("send", "orders", "--file", str(body), "--recoverable", "--count", "20")
            server.ok("backup", "create", str(directory.parent / "backup"))
        finally:
            server.stop()
        yield directory


@pytest.fixture
def backup(stopped: Path) -> Path:
    return stopped.parent / "backup"


def ran(s3: S3, *words: str, code: int = 0) -> list[dict[str, Any]]:
    done = command(*words, "--json", environment=s3.environment)
    assert done.returncode == code, done
    assert SECRET not in (done.stdout + done.stderr).decode()
    if code:
        assert done.stdout == b""
        assert done.stderr.count(b"\n") == 1
        return [{"error": done.stderr.decode()}]
    return [json.loads(line) for line in done.stdout.splitlines()]


def objects(s3: S3, url: str) -> set[str]:
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    found = s3.client.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])
    return {entry["Key"] for entry in found}


def test_a_server_starts_on_what_was_restored_from_a_bucket(
    s3: S3, url: str, stopped: Path, backup: Path, tmp_path: Path
) -> None:
    (pushed,) = ran(s3, "backup", "push", str(backup), url)
    assert pushed["bytes"] == (backup / "data.mdb").stat().st_size > 60_000_000
    (row,) = ran(s3, "backup", "list", url)
    assert row["complete"]
    assert pushed["snapshot"] == f"{url}/{row['name']}"
    with data_directory() as data:
        restored = data / "data"
        for words in ([url], [pushed["snapshot"], "--if-missing"]):
            ran(s3, "backup", "restore", *words, "--data", str(restored))
        shutil.copy(stopped / "secrets.key", restored)
        server = Server(restored).start()
        try:
            assert server.ok("queue", "show", "orders")[0]["messages"] == 20
        finally:
            server.stop()
        (refused,) = ran(s3, "backup", "restore", url, "--data", str(restored), code=1)
        assert "already holds a store" in refused["error"]
    assert ran(s3, "backup", "prune", url, "--keep", "1") == []


def killed(s3: S3, *words: str, when: Any) -> None:
    """Start a command and kill it as soon as `when` returns true."""
    with subprocess.Popen(
        [sys.executable, "-m", "msmq_fast", *words], env=inherited() | s3.environment, stderr=subprocess.PIPE
    ) as process:
        until(when, what="the middle of the transfer")
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
    assert process.returncode == -signal.SIGKILL


def test_a_killed_upload_is_unfinished_and_the_next_one_continues_it(
    s3: S3, url: str, backup: Path, tmp_path: Path
) -> None:
    killed(s3, "backup", "push", str(backup), url, "--rate", "1MiB", when=lambda: objects(s3, url))
    begun = objects(s3, url)
    assert begun
    assert not any(key.endswith("manifest.json") for key in begun)
    (row,) = ran(s3, "backup", "list", url)
    assert row["complete"] is False
    (missing,) = ran(s3, "backup", "pull", url, str(tmp_path / "pulled"), code=1)
    assert "holds no complete snapshot" in missing["error"]
    ran(s3, "backup", "push", str(backup), url)
    assert begun < objects(s3, url)
    (row,) = ran(s3, "backup", "list", url)
    assert row["complete"] is True


def test_a_killed_download_is_continued(s3: S3, url: str, backup: Path, tmp_path: Path) -> None:
    ran(s3, "backup", "push", str(backup), url)
    target = tmp_path / "pulled"
    draft = target / "data.mdb.part"
    killed(s3, "backup", "pull", url, str(target), when=draft.exists)
    refused = command("backup", "restore", str(target), "--data", str(tmp_path / "data"))
    assert refused.returncode == 1
    assert b"does not hold a complete backup" in refused.stderr
    (pulled,) = ran(s3, "backup", "pull", url, str(target))
    assert pulled["bytes"] == (target / "data.mdb").stat().st_size
    assert (target / "data.mdb").read_bytes() == (backup / "data.mdb").read_bytes()
    assert not draft.exists()


def test_a_killed_restore_leaves_no_store(s3: S3, url: str, backup: Path, tmp_path: Path) -> None:
    ran(s3, "backup", "push", str(backup), url)
    data = tmp_path / "data"
    killed(s3, "backup", "restore", url, "--data", str(data), when=(data / "restore.tmp" / "data.mdb").exists)
    assert not (data / "data.mdb").exists()
    ran(s3, "backup", "restore", url, "--data", str(data), "--if-missing")
    assert (data / "data.mdb").exists()


@pytest.mark.long(seconds=12)
def test_the_threads_of_obstore_do_not_abort_the_end_of_a_command() -> None:
    """A thread that takes the GIL while the interpreter is finalized would end the process with SIGABRT."""
    with answering(403, b"") as endpoint:  # the metadata service of a machine that has no role
        for number in range(10):
            done = subprocess.run(
                [sys.executable, "-m", "msmq_fast", "backup", "list", "s3://backups/mq1"],
                env=inherited() | {"AWS_METADATA_ENDPOINT": endpoint},
                capture_output=True,
                timeout=30,
            )
            assert done.returncode == 1, (number, done)
            assert b"no credentials; set those of the service" in done.stderr


_MEASURED = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""Runs a command and prints the most memory that it used, in KiB. Linux counts the memory of the process that
starts a command as well, so a small process starts it.
"""


@pytest.mark.long(seconds=20)
def test_memory_does_not_grow_with_the_store(tmp_path: Path) -> None:
    size = 512 << 20
    source, place = tmp_path / "backup", tmp_path / "objects"
    source.mkdir()
    place.mkdir()
    with (source / "data.mdb").open("wb") as file:
        file.truncate(size)
    digest = hashlib.sha256()
    for _ in range(size >> 20):
        digest.update(bytes(1 << 20))
    numbers = {
        "schema_version": 2,
        "incarnation": 1,
        "feed_next": 1,
        "created_s": 1_800_000_000,
        "size": size,
    }
    manifest = {**numbers, "qm_guid": "0" * 32, "sha256": digest.hexdigest()}
    (source / "manifest.json").write_text(json.dumps(manifest))
    for words in (
        ["push", str(source), f"file://{place}"],
        ["pull", f"file://{place}", str(tmp_path / "back")],
    ):
        command = [sys.executable, "-m", "msmq_fast", "backup", *words]
        done = subprocess.run(
            [sys.executable, "-c", _MEASURED, *command], env=inherited(), capture_output=True, check=True
        )
        assert int(done.stdout.splitlines()[-1]) < 250 << 10, words  # KiB


def test_mistakes_get_one_line(s3: S3, url: str, backup: Path, tmp_path: Path) -> None:
    nowhere = "s3://nothing-here/mq1"
    for words in (("push", str(backup), nowhere), ("list", nowhere), ("prune", nowhere, "--keep", "1")):
        assert (
            "the bucket nothing-here does not exist; create it first"
            in ran(s3, "backup", *words, code=1)[0]["error"]
        )
    assert (
        "does not hold a complete backup" in ran(s3, "backup", "push", str(tmp_path), url, code=1)[0]["error"]
    )
    secret = f"s3://key:{SECRET}@bucket/mq1"
    assert (
        "credentials and options come from the environment"
        in (ran(s3, "backup", "pull", secret, str(tmp_path / "x"), code=2)[0]["error"])
    )
    assert "not between 1 and" in ran(s3, "backup", "prune", url, "--keep", "0", code=2)[0]["error"]


def test_without_obstore_one_line_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "obstore.py").write_text("raise ImportError('as if it were missing')\n")
    for words in (["list", "s3://b"], ["restore", "s3://b", "--data", str(tmp_path / "data")]):
        done = subprocess.run(
            [sys.executable, "-m", "msmq_fast", "backup", *words],
            env=inherited() | {"PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.returncode == 1
        assert done.stderr == (
            f"msmq-fast backup {words[0]}: object storage needs the package obstore: "
            "pip install 'msmq-fast[objects]'\n"
        )
