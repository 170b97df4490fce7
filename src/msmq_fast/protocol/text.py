"""Texts for people: makes those of other hosts and of users safe to show in log lines, errors and on
terminals, and counts things in words.

No function here raises because of what a text contains.
"""

from __future__ import annotations

__all__ = ["counted", "noun_of", "printable", "quoted"]


def printable(text: str) -> str:
    """Return the text with \\xNN in place of every character that is not printable, so that the text cannot
    move the cursor of a terminal.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def quoted(text: str) -> str:
    """Return the `printable` text in quotation marks."""
    return f'"{printable(text)}"'


def noun_of(number: int, one: str, many: str = "") -> str:
    """Return the form of a noun for a number of things. `many` is the plural if it is not `one` with an s;
    both may have more words: `noun_of(n, "message is", "messages are")`.
    """
    return one if number == 1 else many or f"{one}s"


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number and its noun: `1 message`, `2 messages`. See `noun_of`."""
    return f"{number} {noun_of(number, one, many)}"
