"""Messages that ask for a trace, and the queue of its reports."""

from __future__ import annotations

import struct
from uuid import UUID

REPORTS = UUID("12345678-1234-5678-1234-567812345678")
DEBUG = struct.pack("<HH", 1, 0) + REPORTS.bytes_le  # DebugHeader: QT = 1


def traced(packet: bytes, debug: bytes = DEBUG) -> bytes:
    """A packet with BaseHeader.Flags.TR and DH."""
    flags, size = struct.unpack_from("<H4xI", packet, 2)
    packet = packet[:2] + struct.pack("<H", flags | 0x0120) + packet[4:]
    return packet[:8] + struct.pack("<I", size + len(debug)) + packet[12:] + debug
