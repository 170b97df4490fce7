"""Queue names that a peer may send, and what becomes of messages to them."""

from __future__ import annotations

import struct
from uuid import UUID

from tests.support.mqqb import wire
from tests.support.mqqb.headers import header
from tests.support.worlds.tracing import traced

HUB, PEER, STRANGER = "10.0.0.1", "10.0.0.2", "10.0.0.99"
# Each names the queue `private$\\inbox`, so that what is delivered in spite of it goes where others are read.
NAMES = {
    "high surrogate": "OS:h\ud800\\private$\\inbox",
    "low surrogate": "OS:h\udc00\\private$\\inbox",
    "pair in the wrong order": "OS:\udc00\ud800\\private$\\inbox",
    "surrogate as zone": "TCP:fe80::1%\ud800\\private$\\inbox",
    "text as zone": "TCP:fe80::1%a b<c>\\private$\\inbox",
    "long zone": "TCP:fe80::1%" + "z" * 300 + "\\private$\\inbox",
    "zone": "TCP:fe80::1%eth0\\private$\\inbox",
    "NUL": "OS:h\0\\private$\\inbox",
    "NUL behind": "OS:h\\private$\\inbox\0more",
    "control characters": "OS:h\x1b[2J\x07\\private$\\inbox",
    "lines": "OS:h\r\nERROR all is lost\\private$\\inbox",
    "right to left": "OS:h\u202e\\private$\\inbox",
    "letters that fold": "O\u017f:h\\private$\\inbox",
    "system queue by folding": "OS:h\\\u017fystem$;journal",
    "not ASCII": "OS:m\u00fcller\\private$\\inbox",
    "spaces": " OS: h \\private$\\inbox ",
    "comma": "OS:a,b\\private$\\inbox",
    "32 K host": "OS:" + "h" * 32_700 + "\\private$\\inbox",
    "32 K queue": "OS:h\\private$\\" + "q" * 32_700,
    "queue of 125": "OS:h\\private$\\" + "q" * 125,
    "backslashes": "OS:h" + "\\a" * 50,
    "label of 200": "OS:" + "h" * 200 + "\\private$\\inbox",
    "nothing": "",
    "no queue": "OS:h",
    "percent": "HTTP://h/msmq/private$/%00%0d%0a",
    "bracket": "HTTP://[fe80::1%\ud800]/msmq/private$/inbox",
}
GOOD = f"TCP:{PEER}\\private$\\told"
FIELDS = ("destination", "traced", "admin", "response", "destinations", "admins", "responses", "stream")
FATES = ("expired", "undeliverable", "delivered", "routed", "purged")


def listed(packet: bytes, name: str, place: int) -> bytes:
    """A packet with a MultiQueueFormatHeader; the name stands in one of its lists, before a good one."""
    trailer = b""
    for index, section in enumerate((0x0064, 0x00C8, 0x012C)):
        elements = b"".join(
            struct.pack("<H", 3) + (text.partition("\0")[0] + "\0").encode("utf-16-le", "surrogatepass")
            for text in ((name, GOOD) if index == place else ())
        )
        found = struct.pack("<IHHI", 12 + len(elements), section, 0, 2 * (index == place)) + elements
        trailer += found + bytes(-len(found) % 4)
    trailer += struct.pack("<HHI", 0x015E, 0, 0)
    (size,) = struct.unpack_from("<I", packet, 8)
    packet = packet[:8] + struct.pack("<I", size + len(trailer)) + packet[12:]
    (flags,) = struct.unpack_from("<I", packet, 60)
    return packet[:60] + struct.pack("<I", flags | 1 << 23) + packet[64:] + trailer


def cell(field: str, name: str, fate: str, number: int, now: int, elsewhere: UUID) -> bytes:
    """The packet of one cell of the matrix. What is to be passed on goes to the queue manager `elsewhere`."""
    queue = "OS:hub\\private$\\none" if fate == "undeliverable" else "OS:hub\\private$\\inbox"
    if field in ("destination", "traced", "stream"):
        queue = name
    packet = wire.message(
        number,
        queue=queue,
        recoverable=True,
        address=elsewhere if fate == "routed" else wire.NULL,
        reach=1 if fate == "expired" else wire.NEVER,
        sent_time=now - 100 if fate == "expired" else now,
        ack_flags=0x0F,
        admin=name if field == "admin" else GOOD,
        response=name if field == "response" else None,
        transaction=header(1, 0, number) if field == "stream" else b"",
    )
    (flags,) = struct.unpack_from("<I", packet, 60)
    packet = packet[:60] + struct.pack("<I", flags | 0x0300) + packet[64:]  # dead letter and journal
    if field in ("destinations", "admins", "responses"):
        return listed(packet, name, ("destinations", "admins", "responses").index(field))
    return traced(packet) if field == "traced" else packet
