"""Hot backup: a consistent copy of a running store, at a bounded rate. The backup is abandoned if the store
grows too much while it is copied.

While the copy runs, the store cannot reuse pages that the copy may still read. Each write then makes the
store larger, so the growth has a limit.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast.store import decode
from msmq_fast.store.errors import BackupError, StoreError
from msmq_fast.store.files import make_directory, sync_directory, write_file
from msmq_fast.store.identity import DATA_NAME
from msmq_fast.store.schema import MetaName, Table

MANIFEST_NAME: Final = "manifest.json"
_STEP: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of a backup. The manifest file is written last, so a backup without it is unfinished."""

    schema_version: int
    qm_guid: str  # 32 hexadecimal digits, byte order of the wire
    incarnation: int
    feed_next: int  # number of the first event that is not in the backup
    created_s: int
    size: int
    sha256: str

    @classmethod
    def read(cls, directory: Path) -> Manifest:
        """Reads the manifest of the backup in `directory`. Raises BackupError if it is missing or invalid."""
        try:
            fields = json.loads((directory / MANIFEST_NAME).read_bytes())
            manifest = cls(**fields)
        except OSError as error:
            raise BackupError(f"{directory} does not hold a complete backup: {error.strerror}") from error
        except (ValueError, TypeError) as error:
            raise BackupError(f"{directory} does not hold a complete backup: {error}") from error
        kinds = {"qm_guid": str, "sha256": str}
        if any(type(getattr(manifest, name)) is not kinds.get(name, int) for name in cls.__slots__):
            raise BackupError(
                f"{directory} does not hold a complete backup: a value in the manifest has the wrong type"
            )
        return manifest


class Backup:
    """One backup of the store that has the tables `tables`, into the new directory `target`. `run` blocks, so
    call it in a thread of its own.
    """

    def __init__(
        self,
        tables: LmdbTables,
        target: Path,
        *,
        now_s: int,
        bytes_per_second: int | None = None,
        max_growth: int = 4 << 30,
        compact: bool = False,
    ) -> None:
        self.tables = tables
        self.target = target
        self.now_s = now_s
        self.bytes_per_second = bytes_per_second
        self.max_growth = max_growth
        self.compact = compact
        self.written = 0
        self._cancelled = threading.Event()
        self._fault: StoreError | None = None

    def cancel(self) -> None:
        """Asks for an early end: `run` soon raises BackupError."""
        self._cancelled.set()

    def run(self) -> Manifest:
        """Copies the data file, syncs the copy, and then writes the manifest. If that fails, removes what it
        has written and raises BackupError.
        """
        try:
            make_directory(self.target, exist_ok=False)
        except OSError as error:
            raise BackupError(f"cannot create {self.target}: {error.strerror}") from error
        data = self.target / DATA_NAME
        try:
            digest = self._copy(data)
            manifest = self._describe(digest)
            write_file(self.target / MANIFEST_NAME, json.dumps(asdict(manifest), indent=1).encode() + b"\n")
        except BaseException:
            with contextlib.suppress(OSError):
                for path in self.target.iterdir():
                    path.unlink()
                self.target.rmdir()
            raise
        return manifest

    def _copy(self, data: Path) -> str:
        source, sink = os.pipe()
        feeder = threading.Thread(target=self._feed, args=(sink,), name="store-backup")
        feeder.start()
        digest = hashlib.sha256()
        try:
            with open(data, "xb", opener=_private) as file:
                self._drain(source, file.fileno(), digest)
                os.fsync(file.fileno())
        except OSError as error:
            raise BackupError(f"cannot write {data}: {error.strerror}") from error
        finally:
            os.close(source)  # a feeder that is not done gets EPIPE
            feeder.join()
        if self._fault is not None:
            raise BackupError(f"cannot copy the store: {self._fault}") from self._fault
        sync_directory(self.target)
        return digest.hexdigest()

    def _feed(self, sink: int) -> None:
        try:
            self.tables.copy(sink, self.compact)
        except StoreError as error:
            self._fault = error
        finally:
            os.close(sink)

    def _drain(self, source: int, target: int, digest: hashlib._Hash) -> None:
        first = self.tables.space()
        began = time.monotonic()
        while part := os.read(source, _STEP):
            digest.update(part)
            view = memoryview(part)
            while view:
                view = view[os.write(target, view) :]
            self.written += len(part)
            grown = (self.tables.space()["pages"] - first["pages"]) * first["page_size"]
            if grown > self.max_growth:
                raise BackupError(f"the backup was stopped: the store grew by {grown} bytes during the copy")
            ahead = 0.0
            if self.bytes_per_second:
                ahead = self.written / self.bytes_per_second - (time.monotonic() - began)
            if self._cancelled.wait(ahead if ahead > 0 else 0):
                raise BackupError("the backup was cancelled")

    def _describe(self, digest: str) -> Manifest:
        copy = LmdbTables(self.target, read_only=True)
        try:

            def meta(name: bytes) -> bytes:
                value = copy.get(Table.META, name)
                if value is None:
                    raise BackupError("the copy is not a store of msmq-fast")
                return value

            return Manifest(
                schema_version=decode.cold(meta(MetaName.SCHEMA)),
                qm_guid=decode.cold(meta(MetaName.GUID)).hex(),
                incarnation=decode.cold(meta(MetaName.INCARNATION)),
                feed_next=copy.next_number(Table.FEED),
                created_s=self.now_s,
                size=self.written,
                sha256=digest,
            )
        finally:
            copy.close()
            (self.target / "lock.mdb").unlink(missing_ok=True)


def _private(path: str, flags: int) -> int:
    """An `opener` for `open`. Only the owner may read the file, as a copy holds all messages of the store."""
    return os.open(path, flags, 0o600)
