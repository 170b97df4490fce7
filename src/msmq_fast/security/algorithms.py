"""Numbers and names of algorithms and cryptographic providers (MS-MQMQ 2.2.19.3, 2.2.20.6)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from msmq_fast.protocol.properties import EncryptionAlgorithm, PrivacyLevel

__all__ = [
    "BASE",
    "ENHANCED",
    "ENHANCED_AES",
    "PROVIDERS",
    "Provider",
    "SignatureType",
]


class SignatureType(IntEnum):
    """SecurityHeader.Flags.AS: the version of the signature that was verified."""

    NONE = 0
    MSMQ_1 = 1
    MSMQ_2 = 3
    MSMQ_3 = 5


@dataclass(frozen=True, slots=True)
class Provider:
    """A CryptoAPI provider. `type` is PROV_RSA_FULL or PROV_RSA_AES, `rsa_bits` the key length that Windows
    publishes.

    `session_bits` maps each algorithm to the length of its session keys in bits.
    """

    name: str
    type: int
    level: PrivacyLevel
    rsa_bits: int
    session_bits: dict[EncryptionAlgorithm, int]

    def __hash__(self) -> int:
        return hash(self.name)


BASE: Final = Provider(
    "Microsoft Base Cryptographic Provider v1.0",
    1,
    PrivacyLevel.BASE,
    512,
    {EncryptionAlgorithm.RC2: 40, EncryptionAlgorithm.RC4: 40},
)
ENHANCED: Final = Provider(
    "Microsoft Enhanced Cryptographic Provider v1.0",
    1,
    PrivacyLevel.ENHANCED,
    1024,
    {EncryptionAlgorithm.RC2: 128, EncryptionAlgorithm.RC4: 128},
)
ENHANCED_AES: Final = Provider(
    "Microsoft Enhanced RSA and AES Cryptographic Provider",
    24,
    PrivacyLevel.ADVANCED,
    1024,
    {EncryptionAlgorithm.AES_128: 128, EncryptionAlgorithm.AES_192: 192, EncryptionAlgorithm.AES_256: 256},
)
PROVIDERS: Final = (BASE, ENHANCED, ENHANCED_AES)
