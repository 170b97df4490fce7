"""The manifest and the names of a snapshot in object storage."""

from __future__ import annotations

import json
import re
import time
from dataclasses import asdict, dataclass, fields
from typing import Any, Final
from uuid import UUID

from msmq_fast.store.backup import Manifest
from msmq_fast.store.errors import BackupError

__all__ = [
    "LARGEST_MANIFEST",
    "MANIFEST",
    "PARTS",
    "PART_SIZE",
    "DamagedManifest",
    "ObjectManifest",
    "name_of",
    "owner_in",
    "owner_of",
    "part_name",
]

MANIFEST: Final = "manifest.json"
PARTS: Final = "parts"
PART_SIZE: Final = 16 << 20
"""Bytes in one object."""
LARGEST_MANIFEST: Final = 64 << 20
"""Bytes; about 900,000 parts."""

_FORMAT: Final = 1
_LARGEST_PART: Final = 256 << 20
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_GUID: Final = re.compile(r"[0-9a-f]{32}")


class DamagedManifest(BackupError):
    """A manifest in object storage cannot be used."""


def owner_of(guid: bytes) -> str:
    """Return the GUID of a queue manager as the names of its snapshots contain it: in hexadecimal, in the
    order in which people read it. `guid` has the byte order of the wire.
    """
    return UUID(bytes_le=guid).hex


def name_of(manifest: Manifest) -> str:
    """Return the name under which a snapshot is stored. The beginning of its checksum sets it apart from
    another one of the same second.
    """
    created = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(manifest.created_s))
    return f"{created}-{owner_of(bytes.fromhex(manifest.qm_guid))}-{manifest.sha256[:8]}"


def owner_in(name: str) -> str:
    """Return the queue manager (see `owner_of`) of the snapshot with a name."""
    return name.split("-")[1]


def part_name(number: int, digest: str) -> str:
    """Return the path of a part below the name of its snapshot. `number` counts from 0, `digest` is the
    SHA-256 of the part in hexadecimal.
    """
    return f"{PARTS}/{number:06}-{digest}"


@dataclass(frozen=True, slots=True)
class ObjectManifest:
    """The manifest of a snapshot in object storage: that of the snapshot itself, and its parts."""

    snapshot: Manifest
    part_size: int  # bytes; the last part may have fewer
    parts: tuple[str, ...]  # SHA-256 of each part, in hexadecimal

    def size_of(self, number: int) -> int:
        """Return the number of bytes of a part."""
        return min(self.part_size, self.snapshot.size - number * self.part_size)

    def to_json(self) -> bytes:
        """Return the content of the object."""
        content = {"format": _FORMAT, **asdict(self.snapshot)}
        content |= {"part_size": self.part_size, "parts": list(self.parts)}
        return json.dumps(content, indent=1).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes, name: str) -> ObjectManifest:
        """Read the manifest of the snapshot with this name.

        Raises DamagedManifest if it is damaged, belongs to another snapshot, or has a format that this
        version does not know.
        """
        try:
            return cls._read(json.loads(data), name)
        except (ValueError, TypeError, KeyError, OverflowError, OSError, RecursionError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise DamagedManifest(f"the manifest of the snapshot {name} is damaged: {reason}") from None

    @classmethod
    def _read(cls, content: Any, name: str) -> ObjectManifest:
        if not isinstance(content, dict):
            raise ValueError("it is not a JSON object")
        if content["format"] != _FORMAT:
            raise ValueError(f"its format is {content['format']!r:.40}; this version reads format {_FORMAT}")
        texts = {"qm_guid": _GUID, "sha256": _DIGEST}
        stated = {}
        for field in fields(Manifest):
            value = stated[field.name] = content[field.name]
            pattern = texts.get(field.name)
            if pattern is None:
                fits = type(value) is int and 0 <= value < 1 << 63
            else:
                fits = isinstance(value, str) and pattern.fullmatch(value) is not None
            if not fits:
                raise ValueError(f"{field.name} has an invalid value")
        snapshot = Manifest(**stated)
        size, parts = content["part_size"], content["parts"]
        if type(size) is not int or not 0 < size <= _LARGEST_PART:
            raise ValueError("part_size has an invalid value")
        if not isinstance(parts, list) or len(parts) != -(-snapshot.size // size):
            raise ValueError("the number of parts does not fit the size")
        if not all(isinstance(part, str) and _DIGEST.fullmatch(part) for part in parts):
            raise ValueError("the digest of a part is invalid")
        if name_of(snapshot) != name:
            raise ValueError("it belongs to another snapshot")
        return cls(snapshot, size, tuple(parts))
