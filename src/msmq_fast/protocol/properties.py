"""Numeric values of message properties, the same in every protocol: MS-MQMQ 2.2.20, and PROPID_M_*
of MSMQ.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag


class Delivery(IntEnum):
    """Whether queue managers keep the message in memory or on disk (M-09)."""

    EXPRESS = 0
    RECOVERABLE = 1


class Acknowledge(IntFlag):
    """The acknowledgments that the sender requests (M-27)."""

    NONE = 0
    POSITIVE_ARRIVAL = 1
    POSITIVE_RECEIVE = 2
    NEGATIVE_ARRIVAL = 4
    NEGATIVE_RECEIVE = 8


class Journal(IntFlag):
    """The copies that the sender's queue manager keeps (M-13, M-14)."""

    NONE = 0
    DEADLETTER = 1
    JOURNAL = 2


class PrivacyLevel(IntEnum):
    """MessagePropertiesHeader.PrivacyLevel; all other values are invalid."""

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
    """The signature that the sender's queue manager makes (position AUTHENTICATION of a SEND frame)."""

    NONE = 0
    MSMQ_1 = 1
    MSMQ_2 = 2
