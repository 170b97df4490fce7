"""System.Messaging on .NET 8 beside the Python client: `python -m bench.dotnet [--rounds 5] [--count 4000]`.

Recoverable messages of 1 KiB in a transactional queue of one server, one thread. The two programs take turns,
so that a busy machine hits both alike; what counts is the ratio. Transactions have 500 messages: Python sends
them with `send_many`, .NET with `Send`, which does not wait there. `begin receive` has 200 reads under way.
Needs `mcs` (`apt-get install mono-mcs`); .NET is downloaded once into `build/`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.server import Server
from msmq_fast import SINGLE_MESSAGE, Message, sync
from tests.support.processes import dotnet

__all__ = ["Figure", "measure"]

_SPEED = Path(__file__).parents[1] / "tests" / "dotnet" / "programs" / "speed" / "Speed.cs"
_BATCH = 500  # as in Speed.cs
_SINGLY = 20  # of so many messages, one is moved with a call that waits for it


@dataclass(frozen=True)
class Figure:
    """Messages a second for one operation, of all rounds; `python` is None if it has no such operation."""

    operation: str
    net: float
    python: float | None

    @property
    def ratio(self) -> float | None:
        """The speed of .NET by that of Python."""
        return None if self.python is None else self.net / self.python


def _rate(count: int, action: Callable[[], None]) -> float:
    started = time.perf_counter()
    action()
    return count / (time.perf_counter() - started)


def _python(socket: Path, queue_name: str, count: int) -> dict[str, float]:
    """The rates of the blocking client for the operations that Speed.cs measures, as far as it has them."""
    message = Message(bytes(1024))
    with sync.connect(str(socket)) as connection:
        connection.admin.queues.create(queue_name, transactional=True)
        with connection.open(queue_name) as queue:

            def singly(operation: Callable[[], object]) -> None:
                for _ in range(count // _SINGLY):
                    operation()

            def in_transactions(operation: Callable[[int, sync.Transaction], object]) -> None:
                for begin in range(0, count, _BATCH):
                    with connection.transaction() as transaction:
                        operation(min(_BATCH, count - begin), transaction)

            def send(messages: int, transaction: sync.Transaction) -> None:
                queue.send_many([message] * messages, transaction=transaction)

            def receive(messages: int, transaction: sync.Transaction) -> None:
                for _ in range(messages):
                    queue.receive(30, transaction=transaction)

            few = count // _SINGLY
            return {
                "send": _rate(few, lambda: singly(lambda: queue.send(message, transaction=SINGLE_MESSAGE))),
                "receive": _rate(few, lambda: singly(lambda: queue.receive(30))),
                "send in transactions": _rate(count, lambda: in_transactions(send)),
                "receive in transactions": _rate(count, lambda: in_transactions(receive)),
            }


def _net(socket: Path, program: Path, queue_name: str, count: int) -> dict[str, float]:
    """The rates that Speed.cs prints in its second round; the first one compiles the code."""
    command = dotnet.command_for(dotnet.NET, program)
    started = dotnet.start(f"unix:{socket}", command, queue_name, str(count))
    rates = {}
    for line in dotnet.finish(started, timeout=300).splitlines():
        name, _, number = line.partition(": ")
        rates[name] = float(number)
    return rates


def measure(count: int, rounds: int, directory: Path, *, best: bool = False) -> list[Figure]:
    """Run both programs in turns on a server whose data is in `directory`. A figure is the median of the
    rounds; with `best` the best round of each program, on which other load has the least effect.
    """
    of_rounds = max if best else statistics.median
    net: list[dict[str, float]] = []
    python: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder, Server(directory) as server:
        assembly = dotnet.build("System.Messaging", Path(folder))
        program = dotnet.compile_program(assembly, [_SPEED], assembly.parent / "speed.exe")
        turns: list[Callable[[int], None]] = [
            lambda number: net.append(_net(server.socket, program, f"net{number}", count)),
            lambda number: python.append(_python(server.socket, f"python{number}", count)),
        ]
        for number in range(rounds):
            for turn in turns if number % 2 == 0 else reversed(turns):
                turn(number)
    return [
        Figure(
            name,
            of_rounds(one[name] for one in net),
            of_rounds(one[name] for one in python) if name in python[0] else None,
        )
        for name in net[0]
    ]


def main() -> None:
    description = (__doc__ or "").split(":")[0]
    parser = argparse.ArgumentParser(prog="python -m bench.dotnet", description=description)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=4000, help="messages of one operation in a round")
    parser.add_argument("--dir", type=Path, default=Path.cwd(), help="where the data of the server is")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for figure in measure(options.count, options.rounds, options.dir):
        if options.json:
            print(json.dumps(asdict(figure) | {"ratio": figure.ratio}))
        elif figure.python is None or figure.ratio is None:
            print(f"{figure.operation:24} .NET 8 {figure.net:9,.0f}/s")
        else:
            print(
                f"{figure.operation:24} .NET 8 {figure.net:9,.0f}/s   Python {figure.python:9,.0f}/s   "
                f"ratio {figure.ratio:.2f}"
            )


if __name__ == "__main__":
    main()
