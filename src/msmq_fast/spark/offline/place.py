"""Finds a store and checks that it can be read: a snapshot, a stopped store, or a copy of a store in use."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from msmq_fast.spark.offline.backend import opened
from msmq_fast.spark.offline.errors import OfflineError
from msmq_fast.store.pages import shortage

DATA, LOCK, MANIFEST = "data.mdb", "store.lock", "manifest.json"
_PREFIX: Final = "msmq-store-copy-"
COPY_LIFETIME_S: Final = 24 * 3600
"""Copies of stores in use that are older are deleted when the next copy is made."""


def usable_directory(path: str, *, allow_live: bool, copies: str | None = None) -> Path:
    """Returns the directory to read: the path itself, or with `allow_live` a private copy of a store in use.

    Copies are created below `copies` (by default the directory for temporary files). Raises OfflineError if
    there is no store, the store is truncated, or it is in use and `allow_live` is not set.
    """
    directory = Path(path.removeprefix("file://"))
    _check(directory)
    if not is_live(directory):
        return directory
    if not allow_live:
        raise OfflineError(
            f"a server runs on the store in {directory}: read a snapshot of it (`msmq-fast backup create`), "
            "or set allowLive=true to have a copy made first"
        )
    return _copied(directory, Path(copies) if copies else Path(tempfile.gettempdir()))


def _check(directory: Path) -> None:
    data = directory / DATA
    try:
        missing = shortage(data, used=True)
    except OSError as error:
        raise OfflineError(
            f"there is no store in {directory}: cannot read {DATA}: {error.strerror}"
        ) from None
    if missing is not None:
        raise OfflineError(f"{data} was truncated: {missing}")
    stated = _manifest(directory).get("size")
    size = data.stat().st_size
    if isinstance(stated, int) and stated != size:
        raise OfflineError(f"the snapshot in {directory} is damaged: {DATA} has {size} bytes, not {stated}")


def _manifest(directory: Path) -> dict[str, Any]:
    try:
        found = json.loads((directory / MANIFEST).read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise OfflineError(f"the snapshot in {directory} is damaged: {MANIFEST}: {error}") from None
    return found if isinstance(found, dict) else {}


def is_live(directory: Path) -> bool:
    """Returns whether a server uses the store: a server locks a file in the directory while it runs. Raises
    OfflineError if the file cannot be read.
    """
    try:
        file = os.open(directory / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise OfflineError(f"cannot tell whether a server runs on {directory}: {error.strerror}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _copied(directory: Path, below: Path) -> Path:
    _check_other_process(directory)
    try:
        _sweep(below)
        target = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=below))
    except OSError as error:
        raise OfflineError(f"cannot make a copy below {below}: {error.strerror}") from None
    try:
        with opened(directory) as backend:
            backend.copy(target)
    except Exception as error:
        shutil.rmtree(target, ignore_errors=True)
        raise OfflineError(f"cannot copy the store in {directory}: {error}") from error
    return target


def _check_other_process(directory: Path) -> None:
    """Raises OfflineError if the server that uses the store runs in this process. One process must not open
    an LMDB file twice, because closing it once would release the locks of the server.
    """
    try:
        holder = json.loads((directory / LOCK).read_bytes() or b"{}")
    except (OSError, ValueError):
        return
    if isinstance(holder, dict) and holder.get("pid") == os.getpid():
        raise OfflineError(f"the store in {directory} is open in this process: read a snapshot of it")


def _sweep(below: Path) -> None:
    for old in below.glob(_PREFIX + "*"):
        try:
            expired = time.time() - old.stat().st_mtime > COPY_LIFETIME_S and old.stat().st_uid == os.getuid()
        except OSError:
            continue
        if expired:
            shutil.rmtree(old, ignore_errors=True)
