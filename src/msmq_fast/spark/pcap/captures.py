"""Finds capture files by a path, directory or pattern, and opens them; they may be compressed with gzip."""

from __future__ import annotations

import glob
import gzip
import os
from collections.abc import Iterator
from typing import BinaryIO, Final, cast

from msmq_fast.spark.pcap.errors import CaptureError
from msmq_fast.spark.pcap.layers import BadRecord, Segment, segment_of
from msmq_fast.spark.pcap.records import Record, read_records

_SUFFIXES: Final = (".pcap", ".pcapng", ".cap", ".dmp")
_GZIP: Final = b"\x1f\x8b"


def capture_files(path: str) -> list[str]:
    """Returns the capture files that `path` selects, sorted by name: the file itself, the files in a
    directory, or the files that match a pattern.

    Raises CaptureError if there are none.
    """
    path = path.removeprefix("file://")
    if os.path.isdir(path):
        found = [entry.path for entry in os.scandir(path) if entry.is_file() and _is_capture(entry.name)]
    elif os.path.isfile(path):
        found = [path]
    else:
        found = [name for name in glob.glob(path, recursive=True) if os.path.isfile(name)]
    if not found:
        raise CaptureError(f"no capture file found at {path}")
    return sorted(found)


def _is_capture(name: str) -> bool:
    name = name.lower().removesuffix(".gz")
    return name.endswith(_SUFFIXES) or any(f"{suffix}." in name for suffix in _SUFFIXES)


def open_capture(path: str) -> BinaryIO:
    """Opens a capture file for reading. A file that is compressed with gzip is decompressed while it is read.
    Raises CaptureError if the file cannot be opened.
    """
    try:
        file = open(path, "rb", buffering=0)  # noqa: SIM115 - closed by the caller; reads are large
        if os.pread(file.fileno(), 2, 0) == _GZIP:
            return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    except OSError as error:
        raise CaptureError(f"cannot read {path}: {error.strerror}") from None
    return cast(BinaryIO, file)


def records(paths: tuple[str, ...]) -> Iterator[Record | CaptureError]:
    """Yields the records of files that together form one capture, numbered consecutively. If a file is
    damaged, yields the error after its valid records, and continues with the next file.
    """
    number = 0
    for path in paths:
        try:
            with open_capture(path) as file:
                for record in read_records(file):
                    number += 1
                    yield record._replace(number=number) if len(paths) > 1 else record
        except CaptureError as error:
            yield CaptureError(f"{path}: {error}")


def segments(found: Iterator[Record | CaptureError]) -> Iterator[Segment | CaptureError]:
    """Yields the segments of the records; and for unreadable records, one error for each distinct reason."""
    reported: set[str] = set()
    for record in found:
        if isinstance(record, CaptureError):
            yield record
            continue
        try:
            segment = segment_of(record)
        except BadRecord as error:
            reason = str(error)
            if reason not in reported and len(reported) < 100:
                reported.add(reason)
                yield CaptureError(f"packet {record.number} and perhaps others: {reason}")
            continue
        if segment is not None:
            yield segment
