"""`msmq-fast support-bundle`: collects what a maintainer needs to know about a server into one archive.

To add a file: give `Bundle.add` its name and its lines, in `client/supportbundle.py` if a server has to
answer, else in `_local`. Never add a file of the data directory or of the configuration as it is: those hold
secrets.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msmq_fast.cli.adminport import first_answer, get
from msmq_fast.cli.endpoint import ENDPOINT_VARIABLE, load_configuration
from msmq_fast.cli.session import add_client, converse
from msmq_fast.client.connection import Connection
from msmq_fast.client.supportbundle import LARGEST, Bundle, ask_server, json_line
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.protocol.text import counted
from msmq_fast.release import release
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import show
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import duration

if TYPE_CHECKING:
    from msmq_fast.config.sections import Config

__all__ = ["COMMAND"]

_LISTED_FILES: Final = 1000  # files of the data directory


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="archive to write (.tar.gz); a new file")
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="configuration file of the server (TOML); default: MSMQ_FAST_CONFIG",
    )
    parser.add_argument(
        "--timeout",
        type=duration(),
        default=30.0,
        metavar="TIME",
        help="how long to wait for the server; default: 30s",
    )
    add_client(parser)


def _run(arguments: argparse.Namespace) -> int:
    """Write the archive. Returns exit code 0, or 5 if the server did not answer: then the archive has what
    can be had without the server. Raises CommandError if the archive cannot be written.
    """
    path = Path(arguments.file)
    try:
        # Opened first: a wrong path must not cost the wait for a slow server.
        # Names of callers and queues are not for every user of the machine.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise CommandError(Exit.USAGE, f"{path} exists already; give the name of a new file") from None
    except OSError as error:
        raise CommandError(Exit.FAILURE, f"cannot write {path}: {error.strerror}") from None
    with os.fdopen(handle, "wb") as file:
        bundle = Bundle()
        config = _configuration(bundle, arguments)
        code = _server(bundle, config, arguments)
        _local(bundle, config, arguments.timeout)
        bundle.add("missing.txt", bundle.missing)
        content = bundle.archive()
        try:
            file.write(content)
            file.flush()
        except OSError as error:
            path.unlink()
            raise CommandError(Exit.FAILURE, f"cannot write {path}: {error.strerror}") from None
    for line in bundle.missing:
        print(f"missing: {line}", file=sys.stderr)
    shown = {
        "file": str(path),
        "bytes": len(content),
        "files": list(bundle.files),
        "missing": bundle.missing,
    }
    show(shown, arguments.form)
    return code


def _configuration(bundle: Bundle, arguments: argparse.Namespace) -> Config | None:
    """Add the effective configuration, with its secrets hidden. Returns None if it has mistakes."""
    # Imported late, as in the other commands: a mistyped argument should not wait for it.
    from msmq_fast.config.effective import effective
    from msmq_fast.config.mistakes import ConfigError

    flags = {"server.data": arguments.data} if arguments.data else {}
    try:
        config = load_configuration(arguments.config, flags)
    except ConfigError as error:
        # The text of a mistake can quote a value, and a value can be a secret.
        places = ", ".join(str(one.line or one.where) for one in error.mistakes[:20])
        bundle.missing.append(
            f"configuration: {counted(len(error.mistakes), 'mistake')}, at {places}; "
            "msmq-fast config check explains them"
        )
        return None
    rows = ({"key": one.name, "value": one.value, "origin": str(one.origin)} for one in effective(config))
    bundle.add("configuration.jsonl", map(json_line, rows))
    return config


def _server(bundle: Bundle, config: Config | None, arguments: argparse.Namespace) -> Exit:
    """Add what the server tells about itself. Returns OK, or the exit code for the reason why it does not
    answer.
    """
    elsewhere = arguments.endpoint or (os.environ.get(ENDPOINT_VARIABLE) and not arguments.data)
    if config is None and not elsewhere:
        bundle.missing.append("server: the endpoint is not known without a configuration; give --endpoint")
        return Exit.USAGE
    if config is not None and arguments.config and not (arguments.endpoint or arguments.data):
        arguments.endpoint = f"unix:{config.app_socket}" if config.app_socket else None

    async def ask(connection: Connection, _: argparse.Namespace) -> int:
        await ask_server(bundle, connection)
        return Exit.OK

    try:
        converse(ask, arguments, arguments.timeout)
    except CommandError as error:
        bundle.missing.append(f"server: {error}")
        return error.code
    return Exit.OK


def _local(bundle: Bundle, config: Config | None, timeout: float) -> None:
    """Add what needs no connection of the application protocol: version, metrics, disk."""
    about = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": release(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "processors": os.cpu_count(),
    }
    bundle.add("version.json", [json_line(about)])
    if config is None:
        return
    try:
        bundle.add("metrics.txt", _metrics(config, timeout))
    except CommandError as error:
        bundle.missing.append(f"metrics.txt: {error}")
    try:
        bundle.add("disk.jsonl", map(json_line, _disk(config.data)))
    except OSError as error:
        bundle.missing.append(f"disk.jsonl: {config.data}: {error.strerror}")


def _metrics(config: Config, timeout: float) -> list[str]:
    """Return the lines of /metrics. Raises CommandError."""
    port = config.listen.admin.port
    if port is None:
        raise CommandError(Exit.USAGE, "listen.admin.port is off")
    where, (status, body) = first_answer(
        config, port, lambda host: get(config, host, port, "/metrics", timeout, LARGEST)
    )
    if status != 200:
        raise CommandError(Exit.REFUSED, f"{where}: HTTP {status}")
    return body.decode("utf-8", "replace").splitlines()


def _disk(data: Path) -> list[object]:
    """Return the space of the file system that holds the data directory, and the size of each file in it:
    never the content, which holds messages and secrets. Raises OSError.
    """
    usage = shutil.disk_usage(data)
    found: list[object] = [{"path": str(data), "total": usage.total, "used": usage.used, "free": usage.free}]
    for entry in sorted(islice(data.iterdir(), _LISTED_FILES)):
        facts = entry.lstat()
        found.append({"path": str(entry), "size": facts.st_size, "allocated": facts.st_blocks * 512})
    return found


COMMAND = Command(
    name="support-bundle",
    help="collect the state of a server in one archive, without secrets",
    description="""Writes version, effective configuration with its secrets hidden, statistics, queues,
        outgoing queues, sessions, transactions, the newest entries of the audit, metrics and disk
        figures. It contains no messages, but names of queues, computers and callers: read it before you send
        it to others. If the server does not answer, the archive has the rest, and the exit code is 5.""",
    run=_run,
    add_arguments=_add_arguments,
    examples=(
        Example("support.tar.gz", "about the server of this machine"),
        Example("mq1.tar.gz --config /etc/msmq-fast.toml", "with the configuration of the service"),
    ),
)
