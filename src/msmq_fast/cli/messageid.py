"""Message identifiers as text: `{guid}\\number`. Packets hold them as 20 bytes."""

from __future__ import annotations

import argparse

from msmq_fast.client.message import parse_message_id
from msmq_fast.terminal.values import hexadecimal

__all__ = ["correlation_id", "message_id"]


def message_id(text: str) -> bytes:
    """Return the 20 bytes of the message identifier that `text` spells. Raises ArgumentTypeError."""
    try:
        return parse_message_id(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


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
