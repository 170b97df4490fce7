"""Text from peers: which texts are valid names, how other text is carried, and how both are displayed.

There are two policies, and every decoder of UTF-16 uses one of them:

1. A *name* (of a queue, a computer, an address) is used in look-up tables, records, log lines and other
   systems. `is_name` defines which are valid: at most MAX_NAME printable characters. So a name has no lone
   surrogate, no U+0000, no control character and no mark that changes the direction of writing. `decode_name`
   keeps the text after an embedded U+0000, so that `is_name` refuses such a name.
2. *Content* (labels, bodies, extensions, envelopes) is kept bit for bit. `decode_text` and `encode_text`
   carry lone surrogates unchanged, in both directions; `protocol.text.printable` escapes on output.

The functions of this module accept every text: none raises because of the characters in it.
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
"""Maximum number of characters in a name. A name that MS-MQMQ 2.1 allows has at most 450."""

_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")
_ZONE = re.compile(r"[0-9A-Za-z._~-]{1,15}")  # the length of a network interface name (IFNAMSIZ)


# ---- names


def is_name(text: str) -> bool:
    """Whether a text from the wire is a valid name; the grammar of its field is not checked."""
    return 0 < len(text) <= MAX_NAME and text.isprintable()


def decode_name(data: bytes | memoryview) -> str:
    """Returns the UTF-16LE text of a name without the NULs at its end; see `is_name`."""
    return _decoded(bytes(data)).rstrip("\0")


def shown_name(text: str) -> str:
    """Returns a name in a form that can be stored, logged and displayed: unchanged if it is valid, otherwise
    escaped and shortened to MAX_NAME characters.
    """
    return text if is_name(text) else printable(text[:MAX_NAME])[:MAX_NAME]


def is_address(text: str) -> bool:
    """Whether a text is an IP address.

    The zone of an IPv6 address must be a plain interface name. Python accepts any text as a zone, and so any
    text could become part of a queue name.
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
    """Returns the UTF-16LE text in `data` up to the first NUL; keeps lone surrogates."""
    return _decoded(bytes(data)).partition("\0")[0]


def encode_text(text: str) -> bytes:
    """Returns the text as UTF-16LE, including lone surrogates."""
    return text.encode("utf-16-le", "surrogatepass")


def utf16_units(text: str) -> int:
    """Returns the length of a text in UTF-16 code units, as fields of packets count it."""
    return len(text) if text.isascii() else len(encode_text(text)) // 2


def _decoded(data: bytes) -> str:
    # An odd last byte is half a code unit: no text.
    return data[: len(data) & ~1].decode("utf-16-le", "surrogatepass")


# ---- XML


def is_xml(text: str) -> bool:
    """Whether XML 1.0 can contain a text.

    The text must have no lone surrogates, no U+FFFE or U+FFFF, and below U+0020 only tab, CR and LF.
    """
    return _NOT_IN_XML.search(text) is None
