"""The commands of `msmq-fast`: the module of each, and their order on the help page."""

from __future__ import annotations

from typing import Final

from msmq_fast.terminal.commands import Group, Modules

__all__ = ["ROOT"]

_HERE: Final = "msmq_fast.cli.commands"

_SECTIONS: Final = (
    (
        "server",
        (
            "serve",
            "status",
            "top",
            "health",
            "ping",
            "stats",
            "session",
            "config",
            "security",
            "support-bundle",
        ),
    ),
    ("messages", ("send", "receive", "peek", "trace", "dlq", "export", "import", "transaction")),
    ("queues", ("queue", "outgoing", "route", "directory", "domain", "definitions")),
    ("access and protection", ("acl", "user", "certificate", "peer-key", "audit")),
    ("store", ("backup", "store")),
    ("more", ("lake", "completion", "help")),
)

_VISIBLE: Final = tuple(name for _, names in _SECTIONS for name in names)
_HIDDEN: Final = ("complete", "check-config", "key", "restore", "snapshot", "compact")
_ELSEWHERE: Final = {
    "check-config": f"{_HERE}.check_config",
    "import": f"{_HERE}.import_",
    "peer-key": f"{_HERE}.peer_key",
    "support-bundle": f"{_HERE}.support_bundle",
    "lake": "msmq_fast.spark.lake.main",
}
"""Modules whose name differs from the name of their command."""

ROOT: Final = Group(
    name="msmq-fast",
    help="A queue manager that speaks MSMQ, and its tools",
    description="A queue manager that speaks MSMQ, and its tools. `msmq-fast --version` prints the version.",
    commands=Modules({name: _ELSEWHERE.get(name, f"{_HERE}.{name}") for name in (*_VISIBLE, *_HIDDEN)}),
    sections=_SECTIONS,
)
"""No command is imported before it is named: a short command starts without the server."""
