"""Makes text of other hosts and of users safe to show: in log lines, errors and on terminals.

No function here raises because of what a text contains.
"""

from __future__ import annotations

__all__ = ["printable", "quoted"]


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
