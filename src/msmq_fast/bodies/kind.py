"""Determines the kind of a body, from its stated type or from its first bytes."""

from __future__ import annotations

from typing import Final

# PROPID_M_BODY_TYPE: the VARIANT types of MS-MQMQ 2.2.18.1.8 that applications use.
VT_I2: Final = 2
VT_I4: Final = 3
VT_R4: Final = 4
VT_R8: Final = 5
VT_CY: Final = 6
VT_DATE: Final = 7
VT_BSTR: Final = 8
VT_BOOL: Final = 11
VT_I1: Final = 16
VT_UI1: Final = 17
VT_UI2: Final = 18
VT_UI4: Final = 19
VT_I8: Final = 20
VT_UI8: Final = 21
VT_LPSTR: Final = 30
VT_LPWSTR: Final = 31
VT_STREAM: Final = 66
VT_STORAGE: Final = 67
VT_STREAMED_OBJECT: Final = 68
VT_STORED_OBJECT: Final = 69
VT_CLSID: Final = 72
VT_BYTE_VECTOR: Final = 0x1011  # VT_VECTOR | VT_UI1
VT_BYTES: Final = 0x2011  # VT_ARRAY | VT_UI1
BINARY_FORMATTER: Final = 0x300  # what System.Messaging's BinaryMessageFormatter states

WIDE_TEXT: Final = frozenset((VT_BSTR, VT_LPWSTR))
NARROW_TEXT: Final = frozenset((VT_LPSTR,))
_NUMBERS: Final = {
    VT_I1: 1,
    VT_UI1: 1,
    VT_I2: 2,
    VT_UI2: 2,
    VT_BOOL: 2,
    VT_I4: 4,
    VT_UI4: 4,
    VT_R4: 4,
    VT_I8: 8,
    VT_UI8: 8,
    VT_R8: 8,
    VT_CY: 8,
    VT_DATE: 8,
}
_OBJECTS: Final = frozenset((VT_STREAM, VT_STORAGE, VT_STREAMED_OBJECT, VT_STORED_OBJECT))

KINDS: Final = (
    "empty",
    "text",
    "ansi_text",
    "xml",
    "json",
    "net_binary",
    "net_framing",
    "number",
    "guid",
    "ole_object",
    "binary",
)
"""All kinds that `body_kind` returns."""

_MARKS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def body_kind(body: bytes, body_type: int | None) -> str:
    """Return the kind of a body, one of KINDS.

    The body type decides if it denotes a text, a number, an object or the binary formatter. For body type 0
    and for an array of bytes, the first bytes decide: bodies of .NET's XML formatter, BinaryFormatter streams
    and NetMsmqBinding framing have no body type of their own.
    """
    if not body:
        return "empty"
    if body_type in WIDE_TEXT:
        return "text"
    if body_type in NARROW_TEXT:
        return "ansi_text"
    if body_type in _NUMBERS and len(body) == _NUMBERS[body_type]:
        return "number"
    if body_type == VT_CLSID and len(body) == 16:
        return "guid"
    if body_type in _OBJECTS:
        return "ole_object"
    return _looked_at(body)


def _looked_at(body: bytes) -> str:
    # SerializationHeaderRecord of MS-NRBF 2.6.1: record type 0, ids, major version 1, minor version 0.
    if len(body) >= 17 and body[0] == 0 and body[9:17] == b"\x01\0\0\0\0\0\0\0":
        return "net_binary"
    if body[:2] == b"\x00\x01" and len(body) >= 5 and body[3] == 0x01:  # VersionRecord, ModeRecord of MC-NMF
        return "net_framing"
    head = body[:64]
    for mark in _MARKS:
        head = head.removeprefix(mark)
    head = head.replace(b"\0", b"").lstrip()
    if head[:1] == b"<":
        return "xml"
    if head[:1] in (b"{", b"["):
        return "json"
    return "binary"
