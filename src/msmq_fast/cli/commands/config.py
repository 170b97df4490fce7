"""`msmq-fast config`: checks, shows and reloads the configuration. Only `reload` needs a running server."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from msmq_fast.cli.endpoint import add_configuration, configured
from msmq_fast.cli.session import add_client, connected, converse
from msmq_fast.client.connection import Connection
from msmq_fast.config.toml_text import toml_text
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.terminal.commands import Command, Example, Group, members
from msmq_fast.terminal.output import Form, add_output, show, show_table
from msmq_fast.terminal.parser import Parser

if TYPE_CHECKING:
    from msmq_fast.config.sections import Config
    from msmq_fast.protocol.configuration import ConfigSetting

__all__ = ["CHECK", "COMMAND"]


def _add_file(parser: Parser) -> None:
    """Add `--config`, `--data` and the output options, and the positional argument FILE, which is the former
    way to name the configuration file.
    """
    parser.add_argument("file", nargs="?", help=argparse.SUPPRESS)
    add_configuration(parser)
    add_output(parser)


def _chosen(arguments: argparse.Namespace) -> Config:
    """Return the configuration that the options select. Raises CommandError."""
    if arguments.file is not None and arguments.config is not None:
        raise CommandError(Exit.USAGE, "name the file once, with --config FILE")
    arguments.config = arguments.config or arguments.file
    return configured(arguments)


def _check(arguments: argparse.Namespace) -> int:
    config = _chosen(arguments)
    _warn(config.warnings)
    show(
        {
            "config": config.source,
            "profile": config.security.profile,
            "name": config.name,
            "data": str(config.data),
            "port": config.listen.mqqb.port,
            "queues": [queue.name for queue in config.queues],
            "users": [user.name for user in config.users],
        },
        arguments.form,
    )
    return Exit.OK


CHECK = Command(
    name="check",
    help="read a configuration and explain its mistakes",
    description="""Reads the file and the environment variables as `serve` would. Prints every mistake
        with its line and exits with 2, or prints what would be in force.""",
    run=_check,
    add_arguments=_add_file,
    examples=(Example("--config /etc/msmq-fast.toml", "before a restart"),),
)


def _warn(warnings: list[str]) -> None:
    """Print the warnings about old names of keys."""
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def _add_show(parser: Parser) -> None:
    parser.add_argument(
        "--changed",
        action="store_true",
        help="only keys that the file, an environment variable or the profile sets",
    )
    parser.add_argument(
        "--running",
        action="store_true",
        help="ask the running server, which also tells what has changed since its start",
    )
    parser.add_argument("file", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument(
        "--config", metavar="FILE", help="configuration file (TOML); default: MSMQ_FAST_CONFIG"
    )
    add_client(parser)


async def _show_running(connection: Connection, arguments: argparse.Namespace) -> int:
    found: list[ConfigSetting] = []
    total = 1
    while len(found) < total:
        page = await connection.admin.config.page(offset=len(found))
        total = page.total if page.settings else 0
        found += page.settings
    rows = [setting.as_map() for setting in found if not (arguments.changed and setting.origin == "default")]
    _show_rows(rows, ("key", "value", "origin", "changed", "restart"), arguments.form)
    return Exit.OK


def _show_rows(rows: list[dict[str, Any]], columns: tuple[str, ...], form: Form) -> None:
    if form is not Form.JSON:
        rows = [{**row, "value": toml_text(row["value"])} for row in rows]
    show_table(rows, columns, form)


def _show(arguments: argparse.Namespace) -> int:
    if arguments.running:
        if arguments.config is not None or arguments.file is not None:
            raise CommandError(Exit.USAGE, "--running asks a server: it cannot be combined with --config")
        return converse(_show_running, arguments)
    # Imported late: the other commands show no values.
    from msmq_fast.config.effective import effective

    config = _chosen(arguments)
    _warn(config.warnings)
    rows = [
        {"key": setting.name, "value": setting.value, "origin": str(setting.origin)}
        for setting in effective(config)
        if not (arguments.changed and setting.origin.source == "default")
    ]
    _show_rows(rows, ("key", "value", "origin"), arguments.form)
    return Exit.OK


def _schema(_: argparse.Namespace) -> int:
    from msmq_fast.config.schema import json_schema

    print(json.dumps(json_schema(), indent=2, ensure_ascii=False))
    return Exit.OK


async def _reload(connection: Connection, arguments: argparse.Namespace) -> int:
    done = await connection.admin.reload()
    _warn(done.pop("warnings"))
    if arguments.form is Form.TABLE:
        done = {name: keys or "nothing" for name, keys in done.items()}
    show(done, arguments.form)
    return Exit.OK


COMMAND = Group(
    name="config",
    help="check, show and reload the configuration",
    description="""check, show and schema need no server, except for show --running. reload asks the running
        server to read its configuration again, as SIGHUP does.""",
    commands=members(
        CHECK,
        Command(
            name="show",
            help="show every value in force and its origin",
            description="""Prints each key with its value, and the line, variable or profile that sets it.
                Secrets are hidden. With --running, the values are those of the running server.""",
            run=_show,
            add_arguments=_add_show,
            examples=(
                Example("--config /etc/msmq-fast.toml --changed", "what differs from the defaults"),
                Example("--json", "every key, one JSON object a line"),
                Example("--running --changed", "what the running server uses, and what takes a restart"),
            ),
        ),
        Command(
            name="schema",
            help="print a JSON schema of the configuration file",
            description="""An editor that knows the schema completes and checks the file.""",
            run=_schema,
            add_arguments=lambda _: None,
            examples=(Example("> msmq-fast.schema.json", "a schema file for an editor"),),
        ),
        Command(
            name="reload",
            help="make the running server read its configuration again",
            description="""For administrators. Certificates, users, routes, declared queues, the log and
                the limits of connections change at once; prints these keys, and those that take a
                restart. A configuration with mistakes changes nothing.""",
            run=connected(_reload),
            add_arguments=add_client,
            examples=(Example("", "after a change of the file"),),
        ),
    ),
)
