"""Message classes (MS-MQMQ 2.2.18.1.6; three values from MC-MQAC 2.2.2.9)."""

from enum import IntEnum


class MessageClass(IntEnum):
    """The class of a message. Other values are possible (custom classes) and stay plain integers."""

    NORMAL = 0x0000
    REPORT = 0x0001
    ACK_REACH_QUEUE = 0x0002
    ORDER_ACK = 0x00FF
    ACK_RECEIVE = 0x4000
    NACK_BAD_DST_Q = 0x8000
    NACK_DELETED = 0x8001
    NACK_REACH_QUEUE_TIMEOUT = 0x8002
    NACK_Q_EXCEED_QUOTA = 0x8003
    NACK_ACCESS_DENIED = 0x8004
    NACK_HOP_COUNT_EXCEEDED = 0x8005
    NACK_BAD_SIGNATURE = 0x8006
    NACK_BAD_ENCRYPTION = 0x8007
    NACK_COULD_NOT_ENCRYPT = 0x8008
    NACK_NOT_TRANSACTIONAL_Q = 0x8009
    NACK_NOT_TRANSACTIONAL_MSG = 0x800A
    NACK_UNSUPPORTED_CRYPTO_PROVIDER = 0x800B
    NACK_SOURCE_COMPUTER_GUID_CHANGED = 0x800C
    NACK_Q_DELETED = 0xC000
    NACK_Q_PURGED = 0xC001
    NACK_RECEIVE_TIMEOUT = 0xC002
    NACK_RECEIVE_TIMEOUT_AT_SENDER = 0xC003
    NACK_RECEIVE_REJECTED = 0xC004


CUSTOM_MASK = 0xE1FF  # bits that an application's own class may set


def message_class(value: int) -> int:
    """Return the MessageClass of a wire value, or the value itself if it has no name."""
    try:
        return MessageClass(value)
    except ValueError:
        return value


def name_of(value: int) -> str:
    """Return a wire value as text for people: the name of the class, or the number if it has no name."""
    found = message_class(value)
    return found.name if isinstance(found, MessageClass) else f"{value:#06x}"


def parse_class(text: str) -> int:
    """Return the number of a message class that `text` gives by name (`NACK_Q_PURGED`, `q-purged`) or by
    number. Raises ValueError.
    """
    word = text.strip().upper().replace("-", "_").removeprefix("MQMSG_CLASS_")
    for name in (word, f"NACK_{word}"):
        if name in MessageClass.__members__:
            return int(MessageClass[name])
    value = int(word, 0)
    if not 0 <= value <= 0xFFFF:
        raise ValueError(f"{text} is not a message class")
    return value


def is_negative(value: int) -> bool:
    """Whether the class is a negative acknowledgment."""
    return bool(value & 0x8000)


def about_receiving(value: int) -> bool:
    """Whether the class is an acknowledgment that tells the sender about the receive of a message, not about
    its arrival.
    """
    return bool(value & 0x4000)
