"""The verb `ping`: asks a queue manager over UDP, as MS-MQQB 2.2.7 does it; needs no server here."""

from __future__ import annotations

import argparse
import asyncio
from uuid import UUID

from msmq_fast.cli.endpoint import configuration
from msmq_fast.cli.session import show
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.server.net.dialing import Unreachable, ask

__all__ = ["run_ping"]

_DEFAULT_PORT = 3527


def run_ping(arguments: argparse.Namespace) -> int:
    """`msmq-fast ping HOST[:PORT]`."""
    host, port = _target(arguments.target)
    try:
        answer = asyncio.run(ask(host, port, UUID(int=0), arguments.timeout))
    except Unreachable as error:
        raise CommandError(Exit.UNREACHABLE, str(error)) from None
    if answer is None:
        raise CommandError(Exit.EMPTY, f"{host}: no answer on UDP port {port} within {arguments.timeout:g} s")
    address, guid, accepts = answer
    if arguments.json:
        show({"address": address, "port": port, "guid": str(guid), "accepts": accepts}, as_json=True)
    else:
        print(f"{address}: queue manager {guid} {'accepts' if accepts else 'refuses'} sessions")
    return Exit.OK if accepts else Exit.REFUSED


def _target(text: str) -> tuple[str, int]:
    """HOST, HOST:PORT, [V6] or [V6]:PORT; a bare IPv6 address has more than one colon."""
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
        raise CommandError(Exit.USAGE, f"{text!r}: {digits!r} is not a port")
    return host, int(digits)
