"""PDUs of DCE/RPC written and read by hand from C706 12.6 and MS-RPCE 2.2.2: nothing of `msmq_fast.rpc`."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

REQUEST, RESPONSE, FAULT = 0, 2, 3
BIND, BIND_ACK, BIND_NAK, ALTER, ALTER_RESPONSE, AUTH3 = 11, 12, 13, 14, 15, 16
SHUTDOWN, CANCEL, ORPHANED = 17, 18, 19

FIRST, LAST, PENDING_CANCEL, HEADER_SIGN, MPX, DID_NOT_EXECUTE, MAYBE, OBJECT = 1, 2, 4, 4, 16, 32, 64, 128
WHOLE = FIRST | LAST

NDR = ("8a885d04-1ceb-11c9-9fe8-08002b104860", 2, 0)
NDR64 = ("71710533-beba-4937-8319-b5dbef9ccc36", 1, 0)
NOTHING = ("00000000-0000-0000-0000-000000000000", 0, 0)

Syntax = tuple[str, int, int]


def features(bits: int) -> Syntax:
    """The pseudo syntax of bind-time feature negotiation."""
    return (f"6cb71c2c-9812-4540-{bits:02x}00-000000000000", 1, 0)


def guid(text: str, big: bool = False) -> bytes:
    """The 16 bytes of a UUID."""
    one, two, three, four, five = text.split("-")
    head = bytes.fromhex(one), bytes.fromhex(two), bytes.fromhex(three)
    if not big:
        head = tuple(part[::-1] for part in head)  # type: ignore[assignment]
    return b"".join(head) + bytes.fromhex(four + five)


def syntax(value: Syntax, big: bool = False) -> bytes:
    """p_syntax_id_t; the version is one number, the minor one its upper half."""
    uuid, major, minor = value
    return guid(uuid, big) + struct.pack(">I" if big else "<I", minor << 16 | major)


@dataclass
class Auth:
    """What a PDU carries behind its body."""

    type: int
    level: int
    id: int
    token: bytes = b""
    pad: int | None = None  # None: up to the next multiple of `align`
    align: int = 4


def pdu(
    ptype: int,
    call_id: int,
    body: bytes = b"",
    flags: int = WHOLE,
    big: bool = False,
    minor: int = 0,
    major: int = 5,
    auth: Auth | None = None,
    length: int | None = None,
    auth_length: int | None = None,
) -> bytes:
    """One PDU; `length` and `auth_length` may lie."""
    order = ">" if big else "<"
    token = b""
    if auth is not None:
        pad = -len(body) % auth.align if auth.pad is None else auth.pad
        if auth.pad is None:
            body += b"\xbb" * pad
        body += struct.pack(order + "BBBBI", auth.type, auth.level, pad, 0, auth.id) + auth.token
        token = auth.token
    header = struct.pack(
        order + "BBBB4sHHI",
        major,
        minor,
        ptype,
        flags,
        b"\0\0\0\0" if big else b"\x10\0\0\0",
        16 + len(body) if length is None else length,
        len(token) if auth_length is None else auth_length,
        call_id,
    )
    return header + body


Context = tuple[int, Syntax, Sequence[Syntax]]


def bind_body(
    contexts: Sequence[Context], xmit: int = 5840, recv: int = 5840, group: int = 0, big: bool = False
) -> bytes:
    """The body of bind and alter_context."""
    order = ">" if big else "<"
    body = struct.pack(order + "HHIBBH", xmit, recv, group, len(contexts), 0, 0)
    for identifier, abstract, transfers in contexts:
        body += struct.pack(order + "HBB", identifier, len(transfers), 0) + syntax(abstract, big)
        body += b"".join(syntax(transfer, big) for transfer in transfers)
    return body


def bind(contexts: Sequence[Context], call_id: int = 0, **options: Any) -> bytes:
    """A bind; options of `bind_body` and `pdu`."""
    return _binding(BIND, contexts, call_id, **options)


def alter(contexts: Sequence[Context], call_id: int = 0, **options: Any) -> bytes:
    """An alter_context."""
    return _binding(ALTER, contexts, call_id, **options)


def _binding(
    ptype: int,
    contexts: Sequence[Context],
    call_id: int,
    xmit: int = 5840,
    recv: int = 5840,
    group: int = 0,
    big: bool = False,
    **options: Any,
) -> bytes:
    return pdu(ptype, call_id, bind_body(contexts, xmit, recv, group, big), big=big, **options)


def auth3(auth: Auth, call_id: int = 0, **options: Any) -> bytes:
    """An rpc_auth_3."""
    return pdu(AUTH3, call_id, b"\0\0\0\0", auth=auth, **options)


def request_header(
    context_id: int, opnum: int, alloc_hint: int, big: bool = False, object_uuid: str | None = None
) -> bytes:
    """What stands between the common header of a request and its stub."""
    order = ">" if big else "<"
    header = struct.pack(order + "IHH", alloc_hint, context_id, opnum)
    return header + (guid(object_uuid, big) if object_uuid else b"")


def request(
    call_id: int,
    opnum: int,
    stub: bytes = b"",
    context_id: int = 0,
    flags: int = WHOLE,
    alloc_hint: int | None = None,
    object_uuid: str | None = None,
    big: bool = False,
    **options: Any,
) -> bytes:
    """A request in one PDU."""
    hint = len(stub) if alloc_hint is None else alloc_hint
    body = request_header(context_id, opnum, hint, big, object_uuid) + stub
    return pdu(REQUEST, call_id, body, flags | (OBJECT if object_uuid else 0), big=big, **options)


def fragmented(
    call_id: int, opnum: int, stub: bytes, size: int, context_id: int = 0, hint: bool = True, **options: Any
) -> list[bytes]:
    """A request in PDUs with `size` bytes of stub each; without `hint` nothing says how many there are."""
    pieces = [stub[at : at + size] for at in range(0, len(stub), size)] or [b""]
    last = len(pieces) - 1
    return [
        request(
            call_id,
            opnum,
            piece,
            context_id,
            flags=(FIRST if i == 0 else 0) | (LAST if i == last else 0),
            alloc_hint=len(stub) - i * size if hint else 0,
            **options,
        )
        for i, piece in enumerate(pieces)
    ]


def cancel(call_id: int, big: bool = False) -> bytes:
    """A co_cancel."""
    return pdu(CANCEL, call_id, big=big)


def orphaned(call_id: int, big: bool = False) -> bytes:
    """An orphaned."""
    return pdu(ORPHANED, call_id, big=big)


# ------------------------------------------------------------------------------------------------- reading


@dataclass
class Answer:
    """A PDU of the server, which speaks little-endian."""

    raw: bytes
    type: int
    flags: int
    call_id: int
    auth: Auth | None = None
    # bind_ack, alter_context_resp
    xmit: int = 0
    recv: int = 0
    group: int = 0
    secondary: bytes = b""
    results: list[tuple[int, int, bytes]] = field(default_factory=list)
    # bind_nak
    reason: int = -1
    versions: list[tuple[int, int]] = field(default_factory=list)
    # response, fault
    alloc_hint: int = -1
    context_id: int = -1
    stub: bytes = b""
    status: int = -1


def split(stream: bytes) -> Iterator[bytes]:
    """The PDUs of a stream; it must end with one."""
    while stream:
        (length,) = struct.unpack_from("<H", stream, 8)
        if not 16 <= length <= len(stream):
            raise ValueError(f"frag_length {length} of {len(stream)} bytes")
        yield stream[:length]
        stream = stream[length:]


def read(raw: bytes) -> Answer:
    """One PDU."""
    major, minor, ptype, flags, drep, length, auth_length, call_id = struct.unpack_from("<BBBB4sHHI", raw)
    if (major, minor, drep, length) != (5, 0, b"\x10\0\0\0", len(raw)):
        raise ValueError(f"header {raw[:16].hex()}")
    answer = Answer(raw, ptype, flags, call_id)
    end = len(raw)
    if auth_length or (ptype == ALTER_RESPONSE and _has_empty_token(raw)):
        end = len(raw) - auth_length - 8
        kind, level, pad, reserved, identifier = struct.unpack_from("<BBBBI", raw, end)
        if reserved:
            raise ValueError("auth_reserved")
        answer.auth = Auth(kind, level, identifier, raw[end + 8 :], pad)
        end -= pad
    if ptype in (BIND_ACK, ALTER_RESPONSE):
        answer.xmit, answer.recv, answer.group, size = struct.unpack_from("<HHIH", raw, 16)
        answer.secondary = raw[26 : 26 + size]
        at = (26 + size + 3) & ~3
        count = raw[at]
        at += 4
        for _ in range(count):
            result, reason = struct.unpack_from("<HH", raw, at)
            answer.results.append((result, reason, raw[at + 4 : at + 24]))
            at += 24
        if at > end:
            raise ValueError("results beyond the PDU")
    elif ptype == BIND_NAK:
        answer.reason, count = struct.unpack_from("<HB", raw, 16)
        answer.versions = [(raw[19 + 2 * i], raw[20 + 2 * i]) for i in range(count)]
    elif ptype == RESPONSE:
        answer.alloc_hint, answer.context_id, cancels, reserved = struct.unpack_from("<IHBB", raw, 16)
        if cancels or reserved:
            raise ValueError("cancel_count")
        answer.stub = raw[24:end]
    elif ptype == FAULT:
        answer.alloc_hint, answer.context_id, cancels, fault_flags, answer.status, reserved = (
            struct.unpack_from("<IHBBII", raw, 16)
        )
        if cancels or fault_flags or reserved or len(raw) != 32:
            raise ValueError("fault")
    return answer


def _has_empty_token(raw: bytes) -> bool:
    """Windows ends the legs of a security context with a sec_trailer whose token is empty."""
    (size,) = struct.unpack_from("<H", raw, 24)
    at = (26 + size + 3) & ~3
    return len(raw) == at + 4 + 24 * raw[at] + 8


def response(answers: Sequence[Answer]) -> bytes:
    """The stub of a response from its fragments, once they fit together."""
    stub = b""
    total = sum(len(answer.stub) for answer in answers)
    for i, answer in enumerate(answers):
        expected = (FIRST if i == 0 else 0) | (LAST if i == len(answers) - 1 else 0)
        if (answer.type, answer.flags, answer.alloc_hint) != (RESPONSE, expected, total - len(stub)):
            raise ValueError(f"fragment {i}: {answer.raw[:24].hex()}")
        stub += answer.stub
    return stub
