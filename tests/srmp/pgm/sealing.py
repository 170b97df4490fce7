"""PGM packets with valid checksums."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path

VECTORS = {
    vector["name"]: base64.b64decode(vector["pgm_b64"])
    for vector in json.loads((Path(__file__).parent / "vectors" / "derived.json").read_text())
}


def sealed(packet: bytes) -> bytes:
    """With a checksum computed word by word, as RFC 1071 describes it."""
    packet = packet[:6] + b"\0\0" + packet[8:]
    total = sum(struct.unpack(f">{(len(packet) + 1) // 2}H", packet + b"\0" * (len(packet) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return packet[:6] + struct.pack(">H", ~total & 0xFFFF or 0xFFFF) + packet[8:]
