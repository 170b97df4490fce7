"""The flags of `msmq-fast serve` that set keys of the configuration."""

from __future__ import annotations

from typing import Final

__all__ = ["FLAG_OF", "SERVE_FLAGS"]

SERVE_FLAGS: Final = {
    "data": "server.data",
    "host": "server.host",
    "port": "server.port",
    "ping_port": "server.ping_port",
    "name": "server.name",
    "http_port": "server.http_port",
    "https_port": "server.https_port",
    "rpc_port": "server.rpc_port",
    "qm2qm_port": "server.qm2qm_port",
    "epm_port": "server.epm_port",
    "admin_port": "server.admin_port",
    "admin_host": "server.admin_host",
    "app_socket": "server.app_socket",
    "app_port": "server.app_port",
    "peer_port": "mqqb.peer_port",
    "log_level": "log.level",
    "log_format": "log.format",
}
"""The key, "section.key", of each flag; the flag is named as its attribute of the parsed arguments."""

FLAG_OF: Final = {key: f"--{name.replace('_', '-')}" for name, key in SERVE_FLAGS.items()}
"""How the flag of a key is written."""
