"""A short command starts without the server: what it imports decides how long people wait for it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.cli.operators import running

PROGRAM = """
import sys
from msmq_fast.cli.main import main
try:
    code = main(sys.argv[1:])
except SystemExit as ended:
    code = ended.code
print(*sys.modules, file=sys.stderr)
sys.exit(code)
"""


SERVER = (
    "msmq_fast.server",
    "msmq_fast.app",
    "msmq_fast.mqqb",
    "msmq_fast.rpc",
    "msmq_fast.srmp",
    "msmq_fast.admin",
    "msmq_fast.bulk",
    "msmq_fast.qm",
    "msmq_fast.store",
    "msmq_fast.security",
    "msmq_fast.directory",
    "msmq_fast.config",
    "msmq_fast.packet",
    "msmq_fast.spark",
    "msmq_fast._native",
)
HEAVY = ("uvloop", "cryptography", "pyarrow", "lxml", "aiohttp", "prometheus_client", "pyspark", "pydantic")


def imported(*words: str, endpoint: str = "unix:/nowhere") -> set[str]:
    """The modules that a command imports; the command succeeds."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "MSMQ_FAST_ENDPOINT": endpoint},
    )
    return set(done.stderr.split())


def of(names: tuple[str, ...], found: set[str]) -> set[str]:
    return {name for name in found if any(f"{name}.".startswith(f"{below}.") for below in names)}


def test_the_version_needs_neither_server_nor_client() -> None:
    found = imported("--version")
    assert not of((*SERVER, *HEAVY, "msmq_fast.client", "asyncio"), found)


def test_a_short_command_imports_the_client_and_its_own_module_only() -> None:
    with running() as server:
        found = imported("queue", "list", endpoint=server.endpoint)
    assert not of((*SERVER, *HEAVY), found)
    commands = {name for name in found if name.startswith("msmq_fast.cli.commands.")}
    assert commands == {"msmq_fast.cli.commands.queue", "msmq_fast.cli.commands.queue.list"}


@pytest.mark.parametrize("words", [("queue", "list", "-h"), ("help", "send"), ("receive", "-h")])
def test_a_help_page_imports_no_server(words: tuple[str, ...]) -> None:
    assert not of((*SERVER, *HEAVY), imported(*words))
