"""The buffer and the position of a stub that is read or written."""

from __future__ import annotations

from typing import Any

from msmq_fast.rpc.faults import RPC_X_BAD_STUB_DATA, RpcFault

__all__ = ["MAX_ELEMENTS", "MAX_NESTING", "Buffer", "Reader", "Writer", "bad_stub"]

Buffer = bytes | bytearray | memoryview

MAX_ELEMENTS = 8192
"""How many elements the arrays of one stub may have in total, arrays of bytes and of characters not counted.

An element can take some hundred bytes of memory for four bytes of stub. No caller of these interfaces needs
so many elements.
"""
MAX_NESTING = 16
"""How many pointers may lie between a parameter and a value inside it.

Only recursive types, such as a PROPVARIANT in a vector of PROPVARIANTs, can be nested so deeply.
"""

_PADDING = (b"", *(b"\0" * size for size in range(1, 8)))


def bad_stub(detail: str) -> RpcFault:
    """Returns the fault for a stub that breaks a rule of MS-RPCE 3.1.1.5.3."""
    return RpcFault(RPC_X_BAD_STUB_DATA, detail)


class Reader:
    """A stub that is being read. `pos` is the position of the next byte; alignment is counted from position
    0.
    """

    __slots__ = ("buffer", "elements", "end", "nesting", "pos", "referents")

    def __init__(self, stub: Buffer) -> None:
        self.buffer: bytes | memoryview = stub if isinstance(stub, bytes) else memoryview(stub)
        self.pos = 0
        self.end = len(stub)
        self.elements = MAX_ELEMENTS
        self.nesting = MAX_NESTING
        self.referents: dict[tuple[int, object], Any] = {}
        """Targets of full pointers, by the referent identifier and the codec that reads the target."""

    def claim(self, mask: int, size: int) -> int:
        """Returns the position of the next `size` bytes, and moves `pos` behind them.

        First skips the gap to a multiple of `mask` + 1. Raises RpcFault if fewer bytes are left.
        """
        start = (self.pos + mask) & ~mask
        end = start + size
        if end > self.end:
            raise bad_stub("the stub is truncated")
        self.pos = end
        return start

    def take(self, size: int) -> bytes:
        """Returns the next `size` bytes, copied once. Raises RpcFault if fewer bytes are left."""
        start = self.claim(0, size)
        return bytes(self.buffer[start : start + size])

    def skip_gap(self, mask: int) -> None:
        """Skips the gap up to the next multiple of `mask` + 1. At the end of the stub, the gap may be
        missing.
        """
        self.pos = min((self.pos + mask) & ~mask, self.end)


class Writer:
    """A stub that is being written: a list of parts that are joined once at the end."""

    __slots__ = ("parts", "pos", "referent")

    def __init__(self) -> None:
        self.parts: list[Buffer] = []
        self.pos = 0
        self.referent = 0x00020000

    def align(self, mask: int) -> None:
        """Appends zeros up to the next multiple of `mask` + 1."""
        gap = -self.pos & mask
        if gap:
            self.parts.append(_PADDING[gap])
            self.pos += gap

    def put(self, data: Buffer) -> None:
        """Appends bytes. The caller must not change them until the stub is joined."""
        self.parts.append(data)
        self.pos += len(data)

    def next_referent(self) -> int:
        """Returns a referent identifier that the stub does not use yet."""
        self.referent += 4
        return self.referent
