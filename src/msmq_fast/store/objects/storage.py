"""Object storage for callers that block: the server's snapshot thread, and the restore of a store."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from msmq_fast.store.backup import Manifest
from msmq_fast.store.errors import BackupError
from msmq_fast.store.objects.bucket import Bucket, require_obstore
from msmq_fast.store.objects.catalogue import ObjectManifest, name_of, owner_in
from msmq_fast.store.objects.download import fetch, find, stored
from msmq_fast.store.objects.upload import prune, push
from msmq_fast.store.objects.urls import split_name

__all__ = ["BucketSource", "Interruptible", "ObjectStorage"]

_Result = TypeVar("_Result")


class Interruptible:
    """Runs coroutines in the calling thread, one after the other, until another thread calls `cancel`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._stop: Callable[[], object] | None = None

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Return the result of `work`. Raises BackupError if it was cancelled, and the errors of `work`."""
        try:
            return asyncio.run(self._run(work))
        except asyncio.CancelledError:
            raise BackupError("the backup was cancelled") from None
        finally:
            work.close()

    def cancel(self) -> None:
        """Cancel the coroutine that runs, and those that follow."""
        with self._lock:
            self._cancelled = True
            if self._stop is not None:
                self._stop()

    async def _run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
        with self._lock:
            self._stop = lambda: loop.call_soon_threadsafe(task.cancel)
            if self._cancelled:
                task.cancel()
        try:
            return await task
        finally:
            with self._lock:
                self._stop = None


class ObjectStorage:
    """The object storage of a server: snapshots are uploaded to `url`, and all but the newest `keep` of the
    same queue manager are deleted.

    The server copies its store into the directory `staging` first, and removes the copy in the end. Otherwise
    a slow line would keep pages of the store in use. `rate` is the maximum number of bytes per second that
    are copied and sent; None: no limit.
    """

    def __init__(self, url: str, staging: Path, *, keep: int, rate: int | None = None) -> None:
        """Raises BackupError if obstore is not installed."""
        require_obstore()
        self.url = url
        self.staging = staging
        self.rate = rate
        self._keep = keep

    def newest_s(self, owner: str, runner: Interruptible) -> int | None:
        """Return the time of the newest complete snapshot of a queue manager (see `owner_of`) in Unix
        seconds; None if there is none. Raises BackupError.
        """

        async def look() -> int | None:
            bucket = Bucket(self.url)
            found = [entry.manifest for entry in await stored(bucket, owner)]
            return max((manifest.created_s for manifest in found if manifest is not None), default=None)

        return runner.run(look())

    def store(
        self, runner: Interruptible, progress: Callable[[int], object], bytes_per_second: int | None
    ) -> str:
        """Upload the snapshot in `staging`, delete old ones, and return the URL of the new one.

        Raises BackupError. What was uploaded until then stays unfinished.
        """

        async def upload() -> str:
            bucket = Bucket(self.url)
            name = await push(self.staging, bucket, progress, bytes_per_second)
            await prune(bucket, self._keep, time.time(), owner_in(name))
            return f"{bucket.url}/{name}"

        return runner.run(upload())


class BucketSource:
    """A snapshot in object storage, as a source of `restore`: the one that the URL names, or the newest.

    Raises BackupError for an invalid URL.
    """

    def __init__(self, url: str, progress: Callable[[int, int], object] = lambda count, total: None) -> None:
        try:
            self._place, self._name = split_name(url)
        except ValueError as error:
            raise BackupError(str(error)) from None
        self._url = url
        self._progress = progress
        self._held: ObjectManifest | None = None

    def __str__(self) -> str:
        return self._url

    def manifest(self) -> Manifest:
        """Fetch the manifest."""

        async def look() -> ObjectManifest:
            return await find(Bucket(self._place), self._name)

        self._held = asyncio.run(look())
        return self._held.snapshot

    def copy(self, target: Path, manifest: Manifest) -> None:
        """Fetch the data file part by part. Call `manifest` before."""
        held = self._held
        assert held is not None  # noqa: S101 - `manifest` has set it

        async def load() -> None:
            def count(part: int) -> None:
                self._progress(part, manifest.size)

            await fetch(Bucket(self._place), held, name_of(manifest), target, count)

        asyncio.run(load())
