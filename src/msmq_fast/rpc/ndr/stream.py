"""Stubs while they are read and written."""

from __future__ import annotations

from typing import Any

from msmq_fast.rpc.faults import RPC_X_BAD_STUB_DATA, RpcFault

__all__ = ["MAX_ELEMENTS", "MAX_NESTING", "Buffer", "Reader", "Writer", "bad_stub"]

Buffer = bytes | bytearray | memoryview

MAX_ELEMENTS = 8192
"""Elements that the arrays of one stub may have together, arrays of bytes and characters not counted. An
element takes up to some hundred bytes of memory for four bytes of stub; no caller of these interfaces needs
so many."""
MAX_NESTING = 16
"""How many pointers may lie between a parameter and what is in it. Only recursive types (a PROPVARIANT in a
vector of PROPVARIANTs) reach any such depth."""

_PADDING = (b"", *(b"\0" * size for size in range(1, 8)))


def bad_stub(detail: str) -> RpcFault:
    """The fault for a stub that breaks a rule of MS-RPCE 3.1.1.5.3."""
    return RpcFault(RPC_X_BAD_STUB_DATA, detail)


class Reader:
    """A stub and how far it has been read. `pos` is also what alignment is counted from 0 with."""

    __slots__ = ("buffer", "elements", "end", "nesting", "pos", "referents")

    def __init__(self, stub: Buffer) -> None:
        self.buffer: bytes | memoryview = stub if isinstance(stub, bytes) else memoryview(stub)
        self.pos = 0
        self.end = len(stub)
        self.elements = MAX_ELEMENTS
        self.nesting = MAX_NESTING
        self.referents: dict[tuple[int, object], Any] = {}
        """Referents of full pointers, by the referent identifier and the codec that reads it."""

    def claim(self, mask: int, size: int) -> int:
        """Where the next `size` bytes begin, after the gap to a multiple of `mask` + 1; they are passed.
        Raises RpcFault if there are fewer."""
        start = (self.pos + mask) & ~mask
        end = start + size
        if end > self.end:
            raise bad_stub("truncated")
        self.pos = end
        return start

    def take(self, size: int) -> bytes:
        """The next `size` bytes, copied once. Raises RpcFault if there are fewer."""
        start = self.claim(0, size)
        return bytes(self.buffer[start : start + size])

    def skip_gap(self, mask: int) -> None:
        """Pass a gap that carries nothing and may be missing at the end of the stub."""
        self.pos = min((self.pos + mask) & ~mask, self.end)


class Writer:
    """A stub that is being written: parts, joined once at the end."""

    __slots__ = ("parts", "pos", "referent")

    def __init__(self) -> None:
        self.parts: list[Buffer] = []
        self.pos = 0
        self.referent = 0x00020000

    def align(self, mask: int) -> None:
        """Fill up with zeros."""
        gap = -self.pos & mask
        if gap:
            self.parts.append(_PADDING[gap])
            self.pos += gap

    def put(self, data: Buffer) -> None:
        """Append bytes; they must not change until the stub is joined."""
        self.parts.append(data)
        self.pos += len(data)

    def next_referent(self) -> int:
        """A referent identifier that is not used yet."""
        self.referent += 4
        return self.referent
