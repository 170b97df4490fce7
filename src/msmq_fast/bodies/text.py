"""Text bodies and their encodings."""

from __future__ import annotations

import re
from typing import Final

from msmq_fast.bodies.errors import BodyError
from msmq_fast.bodies.kind import NARROW_TEXT, WIDE_TEXT

_MARKED: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_DECLARED: Final = re.compile(rb"""^<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
# Encodings that a declaration may name; Python knows some that are no encodings of text.
_ENCODINGS: Final = frozenset(
    (
        "utf-8",
        "utf-16",
        "utf-16le",
        "utf-16be",
        "us-ascii",
        "iso-8859-1",
        "iso-8859-2",
        "iso-8859-15",
        "windows-1250",
        "windows-1251",
        "windows-1252",
        "windows-1253",
        "windows-1254",
        "gbk",
        "gb2312",
        "gb18030",
        "big5",
        "shift_jis",
        "euc-jp",
        "euc-kr",
        "koi8-r",
    )
)


def text(body: bytes, body_type: int | None) -> str:
    """Return the text of a body: UTF-16LE for VT_BSTR and VT_LPWSTR, up to a final NUL; ANSI for VT_LPSTR.

    A message does not state the code page of an ANSI text: the text is decoded as UTF-8, and as Windows-1252
    if that fails. Other types are decoded by their byte order mark, or as UTF-8 without one. Raises BodyError
    if the bytes are not valid in the encoding.
    """
    if body_type in WIDE_TEXT:
        return _ended(_decoded(body, "utf-16-le"))
    if body_type in NARROW_TEXT:
        try:
            return _ended(body.decode("utf-8"))
        except UnicodeDecodeError:
            return _ended(body.decode("windows-1252", "replace"))
    return _by_mark(body, "utf-8")


def utf16(body: bytes) -> str:
    """Return the text of a UTF-16LE body of any type, up to a final NUL. Raises BodyError if it is not
    UTF-16LE.
    """
    return _ended(_decoded(body, "utf-16-le"))


def xml(body: bytes) -> str:
    """Return the text of an XML document without its byte order mark, for Spark's from_xml, xpath or Variant.

    The encoding is that of the byte order mark, of the NULs in the first character, or of the XML
    declaration. The document is not parsed, so no entity is expanded. Raises BodyError if the bytes do not
    begin an XML document or are not valid in the encoding.
    """
    if body[:2] == b"<\0":
        encoding = "utf-16-le"
    elif body[:2] == b"\0<":
        encoding = "utf-16-be"
    else:
        encoding = _declared(body)
    found = _by_mark(body, encoding).rstrip("\0")
    if not found.lstrip().startswith("<"):
        raise BodyError("the body is not an XML document: it does not begin with <")
    return found


def _declared(body: bytes) -> str:
    found = _DECLARED.match(body)
    if found is None:
        return "utf-8"
    name = found[1].decode("ascii").lower()
    if name not in _ENCODINGS:
        raise BodyError(f"the encoding {name} that the document declares is not known")
    return "utf-8" if name.startswith("utf-16") else name  # its bytes would not have matched


def _by_mark(body: bytes, otherwise: str) -> str:
    for mark, encoding in _MARKED:
        if body.startswith(mark):
            return _decoded(body[len(mark) :], encoding)
    return _decoded(body, otherwise)


def _ended(found: str) -> str:
    return found.removesuffix("\0")


def _decoded(body: bytes, encoding: str) -> str:
    try:
        return body.decode(encoding)
    except UnicodeDecodeError as error:
        raise BodyError(f"byte {error.start} is not {encoding}: {error.reason}") from error
