"""Checks that a data file is complete. Reading a missing page of a mapped, truncated file kills the process
(SIGBUS), so the length of the file is compared with the length that LMDB has recorded in it, before the file
is mapped.

A complete file may be a few pages shorter than its highest page number requires: pages at the end that one
transaction both allocated and freed are never written. Such pages are in the list of free pages.

Imports only the standard library, so that a worker of an analytics cluster can use it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PAGE: Final = struct.Struct("<QHHHH")  # number, padding, flags, lower end, upper end of free space
_META: Final = struct.Struct("<II QQ 48s 48s QQ")  # magic, version, address, map, two tables, last page, txn
_TABLE: Final = struct.Struct("<IHH QQQQQ")  # padding or page size, flags, depth, three counts, entries, root
_MAGIC: Final = 0xBEEFC0DE
_BRANCH: Final = 0x01
_LEAF: Final = 0x02
_BIG: Final = 0x01  # flag of a node whose value is on separate pages
_NOTHING: Final = (1 << 64) - 1
_SIZES: Final = tuple(1 << shift for shift in range(8, 17))
_DEPTH: Final = 32


@dataclass(frozen=True, slots=True)
class _Meta:
    page_size: int
    free_root: int
    last_page: int
    transaction: int


class _Cut(Exception):
    """Raised if a page that is needed lies beyond the end of the file, or is not a valid page."""


def shortage(path: Path, *, used: bool) -> str | None:
    """Returns a text that says which part of a data file is missing; None if the file is complete. A file
    without a valid meta page counts as complete: LMDB reports it. An empty file counts as complete unless
    `used` is True: the store was used before. Raises OSError if the file cannot be read.
    """
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(file).st_size
        meta = _meta(file)
        if meta is not None:
            expected = (meta.last_page + 1) * meta.page_size
            if size < expected and not _only_free_pages_miss(file, size, meta):
                return f"it has {size} bytes of {expected}"
        elif used and size < 2 * _SIZES[0]:
            return f"it has {size} bytes"
        return None
    finally:
        os.close(file)


def _meta(file: int) -> _Meta | None:
    """Returns the newer of the two meta pages, None if neither is valid."""
    found: list[_Meta] = []
    sizes: tuple[int, ...] = (0,)
    for number in (0, 1):
        for page_size in sizes:
            data = os.pread(file, _META.size, number * page_size + _PAGE.size)
            if len(data) < _META.size:
                continue
            magic, _version, _address, _map, free, _main, last, transaction = _META.unpack(data)
            stated, _flags, _depth, *_counts, root = _TABLE.unpack(free)
            if magic == _MAGIC and stated in _SIZES:
                found.append(_Meta(stated, root, last, transaction))
                sizes = (stated,)
                break
        if not found:
            sizes = _SIZES
    return max(found, key=lambda meta: meta.transaction, default=None)


def _only_free_pages_miss(file: int, size: int, meta: _Meta) -> bool:
    first = size // meta.page_size
    free: set[int] = set()
    try:
        if meta.free_root != _NOTHING:
            for value in _values(file, meta.page_size, meta.free_root, 0):
                free.update(page for (page,) in struct.iter_unpack("<Q", value[8:]) if page >= first)
    except (_Cut, struct.error):
        return False
    return len(free) == meta.last_page + 1 - first


def _page(file: int, page_size: int, number: int, count: int = 1) -> bytes:
    data = os.pread(file, page_size * count, page_size * number)
    if len(data) < page_size * count:
        raise _Cut
    return data


def _values(file: int, page_size: int, number: int, depth: int) -> Iterator[bytes]:
    """Yields the values of the tree under a page, in key order."""
    data = _page(file, page_size, number)
    _number, _padding, flags, lower, _upper = _PAGE.unpack_from(data)
    if depth > _DEPTH or not _PAGE.size <= lower <= page_size or not flags & (_BRANCH | _LEAF):
        raise _Cut
    for (at,) in struct.iter_unpack("<H", data[_PAGE.size : lower - (lower - _PAGE.size) % 2]):
        low, high, node, key = struct.unpack_from("<HHHH", data, at)
        if flags & _BRANCH:
            yield from _values(file, page_size, low | high << 16 | node << 32, depth + 1)
            continue
        length, start = low | high << 16, at + 8 + key
        if node & _BIG:
            (big,) = struct.unpack_from("<Q", data, start)
            pages = -(-(_PAGE.size + length) // page_size)
            yield _page(file, page_size, big, pages)[_PAGE.size : _PAGE.size + length]
        else:
            yield data[start : start + length]
