"""Parses and builds all connection-oriented PDUs except requests and responses (C706 12.6.4, MS-RPCE 2.2.2).

Requests and responses are on the hot path: `_native.rpcframing` parses and builds their fragments.
"""

from __future__ import annotations

import struct
from enum import IntEnum, IntFlag
from typing import NamedTuple

from msmq_fast._native.rpcframing import Pdu
from msmq_fast.rpc.syntaxes import NO_SYNTAX, SyntaxId

__all__ = [
    "FAULT_HEADER",
    "Bind",
    "BindAck",
    "BindNak",
    "ContextElement",
    "ContextResult",
    "Fault",
    "Flag",
    "NakReason",
    "PduError",
    "PduFault",
    "PduType",
    "Result",
    "ResultReason",
    "SecTrailer",
    "build",
    "build_alter",
    "build_alter_response",
    "build_auth3",
    "build_bind",
    "build_bind_ack",
    "build_bind_nak",
    "build_cancel",
    "build_fault",
    "build_orphaned",
    "parse_bind",
    "parse_bind_ack",
    "parse_bind_nak",
    "parse_fault",
]

FAULT_HEADER = 32  # of a fault PDU without stub data; includes its alloc_hint (MS-RPCE 2.2.2.8)


class PduType(IntEnum):
    """The types of PDUs: PTYPE (C706 12.1, MS-RPCE 2.2.2.10)."""

    REQUEST = 0
    RESPONSE = 2
    FAULT = 3
    BIND = 11
    BIND_ACK = 12
    BIND_NAK = 13
    ALTER = 14
    ALTER_RESPONSE = 15
    AUTH3 = 16
    SHUTDOWN = 17
    CANCEL = 18
    ORPHANED = 19


class Flag(IntFlag):
    """The flags in the header of a PDU: pfc_flags (C706 12.6.3.1, MS-RPCE 2.2.2.3)."""

    FIRST = 0x01
    LAST = 0x02
    PENDING_CANCEL = 0x04
    SUPPORT_HEADER_SIGN = 0x04
    """The bit of PENDING_CANCEL, with another meaning in bind, alter_context, their answers and auth3."""
    CONC_MPX = 0x10
    DID_NOT_EXECUTE = 0x20
    MAYBE = 0x40
    OBJECT_UUID = 0x80


WHOLE = Flag.FIRST | Flag.LAST


class PduFault(IntEnum):
    """The values of Pdu.fault: why a PDU is malformed. `_native/rpcframing.pyx` defines the same numbers."""

    VERSION = 1
    LENGTH = 2
    AUTH_LENGTH = 3
    AUTH_PAD = 4
    TOO_LARGE = 5


class NakReason(IntEnum):
    """Why a bind was rejected: provider_reject_reason (C706 12.6.3.1, MS-RPCE 2.2.2.5)."""

    NOT_SPECIFIED = 0
    LOCAL_LIMIT_EXCEEDED = 2
    PROTOCOL_VERSION_NOT_SUPPORTED = 4
    AUTH_TYPE_NOT_RECOGNIZED = 8
    INVALID_CHECKSUM = 9


class Result(IntEnum):
    """The decision on a proposed context: p_cont_def_result_t (MS-RPCE 2.2.2.4)."""

    ACCEPTANCE = 0
    USER_REJECTION = 1
    PROVIDER_REJECTION = 2
    NEGOTIATE_ACK = 3


class ResultReason(IntEnum):
    """Why a proposed context was rejected: p_provider_reason_t (C706 12.6.3.1)."""

    NOT_SPECIFIED = 0
    ABSTRACT_SYNTAX_NOT_SUPPORTED = 1
    TRANSFER_SYNTAXES_NOT_SUPPORTED = 2
    LOCAL_LIMIT_EXCEEDED = 3


class PduError(ValueError):
    """Raised if the body of a PDU is malformed, or if a PDU to be built would be too long."""


class ContextElement(NamedTuple):
    """p_cont_elem_t: a presentation context that a client proposes."""

    id: int
    abstract: SyntaxId
    transfers: tuple[SyntaxId, ...]


class ContextResult(NamedTuple):
    """p_result_t: the server's decision on one proposed context.

    If the result is NEGOTIATE_ACK, `reason` contains the bind-time features.
    """

    result: int
    reason: int = 0
    transfer: SyntaxId = NO_SYNTAX


class Bind(NamedTuple):
    """The body of a bind or alter_context PDU."""

    max_xmit: int
    max_recv: int
    group: int
    contexts: tuple[ContextElement, ...]


class BindAck(NamedTuple):
    """The body of a bind_ack or alter_context_resp PDU."""

    max_xmit: int
    max_recv: int
    group: int
    secondary: str
    results: tuple[ContextResult, ...]


class BindNak(NamedTuple):
    """The body of a bind_nak PDU: the reason, and the supported versions of the protocol."""

    reason: int
    versions: tuple[tuple[int, int], ...]


class Fault(NamedTuple):
    """The body of a fault PDU: the context identifier and the status of the failed call."""

    context_id: int
    status: int


class SecTrailer(NamedTuple):
    """The sec_trailer and the authentication token of a PDU to be built (MS-RPCE 2.2.2.11)."""

    auth_type: int
    auth_level: int
    context_id: int
    token: bytes = b""

    def encode(self, *, pad: int = 0, big_endian: bool = False) -> bytes:
        """Returns the 8 bytes of the sec_trailer; in the PDU, the token follows them."""
        order = ">" if big_endian else "<"
        return struct.pack(order + "BBBBI", self.auth_type, self.auth_level, pad, 0, self.context_id)


# ------------------------------------------------------------------------------------------------- building


def build(
    ptype: int,
    call_id: int,
    body: bytes = b"",
    *,
    flags: int = WHOLE,
    auth: SecTrailer | None = None,
    big_endian: bool = False,
) -> bytes:
    """Builds a whole PDU.

    The sec_trailer is aligned to 4 bytes, as Windows aligns it in PDUs that establish a security context.
    Raises PduError if the content is too long for a PDU.
    """
    order = ">" if big_endian else "<"
    auth_length = 0
    if auth is not None:
        pad = -len(body) % 4
        body += bytes(pad) + auth.encode(pad=pad, big_endian=big_endian) + auth.token
        auth_length = len(auth.token)
    length = 16 + len(body)
    if length > 0xFFFF:
        raise PduError(f"a PDU of {length} bytes would be too long: at most 65535 are allowed")
    drep = b"\0\0\0\0" if big_endian else b"\x10\0\0\0"
    return (
        struct.pack(order + "BBBB4sHHI", 5, 0, ptype, flags, drep, length, auth_length, call_id & 0xFFFFFFFF)
        + body
    )


def _bind_body(bind: Bind, big_endian: bool) -> bytes:
    order = ">" if big_endian else "<"
    parts = [
        struct.pack(order + "HHIBxxx", bind.max_xmit, bind.max_recv, bind.group, len(bind.contexts)),
    ]
    for element in bind.contexts:
        parts.append(struct.pack(order + "HBx", element.id, len(element.transfers)))
        parts.append(element.abstract.encode(big_endian=big_endian))
        parts += [transfer.encode(big_endian=big_endian) for transfer in element.transfers]
    return b"".join(parts)


def build_bind(
    call_id: int, bind: Bind, *, flags: int = WHOLE, auth: SecTrailer | None = None, big_endian: bool = False
) -> bytes:
    """Builds a bind."""
    body = _bind_body(bind, big_endian)
    return build(PduType.BIND, call_id, body, flags=flags, auth=auth, big_endian=big_endian)


def build_alter(
    call_id: int, bind: Bind, *, flags: int = WHOLE, auth: SecTrailer | None = None, big_endian: bool = False
) -> bytes:
    """Builds an alter_context."""
    body = _bind_body(bind, big_endian)
    return build(PduType.ALTER, call_id, body, flags=flags, auth=auth, big_endian=big_endian)


def build_auth3(call_id: int, auth: SecTrailer, *, flags: int = WHOLE, big_endian: bool = False) -> bytes:
    """Builds an auth3, which carries the last leg of a security context with an odd number of legs (MS-RPCE
    2.2.2.10).
    """
    return build(PduType.AUTH3, call_id, bytes(4), flags=flags, auth=auth, big_endian=big_endian)


def _ack_body(ack: BindAck) -> bytes:
    secondary = ack.secondary.encode("ascii") + b"\0" if ack.secondary else b""
    parts = [
        struct.pack("<HHIH", ack.max_xmit, ack.max_recv, ack.group, len(secondary)),
        secondary,
        bytes(-(10 + len(secondary)) % 4),
        struct.pack("<Bxxx", len(ack.results)),
    ]
    parts += [
        struct.pack("<HH", result.result, result.reason) + result.transfer.encode() for result in ack.results
    ]
    return b"".join(parts)


def build_bind_ack(call_id: int, ack: BindAck, flags: int, auth: SecTrailer | None = None) -> bytes:
    """Builds a bind_ack. If the `secondary` address is empty, its field has no bytes, not even a NUL, as in
    alter_context_resp.
    """
    return build(PduType.BIND_ACK, call_id, _ack_body(ack), flags=flags, auth=auth)


def build_alter_response(call_id: int, ack: BindAck, flags: int, auth: SecTrailer | None = None) -> bytes:
    """Builds an alter_context_resp."""
    return build(PduType.ALTER_RESPONSE, call_id, _ack_body(ack), flags=flags, auth=auth)


def build_bind_nak(call_id: int, reason: int) -> bytes:
    """Builds a bind_nak that names version 5.0 as the supported version."""
    return build(PduType.BIND_NAK, call_id, struct.pack("<HBBBxxx", reason, 1, 5, 0))


def build_fault(call_id: int, context_id: int, status: int, flags: int = WHOLE) -> bytes:
    """Builds a fault without stub data or extended error information. Faults carry no sec_trailer."""
    body = struct.pack("<IHBBII", FAULT_HEADER, context_id, 0, 0, status, 0)
    return build(PduType.FAULT, call_id, body, flags=flags)


def build_cancel(call_id: int) -> bytes:
    """Builds a co_cancel."""
    return build(PduType.CANCEL, call_id)


def build_orphaned(call_id: int) -> bytes:
    """Builds an orphaned PDU."""
    return build(PduType.ORPHANED, call_id)


# -------------------------------------------------------------------------------------------------- parsing


class _Reader:
    """Reads integers and syntax identifiers from the body of a PDU, in the byte order of the PDU. Raises
    PduError if the body is too short.
    """

    __slots__ = ("_data", "_order", "at", "big_endian")

    def __init__(self, pdu: Pdu) -> None:
        self._data = pdu.body
        self._order = ">" if pdu.big_endian else "<"
        self.big_endian = pdu.big_endian
        self.at = 0

    def take(self, layout: str) -> tuple[int, ...]:
        packed = struct.Struct(self._order + layout)
        if self.at + packed.size > len(self._data):
            raise PduError("truncated")
        values = packed.unpack_from(self._data, self.at)
        self.at += packed.size
        return values

    def raw(self, size: int) -> bytes:
        if self.at + size > len(self._data):
            raise PduError("truncated")
        self.at += size
        return self._data[self.at - size : self.at]

    def syntax(self) -> SyntaxId:
        return SyntaxId.parse(self.raw(20), big_endian=self.big_endian)


def parse_bind(pdu: Pdu) -> Bind:
    """Parses the body of a bind or alter_context. Raises PduError."""
    reader = _Reader(pdu)
    max_xmit, max_recv, group, count = reader.take("HHIB")
    if count:  # the padding may be missing if no contexts follow
        reader.raw(3)
    contexts = []
    for _ in range(count):
        identifier, transfers = reader.take("HBx")
        abstract = reader.syntax()
        contexts.append(
            ContextElement(identifier, abstract, tuple(reader.syntax() for _ in range(transfers)))
        )
    return Bind(max_xmit, max_recv, group, tuple(contexts))


def parse_bind_ack(pdu: Pdu) -> BindAck:
    """Parses the body of a bind_ack or alter_context_resp. Raises PduError."""
    reader = _Reader(pdu)
    max_xmit, max_recv, group, size = reader.take("HHIH")
    secondary = reader.raw(size).rstrip(b"\0").decode("ascii", "replace")
    reader.raw(-reader.at % 4)
    (count,) = reader.take("Bxxx")
    results = []
    for _ in range(count):
        result, reason = reader.take("HH")
        results.append(ContextResult(result, reason, reader.syntax()))
    return BindAck(max_xmit, max_recv, group, secondary, tuple(results))


def parse_bind_nak(pdu: Pdu) -> BindNak:
    """Parses the body of a bind_nak and ignores what follows the versions. Raises PduError."""
    reader = _Reader(pdu)
    (reason,) = reader.take("H")
    if reader.at == len(pdu.body):
        return BindNak(reason, ())
    (count,) = reader.take("B")
    versions = []
    for _ in range(count):
        major, minor = reader.take("BB")
        versions.append((major, minor))
    return BindNak(reason, tuple(versions))


def parse_fault(pdu: Pdu) -> Fault:
    """Parses the body of a fault. Raises PduError."""
    reader = _Reader(pdu)
    _, context_id, status = reader.take("IHxxI")
    return Fault(context_id, status)
