"""Text of strangers in what people read: it stays on one line and moves no cursor."""

__all__ = ["printable", "quoted"]


def printable(text: str) -> str:
    """The same with \\xNN for every character that is no visible one."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def quoted(text: str) -> str:
    """`printable` text in quotation marks."""
    return f'"{printable(text)}"'
