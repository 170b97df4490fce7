"""Answers to LDAP pings as domain controllers give them, encoded without the code under test, and domain
controllers that give them, or lie, by UDP.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from uuid import UUID

GUID = UUID("01234567-89ab-cdef-0123-456789abcdef")
NAMES = (
    "corp.example", "corp.example", "dc1.corp.example", "CORP", "DC1", "", "Default-First-Site-Name", "North",
)  # fmt: skip
"""Forest, domain, host, NetBIOS domain and computer, user, site of the controller, site of the client."""
FLAGS = 0x0000_01FC  # GC, LDAP, DS, KDC, time, closest, writable


def tlv(tag: int, content: bytes, wide: bool = False) -> bytes:
    """A BER element; `wide` with a length of four octets, as Windows writes it."""
    size = len(content)
    if wide:
        return bytes((tag, 0x84)) + size.to_bytes(4, "big") + content
    if size < 0x80:
        return bytes((tag, size)) + content
    return bytes((tag, 0x82)) + size.to_bytes(2, "big") + content


def number(value: int) -> bytes:
    return tlv(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def compressed(names: Sequence[str], at: int) -> bytes:
    """Names as RFC 1035 4.1.4 compresses them; the first one is at the position `at` of the structure."""
    known: dict[tuple[str, ...], int] = {}
    out = b""
    for name in names:
        labels = tuple(name.split(".")) if name else ()
        for first in range(len(labels) + 1):
            rest = labels[first:]
            if not rest:
                out += b"\0"
            elif rest in known:
                out += (0xC000 | known[rest]).to_bytes(2, "big")
                break
            else:
                known[rest] = at + len(out)
                data = rest[0].encode()
                out += bytes((len(data),)) + data
    return out


def plain(names: Sequence[str]) -> bytes:
    """Names without compression."""
    return b"".join(
        b"".join(bytes((len(label.encode()),)) + label.encode() for label in name.split(".") if label) + b"\0"
        for name in names
    )


def structure(
    names: Sequence[str] = NAMES, *, flags: int = FLAGS, opcode: int = 23, body: bytes | None = None
) -> bytes:
    """NETLOGON_SAM_LOGON_RESPONSE_EX."""
    head = struct.pack("<HHI16s", opcode, 0, flags, GUID.bytes_le)
    if body is None:
        body = compressed(names, len(head))
    return head + body + struct.pack("<IHH", 5, 0xFFFF, 0xFFFF)


def entry(identifier: int, value: bytes, attribute: str = "netlogon", wide: bool = False) -> bytes:
    """The search result entry with the attribute."""
    kept = tlv(0x30, tlv(4, attribute.encode(), wide) + tlv(0x31, tlv(4, value, wide), wide), wide)
    return tlv(0x30, number(identifier) + tlv(0x64, tlv(4, b"") + tlv(0x30, kept, wide), wide), wide)


def done(identifier: int, wide: bool = False) -> bytes:
    """The end of the search."""
    return tlv(0x30, number(identifier) + tlv(0x65, b"\x0a\x01\x00\x04\x00\x04\x00", wide), wide)


def answer(identifier: int, value: bytes | None = None, wide: bool = False) -> bytes:
    """A whole answer: the entry and the end of the search."""
    return entry(identifier, structure() if value is None else value, wide=wide) + done(identifier, wide)


def identifier_of(question: bytes) -> int:
    """The message identifier of a question."""
    assert question[0] == 0x30
    assert question[2] == 2
    return int.from_bytes(question[4 : 4 + question[3]], "big")


@contextlib.contextmanager
def controller(
    answers: Callable[[int], Sequence[bytes]], host: str = "127.0.0.1", *, foreign: bool = False
) -> Iterator[str]:
    """A domain controller that answers each ping with these datagrams, from another port if `foreign`.
    Yields its URL.
    """
    with contextlib.ExitStack() as opened:
        server = opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        server.bind((host, 0))
        sender = server
        if foreign:
            sender = opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            sender.bind((host, 0))

        def serve() -> None:
            with contextlib.suppress(OSError):
                while (received := server.recvfrom(4_096))[0]:
                    for one in answers(identifier_of(received[0])):
                        sender.sendto(one, received[1])

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"ldap://{host}:{server.getsockname()[1]}"
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
                last.sendto(b"", server.getsockname())
            thread.join()
