"""A server with the old names of keys: it runs as before, and the log names each new one once."""

from __future__ import annotations

from pathlib import Path

from tests.support.processes.servers import Server, data_directory

OLD = """
[server]
app_port = 0
app_host = "127.0.0.1"
[limits]
connections = 17
[queue_manager]
quota_kb = 8192
[[queues]]
name = "orders"
quota_kb = 100
"""
WARNED = {
    "server.app_port": "listen.app.port",
    "server.app_host": "listen.app.host",
    "limits.connections": "listen.mqqb.max_connections",
    "queue_manager.quota_kb": "queue_manager.quota",
    "queues.quota_kb": "queues.quota",
    "MSMQ_FAST_SERVER__APP_SOCKET_MODE": "MSMQ_FAST_LISTEN__APP__SOCKET_MODE",
}


def test_a_server_runs_with_old_names_and_tells_the_new_ones(tmp_path: Path) -> None:
    file = tmp_path / "msmq.toml"
    file.write_text(OLD)
    with data_directory() as data:
        server = Server(
            data, "--config", str(file), environment={"MSMQ_FAST_SERVER__APP_SOCKET_MODE": "0640"}
        )
        try:
            server.start()
            assert server.ready["app-tcp"].startswith("127.0.0.1:")
            assert "," not in server.ready["app-tcp"]
            assert (data / "app.sock").stat().st_mode & 0o777 == 0o640
            assert server.ok("queue", "show", "orders")[0]["quota_kb"] == 100
            log = server.log.read_text()
            for old, new in WARNED.items():
                (line,) = [line for line in log.splitlines() if old in line]
                assert new in line
                assert " warning " in line
            assert server.stop() == 0
        finally:
            server.kill()
