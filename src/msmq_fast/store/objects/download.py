"""Reads snapshots from object storage. Each part is verified before it is written."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, Final

from msmq_fast.store.backup import MANIFEST_NAME, Manifest
from msmq_fast.store.errors import BackupError
from msmq_fast.store.files import make_directory, sync_directory, write_file
from msmq_fast.store.identity import DATA_NAME
from msmq_fast.store.objects.bucket import Bucket, ObjectMissing
from msmq_fast.store.objects.catalogue import (
    LARGEST_MANIFEST,
    MANIFEST,
    DamagedManifest,
    ObjectManifest,
    name_of,
    owner_in,
    part_name,
)

__all__ = ["Stored", "fetch", "find", "pull", "stored"]

_AT_ONCE: Final = 8  # manifests on their way
_DRAFT: Final = f"{DATA_NAME}.part"


@dataclass(frozen=True, slots=True)
class Stored:
    """A snapshot in object storage."""

    name: str
    manifest: Manifest | None  # None if the snapshot is unfinished or damaged
    problem: str = ""


async def stored(bucket: Bucket, owner: str | None = None) -> list[Stored]:
    """Return all snapshots, oldest first; with `owner` (see `owner_of`) those of one queue manager. Raises
    BackupError.
    """
    free = asyncio.Semaphore(_AT_ONCE)

    async def look(name: str) -> Stored:
        async with free:
            try:
                return Stored(name, (await _manifest(bucket, name)).snapshot)
            except ObjectMissing:
                return Stored(name, None, "unfinished")
            except DamagedManifest as error:
                return Stored(name, None, str(error))

    names = await bucket.names()
    chosen = [name for name in names if owner is None or owner_in(name) == owner]
    return await asyncio.gather(*map(look, chosen))


async def find(bucket: Bucket, name: str | None) -> ObjectManifest:
    """Return the manifest of the snapshot with this name; without a name, that of the newest one.

    Raises BackupError if there is none, if the snapshot is unfinished or its manifest is damaged, and if no
    name is given and the snapshots belong to several queue managers.
    """
    if name is not None:
        try:
            return await _manifest(bucket, name)
        except ObjectMissing:
            raise BackupError(f"{bucket.url} holds no complete snapshot {name}") from None
    names = await bucket.names()
    newest = None
    owners = set()
    for candidate in reversed(names):
        owner = owner_in(candidate)
        if owner in owners:
            continue
        try:
            found = await _manifest(bucket, candidate)
        except ObjectMissing:
            continue
        owners.add(owner)
        newest = newest or found
    if newest is None:
        raise BackupError(f"{bucket.url} holds no complete snapshot")
    if len(owners) > 1:
        raise BackupError(
            f"{bucket.url} holds snapshots of {len(owners)} queue managers; name one: {bucket.url}/NAME"
        )
    return newest


async def fetch(
    bucket: Bucket,
    held: ObjectManifest,
    name: str,
    target: Path,
    progress: Callable[[int], object] = lambda count: None,
) -> None:
    """Write the data file of a snapshot to `target`, durably. Parts that `target` already holds are kept.

    Raises BackupError if a part is missing or damaged, and for a disk that is full.
    """
    whole = hashlib.sha256()
    try:
        with open(target, "a+b", opener=_private) as file:  # noqa: ASYNC230 - see the package
            for number in range(len(held.parts)):
                part = _kept(file, held, number)
                if part is None:
                    part = await _part(bucket, held, name, number)
                    file.truncate(number * held.part_size)
                    file.write(part)
                whole.update(part)
                progress(len(part))
            file.truncate(held.snapshot.size)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise BackupError(f"cannot write {target}: {error.strerror}") from None
    if whole.hexdigest() != held.snapshot.sha256:
        raise BackupError(f"the snapshot {name} is damaged: its checksum differs from the manifest")


async def pull(
    bucket: Bucket,
    name: str | None,
    directory: Path,
    progress: Callable[[int, int], object] = lambda count, total: None,
) -> tuple[str, Manifest]:
    """Download a snapshot into `directory`, which then is as `Backup` makes it; without a name, the newest
    one. Return its name and manifest.

    `directory` must not exist, or hold an interrupted download of the same snapshot, which is continued.
    Raises BackupError as `find` and `fetch`.
    """
    held = await find(bucket, name)
    snapshot, found = held.snapshot, name_of(held.snapshot)
    _prepare(directory)
    draft = directory / _DRAFT
    await fetch(bucket, held, found, draft, lambda count: progress(count, snapshot.size))
    try:
        draft.rename(directory / DATA_NAME)
        sync_directory(directory)
        write_file(directory / MANIFEST_NAME, json.dumps(asdict(snapshot), indent=1).encode() + b"\n")
    except OSError as error:
        raise BackupError(f"cannot write into {directory}: {error.strerror}") from None
    return found, snapshot


def _prepare(directory: Path) -> None:
    """Create the directory of a download, or accept that of an interrupted one. Raises BackupError."""
    try:
        make_directory(directory)
        others = [entry for entry in directory.iterdir() if entry.name != _DRAFT]
    except OSError as error:
        raise BackupError(f"cannot create {directory}: {error.strerror}") from None
    if others:
        raise BackupError(f"{directory} exists already; give the path of a new directory")


async def _manifest(bucket: Bucket, name: str) -> ObjectManifest:
    return ObjectManifest.from_json(await bucket.get(f"{name}/{MANIFEST}", LARGEST_MANIFEST), name)


def _kept(file: BinaryIO, held: ObjectManifest, number: int) -> bytes | None:
    """Return a part that the file already holds; None if it has to be fetched."""
    file.seek(number * held.part_size)
    part = file.read(held.size_of(number))
    return part if hashlib.sha256(part).hexdigest() == held.parts[number] else None


async def _part(bucket: Bucket, held: ObjectManifest, name: str, number: int) -> bytes:
    size, digest = held.size_of(number), held.parts[number]
    try:
        part = await bucket.get(f"{name}/{part_name(number, digest)}", size)
    except ObjectMissing:
        raise BackupError(f"the snapshot {name} is damaged: part {number} is missing") from None
    if len(part) != size or hashlib.sha256(part).hexdigest() != digest:
        raise BackupError(f"the snapshot {name} is damaged: part {number} differs from its checksum")
    return part


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
