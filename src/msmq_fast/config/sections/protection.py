"""Section [protection]: signatures and encryption of messages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msmq_fast.config import kinds

__all__ = ["ProtectionConfig"]

_HASHES = ("md2", "md4", "md5", "sha1", "sha256", "sha512")


@dataclass(slots=True)
class ProtectionConfig:
    """Section [protection]: signatures and encryption of messages."""

    key: str = kinds.key(
        kinds.TEXT,
        "",
        "key that encrypts private keys in the store, 32 bytes in hexadecimal or base64",
        secret=True,
    )
    key_file: Path | None = kinds.key(
        kinds.PATH,
        None,
        "file that holds that key, created if missing; empty: secrets.key in the data directory",
    )
    discard_keys: bool = kinds.key(kinds.FLAG, False, "replace stored key pairs that cannot be decrypted")
    providers: tuple[str, ...] = kinds.key(
        kinds.TEXTS,
        ("enhanced", "advanced"),
        "providers with a key pair: base (old peers), enhanced, advanced",
    )
    rsa_bits: str = kinds.key(
        kinds.choice("1024", "2048", "3072", "4096"),
        "2048",
        "bits of new key pairs; those of the base provider have 512",
    )
    hash: str = kinds.key(
        kinds.choice(*_HASHES), "sha512", "hash algorithm of signatures that this server makes"
    )
    accept_hashes: tuple[str, ...] = kinds.key(
        kinds.TEXTS, ("sha512",), "hash algorithms of signatures that this server accepts"
    )
    accept_msmq1: bool = kinds.key(
        kinds.FLAG, False, "accept signatures of MSMQ 1.0, which do not cover the destination"
    )
    base_algorithm: str = kinds.key(
        kinds.choice("rc4", "rc2"), "rc4", "encryption algorithm for destinations that have only a base key"
    )
    enhanced_algorithm: str = kinds.key(
        kinds.choice("rc4", "rc2"), "rc4", "encryption algorithm for destinations without AES"
    )
    advanced_algorithm: str = kinds.key(
        kinds.choice("aes256", "aes192", "aes128"),
        "aes256",
        "encryption algorithm for all other destinations",
    )
    send_enhanced_rc2_40: bool = kinds.key(
        kinds.FLAG, False, "use RC2 with 40 bits only for destinations without AES"
    )
    reject_enhanced_rc2_40: bool = kinds.key(
        kinds.FLAG, False, "reject messages that are encrypted with RC2 with 40 bits"
    )
    send_cache: int = kinds.key(
        kinds.integer(2, 1_000_000), 53, "number of session keys that are cached for sending"
    )
    receive_cache: int = kinds.key(
        kinds.integer(2, 1_000_000), 127, "number of session keys that are cached for receiving"
    )
    key_lifetime: float = kinds.key(kinds.duration(1, 10**7), 600.0, "lifetime of a cached session key")
    certificate_cache: int = kinds.key(
        kinds.integer(2, 1_000_000), 53, "number of sender certificates that are cached"
    )
    certificate_lifetime: float = kinds.key(
        kinds.duration(1, 10**7), 1200.0, "lifetime of a cached certificate"
    )
