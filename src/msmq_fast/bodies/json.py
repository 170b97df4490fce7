"""JSON bodies, as Newtonsoft.Json, NServiceBus and Rebus write them into messages."""

from __future__ import annotations

import json
from typing import Any, Final

from msmq_fast.bodies.errors import BodyError
from msmq_fast.bodies.text import text

MAX_DEPTH: Final = 100
"""Maximum nesting of lists and maps; Newtonsoft.Json reads 64 levels."""


def encode(value: Any) -> bytes:
    """Return the value as UTF-8 JSON without white space or a byte order mark. Raises BodyError if JSON
    cannot represent the value.
    """
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BodyError(f"the value cannot be written as JSON: {error}") from None


def decode(body: bytes, body_type: int | None) -> Any:
    """Return the value of a JSON document. Raises BodyError if the bytes are not JSON, or are nested too
    deeply.
    """
    document = text(body, body_type).lstrip("\ufeff").rstrip("\0")
    try:
        value = json.loads(document)
    except RecursionError:
        raise BodyError(f"the JSON document is nested more than {MAX_DEPTH} deep") from None
    except ValueError as error:
        raise BodyError(f"the body is not JSON: {error}") from None
    if document.count("[") + document.count("{") > MAX_DEPTH:
        _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    """Raise BodyError if a value is nested too deeply. The check goes level by level, since a recursive one
    could overflow the stack.
    """
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                inner += one.values()
            elif isinstance(one, list):
                inner += one
        if not inner:
            return
        level = inner
    raise BodyError(f"the JSON document is nested more than {MAX_DEPTH} deep")
