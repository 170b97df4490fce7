"""The copy of a domain in a file, so that a server that starts while no domain controller answers knows what
it knew before.

The file is a sequence of msgpack values: a header, then [type, object] for each object, [0, GUID] for what
was deleted, and [-1, {GUID: format names}] for distribution lists. A complete reading writes a new file,
which replaces the old one at its end; later changes are appended. What comes after a damaged value is not
used.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final
from uuid import UUID

import msgpack

from msmq_fast.directory.objects import DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType

__all__ = ["Saved", "SavedCopy"]

Saved = tuple[list[DirectoryObject], list[UUID], dict[UUID, tuple[str, ...]]]
"""Objects, GUIDs of deleted objects, and distribution lists, in the order in which they are to be applied."""

_FORMAT: Final = "msmq-fast domain 1"
_GONE, _LISTS = 0, -1
_BATCH: Final = 50
_LARGEST: Final = 64 << 20  # bytes of one value: all distribution lists


class SavedCopy:
    """The file at `path`. `source` says which domain it is from: another domain's file is not used. All calls
    come from one thread.
    """

    def __init__(self, path: Path, source: Sequence[str]) -> None:
        self._path = path
        self._source = list(source)
        self._coming = path.with_name(path.name + ".new")
        self._writing: BinaryIO | None = None

    def load(self) -> Iterator[Saved]:
        """Yield the contents of the file in batches. Yields nothing if the file is missing or is that of
        another domain. Raises OSError, and ValueError for a malformed value.
        """
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return
        with file:
            values = _pairs(msgpack.Unpacker(file, max_buffer_size=_LARGEST, strict_map_key=False))
            if next(values, None) != (_FORMAT, self._source):
                return
            objects: list[DirectoryObject] = []
            for kind, value in values:
                match kind:
                    case 0:
                        yield objects, [UUID(bytes=value)], {}
                        objects = []
                    case -1:
                        yield objects, [], {UUID(bytes=key): tuple(names) for key, names in value.items()}
                        objects = []
                    case _:
                        objects.append(DirectoryObject.from_store(ObjectType(kind), value))
                if len(objects) >= _BATCH:
                    yield objects, [], {}
                    objects = []
            yield objects, [], {}

    def begin(self) -> None:
        """Begin the file of a complete reading. Raises OSError."""
        self.abandon()
        descriptor = os.open(self._coming, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._writing = os.fdopen(descriptor, "wb")
        self._writing.write(msgpack.packb([_FORMAT, self._source]))

    def add(self, objects: Iterable[DirectoryObject]) -> None:
        """Add objects to the file that was begun. Raises OSError."""
        if self._writing is not None:
            for item in objects:
                self._writing.write(msgpack.packb([item.kind.value, item.to_store()]))

    def end(self, lists: Mapping[UUID, Sequence[str]], *, partly: bool = False) -> None:
        """Put the file that was begun in the place of the old one. Raises OSError. If only some domains were
        read (`partly`), an old file stays.
        """
        if partly and self._path.exists():
            self.abandon()
        writing, self._writing = self._writing, None
        if writing is None:
            return
        with writing:
            writing.write(msgpack.packb([_LISTS, {key.bytes: list(names) for key, names in lists.items()}]))
            writing.flush()
            os.fsync(writing.fileno())
        os.replace(self._coming, self._path)

    def abandon(self) -> None:
        """Forget the file that was begun."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.close()

    def append(self, objects: Iterable[DirectoryObject], gone: Iterable[UUID]) -> None:
        """Append changes to the file, if there is one. Raises OSError."""
        values: list[list[Any]] = [[item.kind.value, item.to_store()] for item in objects]
        values += [[_GONE, identifier.bytes] for identifier in gone]
        if values and self._path.exists():
            with self._path.open("ab") as file:
                file.write(b"".join(map(msgpack.packb, values)))


def _pairs(values: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the header, then (kind, value) up to the first damaged value: a write that did not end."""
    try:
        for value in values:
            if not isinstance(value, list) or len(value) != 2:
                return
            yield value[0], value[1]
    except (msgpack.UnpackException, ValueError):
        return
