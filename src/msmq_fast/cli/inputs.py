"""Reads whole input files up to a maximum size, and writes whole files."""

from __future__ import annotations

import sys
from pathlib import Path

from msmq_fast.protocol.exits import CommandError, Exit

__all__ = ["read_input", "write_output"]


def read_input(name: str, largest: int) -> bytes:
    """Return the bytes of a file, or of stdin for "-". Raises CommandError if it is unreadable or has more
    than `largest` bytes.
    """
    try:
        if name == "-":
            content = sys.stdin.buffer.read(largest + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(largest + 1)
    except OSError as error:
        raise CommandError(Exit.USAGE, f"{name}: {error.strerror}") from None
    if len(content) > largest:
        raise CommandError(Exit.USAGE, f"{name} has more than {largest >> 20} MiB")
    return content


def write_output(name: str, text: str) -> None:
    """Write a text file in UTF-8; replaces an existing file. Raises CommandError."""
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(Exit.FAILURE, f"{name}: {error.strerror}") from None
