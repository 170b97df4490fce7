"""Cutting a stream into PDUs in plain Python, from C706 12.6 and MS-RPCE 2.2.2.11: what the native scanner is
compared with."""

from __future__ import annotations

import struct
from typing import Any

VERSION, LENGTH, AUTH_LENGTH, AUTH_PAD, TOO_LARGE = 1, 2, 3, 4, 5
ATTRIBUTES = (
    *("data", "fault", "type", "flags", "minor", "big_endian", "length", "auth_length", "call_id"),
    *("alloc_hint", "context_id", "opnum", "header", "stub", "padded_stub", "trailer", "token"),
    *("auth_type", "auth_level", "auth_pad", "auth_context_id", "object_uuid", "body"),
)
ALWAYS = ATTRIBUTES[:9]
"""Those that a malformed PDU has, too."""


def cut(stream: bytes, limit: int) -> list[dict[str, Any]]:
    """The PDUs of a stream, the last one perhaps malformed; bytes of one that is incomplete are left out."""
    found = []
    while len(stream) >= 16:
        big = stream[4] >> 4 == 0
        order = ">" if big else "<"
        length, auth_length, call_id = struct.unpack_from(order + "HHI", stream, 8)
        pdu: dict[str, Any] = {
            "data": stream[:16],
            "fault": 0,
            "type": stream[2],
            "flags": stream[3],
            "minor": stream[1],
            "big_endian": big,
            "length": length,
            "auth_length": auth_length,
            "call_id": call_id,
        }
        if length < 16 or (stream[2] in (0, 2) and length > limit):
            pdu["fault"] = LENGTH if length < 16 else TOO_LARGE
            return [*found, pdu]
        if len(stream) < length:
            break
        pdu["data"] = raw = stream[:length]
        pdu["fault"] = _parts(pdu, raw, order)
        found.append(pdu)
        stream = stream[length:]
    return found


def _parts(pdu: dict[str, Any], raw: bytes, order: str) -> int:
    if raw[0] != 5 or raw[1] > 1:
        return VERSION
    begin = 16
    pdu.update(alloc_hint=0, context_id=0, opnum=0, object_uuid=None)
    pdu.update(auth_type=0, auth_level=0, auth_pad=0, auth_context_id=0)
    if raw[2] in (0, 2, 3):
        begin = 40 if raw[2] == 0 and raw[3] & 0x80 else 24
        if len(raw) < begin:
            return LENGTH
        pdu["alloc_hint"], pdu["context_id"] = struct.unpack_from(order + "IH", raw, 16)
        pdu["opnum"] = struct.unpack_from(order + "H", raw, 22)[0] if raw[2] == 0 else raw[22]
        if begin == 40:
            pdu["object_uuid"] = raw[24:40]
    end, pad = len(raw), 0
    if pdu["auth_length"]:
        end = len(raw) - pdu["auth_length"] - 8
        if end < begin:
            return AUTH_LENGTH
        pdu["auth_type"], pdu["auth_level"], pad, _, pdu["auth_context_id"] = struct.unpack_from(
            order + "BBBBI", raw, end
        )
        pdu["auth_pad"] = pad
        if pad > max(0, end - max(begin, 24)):
            return AUTH_PAD
    pdu.update(
        header=raw[:begin],
        stub=raw[begin : end - pad],
        padded_stub=raw[begin:end],
        trailer=raw[end : end + 8],
        token=raw[end + 8 :],
        body=raw[16:end],
    )
    return 0
