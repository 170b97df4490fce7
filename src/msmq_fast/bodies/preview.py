"""The beginning of a body in one line, for lists of messages, at a cost that does not grow with the body."""

from __future__ import annotations

from typing import Final

from msmq_fast.bodies import activex, binary
from msmq_fast.bodies.errors import BodyError
from msmq_fast.bodies.framing import framing
from msmq_fast.bodies.kind import body_kind
from msmq_fast.bodies.text import text

__all__ = ["is_readable", "preview"]

_HEAD: Final = 4096  # bytes of a text that are looked at
_LARGEST: Final = 8192  # bytes of a BinaryFormatter stream that is decoded; it must be decoded whole


def preview(body: bytes, body_type: int | None, most: int = 200) -> str:
    """Return the beginning of a body in one line of at most `most` characters: text as it is, values of .NET
    and COM with their kind, anything else in hexadecimal.
    """
    kind = body_kind(body, body_type)
    try:
        found = _beginning(body, body_type, kind)
    except BodyError:
        found = ""
    if not found and body:
        size = max(1, most // 3)
        found = body[:size].hex(" ") + ("" if len(body) <= size else " …")
    found = " ".join(found[: most * 16].split())
    return found if len(found) <= most else found[: most - 1] + "…"


def _beginning(body: bytes, body_type: int | None, kind: str) -> str:
    """Return the text of a body or of its first `_HEAD` bytes; "" if the body is not readable. Raises
    BodyError.
    """
    head = body[:_HEAD]
    match kind:
        case "text" | "ansi_text":
            return text(head, body_type)
        case "xml" | "json":
            wide = head[:2] == b"\xff\xfe" or head[1:2] == b"\0"
            return head.decode("utf-16-le" if wide else "utf-8", "replace").lstrip("\ufeff")
        case "number" | "guid":
            return f"{activex.decode(body, body_type or 0)} ({kind})"
        case "net_binary":
            if len(body) > _LARGEST:
                return f"BinaryFormatter stream of {len(body)} bytes"
            return f"{binary.decode(body)[0]} ({kind})"
        case "net_framing":
            found = framing(head)
            return f"NetMsmqBinding message for {found.via or '(no address)'}"
    return head.decode("utf-8", "replace") if is_readable(body) else ""


def is_readable(body: bytes) -> bool:
    """Whether the first 4 KiB of a body are printable UTF-8 text."""
    try:
        found = body[:4096].decode("utf-8")
    except UnicodeDecodeError as error:
        if len(body) <= 4096 or error.start < 4090:
            return False
        found = body[: error.start].decode("utf-8")
    return all(character.isprintable() or character in "\r\n\t" for character in found)
