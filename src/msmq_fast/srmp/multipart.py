"""Multipart bodies as SRMP writes them ([MC-MQSRM] 4): parts that are delimited by their Content-Length.

There is no line break between the last byte of a part and the next delimiter, so the rules of RFC 2046 about
delimiters do not apply, and a part may contain the text of a delimiter (A-01). Parts without a length, as
MIME libraries send them, are delimited as in RFC 2046.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from msmq_fast.srmp.values import Nonconforming

__all__ = ["Part", "boundary_of", "build", "read_fields", "split"]

MAX_PARTS: Final = 256
MAX_PART_HEAD: Final = 16_384  # bytes
MAX_BOUNDARY: Final = 256
MOST_KNOWN: Final = 512  # bytes of a head that is remembered

_LINE_END = re.compile(rb"[ \t]*\r?\n")
_FIRST_LINE = re.compile(rb"\s{0,8}--([^\r\n]+?)[ \t]*\r?\n")
_TOKEN = b"!#$%&'*+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ^_`abcdefghijklmnopqrstuvwxyz|~"
_FOLDED = re.compile(rb"\r?\n[ \t]+")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_LENGTH = re.compile(rb"[0-9]{1,10}")


@dataclass(slots=True)
class Part:
    """One part: its header fields by lower-case name, its content, and the offset of the content in
    the body.
    """

    fields: Mapping[bytes, bytes]
    content: bytes
    offset: int = 0


def boundary_of(body: bytes) -> bytes:
    """Return the boundary with which a body starts. It is used if the header of the message does not name the
    boundary (footnote 2). Raises Nonconforming if the body does not start with a boundary.
    """
    found = _FIRST_LINE.match(body[: MAX_BOUNDARY + 16])
    if found is None:
        raise Nonconforming("the message begins with neither an envelope nor a boundary")
    return found[1]


def split(boundary: bytes, body: bytes) -> list[Part]:
    """Return the parts of a body, in order. Raises Nonconforming if the body is malformed."""
    if not 0 < len(boundary) <= MAX_BOUNDARY:
        raise Nonconforming(f"a boundary must have 1 to {MAX_BOUNDARY} characters")
    delimiter = b"--" + boundary
    forms = [b"\r\n" + delimiter, delimiter]
    at = _next_delimiter(body, 0, forms)[1]
    parts: list[Part] = []
    while True:
        at += len(delimiter)
        if body.startswith(b"--", at):
            return parts
        if len(parts) == MAX_PARTS:
            raise Nonconforming(f"more than {MAX_PARTS} parts")
        if body.startswith(b"\r\n", at):
            at += 2
        else:
            line = _LINE_END.match(body, at)
            if line is None:
                raise Nonconforming("text follows a delimiter on the same line")
            at = line.end()
        head, start = _part_head(body, at)
        end, at = _part_end(body, start, head, forms)
        parts.append(Part(head.fields, body[start:end], start))


class _Head(NamedTuple):
    """The header fields of a part, and its Content-Length: None if it is absent, -1 if it is invalid."""

    fields: Mapping[bytes, bytes]
    length: int | None


_NO_HEAD: Final = _Head({}, None)


def _part_head(body: bytes, at: int) -> tuple[_Head, int]:
    """Return the head of the part at offset `at`, and the offset of its content."""
    end = body.find(b"\r\n\r\n", at, at + MOST_KNOWN)
    if end >= 0:
        known = _known_head(body[at:end])
        if known is not None:
            return known, end + 4
    for empty in (b"\r\n", b"\n"):
        if body.startswith(empty, at):
            return _NO_HEAD, at + len(empty)
    found = _HEAD_END.search(body, at, at + MAX_PART_HEAD)
    if found is None:
        raise Nonconforming("the header of a part does not end")
    return _head(body[at : found.start()]), found.end()


@lru_cache(maxsize=128)  # a sender writes the same heads again and again
def _known_head(text: bytes) -> _Head | None:
    """Parse a head; None if it contains an empty line, so that it ends earlier than `text` does."""
    if not text or text.startswith((b"\r\n", b"\n")) or text.endswith(b"\n") or _HEAD_END.search(text):
        return None
    return _head(text)


def _head(text: bytes) -> _Head:
    fields = MappingProxyType(read_fields(text))
    length = fields.get(b"content-length")
    if length is None:
        return _Head(fields, None)
    return _Head(fields, int(length) if _LENGTH.fullmatch(length) else -1)


def read_fields(head: bytes) -> dict[bytes, bytes]:
    """Return the header fields by lower-case name; if a field is repeated, the first one counts. Raises
    Nonconforming if a line is not a header field.
    """
    fields: dict[bytes, bytes] = {}
    if b"\n " in head or b"\n\t" in head:
        head = _FOLDED.sub(b" ", head)
    for line in head.splitlines():
        name, colon, value = line.partition(b":")
        name = name.rstrip(b" \t")
        if not colon or not name or name.translate(None, _TOKEN):
            raise Nonconforming("a header line does not have the form name: value")
        fields.setdefault(name.lower(), value.strip(b" \t"))
    return fields


def _part_end(body: bytes, start: int, head: _Head, forms: list[bytes]) -> tuple[int, int]:
    """Returns the end of the content that starts at `start`, and the offset of the next delimiter."""
    length = head.length
    if length is None:
        return _next_delimiter(body, start, forms)
    end = start + length
    if not start <= end <= len(body):
        raise Nonconforming("the Content-Length of a part is invalid or exceeds the message")
    if body.startswith(forms[-1], end):
        return end, end
    for between in (b"\r\n", b"\n"):
        if body.startswith(between + forms[-1], end):
            return end, end + len(between)
    raise Nonconforming("a part is not followed by a delimiter where its Content-Length ends")


def _next_delimiter(body: bytes, start: int, forms: list[bytes]) -> tuple[int, int]:
    """Find the delimiter that ends the content at `start`: a delimiter at the beginning of a line if there is
    one, otherwise any. Returns (end of the content, offset of the delimiter).

    A form of the delimiter that does not occur is removed from `forms`, so that it is not searched again for
    each part.
    """
    delimiter = forms[-1]
    if body.startswith(delimiter, start):
        return start, start
    while forms:
        at = body.find(forms[0], start)
        if at >= 0:
            return at, at + len(forms[0]) - len(delimiter)
        del forms[0]
    raise Nonconforming("a part is not followed by a delimiter")


def build(boundary: bytes, parts: Iterable[tuple[bytes, bytes, bytes]]) -> bytes:
    """Build the body from parts, each a tuple (Content-Type, Content-Id or b"" for none, content)."""
    pieces = []
    for content_type, content_id, content in parts:
        pieces.append(
            b"--%b\r\nContent-Type: %b\r\nContent-Length: %d\r\n" % (boundary, content_type, len(content))
        )
        if content_id:
            pieces.append(b"Content-Id: %b\r\n" % content_id)
        pieces += b"\r\n", content
    pieces.append(b"--%b--\r\n" % boundary)
    return b"".join(pieces)
