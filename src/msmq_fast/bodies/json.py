"""Bodies that are JSON, as Newtonsoft.Json, NServiceBus and Rebus put them into messages."""

from __future__ import annotations

import json
from typing import Any

from msmq_fast.bodies.errors import BodyError
from msmq_fast.bodies.text import text


def encode(value: Any) -> bytes:
    """UTF-8 without white space or a byte order mark. BodyError: JSON has no form for the value."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BodyError(f"JSON has no form for the value: {error}") from None


def decode(body: bytes, body_type: int | None) -> Any:
    """The value of a document. BodyError: the bytes are not JSON, or are nested too deeply."""
    document = text(body, body_type).lstrip("\ufeff").rstrip("\0")
    try:
        return json.loads(document)
    except RecursionError:
        raise BodyError("the JSON document is nested too deeply") from None
    except ValueError as error:
        raise BodyError(f"the body is not JSON: {error}") from None
