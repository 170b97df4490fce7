"""Programs in .NET beside those in Python, in the same run: recoverable messages of 1 KiB, one thread.
`pytest -s` shows the figures, in messages a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from msmq_fast import Message, sync
from tests.support.processes import dotnet
from tests.support.processes.servers import Server

SPEED = Path(__file__).parent / "programs" / "speed" / "Speed.cs"
COUNT = 2000
BATCH = 500

pytestmark = [pytest.mark.long(seconds=30), pytest.mark.needs("mcs", "mono")]


def rate(count: int, action: Callable[[], None]) -> int:
    started = time.perf_counter()
    action()
    return int(count / (time.perf_counter() - started))


def python_rates(server: Server) -> dict[str, int]:
    """The rates of the blocking client for the operations that Speed.cs measures, as far as it has them."""
    with sync.connect(server.endpoint) as connection:
        connection.admin.queues.create("python", transactional=True)
        with connection.open("python") as queue:

            def in_transactions(operation: Callable[[sync.Transaction], object]) -> None:
                for _ in range(COUNT // BATCH):
                    with connection.transaction() as transaction:
                        for _ in range(BATCH):
                            operation(transaction)

            message = Message(bytes(1024))
            return {
                "send in transactions": rate(
                    COUNT, lambda: in_transactions(lambda within: queue.send(message, transaction=within))
                ),
                "receive in transactions": rate(
                    COUNT, lambda: in_transactions(lambda within: queue.receive(30, transaction=within))
                ),
            }


def test_a_program_is_about_as_fast_as_one_in_python(server: Server, assembly: Callable[[str], Path]) -> None:
    built = assembly("System.Messaging")
    program = dotnet.compile_program(built, [SPEED], built.parent / "speed.exe")
    command = dotnet.command_for(dotnet.NET, program)
    shown = dotnet.finish(dotnet.start(server, command, "speed", str(COUNT)), timeout=110)
    ours: dict[str, int] = {}
    for name, _, number in (line.partition(": ") for line in shown.splitlines()):
        ours[name] = max(int(number), ours.get(name, 0))  # of two rounds: the first one compiles the code
    theirs = python_rates(server)
    print(f"\n.NET 8: {ours}\nPython: {theirs}")
    # What else the machine does matters more than a factor of two.
    assert all(2 * ours[name] > theirs[name] for name in theirs)
