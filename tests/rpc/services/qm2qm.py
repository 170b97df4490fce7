"""Parameters of qm2qm, written by hand."""

from __future__ import annotations

import struct

from tests.rpc.services.lines import Line

INFINITE = 0xFFFFFFFF
LICENSE = bytes(range(16))
NULL_CONTEXT = bytes(20)


def open_queue(line: Line, handle: int) -> bytes:
    """RemoteQMOpenQueue; the context handle."""
    answer = line.call(2, LICENSE + struct.pack("<IIII", 0, handle, handle, handle))
    context, result = answer.stub[:20], answer.stub[20:]
    assert result == bytes(4)
    assert context != NULL_CONTEXT
    return context


def desc(handle: int, action: int = 0, timeout: int = 0, request: int = 1, size: int = 0) -> bytes:
    """A REMOTEREADDESC in NDR without a buffer."""
    return struct.pack("<9IHHI", handle, 0, action, timeout, size, handle, request, 0, 0, 0, 0, 0)


def desc2(handle: int, action: int = 0, timeout: int = 0, request: int = 1) -> bytes:
    """A REMOTEREADDESC2 in NDR; the gap is filled as impacket does it."""
    return struct.pack("<I4sQ", 0x20000, b"\xbf" * 4, 0) + desc(handle, action, timeout, request)
