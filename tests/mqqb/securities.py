"""Security headers of messages."""

from __future__ import annotations

import struct

SID = bytes.fromhex("010500000000000515000000AD4A9EBD36D9FA3D63A656DAE8030000")


def security(flags: int = 1, sid: bytes = SID, key: bytes = b"", signature: bytes = b"") -> bytes:
    head = struct.pack("<HHHHII", flags, len(sid), len(key), len(signature), 0, 0)
    return head + b"".join(part + bytes(-len(part) % 4) for part in (sid, key, signature))
