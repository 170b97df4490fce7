"""Writes a snapshot into object storage, and deletes old ones."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msmq_fast.store.backup import Manifest
from msmq_fast.store.errors import BackupError
from msmq_fast.store.identity import DATA_NAME
from msmq_fast.store.objects.bucket import Bucket, Listed
from msmq_fast.store.objects.catalogue import (
    MANIFEST,
    PART_SIZE,
    ObjectManifest,
    name_of,
    owner_in,
    part_name,
)

__all__ = ["UNFINISHED_S", "prune", "push"]

_AT_ONCE: Final = 3  # parts on their way: with that being read, 64 MiB of memory
UNFINISHED_S: Final = 86_400.0
"""Age in seconds of the last part from which on an unfinished snapshot is deleted."""


async def push(
    directory: Path,
    bucket: Bucket,
    progress: Callable[[int], object] = lambda count: None,
    bytes_per_second: int | None = None,
) -> str:
    """Upload the snapshot in `directory`; return its name. `progress` is called with the bytes of each part.

    Parts that an interrupted upload of the same snapshot has left are not sent again. Raises BackupError if
    the snapshot is unfinished, damaged or stored already, and for failures of the object storage.
    """
    manifest = Manifest.read(directory)
    name = name_of(manifest)
    present = await bucket.objects(name)
    if MANIFEST in present:
        raise BackupError(f"{bucket.url} already holds the snapshot {name}")
    began = time.monotonic()
    whole, read = hashlib.sha256(), 0
    digests: list[str] = []
    free = asyncio.Semaphore(_AT_ONCE)

    async def send(path: str, part: bytes) -> None:
        try:
            await bucket.put(f"{name}/{path}", part)
        finally:
            free.release()
        progress(len(part))

    try:
        with (directory / DATA_NAME).open("rb") as data:
            async with asyncio.TaskGroup() as sending:
                while part := data.read(PART_SIZE):
                    whole.update(part)
                    read += len(part)
                    digest = hashlib.sha256(part).hexdigest()
                    path = part_name(len(digests), digest)
                    digests.append(digest)
                    if (held := present.get(path)) is not None and held.size == len(part):
                        progress(len(part))
                        continue
                    await free.acquire()
                    sending.create_task(send(path, part))
                    if bytes_per_second:
                        await asyncio.sleep(read / bytes_per_second - (time.monotonic() - began))
    except OSError as error:
        raise BackupError(f"cannot read {directory / DATA_NAME}: {error.strerror}") from None
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
    if read != manifest.size or whole.hexdigest() != manifest.sha256:
        raise BackupError(
            f"{directory / DATA_NAME} is damaged: its size or checksum differs from the manifest"
        )
    await bucket.put(f"{name}/{MANIFEST}", ObjectManifest(manifest, PART_SIZE, tuple(digests)).to_json())
    return name


async def prune(bucket: Bucket, keep: int, now_s: float, owner: str | None = None) -> list[str]:
    """Delete all but the newest `keep` snapshots of each queue manager, and unfinished ones to which no part
    was added for a day; return the names. With `owner` (see `owner_of`), only those of that queue manager.
    """
    complete: dict[str, list[str]] = defaultdict(list)
    deleted = []
    for name in await bucket.names():
        made_by = owner_in(name)
        if owner is not None and made_by != owner:
            continue
        objects = await bucket.objects(name)
        if MANIFEST in objects:
            complete[made_by].append(name)
        elif now_s - _last(objects) >= UNFINISHED_S:
            await _delete(bucket, name, objects)
            deleted.append(name)
    for names in complete.values():
        for name in names[: len(names) - keep]:
            await _delete(bucket, name, await bucket.objects(name))
            deleted.append(name)
    return sorted(deleted)


def _last(objects: dict[str, Listed]) -> float:
    return max((entry.modified_s for entry in objects.values()), default=0.0)


async def _delete(bucket: Bucket, name: str, objects: dict[str, Listed]) -> None:
    if MANIFEST in objects:  # first: what is then left is unfinished
        await bucket.delete(name, [MANIFEST])
    await bucket.delete(name, [path for path in objects if path != MANIFEST])
    bucket.forget(name)
