"""Determines the endpoint of the server for client commands."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from msmq_fast.protocol.exits import CommandError, Exit

if TYPE_CHECKING:
    from msmq_fast.config.sections import Config

__all__ = [
    "ENDPOINT_VARIABLE",
    "add_configuration",
    "add_data",
    "configuration",
    "configured",
    "endpoint",
    "load_configuration",
]

ENDPOINT_VARIABLE = "MSMQ_FAST_ENDPOINT"
CONFIG_VARIABLE = "MSMQ_FAST_CONFIG"


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add `--data`."""
    parser.add_argument("--data", metavar="DIR", help="data directory; default: the configured one")


def add_configuration(parser: argparse.ArgumentParser) -> None:
    """Add `--config` and `--data`."""
    parser.add_argument(
        "--config", metavar="FILE", help="configuration file (TOML); default: MSMQ_FAST_CONFIG"
    )
    add_data(parser)


def configured(arguments: argparse.Namespace) -> Config:
    """Return the configuration that `--config` and `--data` select. Raises CommandError."""
    flags = {"server.data": arguments.data} if arguments.data else {}
    return configuration(getattr(arguments, "config", None), flags)


def configuration(file: str | None, flags: dict[str, str]) -> Config:
    """Return the configuration that results from `file` (default: the file in the environment variable
    MSMQ_FAST_CONFIG), the environment, and `flags`, which are values by key. Raises CommandError with one
    line for each mistake.
    """
    from msmq_fast.config.mistakes import ConfigError

    try:
        return load_configuration(file, flags)
    except ConfigError as error:
        lines = "\n".join(str(mistake) for mistake in error.mistakes)
        raise CommandError(Exit.USAGE, lines) from None


def load_configuration(file: str | None, flags: dict[str, str], text: str | None = None) -> Config:
    """Load the same configuration as `configuration` from the same arguments, but raise ConfigError for
    mistakes. `text`, if it is given, replaces the content of the file.
    """
    # Imported late: a command that is told its endpoint needs no configuration.
    from msmq_fast.config.loading import load

    chosen = file or os.environ.get(CONFIG_VARIABLE)
    return load(Path(chosen) if chosen else None, os.environ, flags, text)


def endpoint(arguments: argparse.Namespace) -> str:
    """Return the endpoint: --endpoint, else the Unix socket in --data, else MSMQ_FAST_ENDPOINT, else the
    configuration's socket.

    A flag applies to one command, so it takes precedence over the environment variable. Raises CommandError
    if there is no endpoint.
    """
    chosen = arguments.endpoint or (None if arguments.data else os.environ.get(ENDPOINT_VARIABLE))
    if chosen:
        return str(chosen)
    path = configuration(None, {"server.data": arguments.data} if arguments.data else {}).app_socket
    if path is None:
        raise CommandError(Exit.USAGE, "the configuration has no Unix socket: give --endpoint")
    return f"unix:{path}"
