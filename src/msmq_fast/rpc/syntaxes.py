"""Identifiers of interfaces and transfer syntaxes (C706 12.6.3.1, MS-RPCE 2.2.4.12, 2.2.5.1, 3.3.1.5.3)."""

from __future__ import annotations

import struct
from enum import IntFlag
from typing import Final, NamedTuple
from uuid import UUID

__all__ = ["FEATURES_PREFIX", "NDR", "NDR64", "NO_SYNTAX", "BindTimeFeatures", "SyntaxId"]


class SyntaxId(NamedTuple):
    """p_syntax_id_t: an interface or a transfer syntax with its version; 20 bytes on the wire."""

    uuid: UUID
    major: int
    minor: int = 0

    @classmethod
    def parse(cls, data: bytes | memoryview, offset: int = 0, *, big_endian: bool = False) -> SyntaxId:
        """Parses 20 bytes; the caller has checked the size.

        The version is a 32-bit number, whose upper half is the minor version; so the order of the two halves
        depends on the byte order.
        """
        raw = bytes(data[offset : offset + 16])
        (version,) = struct.unpack_from(">I" if big_endian else "<I", data, offset + 16)
        uuid = UUID(bytes=raw) if big_endian else UUID(bytes_le=raw)
        return cls(uuid, version & 0xFFFF, version >> 16)

    def encode(self, *, big_endian: bool = False) -> bytes:
        """Returns the 20 bytes as sent."""
        version = self.minor << 16 | self.major
        if big_endian:
            return self.uuid.bytes + struct.pack(">I", version)
        return self.uuid.bytes_le + struct.pack("<I", version)

    def __str__(self) -> str:
        return f"{self.uuid} {self.major}.{self.minor}"


NDR: Final = SyntaxId(UUID("8a885d04-1ceb-11c9-9fe8-08002b104860"), 2)
NDR64: Final = SyntaxId(UUID("71710533-beba-4937-8319-b5dbef9ccc36"), 1)
NO_SYNTAX: Final = SyntaxId(UUID(int=0), 0)
"""The transfer syntax in the answer for a rejected presentation context."""

FEATURES_PREFIX: Final = UUID("6cb71c2c-9812-4540-0000-000000000000").bytes_le[:8]
"""The first half of the UUID, as a little-endian structure, by which a client offers bind-time features."""


class BindTimeFeatures(IntFlag):
    """The bind-time features of MS-RPCE 2.2.2.14 and 2.2.2.15."""

    NONE = 0
    SECURITY_CONTEXT_MULTIPLEXING = 1
    KEEP_CONNECTION_ON_ORPHAN = 2

    @classmethod
    def offered(cls, syntax: SyntaxId) -> BindTimeFeatures | None:
        """Returns the known features that a pseudo transfer syntax offers; None for a real transfer
        syntax.
        """
        raw = syntax.uuid.bytes_le
        if raw[:8] != FEATURES_PREFIX or (syntax.major, syntax.minor) != (1, 0):
            return None
        return cls(raw[8] & 3)
