"""Text that peers send: what a name may be, how other text is carried, and how both are shown to people.

There are two policies, and every decoder of UTF-16 uses one of them:

1. A *name* (of a queue, a computer, an address) ends up in look-up tables, records, log lines and other
   systems. `is_name` says what one may be: at most MAX_NAME printable characters. So it has no lone
   surrogate, no U+0000, no control character and no mark that changes the direction of writing.
   `decode_name` hides nothing: what stands behind an embedded U+0000 stays visible, and `is_name` then
   refuses the text.
2. *Content* (labels, bodies, extensions, envelopes) is kept bit for bit. `decode_text` and `encode_text`
   carry lone surrogates unchanged, in both directions; `protocol.text.printable` escapes on output.

No function here raises because of what a text contains.
"""

import re
from ipaddress import IPv4Address, IPv6Address

from msmq_fast.protocol.text import printable

__all__ = [
    "MAX_NAME",
    "decode_name",
    "decode_text",
    "encode_text",
    "is_address",
    "is_name",
    "is_xml",
    "shown_name",
    "utf16_units",
]

MAX_NAME = 1000
"""Characters of a name. No name that MS-MQMQ 2.1 allows has more than 450."""

_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")
_ZONE = re.compile(r"[0-9A-Za-z._~-]{1,15}")  # the length of a network interface name (IFNAMSIZ)


# ---- names


def is_name(text: str) -> bool:
    """Whether a text from the wire can be a name, whatever the grammar of its field says of it."""
    return 0 < len(text) <= MAX_NAME and text.isprintable()


def decode_name(data: bytes | memoryview) -> str:
    """The UTF-16LE text of a name without the NULs that end it; see `is_name`."""
    return _decoded(bytes(data)).rstrip("\0")


def shown_name(text: str) -> str:
    """A name as it can be stored, logged and shown: itself, or escaped and cut if `is_name` refuses it."""
    return text if is_name(text) else printable(text[:MAX_NAME])[:MAX_NAME]


def is_address(text: str) -> bool:
    """Whether a text is an IP address. The zone of an IPv6 address is at most a plain interface name: Python
    takes any text there, which would let every text into names.
    """
    try:
        IPv4Address(text)
    except ValueError:
        address, percent, zone = text.partition("%")
        try:
            IPv6Address(address)
        except ValueError:
            return False
        return not percent or _ZONE.fullmatch(zone) is not None
    return True


# ---- content


def decode_text(data: bytes | memoryview) -> str:
    """UTF-16LE up to the first NUL; lone surrogates are kept."""
    return _decoded(bytes(data)).partition("\0")[0]


def encode_text(text: str) -> bytes:
    """UTF-16LE, lone surrogates included."""
    return text.encode("utf-16-le", "surrogatepass")


def utf16_units(text: str) -> int:
    """The length of a text in UTF-16 code units, as fields of packets count it."""
    return len(text) if text.isascii() else len(encode_text(text)) // 2


def _decoded(data: bytes) -> str:
    # An odd last byte is half a code unit: no text.
    return data[: len(data) & ~1].decode("utf-16-le", "surrogatepass")


# ---- XML


def is_xml(text: str) -> bool:
    """Whether XML 1.0 can carry a text: no control characters, no lone surrogates, no U+FFFE and U+FFFF."""
    return _NOT_IN_XML.search(text) is None
