"""`msmq-fast serve`: runs the queue manager."""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msmq_fast.cli.endpoint import configuration, load_configuration
from msmq_fast.config.flags import SERVE_FLAGS
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.parser import Parser

if TYPE_CHECKING:
    from msmq_fast.config.sections import Config
    from msmq_fast.server.reloading import Load

__all__ = ["COMMAND"]

# What stands for the value of each flag, and its help.
_FLAGS = {
    "data": ("DIR", "data directory"),
    "host": ("ADDR", "address to listen on; several separated by commas"),
    "port": ("N", "TCP port of MS-MQQB (1801)"),
    "ping_port": ("N", "UDP port of the ping (3527)"),
    "name": ("COMPUTER", "computer name"),
    "admin_port": ("N|off", "HTTP port of health, metrics and API (1802)"),
    "admin_host": ("ADDR", "address of the admin port (loopback)"),
    "app_socket": ("PATH", "Unix socket for programs"),
    "app_port": ("N|off", "TCP port for programs (off)"),
    "peer_port": ("N", "TCP port on which other queue managers listen (default: the value of --port)"),
    "log_level": ("LEVEL", "debug, info, warning or error"),
    "log_format": ("FORMAT", "text or json"),
    "rpc_port": ("N|off", "TCP port of remote readers (2103)"),
    "qm2qm_port": ("N|off", "TCP port of older remote readers (2105)"),
    "epm_port": ("N|off", "TCP port of the RPC endpoint mapper (135)"),
    "http_port": ("N|off", "TCP port for messages over HTTP (off)"),
    "https_port": ("N|off", "TCP port for messages over HTTPS (off); needs a certificate"),
}


def _add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--config", metavar="FILE", help="configuration file (TOML); default: MSMQ_FAST_CONFIG"
    )
    for name, (metavar, about) in _FLAGS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", metavar=metavar, help=about)


def _run(arguments: argparse.Namespace) -> int:
    given = {key: getattr(arguments, name) for name, key in SERVE_FLAGS.items()}
    flags = {key: text for key, text in given.items() if text is not None}
    config = configuration(arguments.config, flags)
    # A terminal that closes must not end the server, not even while it starts.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return _serve(config, lambda text: load_configuration(arguments.config, flags, text))


def _serve(config: Config, load: Load) -> int:
    # Imported late: the help page needs none of it.
    import uvloop

    from msmq_fast.server.declarations import DeclarationError
    from msmq_fast.server.lifecycle import Ending, announce_on_stdout, serve
    from msmq_fast.server.net.sockets import ListenError
    from msmq_fast.server.runtime.logs import set_up
    from msmq_fast.store.errors import StoreError, StoreLockedError

    set_up(config.log.level, config.log.format)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            ending = runner.run(serve(config, announce_on_stdout, _end_at_once, load))
    except ListenError as error:
        code = Exit.USAGE if error.errno == errno.EADDRNOTAVAIL else Exit.IN_USE
        raise CommandError(code, str(error)) from None
    except StoreLockedError as error:
        raise CommandError(Exit.IN_USE, str(error)) from None
    except (StoreError, DeclarationError) as error:
        raise CommandError(Exit.FAILURE, str(error)) from None
    if ending is Ending.STORE_FAILED:
        raise CommandError(Exit.FAILURE, f"{_store(config.data)}: the disk failed; see the log")
    return Exit.OK


def _store(directory: Path) -> str:
    return f"the store in {directory}"


def _end_at_once() -> None:
    """End the process without running any more code; acknowledged messages are on the disk already."""
    sys.stderr.flush()
    os._exit(Exit.FAILURE)


COMMAND = Command(
    name="serve",
    help="run the queue manager",
    description="""Prints one line, "ready …", on stdout when every listener accepts; logs go to stderr.
        SIGTERM drains and ends with exit code 0, SIGHUP reads the configuration again. A flag wins over
        the environment variable MSMQ_FAST_SECTION__KEY, and that over the file.""",
    run=_run,
    add_arguments=_add_arguments,
    examples=(
        Example("--data data", "a queue manager with its store in ./data"),
        Example("--config /etc/msmq-fast.toml --log-format json", "as a service runs it"),
        Example("--data data --port 1901 --http-port off --rpc-port off", "beside another one"),
    ),
)
