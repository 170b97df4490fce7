"""Complete SRMP messages: an envelope and its attachments ([MC-MQSRM] 2.2.2, 4; sections 1.1, 4.15).

A message is the body of an HTTP request, or a text that starts like such a request (PGM, stored messages).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from msmq_fast.srmp.model import Envelope
from msmq_fast.srmp.multipart import Part, boundary_of, read_fields, split
from msmq_fast.srmp.reading import read_envelope
from msmq_fast.srmp.values import Nonconforming

__all__ = ["Compound", "content_of", "read_http", "read_text", "via_of"]

MAX_HEAD: Final = 65_536  # bytes

_PARAMETER = re.compile(r';\s*([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;"]*))', re.DOTALL)
_QUOTED = re.compile(r"\\(.)", re.DOTALL)
_CHARSETS: Final = ("utf-8", "utf8", "us-ascii")
_AS_IT_IS: Final = (b"binary", b"8bit", b"7bit")  # Content-Transfer-Encoding
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_VIA = re.compile(rb"^Via[ \t]*:([^\r\n]*(?:\r?\n[ \t][^\r\n]*)*)", re.IGNORECASE | re.MULTILINE)


@dataclass(slots=True)
class Compound:
    """One message with its envelope and attachments.

    `size`: the message is in the last `size` bytes of the HTTP request or APDU. `body_offset`: the message
    body begins this many bytes after the start of the message.
    """

    envelope: Envelope
    envelope_xml: bytes
    body: bytes | None = None
    extension: bytes | None = None
    attachments: Mapping[str, bytes] = field(default_factory=dict)
    """The other parts of the message, by Content-Id."""
    body_offset: int = 0
    size: int = 0


def read_http(
    content_type: str,
    body: bytes | bytearray | memoryview,
    read: Callable[[bytes], Envelope] = read_envelope,
) -> Compound:
    """Return the message in the body of a request with this Content-Type; `read` parses its envelope.

    Raises Nonconforming if the body is not a valid message.
    """
    body = bytes(body)
    kind, parameters = _media_type(content_type)
    if kind == "text/xml":
        _check_charset(parameters)
        return Compound(read(body), body, size=len(body))
    if kind != "multipart/related":
        raise Nonconforming("the Content-Type is neither text/xml nor multipart/related")
    boundary = parameters.get("boundary", "").encode("latin-1", "replace")
    return _assembled(split(boundary, body), parameters.get("start", ""), len(body), read)


def read_text(text: bytes | bytearray | memoryview) -> Compound:
    """Return the message in an APDU: a text that begins with the head of an HTTP request.

    The head is ignored, Content-Type included; the first line after the head contains the boundary
    (footnote 2). Raises Nonconforming if the text is not a valid message.
    """
    text = bytes(text)
    body = text[_head_end(text).end() :]
    return read_http(_type_of(body).decode("latin-1"), body)


def content_of(text: bytes) -> tuple[bytes, bytes]:
    """Return the Content-Type and the body of a request that arrived over HTTP. If its head has no
    Content-Type, the beginning of the body determines it. Raises Nonconforming if neither is possible.
    """
    end = _head_end(text)
    line = text.find(b"\n", 0, end.start())
    fields = {} if line < 0 else read_fields(text[line + 1 : end.start()])  # the first line may be anything
    body = text[end.end() :]
    content_type = fields.get(b"content-type")
    return _type_of(body) if content_type is None else content_type, body


def via_of(text: bytes) -> list[bytes]:
    """Return the servers that forwarded a request: the entries of its Via fields (RFC 9110 7.6.3).

    Raises Nonconforming if the head of the request does not end.
    """
    head = text[: _head_end(text).start()]
    names = (name.strip() for field in _VIA.findall(head) for name in field.split(b","))
    return [name for name in names if name]


def _type_of(body: bytes) -> bytes:
    """Return the Content-Type of a body that begins with an envelope or with a boundary."""
    if body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return b"text/xml"
    return b'multipart/related; boundary="%b"; type=text/xml' % boundary_of(body)


def _head_end(text: bytes) -> re.Match[bytes]:
    """Find the empty line that ends the head; the body begins after it."""
    end = _HEAD_END.search(text, 0, MAX_HEAD)
    if end is None:
        raise Nonconforming("the header of the message does not end")
    return end


@lru_cache(maxsize=64)
def _media_type(content_type: str) -> tuple[str, Mapping[str, str]]:
    """Return the media type in lower case, and its parameters."""
    kind = content_type.partition(";")[0].strip().lower()
    parameters: dict[str, str] = {}
    for name, quoted, plain in _PARAMETER.findall(content_type):
        value = _QUOTED.sub(r"\1", quoted) if quoted else plain.strip()
        parameters.setdefault(name.lower(), value)
    return kind, parameters


def _check_charset(parameters: Mapping[str, str]) -> None:
    if parameters.get("charset", "utf-8").lower() not in _CHARSETS:
        raise Nonconforming("the encoding of the envelope is not UTF-8")


def _assembled(parts: list[Part], start: str, size: int, read: Callable[[bytes], Envelope]) -> Compound:
    """Build the message from its parts; `size` is the size of all parts together, as for `Compound`.

    The envelope is in the part that the parameter `start` of the Content-Type names (RFC 2387), otherwise in
    the first part.
    """
    if not parts:
        raise Nonconforming("the multipart message has no parts")
    names = [_content_id(part.fields.get(b"content-id", b"")) for part in parts]
    root = names.index(_bare(start)) if start and _bare(start) in names else 0
    kind, parameters = _media_type(parts[root].fields.get(b"content-type", b"text/xml").decode("latin-1"))
    if kind != "text/xml":
        raise Nonconforming("the envelope is not in a part of type text/xml")
    _check_charset(parameters)
    xml = parts[root].content
    envelope = read(xml)
    if envelope.is_receipt:
        raise Nonconforming("a receipt must consist of the envelope only, without other parts")
    known: dict[str, Part] = {}
    others: dict[str, bytes] = {}
    for name, part in zip(names, parts, strict=True):
        if part is parts[root]:
            continue
        if part.fields.get(b"content-transfer-encoding", b"binary").lower() not in _AS_IT_IS:
            raise Nonconforming("a part has a Content-Transfer-Encoding other than binary, 8bit and 7bit")
        role = name.partition("@")[0].lower()
        if role not in ("body", "extension"):
            others.setdefault(name, part.content)
        elif role in known:
            raise Nonconforming(f"the message has two parts for the {role}")
        else:
            known[role] = part
    body, extension = known.get("body"), known.get("extension")
    return Compound(
        envelope=envelope,
        envelope_xml=xml,
        body=None if body is None else body.content,
        extension=None if extension is None else extension.content,
        attachments=others,
        body_offset=0 if body is None else body.offset,
        size=size,
    )


@lru_cache(maxsize=64)
def _content_id(field: bytes) -> str:
    return _bare(field.decode("latin-1"))


def _bare(content_id: str) -> str:
    content_id = content_id.strip()
    return content_id[1:-1] if content_id[:1] == "<" and content_id[-1:] == ">" else content_id
