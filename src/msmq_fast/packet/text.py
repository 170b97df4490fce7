"""Text of strangers in what people read: it stays on one line and moves no cursor. And text in XML."""

import re

__all__ = ["is_xml", "printable", "quoted"]

_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")


def is_xml(text: str) -> bool:
    """Whether XML 1.0 can carry a text: no control characters, no lone surrogates, no U+FFFE and U+FFFF."""
    return _NOT_IN_XML.search(text) is None


def printable(text: str) -> str:
    """The same with \\xNN for every character that is no visible one."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def quoted(text: str) -> str:
    """`printable` text in quotation marks."""
    return f'"{printable(text)}"'
