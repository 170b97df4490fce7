"""The server as a process: what survives which end, and what people see when something is wrong."""

from __future__ import annotations

import json
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.http.admin import http
from tests.support.processes.servers import Server, until


@pytest.mark.rule("REC-12")
def test_the_ready_line_names_every_listener_and_all_of_them_accept(server: Server) -> None:
    server.start()
    assert set(server.ready) >= {"name", "guid", "mqqb", "ping", "app", "admin"}
    for listener in ("mqqb", "admin"):
        socket.create_connection(("127.0.0.1", server.port(listener)), timeout=5).close()
    path = Path(server.ready["app"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert server.run("ping", f"127.0.0.1:{server.port('ping')}").returncode == 0


@pytest.mark.rule("QB-150")
def test_a_restart_keeps_recoverable_messages_and_loses_express_ones(server: Server) -> None:
    server.start()
    guid = server.ready["guid"]
    server.ok("queue", "create", "orders", "--label", "Orders")
    server.ok("send", "orders", "--body", "kept", "--recoverable", "--count", "3")
    server.ok("send", "orders", "--body", "lost", "--count", "2")
    assert server.ok("queue", "show", "orders")[0]["messages"] == 5
    assert server.stop() == 0
    server.start()
    assert server.ready["guid"] == guid
    shown = server.ok("queue", "show", "orders")[0]
    assert (shown["messages"], shown["label"]) == (3, "Orders")
    assert {message["body_b64"] for message in server.messages("orders")} == {"a2VwdA=="}


def test_sigkill_loses_nothing_that_was_acknowledged(server: Server) -> None:
    server.start()
    server.ok("queue", "create", "orders")
    for number in range(5):
        server.ok("send", "orders", "--body", str(number), "--recoverable")
    server.kill()
    server.start()
    received = server.messages("orders")
    assert [message["body_b64"] for message in received] == ["MA==", "MQ==", "Mg==", "Mw==", "NA=="]
    server.kill()
    server.start()
    assert server.messages("orders") == []


def test_sigterm_answers_waiting_reads_and_ends_with_0(server: Server) -> None:
    server.start()
    server.ok("queue", "create", "orders")
    waiting = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "msmq_fast",
            "receive",
            "orders",
            "--timeout",
            "60",
            "--endpoint",
            server.endpoint,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    until(lambda: server.ok("stats")[0]["app_connections"] >= 2, what="the connection of the reader")
    time.sleep(0.3)
    started = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - started < 15  # and not the 60 of the reader
    _, complaint = waiting.communicate(timeout=10)
    assert waiting.returncode not in (0, 4)
    assert complaint.count(b"\n") == 1
    assert b"Traceback" not in complaint


def test_sigint_ends_like_sigterm(server: Server) -> None:
    server.start()
    assert server.process is not None
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(10) == 0


def test_the_admin_port_shows_health_metrics_and_queues(server: Server) -> None:
    server.start()
    server.ok("queue", "create", "orders")
    server.ok("send", "orders", "--body", "x", "--count", "3", "--recoverable")
    assert http(server, "/livez") == (200, "ok\n")
    assert http(server, "/readyz") == (200, "ok\n")
    metrics = http(server, "/metrics")[1]
    named = [line for line in metrics.splitlines() if line.startswith("windows_msmq_messages_in_queue{")]
    assert any("private$" in line and "orders" in line and line.endswith(" 3.0") for line in named)
    for name in ("msmq_fast_messages_in_total", "msmq_fast_sessions ", "msmq_fast_commit_seconds_bucket"):
        assert name in metrics, name
    (queue,) = json.loads(http(server, "/api/v1/queues")[1])["items"]
    assert (queue["name"].rpartition("\\")[2], queue["messages"]) == ("orders", 3)
    assert json.loads(http(server, "/api/v1/server/stats")[1])["guid"] == server.ready["guid"]


def test_queues_are_declared_in_the_configuration(server: Server, tmp_path: Path) -> None:
    config = tmp_path / "msmq.toml"
    config.write_text(
        '[[queues]]\nname = "orders"\nlabel = "one"\n[[queues]]\nname = "bills"\nquota = "100 KiB"\n'
    )
    server.flags = ("--config", str(config))
    server.start()
    assert server.ok("queue", "show", "orders")[0]["label"] == "one"
    server.ok("send", "orders", "--body", "x", "--recoverable")
    assert server.stop() == 0
    config.write_text('[[queues]]\nname = "orders"\nlabel = "two"\n')
    server.start()
    shown = server.ok("queue", "show", "orders")[0]
    assert (shown["label"], shown["messages"]) == ("two", 1)
    assert server.ok("queue", "show", "bills")[0]["quota_kb"] == 100


@pytest.mark.rule("DM-211")
def test_low_disk_space_stops_the_intake_and_says_so(server: Server) -> None:
    server.environment |= {
        "MSMQ_FAST_STORE__DISK_LOW": "60 TiB",
        "MSMQ_FAST_STORE__DISK_CHECK_INTERVAL": "0.1",
    }
    server.start()
    until(lambda: http(server, "/readyz")[0] == 503, what="readyz with 503")
    assert "disk" in http(server, "/readyz")[1]


def test_another_computer_name_for_the_same_store_is_reported_once(server: Server) -> None:
    server.flags = ("--name", "FIRST")
    server.start()
    server.ok("queue", "create", "orders")
    assert server.stop() == 0
    assert "computer name" not in server.log.read_text()
    server.flags = ("--name", "SECOND")
    server.start()
    assert server.stop() == 0
    told = [line for line in server.log.read_text().splitlines() if "the computer name of this store" in line]
    assert len(told) == 1
    assert "was FIRST and is now SECOND" in told[0]
    assert "server.aliases" in told[0]
    server.start()
    assert server.stop() == 0
    assert server.log.read_text().count("the computer name of this store") == 1
