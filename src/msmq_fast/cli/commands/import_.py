"""`msmq-fast import`: imports exported messages into queues, with their identifiers, arrival times and
counts; takes a Windows host over from the file of contrib/powershell/Export-Msmq.ps1.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO

from msmq_fast.cli.exportfile import BadFile, End, Header, Record, Section, read_export
from msmq_fast.cli.session import add_client, converse
from msmq_fast.cli.windowsaccounts import translated
from msmq_fast.cli.windowsexport import KIND, Finding, WindowsQueue, read_windows
from msmq_fast.client.connection import Connection
from msmq_fast.client.errors import ConnectionLost
from msmq_fast.client.exchange import Import, Stored
from msmq_fast.protocol.definitions import FORMAT, VERSION
from msmq_fast.protocol.errors import QueueNotFound
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.protocol.frames import Access
from msmq_fast.terminal.commands import Command, Example
from msmq_fast.terminal.output import show
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.progress import Progress

__all__ = ["COMMAND", "QueueMap"]

_BATCH = 500  # messages
_BATCH_BYTES = 1 << 20  # of their packets
_PAGE = 1000  # users or groups in one reply
_AHEAD = 4  # batches on their way at once
_PRIVATE = "private$\\"
# What a queue is created with; who may do what is not taken over: accounts differ from host to host.
_PROPERTIES = (
    "label",
    "transactional",
    "journal",
    "quota_kb",
    "journal_quota_kb",
    "authenticated",
    "base_priority",
    "privacy_level",
    "type",
)

_USER_KINDS = ("queue", "user")  # "user" in files that were written before


class QueueMap:
    """Maps queues of the file to queues of this computer. `words` are such as `OLD=NEW`; for a file with one
    queue, a single word `NEW` suffices. A queue without a word keeps its name.
    """

    def __init__(self, words: Iterable[str]) -> None:
        """Raises ValueError if `words` contradict each other."""
        self._targets: dict[str, str] = {}
        self._single: str | None = None
        for word in words:
            old, equals, new = word.partition("=")
            if not equals:
                old, new = "", word
            if not new:
                raise ValueError(f"--queue {word}: a queue name is missing")
            if not old:
                if self._single is not None:
                    raise ValueError("--queue NEW can be given only once")
                self._single = new
            elif self._targets.setdefault(_key(old), new) != new:
                raise ValueError(f"--queue: {old} has two targets; give one")
        if self._single is not None and self._targets:
            raise ValueError("--queue: NEW cannot be combined with OLD=NEW")

    def target(self, name: str) -> str:
        """Return the queue of this computer that receives the messages of the queue `name` in the file."""
        return self._single or self._targets.get(_key(name)) or f".\\{_local(name)}"

    @property
    def single(self) -> bool:
        """Whether the map is a single `NEW`, which is valid only for a file with one queue."""
        return self._single is not None

    def __str__(self) -> str:
        pairs = sorted(self._targets.items())
        return self._single or ",".join(f"{old}={new}" for old, new in pairs)


def _local(name: str) -> str:
    """Return a path name without the name of the computer."""
    return name.split("\\", 1)[1] if "\\" in name else _PRIVATE + name


def _key(name: str) -> str:
    return _local(name).casefold()


def _add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="file that `export` or Export-Msmq.ps1 wrote; - for stdin"
    )
    parser.add_argument(
        "--queue",
        action="append",
        default=[],
        metavar="[OLD=]NEW",
        help="import the messages into NEW instead of the queue of the same name; may be repeated",
    )
    parser.add_argument(
        "--skip-existing", action="store_true", help="skip messages that are in the queue already"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="only read the file, and print what cannot be taken over and why; needs no server",
    )
    restart = parser.add_argument(
        "--restart",
        action="store_true",
        help="import from the beginning, even if an interrupted import could be resumed",
    )
    parser.add_former(restart, "--anew")
    add_client(parser)


def _import_command(arguments: argparse.Namespace) -> int:
    try:
        targets = QueueMap(arguments.queue)
    except ValueError as error:
        raise CommandError(Exit.USAGE, str(error)) from None
    try:
        if arguments.check:
            return _report(arguments, targets)
        if arguments.file == "-":
            return _run(arguments, targets, sys.stdin.buffer, 0)
        with Path(arguments.file).open("rb") as file:
            total = 0
            if file.seekable():
                # The whole file is checked before the first message of it gets anywhere.
                total = _check(file, arguments.file, targets)
                file.seek(0)
            return _run(arguments, targets, file, total)
    except BadFile as error:
        raise CommandError(Exit.FAILURE, f"{arguments.file}: {error}") from None
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise CommandError(Exit.FAILURE, f"{arguments.file}: {error.strerror or error}") from None


def _read(file: BinaryIO) -> Iterator[Record | Finding]:
    return read_export(file, {KIND: read_windows})


def _report(arguments: argparse.Namespace, targets: QueueMap) -> int:
    """Print what a file holds and what cannot be taken over. The exit code is 6 if there is something."""
    count = Counter[type]()
    accounts: dict[str, None] = {}
    with nullcontext(sys.stdin.buffer) if arguments.file == "-" else Path(arguments.file).open("rb") as file:
        for record in _read(file):
            count[type(record)] += 1
            if isinstance(record, WindowsQueue):
                count[Section] += 1
                accounts |= dict.fromkeys(record.accounts.values())
            elif isinstance(record, Finding):
                _tell(arguments, record)
    for name in accounts:
        _tell(arguments, Finding(name, "needs a user or group of this name here: `msmq-fast user add`"))
    not_taken = count[Finding] + len(accounts)
    show({"queues": count[Section], "messages": count[Stored], "not_taken": not_taken}, arguments.form)
    return Exit.REFUSED if not_taken else Exit.OK


def _tell(arguments: argparse.Namespace, finding: Finding) -> None:
    print(f"{arguments.file}: {finding}", file=sys.stderr)


def _check(file: BinaryIO, name: str, targets: QueueMap) -> int:
    """Return the number of messages in a file. Raises BadFile if the file is invalid, CommandError if
    `targets` is a single queue and the file has several.
    """
    end = End(0, 0, 0)
    sections: set[str] = set()
    for record in _read(file):
        if isinstance(record, Section) and targets.single:
            sections.add(_key(record.name))
            if len(sections) > 1:
                raise CommandError(Exit.USAGE, f"{name} holds several queues: give --queue OLD=NEW")
        elif isinstance(record, End):
            end = record
    return end.messages


def _run(arguments: argparse.Namespace, targets: QueueMap, file: BinaryIO, total: int) -> int:
    async def run(connection: Connection, _: argparse.Namespace) -> int:
        try:
            return await _Run(connection, arguments, targets).import_file(file, total)
        except BadFile as error:
            raise CommandError(Exit.FAILURE, f"{arguments.file}: {error}") from None

    return converse(run, arguments)


class _Run:
    """The import of one file over one connection."""

    def __init__(self, connection: Connection, arguments: argparse.Namespace, targets: QueueMap) -> None:
        self._connection = connection
        self._arguments = arguments
        self._targets = targets
        self._imported = self._skipped = self._queues = self._created = self._not_taken = 0
        self._known: dict[str, str] | None = None  # SIDs of users and groups by case-folded name
        self._skip_existing: bool = arguments.skip_existing
        self._under_way: deque[tuple[int, asyncio.Task[tuple[int, int]]]] = deque()

    async def import_file(self, file: BinaryIO, total: int) -> int:
        """Import all messages of the file; returns the exit code. Raises BadFile."""
        records = _read(file)
        header = next(records)
        if not isinstance(header, Header):
            raise BadFile("the file does not begin with a header")
        running = await self._connection.admin.messages.open_import(
            self._job(header), anew=self._arguments.restart
        )
        earlier = running.done
        try:
            with Progress("import", total) as progress:
                await self._import(records, running, progress)
                # Everything is imported and kept, whatever becomes of this request.
                with suppress(ConnectionLost):
                    await running.end()
        finally:
            # Behind a batch that was refused there may be others that were on their way.
            await asyncio.gather(*(task for _, task in self._under_way), return_exceptions=True)
        summary = {
            "imported": self._imported,
            "skipped": self._skipped,
            "earlier": earlier,
            "queues": self._queues,
            "created": self._created,
            "not_taken": self._not_taken,
            "seconds": round(progress.seconds, 3),
        }
        show(summary, self._arguments.form)
        return Exit.OK

    def _job(self, header: Header) -> bytes:
        """Return the identifier by which the import is resumed: the same for the same file and the same
        target queues.
        """
        return hashlib.sha256(header.export + str(self._targets).casefold().encode()).digest()[:16]

    async def _import(self, records: Iterator[Record | Finding], running: Import, progress: Progress) -> None:
        target = ""
        skip = running.done  # messages that an earlier attempt brought in
        batch: list[Stored] = []
        size = 0
        for record in records:
            if isinstance(record, Section):
                await self._send(running, target, batch, progress)
                batch, size = [], 0
                target = await self._target(record)
            elif isinstance(record, Finding):
                self._note(record)
            elif isinstance(record, Stored):
                if skip:
                    skip -= 1
                    progress.add(1)
                    continue
                if batch and (len(batch) >= _BATCH or size + len(record.packet) > _BATCH_BYTES):
                    await self._send(running, target, batch, progress)
                    batch, size = [], 0
                batch.append(record)
                size += len(record.packet)
        await self._send(running, target, batch, progress)
        while self._under_way:
            await self._settle(progress)

    async def _send(self, running: Import, target: str, batch: list[Stored], progress: Progress) -> None:
        if not batch:
            return
        while len(self._under_way) >= _AHEAD:
            await self._settle(progress)
        put = running.put(target, batch, skip=self._skip_existing)
        self._under_way.append((len(batch), asyncio.ensure_future(put)))
        # The request is written when the task runs for the first time: in order, before the next one.
        await asyncio.sleep(0)

    async def _settle(self, progress: Progress) -> None:
        count, task = self._under_way.popleft()
        imported, skipped = await task
        self._imported += imported
        self._skipped += skipped
        progress.add(count)

    async def _target(self, section: Section) -> str:
        """Return the target queue for the messages of a section; creates the queue if it does not exist."""
        self._queues += 1
        if self._targets.single and self._queues > 1:
            raise CommandError(Exit.USAGE, "the file holds several queues: give --queue OLD=NEW")
        name = self._targets.target(section.name)
        if isinstance(section, WindowsQueue):
            await self._define(section, name)
            return name
        try:
            await self._connection.admin.queues.get(name)
        except QueueNotFound:
            if section.definition.get("kind") not in _USER_KINDS:
                # A subqueue is there as long as it is open or holds something.
                await self._connection.open(name, Access.PEEK)
                return name
            await self._connection.admin.queues.create(name, **_properties(section.definition))
            self._created += 1
        return name

    async def _define(self, section: WindowsQueue, name: str) -> None:
        """Create or change the queue `name` as a Windows host had it."""
        self._skip_existing = True  # the same file again adds nothing
        entry = section.definition | {"name": name}
        if section.security:
            if self._known is None:
                self._known = await self._accounts()
            security, findings = translated(section.name, section.security, section.accounts, self._known)
            entry |= {"security": security} if security else {}
            for finding in findings:
                self._note(finding)
        document = {FORMAT: VERSION, "queues": [entry]}
        (change,) = await self._connection.admin.definitions.put(document)
        if change.outcome == "failed":
            hint = f"give --queue {section.name}=NEW, or change the queue, and run the command again"
            raise CommandError(Exit.REFUSED, f"{name}: {change.detail}: {hint}")
        self._created += change.outcome == "created"

    async def _accounts(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for kind in ("groups", "users"):
            offset, total = 0, 1
            while offset < total:
                page = await self._connection.admin.users.page(kind, offset=offset, limit=_PAGE)
                listed = page.users if kind == "users" else page.groups
                found |= {account.name.casefold(): account.sid for account in listed}
                offset, total = offset + _PAGE, page.total
        return found

    def _note(self, finding: Finding) -> None:
        self._not_taken += 1
        _tell(self._arguments, finding)


def _properties(definition: dict[str, Any]) -> dict[str, Any]:
    return {name: definition[name] for name in _PROPERTIES if name in definition}


COMMAND = Command(
    name="import",
    help="import the messages of an export file into queues; take a Windows host over",
    description="""Queues that do not exist are created. A file is checked as a whole before its first
        message is imported. If the command is interrupted, the same command resumes where it stopped. From a
        file of Export-Msmq.ps1, queues also get the properties and access lists that they had on Windows;
        one line on stderr names each thing that cannot be taken over.""",
    run=_import_command,
    add_arguments=_add_arguments,
    examples=(
        Example("orders.msgs", "every message into the queue of the same name"),
        Example("orders.msgs --queue orders=orders-copy", "the messages of one queue into another"),
        Example("windows.jsonl --check", "what of a Windows host will not work here, and why"),
        Example("zcat queues.jsonl.gz | {prog} -", "from stdin"),
    ),
)
