"""The verification trailer of requests (MS-RPCE 2.2.2.13).

The trailer is in the protected part of a request, and repeats header fields that the security provider may
leave unprotected.
"""

from __future__ import annotations

import struct

from msmq_fast.rpc.faults import ACCESS_DENIED, RpcFault
from msmq_fast.rpc.syntaxes import SyntaxId

__all__ = ["SIGNATURE", "TAIL", "strip_trailer"]

SIGNATURE = bytes.fromhex("8ae3137102f43671")

_BITMASK, _PCONTEXT, _HEADER2 = 1, 2, 3
_END, _MUST_PROCESS = 0x4000, 0x8000
_LENGTHS = {_BITMASK: 4, _PCONTEXT: 40, _HEADER2: 16}
_HEADER_SIGNING = 1  # CLIENT_SUPPORT_HEADER_SIGNING
TAIL = 8 + 3 * 4 + sum(_LENGTHS.values()) + 256  # leaves room for commands of later versions
"""A trailer lies within this many last bytes of a stub."""

_COMMAND = struct.Struct("<HH")


def _commands(stub: bytes | bytearray, at: int) -> list[tuple[int, bytes]] | None:
    """Returns the commands of the trailer, from offset `at` of the stub on. Returns None if these bytes are
    not a trailer that ends at the end of the stub.
    """
    commands = []
    end = len(stub)
    while at + 4 <= end:
        command, length = _COMMAND.unpack_from(stub, at)
        at += 4
        if length % 4 or at + length > end:
            return None
        commands.append((command, bytes(stub[at : at + length])))
        at += length
        if command & _END:
            return commands if end - at < 4 else None
    return None


def strip_trailer(
    stub: bytes | bytearray,
    *,
    interface: SyntaxId,
    transfer: SyntaxId,
    request: bytes,
    header_signing: bool,
) -> bytes | bytearray:
    """Returns the stub without its trailer, after checking that the trailer agrees with its PDU. Returns a
    stub without a trailer unchanged.

    `request` has the first 24 bytes of the request. `header_signing` is whether the bind offered header
    signing. It is not known here where the parameters in the stub end, and a message body may contain the
    signature of a trailer. Therefore bytes count as a trailer only if it ends exactly at the end of the stub.

    Raises RpcFault(ACCESS_DENIED) if the trailer contradicts the PDU, or has an unknown command that must be
    processed.
    """
    at = stub.rfind(SIGNATURE, -TAIL)
    if at < 0 or at % 4:
        return stub
    commands = _commands(stub, at + 8)
    if commands is None:
        return stub
    expected_context = interface.encode() + transfer.encode()
    seen = set()
    for command, data in commands:
        kind = command & 0x3FFF
        if kind in seen or len(data) != _LENGTHS.get(kind, len(data)):
            raise RpcFault(ACCESS_DENIED, "the verification trailer is malformed")
        seen.add(kind)
        if kind == _BITMASK:
            if data[0] & _HEADER_SIGNING and not header_signing:
                raise RpcFault(
                    ACCESS_DENIED,
                    "the verification trailer says that headers are signed, but the bind did not offer this",
                )
        elif kind == _PCONTEXT:
            if data != expected_context:
                raise RpcFault(
                    ACCESS_DENIED,
                    "the verification trailer names another interface or transfer syntax than the request",
                )
        elif kind == _HEADER2:
            _check_header2(data, request)
        elif command & _MUST_PROCESS:
            raise RpcFault(ACCESS_DENIED, f"unknown command {kind} in the verification trailer")
    return stub[:at]


def _check_header2(data: bytes, request: bytes) -> None:
    # PTYPE, drep, call_id, context identifier and opnum, at their places in the header of a request.
    expected = request[2:3] + request[4:8] + request[12:16] + request[20:24]
    numbers = data[:1] + data[4:8]
    if request[4] >> 4:
        numbers += data[8:]
    else:  # the trailer is always little-endian
        numbers += data[8:12][::-1] + data[12:14][::-1] + data[14:16][::-1]
    if numbers != expected:
        raise RpcFault(
            ACCESS_DENIED, "the verification trailer repeats another header than that of the request"
        )
