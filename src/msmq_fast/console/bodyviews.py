"""Shows message bodies as text: one view for each decoder, and the decoder that suits a body.

A view is always plain text, which the page escapes. Nothing in a body is executed, resolved or fetched.
To add a decoder: 1. write a function from (body, body type) to (text, notes) that raises BodyError; 2. add it
to `DECODERS`; 3. say in `_SUITED` for which kinds of bodies it is the first choice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from msmq_fast.bodies import BodyError, activex, binary
from msmq_fast.bodies import json as json_bodies
from msmq_fast.bodies import text as texts
from msmq_fast.bodies.framing import framing
from msmq_fast.bodies.kind import body_kind
from msmq_fast.bodies.preview import is_readable
from msmq_fast.protocol.text import counted

__all__ = ["DECODERS", "HEX_PAGE", "BodyView", "hex_lines", "suited_decoder", "view_body"]

MOST: Final = 256 << 10
"""Characters of a view; the rest is left out, with a note."""
HEX_PAGE: Final = 8 << 10
"""Bytes of a page of the hexadecimal view."""
LARGEST: Final = 1 << 20
"""Bytes of a body that is shown as a tree or as indented JSON. A stranger may have sent it: a stream of 4 MiB
takes ten seconds to decode.
"""
_MOST_VALUES: Final = 100_000  # of a tree
_DEEPEST: Final = 60  # levels of a tree
_INDENT: Final = "  "

_Decoded = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class BodyView:
    """A body as one decoder shows it. `error` says why the body has no such view; the text is then empty."""

    decoder: str
    kind: str
    text: str
    notes: tuple[str, ...] = ()
    error: str = ""


def _utf8(body: bytes, _: int | None) -> _Decoded:
    return body.decode("utf-8-sig", "replace"), _replaced(body, "utf-8")


def _utf16(body: bytes, _: int | None) -> _Decoded:
    return body.decode("utf-16-le", "replace").lstrip("\ufeff").removesuffix("\0"), _replaced(
        body, "utf-16-le"
    )


def _windows(body: bytes, _: int | None) -> _Decoded:
    return body.decode("windows-1252", "replace"), _replaced(body, "windows-1252")


def _replaced(body: bytes, encoding: str) -> tuple[str, ...]:
    try:
        body.decode(encoding)
    except UnicodeDecodeError as error:
        return (f"byte {error.start} is not {encoding}; such bytes are shown as \ufffd",)
    return ()


def _stated_text(body: bytes, body_type: int | None) -> _Decoded:
    return texts.text(body, body_type), ()


def _xml(body: bytes, _: int | None) -> _Decoded:
    return _indented(texts.xml(body)), ()


def _json(body: bytes, body_type: int | None) -> _Decoded:
    _check_size(body)
    return json.dumps(json_bodies.decode(body, body_type), ensure_ascii=False, indent=2), ()


def _net_binary(body: bytes, _: int | None) -> _Decoded:
    _check_size(body)
    value, notes = binary.decode(body, _MOST_VALUES)
    return "\n".join(_tree(value)), tuple(notes)


def _check_size(body: bytes) -> None:
    if len(body) > LARGEST:
        raise BodyError(f"a body of more than {LARGEST} bytes is not decoded here: download it")


def _net_framing(body: bytes, _: int | None) -> _Decoded:
    found = framing(body)
    lines = [
        f"version   {found.version}",
        f"mode      {found.mode}",
        f"via       {found.via or '(none)'}",
        f"encoding  {found.encoding or '(none)'}",
    ]
    if found.envelope is None:
        return "\n".join([*lines, "", "The body has no envelope."]), ()
    end = len(body) if found.envelope_size is None else found.envelope + found.envelope_size
    envelope = body[found.envelope : end]
    lines += [f"envelope  {counted(len(envelope), 'byte')} from byte {found.envelope}", ""]
    if (found.encoding or "").startswith(("text/xml", "application/soap+xml")):
        return "\n".join([*lines, _indented(texts.xml(envelope))]), ()
    return "\n".join([*lines, *hex_lines(envelope[:HEX_PAGE], 0)]), ("the envelope is binary XML",)


def _activex(body: bytes, body_type: int | None) -> _Decoded:
    value = activex.decode(body, body_type or 0)
    return (value if isinstance(value, str) else "\n".join(_tree(value))), ()


def _hex(body: bytes, _: int | None) -> _Decoded:
    notes = () if len(body) <= HEX_PAGE else (f"the first {HEX_PAGE} of {len(body)} bytes",)
    return "\n".join(hex_lines(body[:HEX_PAGE], 0)), notes


DECODERS: Final[dict[str, tuple[str, Callable[[bytes, int | None], _Decoded]]]] = {
    "text": ("Text as the body type says", _stated_text),
    "utf-8": ("Text, UTF-8", _utf8),
    "utf-16": ("Text, UTF-16", _utf16),
    "windows-1252": ("Text, Windows-1252", _windows),
    "xml": ("XML, indented", _xml),
    "json": ("JSON, indented", _json),
    "net-binary": (".NET BinaryFormatter, as a tree", _net_binary),
    "net-framing": ("NetMsmqBinding (WCF) framing", _net_framing),
    "activex": ("ActiveX / COM value", _activex),
    "hex": ("Hexadecimal", _hex),
}
"""The decoders by name, each with its title."""

_SUITED: Final = {
    "text": "text",
    "ansi_text": "text",
    "xml": "xml",
    "json": "json",
    "net_binary": "net-binary",
    "net_framing": "net-framing",
    "number": "activex",
    "guid": "activex",
}


def suited_decoder(body: bytes, body_type: int | None) -> str:
    """Return the name of the first decoder to try for a body."""
    kind = body_kind(body, body_type)
    if kind in _SUITED:
        return _SUITED[kind]
    return "utf-8" if is_readable(body) else "hex"


def view_body(body: bytes, body_type: int | None, decoder: str = "") -> BodyView:
    """Return a body as `decoder` shows it; without one, as the decoder that suits it, or in hexadecimal if
    that fails. An unknown decoder counts as none.
    """
    kind = body_kind(body, body_type)
    chosen = decoder if decoder in DECODERS else suited_decoder(body, body_type)
    try:
        text, notes = DECODERS[chosen][1](body, body_type)
    except BodyError as error:
        if decoder == chosen:
            return BodyView(chosen, kind, "", (), str(error))
        text, notes = _hex(body, body_type)
        return BodyView("hex", kind, text, (f"shown in hexadecimal: {error}", *notes))
    if len(text) > MOST:
        notes = (*notes, f"the first {MOST} of {len(text)} characters; download the body to see all of it")
    return BodyView(chosen, kind, text[:MOST], notes)


def hex_lines(data: bytes, offset: int) -> Iterator[str]:
    """Yield lines of 16 bytes: offset, bytes in hexadecimal, and ASCII characters. `offset` is that of the
    first byte.
    """
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        left = " ".join(f"{byte:02x}" for byte in row[:8])
        right = " ".join(f"{byte:02x}" for byte in row[8:])
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield f"{offset + at:08x}  {left:<23}  {right:<23}  {shown}"


def _indented(document: str) -> str:
    """Return an XML document with one element a line. The document is not parsed: no entity is expanded, and
    a document that is not well-formed stays readable.
    """
    lines: list[str] = []
    level, size = 0, 0
    tokens = [token for token in _tokens(document[: 2 * MOST]) if token.strip()]
    at = 0
    while at < len(tokens) and size <= MOST:
        token = tokens[at].strip()
        if token.startswith("</"):
            level = max(0, level - 1)
            line = token
        elif _opens(token):
            following = [each.strip() for each in tokens[at + 1 : at + 3]]
            if len(following) == 2 and not following[0].startswith("<") and following[1].startswith("</"):
                line = token + following[0] + following[1]
                at += 2
            elif following and following[0].startswith("</"):
                line = token + following[0]
                at += 1
            else:
                line = token
                lines.append(_INDENT * min(level, _DEEPEST) + line)
                size += len(lines[-1])
                level += 1
                at += 1
                continue
        else:
            line = token
        lines.append(_INDENT * min(level, _DEEPEST) + line)
        size += len(lines[-1])
        at += 1
    return "\n".join(lines)


def _tokens(document: str) -> Iterator[str]:
    """Yield the tags, comments and texts of a document. Each end is searched for once, so the time is linear
    for any document: after the last `-->`, comments count as tags.
    """
    at, ends = 0, {"<!--": True, "<![CDATA[": True}
    while at < len(document):
        if document[at] != "<":
            end = document.find("<", at)
            end = len(document) if end < 0 else end
        else:
            close = ">"
            for begin, closing in (("<!--", "-->"), ("<![CDATA[", "]]>")):
                if ends[begin] and document.startswith(begin, at):
                    ends[begin] = document.find(closing, at) >= 0
                    close = closing if ends[begin] else ">"
            found = document.find(close, at)
            end = len(document) if found < 0 else found + len(close)
        yield document[at:end]
        at = end


def _opens(token: str) -> bool:
    return token.startswith("<") and not token.startswith(("<?", "<!")) and not token.endswith("/>")


def _tree(value: Any, level: int = 0, name: str = "") -> Iterator[str]:
    """Yield the lines of plain data as the decoders return it."""
    pad = _INDENT * level
    prefix = f"{pad}{name}: " if name else pad
    if level >= _DEEPEST:
        yield f"{prefix}…"
    elif isinstance(value, dict):
        title = str(value.get("__class__", f"map of {len(value)}"))
        yield f"{prefix}{title}"
        for key, inner in value.items():
            if key != "__class__":
                yield from _tree(inner, level + 1, str(key))
    elif isinstance(value, list):
        yield f"{prefix}list of {len(value)}"
        for index, inner in enumerate(value):
            yield from _tree(inner, level + 1, f"[{index}]")
    else:
        yield f"{prefix}{_scalar(value)}"


def _scalar(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case bytes():
            shown = value[:64].hex(" ")
            return f"{counted(len(value), 'byte')}: {shown}{' …' if len(value) > 64 else ''}"
        case datetime():
            return value.isoformat(" ")
        case Decimal() | UUID():
            return str(value)
    return str(value)
