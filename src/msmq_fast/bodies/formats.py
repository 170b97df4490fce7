"""The functions `decode` and `encode`: the common entry points for all formats."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from msmq_fast.bodies import activex, binary, json, xml
from msmq_fast.bodies.errors import BodyError
from msmq_fast.bodies.framing import framing
from msmq_fast.bodies.kind import BINARY_FORMATTER, body_kind
from msmq_fast.bodies.text import text
from msmq_fast.bodies.types import ARRAY, infer, shown

FORMATTERS: Final = ("xml", "binary", "activex", "json")
"""The formatters that `encode` accepts: those of System.Messaging, and JSON."""

MAX_BODY: Final = 1 << 24
"""Largest body that is decoded, in bytes; an MSMQ message has at most 4 MiB."""


class Decoded(NamedTuple):
    """A decoded body.

    `value` is plain data: None, bool, int, float, str, bytes, Decimal, datetime, timedelta, UUID, and lists
    and dicts of these. `notes` describe lossy conversions. If the bytes are invalid, `value` is None and
    `error` says why.
    """

    kind: str
    value: Any
    notes: tuple[str, ...] = ()
    error: str | None = None


class Encoded(NamedTuple):
    """A body, and the body type (PROPID_M_BODY_TYPE) that tells the reader its format."""

    body: bytes
    body_type: int


def decode(body: bytes, body_type: int | None = None) -> Decoded:
    """Decode a body. Invalid bytes never raise: `error` of the result says in one line what is wrong.

    `bodies.kind.body_kind` determines the kind of the body, from the body type or else from the first bytes.
    The value of a body of kind `binary` is its bytes; the value of a body with NetMsmqBinding framing is a
    dict of the framing records.
    """
    kind = body_kind(body, body_type)
    if len(body) > MAX_BODY:
        return Decoded(kind, None, (), f"the body has {len(body)} bytes; at most {MAX_BODY} are decoded")
    try:
        value, notes = _read(bytes(body), body_type, kind)
    except BodyError as error:
        return Decoded(kind, None, (), str(error))
    return Decoded(kind, value, tuple(notes))


def _read(body: bytes, body_type: int | None, kind: str) -> tuple[Any, list[str]]:
    if kind == "empty":
        return None, []
    if kind == "xml":
        return xml.decode(body)
    if kind == "json":
        return json.decode(body, body_type), []
    if kind == "net_binary":
        return binary.decode(body)
    if kind == "net_framing":
        return framing(body)._asdict(), []
    if kind in ("text", "ansi_text"):
        return text(body, body_type), []
    if kind in ("number", "guid") and body_type is not None:
        return activex.decode(body, body_type), []
    return body, []


def encode(value: Any, formatter: str = "xml", *, type: str | None = None) -> Encoded:
    """Return the body and the body type for a value, byte for byte as the formatter of .NET Framework on
    Windows writes them.

    `formatter` is one of FORMATTERS. `type` names a simple type (`int16`, `single`, `datetime`; `int16[]` for
    an array; see `bodies.types`), for `activex` also a VARIANT type (`bstr`, `currency`); None selects the
    type from the Python value. The formatter `json` accepts no `type`.

    Raises BodyError if the formatter or the type is unknown, or the value does not have the type.
    """
    if formatter not in FORMATTERS:
        raise BodyError(f"invalid formatter {formatter!r}: choose one of {', '.join(FORMATTERS)}")
    if formatter == "json":
        if type is not None:
            raise BodyError("the formatter json takes no type")
        return Encoded(json.encode(value), 0)
    name = infer(value) if type is None else type
    if name.endswith(ARRAY) and not isinstance(value, list | tuple):
        raise BodyError(f"type {name} takes a list, not {shown(value)}")
    if formatter == "activex":
        return Encoded(*activex.encode(value, name))
    if formatter == "binary":
        return Encoded(binary.encode(value, name), BINARY_FORMATTER)
    return Encoded(xml.encode(value, name), 0)
