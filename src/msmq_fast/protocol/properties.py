"""The values of message properties that are numbers on every wire: MS-MQMQ 2.2.20, and PROPID_M_* of MSMQ."""

from __future__ import annotations

from enum import IntEnum, IntFlag


class Delivery(IntEnum):
    """How a message is kept on its way (M-09)."""

    EXPRESS = 0
    RECOVERABLE = 1


class Acknowledge(IntFlag):
    """Which acknowledgments the sender asks for (M-27)."""

    NONE = 0
    POSITIVE_ARRIVAL = 1
    POSITIVE_RECEIVE = 2
    NEGATIVE_ARRIVAL = 4
    NEGATIVE_RECEIVE = 8


class Journal(IntFlag):
    """Copies that the sender's queue manager keeps (M-13, M-14)."""

    NONE = 0
    DEADLETTER = 1
    JOURNAL = 2


class PrivacyLevel(IntEnum):
    """MessagePropertiesHeader.PrivacyLevel; every other value but these is wrong."""

    NONE = 0
    BASE = 1
    ENHANCED = 3
    ADVANCED = 5


class HashAlgorithm(IntEnum):
    """MessagePropertiesHeader.HashAlgorithm."""

    MD2 = 0x8001
    MD4 = 0x8002
    MD5 = 0x8003
    SHA1 = 0x8004
    SHA256 = 0x800C
    SHA512 = 0x800E


class EncryptionAlgorithm(IntEnum):
    """MessagePropertiesHeader.EncryptionAlgorithm."""

    RC2 = 0x6602
    AES_128 = 0x660E
    AES_192 = 0x660F
    AES_256 = 0x6610
    RC4 = 0x6801


class Authentication(IntEnum):
    """Which signature the sender's queue manager makes (position AUTHENTICATION of a SEND frame)."""

    NONE = 0
    MSMQ_1 = 1
    MSMQ_2 = 2
