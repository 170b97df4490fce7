"""Message identifiers as text: `{guid}\\number`. Packets hold them as 20 bytes."""

from __future__ import annotations

import argparse
import re
from uuid import UUID

from msmq_fast.terminal.values import hexadecimal

__all__ = ["correlation_id", "message_id"]

_IDENTIFIER = re.compile(r"\{?([0-9A-Fa-f-]{36})\}?\\([0-9]{1,10})")


def message_id(text: str) -> bytes:
    """Return the 20 bytes of the message identifier that `text` spells. Raises ArgumentTypeError."""
    if re.fullmatch("[0-9A-Fa-f]{40}", text.strip()):
        return bytes.fromhex(text)
    matched = _IDENTIFIER.fullmatch(text.strip())
    try:
        if matched is not None and int(matched[2]) < 1 << 32:
            return UUID(matched[1]).bytes_le + int(matched[2]).to_bytes(4, "little")
    except ValueError:
        pass  # digits and hyphens, but not a GUID
    raise argparse.ArgumentTypeError(
        rf"{text!r} is not a message id: write it as `send` prints it, {{GUID}}\12, or as 40 digits"
    )


def correlation_id(text: str) -> bytes:
    """Return the 20 bytes of a correlation identifier: a message identifier, or 40 hexadecimal digits. Raises
    ArgumentTypeError.
    """
    if "\\" in text:
        return message_id(text)
    value = hexadecimal(text)
    if len(value) != 20:
        raise argparse.ArgumentTypeError(
            f"a correlation id has 20 bytes (40 hexadecimal digits), not {len(value)}"
        )
    return value
