"""Snapshots that a server keeps in object storage: on request and at an interval, also after failures."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.support.http.api import ok
from tests.support.objects import S3, SECRET, s3_server
from tests.support.processes.servers import Server, command, data_directory, inherited, until

pytestmark = pytest.mark.needs(modules=("obstore", "moto"))


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with s3_server() as running:
        yield running


@pytest.fixture
def data() -> Iterator[Path]:
    with data_directory() as directory:
        yield directory


@pytest.fixture
def place(data: Path) -> Path:
    """A directory that serves as object storage."""
    path = data.parent / "objects"
    path.mkdir()
    return path


def keeping(data: Path, url: str, **more: str) -> Server:
    return Server(data, environment={"MSMQ_FAST_BACKUP__URL": url, **more})


def metric(server: Server, name: str) -> float | None:
    connection = HTTPConnection(server.host, server.port("admin"), timeout=10)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    found = [line.split(" ")[1] for line in lines if line.startswith(f"msmq_fast_{name} ")]
    return float(found[0]) if found else None


def later_than(name: str) -> bool:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) > name


def listed(url: str, environment: dict[str, str] | None = None) -> list[dict[str, Any]]:
    done = command("backup", "list", url, "--json", environment=environment)
    assert done.returncode == 0, done
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_server_uploads_to_its_own_url_and_keeps_the_newest(s3: S3, data: Path) -> None:
    url = f"s3://{s3.bucket()}/mq1"
    server = keeping(data, url, MSMQ_FAST_BACKUP__KEEP="1", **s3.environment).start()
    try:
        server.ok("queue", "create", "orders")
        server.ok("send", "orders", "--body", "x" * 100_000, "--recoverable", "--count", "20")
        shown = []
        for _ in range(2):
            (made,) = server.ok("backup", "create")
            shown.append(made["backup"])
            name = shown[-1].rpartition("/")[2]
            until(partial(later_than, name[:16]), what="the next second: names are times")
        rows = listed(url, s3.environment)
        assert [f"{url}/{row['name']}" for row in rows] == shown[1:]
        until(partial(later_than, rows[0]["name"][:16]), what="the next second")
        asked = ok(server, "POST", "/server/snapshots", body={})
        rows = listed(url, s3.environment)
        assert [f"{url}/{row['name']}" for row in rows] == [asked["url"]]
        shown.append(asked["url"])
        entries = server.ok("audit", "list", "--operation", "make snapshot")
        assert {(entry["object"], entry["result"]) for entry in entries} == {(url, "done")}
        assert not (data / "snapshot.tmp").exists()
        assert metric(server, "last_snapshot_timestamp_seconds") == rows[0]["created"]
        assert metric(server, "failed_snapshots_total") == 0
        log = server.log.read_text()
        assert f"snapshot in {shown[2]}" in log
        for text in (log, json.dumps(server.ok("audit", "list")), json.dumps(server.ok("config", "show"))):
            assert SECRET not in text
    finally:
        server.stop()
    restored = data.parent / "restored"
    done = command("backup", "restore", shown[2], "--data", str(restored), environment=s3.environment)
    assert done.returncode == 0, done
    shutil.copy(data / "secrets.key", restored)
    again = Server(restored).start()
    try:
        assert again.ok("queue", "show", "orders")[0]["messages"] == 20
    finally:
        again.stop()


def test_a_snapshot_is_made_at_the_start_and_a_restart_makes_none_before_its_time(
    data: Path, place: Path
) -> None:
    server = keeping(data, f"file://{place}", MSMQ_FAST_BACKUP__EVERY="1h")
    try:
        server.start()
        first = until(lambda: metric(server, "last_snapshot_timestamp_seconds"), what="the snapshot")
        server.stop()
        server.start()
        again = until(lambda: metric(server, "last_snapshot_timestamp_seconds"), what="the look-up")
        assert again == first
    finally:
        server.stop()
    (row,) = listed(f"file://{place}")
    assert row["created"] == first
    assert {path.stat().st_mode & 0o777 for path in place.iterdir()} == {0o700}


def test_storage_that_fails_stops_neither_the_start_nor_the_messages(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts connections and never answers
        server = keeping(
            data,
            "s3://bucket/mq1",
            MSMQ_FAST_BACKUP__EVERY="1h",
            AWS_ENDPOINT_URL=f"http://127.0.0.1:{silent.getsockname()[1]}",
            AWS_ALLOW_HTTP="true",
            AWS_ACCESS_KEY_ID="key",
            AWS_SECRET_ACCESS_KEY=SECRET,
        ).start()
        with subprocess.Popen(
            [sys.executable, "-m", "msmq_fast", "backup", "create"],
            env=inherited() | {"MSMQ_FAST_ENDPOINT": server.endpoint},
            stderr=subprocess.PIPE,
        ) as making:
            until(lambda: (data / "snapshot.tmp" / "manifest.json").exists(), what="the copy")
            server.ok("queue", "create", "orders")
            server.ok("send", "orders", "--body", "x", "--recoverable")
            assert server.stop(timeout=10) == 0
            assert making.wait(10) in (5, 6)
    assert not (data / "snapshot.tmp").exists()
    assert SECRET not in server.log.read_text()


def test_a_bucket_that_does_not_exist_is_a_warning_and_a_metric(s3: S3, data: Path) -> None:
    server = keeping(data, "s3://nothing-here/mq1", MSMQ_FAST_BACKUP__EVERY="1h", **s3.environment).start()
    try:
        until(lambda: "cannot look up the last snapshot" in server.log.read_text(), what="the warning")
        done = server.run("backup", "create")
        assert done.returncode in (1, 6)
        assert b"the bucket nothing-here does not exist; create it first" in done.stderr
        assert metric(server, "failed_snapshots_total") == 1
        assert metric(server, "last_snapshot_timestamp_seconds") is None
    finally:
        server.stop()


@pytest.mark.long(seconds=7)
def test_a_killed_server_leaves_an_unfinished_snapshot_and_makes_a_new_one(data: Path, place: Path) -> None:
    url = f"file://{place}"
    server = keeping(data, url).start()
    body = data.parent / "body"
    body.write_bytes(os.urandom(3_000_000))
    server.ok("queue", "create", "orders")
    server.ok("send", "orders", "--file", str(body), "--recoverable", "--count", "20")
    with subprocess.Popen(
        [sys.executable, "-m", "msmq_fast", "backup", "create", "--rate", "20MiB"],
        env=inherited() | {"MSMQ_FAST_ENDPOINT": server.endpoint},
        stderr=subprocess.PIPE,
    ):
        until(lambda: any(place.glob("*/parts/000000-" + "?" * 64)), what="the first part")
        assert server.process is not None
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait(10)
    assert [row["problem"] for row in listed(url)] == ["unfinished"]
    assert (data / "snapshot.tmp").exists()
    server.start()
    try:
        server.ok("backup", "create")
        assert [row["problem"] for row in listed(url)] == ["unfinished", ""]
        assert not (data / "snapshot.tmp").exists()
    finally:
        server.stop()


def test_mistakes_get_one_line(data: Path, tmp_path: Path) -> None:
    for key, value, words in (
        ("URL", f"s3://key:{SECRET}@bucket", "credentials and options come from the environment"),
        ("URL", "ftp://host/x", "expected a URL such as s3://bucket/path"),
        ("EVERY", "1h", "backup.every needs backup.url"),
        ("RATE", "1000", "backup.rate must be 0, or 65536 or more"),
    ):
        done = command("config", "check", environment={f"MSMQ_FAST_BACKUP__{key}": value})
        text = (done.stdout + done.stderr).decode()
        assert done.returncode == 2, text
        assert words in text
        assert SECRET not in text
    (tmp_path / "obstore.py").write_text("raise ImportError('as if it were missing')\n")
    done = command(
        "serve",
        "--data",
        str(data),
        environment={"PYTHONPATH": str(tmp_path), "MSMQ_FAST_BACKUP__URL": f"file://{tmp_path}"},
    )
    assert done.returncode != 0
    assert b"backup.url: object storage needs the package obstore: pip install" in done.stderr


def test_without_object_storage_a_directory_is_needed(data: Path) -> None:
    server = Server(data).start()
    try:
        done = server.run("backup", "create")
        assert b"no directory is given, and this server has no object storage (backup.url)" in done.stderr
        done = server.run("backup", "create", "s3://bucket/mq1")
        assert done.returncode == 2
        assert b"backup.url" in done.stderr
        for words in (["--offline"], ["s3://bucket", "--offline"]):
            assert b"--offline needs a directory" in server.run("backup", "create", *words).stderr
    finally:
        server.stop()
