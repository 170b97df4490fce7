"""The flags of `msmq-fast serve` that set configuration keys."""

from __future__ import annotations

from typing import Final

__all__ = ["FLAG_OF", "SERVE_FLAGS"]

SERVE_FLAGS: Final = {
    "data": "server.data",
    "host": "listen.mqqb.host",
    "port": "listen.mqqb.port",
    "ping_port": "listen.mqqb.ping_port",
    "name": "server.name",
    "http_port": "listen.http.port",
    "https_port": "listen.https.port",
    "rpc_port": "listen.rpc.port",
    "qm2qm_port": "listen.rpc.qm2qm_port",
    "epm_port": "listen.rpc.epm_port",
    "admin_port": "listen.admin.port",
    "admin_host": "listen.admin.host",
    "app_socket": "listen.app.socket",
    "app_port": "listen.app.port",
    "peer_port": "mqqb.peer_port",
    "log_level": "log.level",
    "log_format": "log.format",
}
"""The configuration key, "section.key", of each flag, by the attribute of the flag in the parsed
arguments.
"""

FLAG_OF: Final = {key: f"--{name.replace('_', '-')}" for name, key in SERVE_FLAGS.items()}
"""The spelling of the flag of each key, such as "--log-level"."""
