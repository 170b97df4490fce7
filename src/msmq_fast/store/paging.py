"""Reads a range of a table page by page.

Each page is a read transaction of its own, so that a long read does not keep the store from reusing old
pages. The next page begins at the smallest key after the last key of the previous page: that key followed by
a zero byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

__all__ = ["Scan", "scan_pages"]

Scan = Callable[[int, bytes, bytes | None, int], list[tuple[bytes, bytes]]]
"""`scan(table, lower, upper, limit)` returns at most `limit` records with lower <= key < upper, in key order.
"""


def scan_pages(
    scan: Scan, table: int, lower: bytes = b"", upper: bytes | None = None, page: int = 1000
) -> Iterator[tuple[bytes, bytes]]:
    """Yield (key, value) of every record with lower <= key < upper, in key order; reads `page` records at a
    time.
    """
    while rows := scan(table, lower, upper, page):
        yield from rows
        if len(rows) < page:
            return
        lower = rows[-1][0] + b"\0"
