"""Where the client verbs find the server."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from msmq_fast.config.loading import load
from msmq_fast.config.mistakes import ConfigError
from msmq_fast.config.sections import Config
from msmq_fast.protocol.exits import CommandError, Exit

__all__ = ["ENDPOINT_VARIABLE", "configuration", "endpoint", "load_configuration"]

ENDPOINT_VARIABLE = "MSMQ_FAST_ENDPOINT"
CONFIG_VARIABLE = "MSMQ_FAST_CONFIG"


def configuration(file: str | None, flags: dict[str, str]) -> Config:
    """The configuration in force. Raises CommandError with one line for each mistake."""
    try:
        return load_configuration(file, flags)
    except ConfigError as error:
        lines = "\n".join(str(mistake) for mistake in error.mistakes)
        raise CommandError(Exit.USAGE, lines) from None


def load_configuration(file: str | None, flags: dict[str, str]) -> Config:
    """As `configuration`, but raises ConfigError."""
    chosen = file or os.environ.get(CONFIG_VARIABLE)
    return load(Path(chosen) if chosen else None, os.environ, flags)


def endpoint(arguments: argparse.Namespace) -> str:
    """--endpoint, else the Unix socket in --data, else MSMQ_FAST_ENDPOINT, else the configuration's socket.

    A flag names one server for one command, so it wins over the variable of the shell.
    """
    chosen = arguments.endpoint or (None if arguments.data else os.environ.get(ENDPOINT_VARIABLE))
    if chosen:
        return str(chosen)
    path = configuration(None, {"server.data": arguments.data} if arguments.data else {}).app_socket
    if path is None:
        raise CommandError(Exit.USAGE, "the configuration has no Unix socket: give --endpoint")
    return f"unix:{path}"
