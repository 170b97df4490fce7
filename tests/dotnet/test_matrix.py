"""Programs written for System.Messaging: each scenario on each runtime, with each name of the assembly. The
programs are in `programs/`; they check what they see themselves.
"""

from __future__ import annotations

import subprocess
from itertools import count
from pathlib import Path

import pytest

from msmq_fast import Access, sync
from tests.support.processes import dotnet
from tests.support.processes.servers import Server

SCENARIOS = (
    "SendReceive",
    "Properties",
    "Filters",
    "DefaultProperties",
    "Labels",
    "Large",
    "Timeouts",
    "Queues",
    "Enumerators",
    "Cursors",
    "Lookups",
    "Identifiers",
    "Single",
    "Multiple",
    "Batches",
    "Abort",
    "Refused",
    "Scopes",
    "Async",
    "Events",
    "Threads",
    "Access",
    "PublicQueues",
    "Xml",
    "Binary",
    "HostileBinary",
    "ActiveX",
)
BODY = '<?xml version="1.0"?><string>from outside</string>'

pytestmark = [
    pytest.mark.long(seconds=2),
    pytest.mark.needs("mcs", "mono"),
    pytest.mark.parametrize("name", dotnet.NAMES),
    pytest.mark.parametrize("runtime", [dotnet.MONO, dotnet.NET]),
]

_numbers = count()


class Running:
    """A scenario in its process, and the prefix of the names of its queues."""

    def __init__(self, server: Server, program: Path, runtime: str, scenario: str) -> None:
        self.prefix = f"q{next(_numbers)}"
        command = dotnet.command_for(runtime, program)
        self.process: subprocess.Popen[str] = dotnet.start(server, command, scenario, self.prefix)

    def await_line(self, line: str) -> None:
        assert self.process.stdout is not None
        shown = self.process.stdout.readline().strip()
        assert shown == line, shown + self.process.communicate()[1]

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(server: Server, scenarios: dict[str, Path], runtime: str, name: str, scenario: str) -> None:
    running = Running(server, scenarios[name], runtime, scenario)
    assert dotnet.finish(running.process) == "ok\n"


def test_reading_a_subqueue(server: Server, scenarios: dict[str, Path], runtime: str, name: str) -> None:
    running = Running(server, scenarios[name], runtime, "Subqueues")
    running.await_line("move")
    parent = f"{running.prefix}-parent"
    with (
        sync.connect(server.endpoint) as connection,
        connection.open(parent, Access.RECEIVE) as queue,
        connection.open(f"{parent};later", Access.MOVE) as part,
    ):
        queue.move(queue.peek(5), part)
    running.go_on()
    assert dotnet.finish(running.process) == "ok\n"


def test_a_queue_that_is_deleted_and_created_again(
    server: Server, scenarios: dict[str, Path], runtime: str, name: str
) -> None:
    running = Running(server, scenarios[name], runtime, "Recreated")
    running.await_line("recreate")
    with sync.connect(server.endpoint) as connection:
        connection.admin.queues.delete(f"{running.prefix}-recreated")
        connection.admin.queues.create(f"{running.prefix}-recreated", transactional=True)
    running.go_on()
    assert dotnet.finish(running.process) == "ok\n"


def test_kill_of_the_server(server: Server, scenarios: dict[str, Path], runtime: str, name: str) -> None:
    running = Running(server, scenarios[name], runtime, "Restart")
    running.await_line("kill")
    server.kill()
    server.start()
    running.go_on()
    running.await_line("kill")
    server.kill()
    server.start()
    assert server.run("send", f"{running.prefix}-restart", "--xact", "--body", BODY).returncode == 0
    assert dotnet.finish(running.process) == "ok\n"


def test_cursors_continue_after_kills(
    server: Server, scenarios: dict[str, Path], runtime: str, name: str
) -> None:
    running = Running(server, scenarios[name], runtime, "Walk")
    for _ in range(6):
        running.await_line("kill")
        server.kill()
        server.start()
        running.go_on()
    assert dotnet.finish(running.process) == "ok\n"
