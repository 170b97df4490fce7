"""Bodies of messages as people read them."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from msmq_fast.client.message import VT_BSTR, VT_LPSTR, VT_LPWSTR, ReceivedMessage

__all__ = ["body_text"]

_TEXTS: Final = (0, VT_BSTR, VT_LPSTR, VT_LPWSTR)  # body types of text; 0 says nothing
_SHOWN: Final = 64  # bytes of a body that is not text


def body_text(message: ReceivedMessage) -> str:
    """Return a body as text: text as it is, other values as the formatters of .NET and COM decode them,
    anything else in hexadecimal.
    """
    if message.body_type in _TEXTS:
        with suppress(UnicodeDecodeError):
            return message.text
    found = message.decoded
    if found.error is None and not isinstance(found.value, bytes):
        return f"{found.value} ({found.kind})"
    return f"0x{bytes(message.body[:_SHOWN]).hex()}{'…' if len(message.body) > _SHOWN else ''}"
