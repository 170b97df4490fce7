"""Option `decode`: the column `body_text`, which the executor decodes from each body."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

import pyarrow as pa

from msmq_fast.bodies.errors import BodyError
from msmq_fast.bodies.text import text, utf16, xml
from msmq_fast.protocol.columns import Column

BODY_TEXT: Final = Column("body_text", "string")
NEEDS: Final = ("body", "body_type")
"""Columns from which `body_text` is decoded."""


def _utf16(body: bytes, body_type: int | None) -> str:
    return utf16(body)


def _xml(body: bytes, body_type: int | None) -> str:
    return xml(body)


def _json(body: bytes, body_type: int | None) -> str:
    found = text(body, body_type)
    try:
        json.loads(found)
    except (ValueError, RecursionError):
        raise BodyError("not JSON") from None
    return found


DECODERS: Final[dict[str, Callable[[bytes, int | None], str]]] = {
    "text": text,
    "utf16": _utf16,
    "xml": _xml,
    "json": _json,
}


def body_texts(batch: pa.RecordBatch, decode: str) -> pa.Array:
    """Return the bodies of a batch decoded to text, according to the value `decode` of the option; null for a
    body that is null or not valid in that encoding.
    """
    function = DECODERS[decode]
    bodies, kinds = batch.column("body").to_pylist(), batch.column("body_type").to_pylist()
    return pa.array((_text(function, *row) for row in zip(bodies, kinds, strict=True)), pa.string())


def _text(function: Callable[[bytes, int | None], str], body: bytes | None, kind: int | None) -> str | None:
    if body is None:
        return None
    try:
        return function(body, kind)
    except BodyError:
        return None
