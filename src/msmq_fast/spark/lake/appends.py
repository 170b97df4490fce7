"""Appends to the log of a Delta table on a disk of this machine, without deltalake.

A commit through deltalake takes 5 to 15 ms of the processor, here half of one. The other commits, each
hundredth one with its checkpoint, and object stores stay with deltalake (delta.py).

The protocol of Delta allows this for files that are added to a table of writer version 2: the commit is the
next file of the log, which must not exist. If another process has written it, only two things in it matter to
an append: another mark of the same name, and another schema or protocol.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["CHECKPOINT_EVERY", "Appends", "Landed", "Mark"]

CHECKPOINT_EVERY: Final = 100
"""The number of commits between two checkpoints, which deltalake writes."""
_TRUSTED_S: Final = 3600.0
"""Seconds after which what was known of a log is read anew: it may have lost its oldest files meanwhile."""
_WRITER: Final = 2
"""The highest version of the protocol for writers that an append here fulfils."""
_NO_LINKS: Final = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
_PLAIN: Final = re.compile(r"[0-9A-Za-z_=./-]+")
"""Paths that are the same in the log as on the disk."""


class Landed(NamedTuple):
    """A file that was written and is not part of a table yet.

    `path` is relative to the root of `table`; `partition` is a JSON object of partition values; `stats` is
    the JSON object of statistics that Delta stores with a file.
    """

    table: str
    path: str
    rows: int
    size: int
    partition: str
    stats: str


class Mark(NamedTuple):
    """The commit `number` of the application `name`."""

    name: str
    number: int


class Appends:
    """The end of the log of one table, as this process knows it: the last version, the columns, and the marks
    of the commits of this process.
    """

    def __init__(self, root: Path, table: DeltaTable, marks: Sequence[Mark]) -> None:
        self._log = root / "_delta_log"
        self._version = table.version()
        self._columns = {field.name for field in table.schema().fields}
        self._marks: Mapping[str, int | None] = {
            mark.name: table.transaction_version(mark.name) for mark in marks
        }
        self._known_at = time.monotonic()
        self._able = table.protocol().min_writer_version <= _WRITER

    def commit(self, added: Sequence[Landed], columns: Collection[str], marks: Sequence[Mark]) -> bool | None:
        """Adds files in one commit. Returns whether it did; False if the first of the `marks` is not newer
        than the last one of its name; None if only deltalake can do it. Raises OSError.
        """
        if not self._able or time.monotonic() - self._known_at > _TRUSTED_S:
            return None
        if not self._columns.issuperset(columns) or not self._marks.keys() >= {mark.name for mark in marks}:
            return None
        if not all(_PLAIN.fullmatch(file.path) for file in added):
            return None
        if not (self._log / f"{self._version:020d}.json").exists():  # the table was deleted or made anew
            return None
        text = _commit(added, marks)
        while (self._version + 2) % CHECKPOINT_EVERY:
            last = self._marks[marks[0].name] if marks else None
            if last is not None and last >= marks[0].number:
                return False
            written = self._write(self._version + 1, text)
            if written is None:
                return None
            self._version += 1
            self._known_at = time.monotonic()
            if written:
                self._marks = {**self._marks, **{mark.name: mark.number for mark in marks}}
                return True
            if not self._read(self._version):
                self._able = False  # what is known of the table is no longer right
                return None
        return None

    def _write(self, version: int, text: bytes) -> bool | None:
        """Writes a file of the log. Returns False if it exists, None if the disk has no links."""
        aside = self._log / f".{uuid.uuid4().hex}.tmp"
        try:
            aside.write_bytes(text)
            os.link(aside, self._log / f"{version:020d}.json")
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno in _NO_LINKS:
                return None
            raise
        finally:
            with contextlib.suppress(FileNotFoundError):
                aside.unlink()
        return True

    def _read(self, version: int) -> bool:
        """Reads a commit of another process. Returns False if it changes more than files and marks."""
        lines = (self._log / f"{version:020d}.json").read_bytes().splitlines()
        actions: list[dict[str, Any]] = [json.loads(line) for line in lines]
        found = {action["txn"]["appId"]: action["txn"]["version"] for action in actions if "txn" in action}
        self._marks = {name: found.get(name, number) for name, number in self._marks.items()}
        return not any("metaData" in action or "protocol" in action for action in actions)


def _commit(added: Sequence[Landed], marks: Sequence[Mark]) -> bytes:
    now = int(time.time() * 1000)
    actions: list[dict[str, Any]] = [
        {"commitInfo": {"timestamp": now, "operation": "WRITE", "operationParameters": {"mode": "Append"}}}
    ]
    for file in added:
        add = {"path": file.path, "partitionValues": json.loads(file.partition), "size": file.size}
        add |= {"modificationTime": now, "dataChange": True, "stats": file.stats}
        actions.append({"add": add})
    actions += [{"txn": {"appId": name, "version": number, "lastUpdated": now}} for name, number in marks]
    return "\n".join(map(json.dumps, actions)).encode()
