"""Message classes as people write and read them."""

from __future__ import annotations

from msmq_fast.protocol.classes import MessageClass

__all__ = ["class_name", "parse_class"]


def parse_class(text: str) -> int:
    """The number of a message class, by name (`NACK_Q_PURGED`, `q-purged`) or number. Raises ValueError."""
    word = text.strip().upper().replace("-", "_").removeprefix("MQMSG_CLASS_")
    for name in (word, f"NACK_{word}"):
        if name in MessageClass.__members__:
            return int(MessageClass[name])
    value = int(word, 0)
    if not 0 <= value <= 0xFFFF:
        raise ValueError(f"{text} is no message class")
    return value


def class_name(value: int) -> str:
    """The name of a message class, or its number."""
    try:
        return MessageClass(value).name
    except ValueError:
        return f"0x{value:04X}"
