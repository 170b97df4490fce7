"""`msmq-fast health`: asks the server of this machine whether it accepts messages."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from msmq_fast.cli.adminport import first_answer, get
from msmq_fast.cli.endpoint import add_configuration, configured
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import Form, add_output, show
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import duration

if TYPE_CHECKING:
    from msmq_fast.config.sections import Config

__all__ = ["COMMAND"]

_LONGEST_REASON = 1000  # bytes of the answer that are read


def _add_arguments(parser: Parser) -> None:
    add_configuration(parser)
    parser.add_argument(
        "--timeout", type=duration(), default=3.0, metavar="TIME", help="how long to wait; default: 3s"
    )
    add_output(parser)


def _run(arguments: argparse.Namespace) -> int:
    """Return exit code 0 if the server is ready, else 6 after printing the reason. Raises CommandError with
    exit code 5 if the server does not answer.
    """
    config = configured(arguments)
    if config.listen.admin.port is None:
        where, reason = _ask_socket(config, arguments.timeout)
    else:
        where, reason = _ask_admin(config, config.listen.admin.port, arguments.timeout)
    if arguments.form is not Form.TABLE:
        show({"ready": not reason, "reason": reason, "asked": where}, arguments.form)
    elif reason:
        raise CommandError(Exit.REFUSED, f"{where}: {reason}")
    else:
        print(f"{where}: ready")
    return Exit.REFUSED if reason else Exit.OK


def _ask_admin(config: Config, port: int, timeout: float) -> tuple[str, str]:
    """Return (the address of the admin port that answered, the reason why the server is not ready). The
    reason is "" if the server is ready. The first address that answers decides.
    """

    def readyz(host: str) -> str:
        status, body = get(config, host, port, "/readyz", timeout, _LONGEST_REASON)
        text = body.decode("utf-8", "replace").strip()
        return "" if status == 200 else text or f"HTTP {status}"

    return first_answer(config, port, readyz)


def _ask_socket(config: Config, timeout: float) -> tuple[str, str]:
    """Ask the server over the Unix socket for programs; used if the admin port is off. Returns the same as
    `_ask_admin`.
    """
    from msmq_fast.client.connection import connect
    from msmq_fast.protocol.errors import MSMQError

    path = config.app_socket
    if path is None:
        raise CommandError(
            Exit.USAGE,
            "listen.admin.port and listen.app.socket are both off: turn one of them on",
        )

    async def ask() -> str:
        async with (
            asyncio.timeout(timeout),
            await connect(f"unix:{path}", client="msmq-fast health") as server,
        ):
            return str((await server.admin.stats())["not_ready"])

    try:
        return str(path), asyncio.run(ask())
    except TimeoutError:
        raise CommandError(Exit.UNREACHABLE, f"{path}: no answer within {timeout:g} s") from None
    except (MSMQError, OSError) as error:
        raise CommandError(Exit.UNREACHABLE, f"{path}: {error}") from None


COMMAND = Command(
    name="health",
    help="ask the server of this machine whether it accepts messages",
    description="""Asks /readyz of the admin port, or the Unix socket for programs if that port is off.
        The address comes from the configuration, not from the flags with which the server was started.
        The exit code is 0 if the server is ready, 6 with the reason if it is not, 5 if it does not
        answer.""",
    run=_run,
    add_arguments=_add_arguments,
    examples=(
        Example("", "as a container's health check runs it"),
        Example("--config /etc/msmq-fast.toml --timeout 1s", "with the configuration of the service"),
    ),
)
