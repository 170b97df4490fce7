"""Waits until a running server has applied its redo log: the changes reach the data file within a second or
two.

Imports no native module, so that a worker of an analytics cluster can use it. Reads only the numbers of the
log records, so it does not verify their checksums.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msmq_fast.store import decode
from msmq_fast.store.schema import LOGGED_SCHEMA_VERSION, MetaName

__all__ = ["LogNotApplied", "wait_applied"]

_PAGE: Final = 4096
_HEAD: Final = struct.Struct("<8s I I 16s Q Q Q")  # magic, version, size, id, epoch, sequence, first number
_RECORD: Final = struct.Struct("<I I Q")  # checksum, length, number
_MAGIC: Final = b"MSMQLOG1"
_PATIENCE_S: Final = 30.0
_STEP_S: Final = 0.05


class LogNotApplied(Exception):
    """Raised if the redo log has changes that the data file lacks; the error text says what to do."""


def wait_applied(directory: Path, meta: Callable[[bytes], bytes | None]) -> None:
    """Waits until the data file in `directory` has all changes that its redo log holds at the time of the
    call.

    `meta(name)` reads a record of META, in a new read transaction each time. Raises LogNotApplied if no
    running server applies the log, or if it takes too long.
    """
    schema = meta(MetaName.SCHEMA)
    if schema is None or decode.cold(schema) != LOGGED_SCHEMA_VERSION or not (directory / "log").is_dir():
        return
    target = _last_record(directory / "log")
    end = time.monotonic() + _PATIENCE_S
    while _number(meta(MetaName.LOG_APPLIED)) < target:
        if not _is_served(directory):
            raise LogNotApplied(
                f"the store in {directory} was not stopped cleanly: its redo log has changes that "
                "the data file lacks; "
                "start its server once, or run 'msmq-fast store compact'"
            )
        if time.monotonic() > end:
            raise LogNotApplied(
                f"cannot read the store in {directory}: its server did not apply the redo log in time"
            )
        time.sleep(_STEP_S)


def _number(record: bytes | None) -> int:
    return 0 if record is None else int(decode.cold(record))


def _is_served(directory: Path) -> bool:
    try:
        file = os.open(directory / "store.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _last_record(directory: Path) -> int:
    """Returns the greatest record number in the segments of the redo log."""
    last = 0
    for path in directory.glob("segment-*"):
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < 2 * _PAGE:
                continue
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                last = max(last, _last_in(data))
    return last


def _last_in(data: mmap.mmap) -> int:
    magic, *_rest, first = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        return 0
    at, number = _PAGE, first
    while at + _RECORD.size <= len(data):
        _checksum, length, found = _RECORD.unpack_from(data, at)
        if found != number or length <= _RECORD.size or length % 8:
            break
        at += length
        number += 1
    return int(number) - 1
