"""`msmq-fast complete`: prints completion candidates for the scripts of `completion`, not for people."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable, Sequence

from msmq_fast.cli.session import add_client, converse
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.completion import SHELLS, Candidate, answer, candidates, split_line
from msmq_fast.terminal.describe import Argument
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import outgoing_name, queue_name

__all__ = ["COMMAND"]

_PATIENCE = 1.0  # seconds for the names of queues


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell that asks")
    parser.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        metavar="WORD",
        help="the words of the command line so far; for bash, the whole line as typed",
    )


def _run(arguments: argparse.Namespace) -> int:
    # Imported late: the tree names this module.
    from msmq_fast.cli.tree import ROOT

    line = arguments.words[0] if arguments.shell == "bash" and arguments.words else ""
    words = split_line(line) if arguments.shell == "bash" else arguments.words
    found = candidates(ROOT, words, _of_server)
    for text in answer(arguments.shell, found, words[-1] if words else "", line):
        print(text)
    return Exit.OK


def _of_server(argument: Argument, words: Sequence[str]) -> Iterable[Candidate]:
    """Yield the names of queues that complete an argument; none if no server answers in time, since
    completion must not print errors.
    """
    if argument.parse not in (queue_name, outgoing_name):
        return []
    parser = Parser(add_help=False)
    add_client(parser)
    found: list[Candidate] = []

    async def ask(connection: Connection, _: argparse.Namespace) -> int:
        async with asyncio.timeout(_PATIENCE):
            if argument.parse is outgoing_name:
                found.extend(
                    Candidate(queue.name, "outgoing") for queue in await connection.admin.outgoing.all()
                )
            else:
                queues = [
                    queue for queue in await connection.admin.queues.all("all") if queue.kind != "outgoing"
                ]
                found.extend(
                    Candidate(_short(queue.name), queue.label or queue.kind)
                    for queue in queues
                    if queue.kind not in ("journal", "subqueue") or ";" in words[-1]
                )
        return Exit.OK

    try:
        chosen, _ = parser.parse_known_args([word for word in words if word])
        chosen.command = "complete"
        converse(ask, chosen)
    except (CommandError, OSError, SystemExit):
        return []
    return sorted(found)


def _short(name: str) -> str:
    r"""Return the shortest name of a queue of this computer: `orders` for `HOST\\private$\\orders`."""
    local = name.partition("\\")[2]
    private = local.removeprefix("private$\\")
    return private if private != local else f".\\{local}"


COMMAND = Command(
    name="complete",
    help="print completion candidates; for the scripts of `completion`",
    run=_run,
    add_arguments=_add_arguments,
    examples=(Example("fish queue cr", "the commands of `queue` that begin with cr"),),
    hidden=True,
)
