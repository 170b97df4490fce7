"""`msmq-fast ping`: pings a queue manager over UDP (MS-MQQB 2.2.7); no server is needed on this machine."""

from __future__ import annotations

import argparse
import asyncio
from uuid import UUID

from msmq_fast.cli.endpoint import configuration
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import Form, add_output, show
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import duration

__all__ = ["COMMAND"]

_DEFAULT_PORT = 3527


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("target", metavar="HOST[:PORT]", help="host name, IPv4 address, or [IPv6 address]")
    parser.add_argument(
        "--timeout", type=duration(), default=2.0, metavar="TIME", help="how long to wait; default: 2s"
    )
    add_output(parser)


def _run(arguments: argparse.Namespace) -> int:
    from msmq_fast.server.net.dialing import Unreachable, ask

    host, port = _target(arguments.target)
    try:
        answer = asyncio.run(ask(host, port, UUID(int=0), arguments.timeout))
    except Unreachable as error:
        raise CommandError(Exit.UNREACHABLE, str(error)) from None
    if answer is None:
        raise CommandError(Exit.EMPTY, f"{host}: no answer on UDP port {port} within {arguments.timeout:g} s")
    address, guid, accepts = answer
    if arguments.form is Form.TABLE:
        print(f"{address}: queue manager {guid} {'accepts' if accepts else 'refuses'} sessions")
    else:
        show({"address": address, "port": port, "guid": str(guid), "accepts": accepts}, arguments.form)
    return Exit.OK if accepts else Exit.REFUSED


def _target(text: str) -> tuple[str, int]:
    """Return the host and the port of HOST, HOST:PORT, [V6], [V6]:PORT, or an IPv6 address without brackets,
    which is recognised by its second colon. The default port is that of the configuration.
    """
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        digits = rest.removeprefix(":")
    elif text.count(":") == 1:
        host, _, digits = text.partition(":")
    else:
        host, digits = text, ""
    if not digits:
        return host, configuration(None, {}).listen.mqqb.ping_port or _DEFAULT_PORT
    if not digits.isascii() or not digits.isdigit() or not 0 < int(digits) < 65536:
        raise CommandError(Exit.USAGE, f"{text!r}: {digits!r} is not a port (1 to 65535)")
    return host, int(digits)


COMMAND = Command(
    name="ping",
    help="ask a queue manager over UDP whether it accepts sessions",
    description="""Asks any queue manager, a Windows host included, whether it accepts sessions. This
        needs no server on this machine. The exit code is 0 if it accepts them, 6 if it refuses them, 4
        without an answer.""",
    run=_run,
    add_arguments=_add_arguments,
    examples=(
        Example("orders01", "a host by its name, at the usual port 3527"),
        Example("[fe80::1]:3527 --timeout 500ms", "an IPv6 address, and a shorter wait"),
    ),
)
