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
        kinds.TEXT, "", "key that seals private keys in the store, 32 bytes in hexadecimal or base64"
    )
    key_file: Path | None = kinds.key(  # noqa: RUF009
        kinds.PATH,
        None,
        "file that holds that key, made if missing; empty: secrets.key in the data directory",
    )
    discard_keys: bool = kinds.key(
        kinds.FLAG, False, "start with new key pairs where the stored ones cannot be opened"
    )
    providers: tuple[str, ...] = kinds.key(
        kinds.TEXTS,
        ("enhanced", "advanced"),
        "providers with a key pair: base (old peers), enhanced, advanced",
    )
    rsa_bits: str = kinds.key(
        kinds.choice("1024", "2048", "3072", "4096"), "2048", "bits of new key pairs; those of base have 512"
    )
    hash: str = kinds.key(kinds.choice(*_HASHES), "sha512", "hash algorithm of signatures made here")
    accept_hashes: tuple[str, ...] = kinds.key(
        kinds.TEXTS, ("sha512",), "hash algorithms of signatures that are believed"
    )
    accept_msmq1: bool = kinds.key(
        kinds.FLAG, False, "believe signatures of MSMQ 1.0, which do not cover the destination"
    )
    base_algorithm: str = kinds.key(
        kinds.choice("rc4", "rc2"), "rc4", "for destinations with a base key only"
    )
    enhanced_algorithm: str = kinds.key(kinds.choice("rc4", "rc2"), "rc4", "for destinations without AES")
    advanced_algorithm: str = kinds.key(
        kinds.choice("aes256", "aes192", "aes128"), "aes256", "for all others"
    )
    send_enhanced_rc2_40: bool = kinds.key(
        kinds.FLAG, False, "RC2 for destinations without AES with 40 bits only"
    )
    reject_enhanced_rc2_40: bool = kinds.key(kinds.FLAG, False, "refuse such messages")
    send_cache: int = kinds.key(kinds.integer(2, 1_000_000), 53, "session keys kept for sending")
    receive_cache: int = kinds.key(kinds.integer(2, 1_000_000), 127, "session keys kept for receiving")
    key_lifetime: float = kinds.key(kinds.duration(1, 10**7), 600.0, "of session keys")
    certificate_cache: int = kinds.key(kinds.integer(2, 1_000_000), 53, "certificates of senders kept")
    certificate_lifetime: float = kinds.key(kinds.duration(1, 10**7), 1200.0, "of what is known of them")
    amb82_names: str = kinds.key(
        kinds.choice("field", "content", "text", "text-nul"),
        "field",
        "queue names in the hash of a signature",
    )
    amb82_label_nul: bool = kinds.key(kinds.FLAG, True, "the label is hashed with its NUL")
    amb82_absent_connector: bool = kinds.key(
        kinds.FLAG, False, "no connector type is hashed as 16 zero bytes"
    )
    amb82_all_lists: bool = kinds.key(kinds.FLAG, False, "an MSMQ 3.0 signature covers all lists of queues")
    amb82_reversed: bool = kinds.key(kinds.FLAG, True, "signatures are stored byte-reversed")
    amb83_salt: bool = kinds.key(kinds.FLAG, True, "40-bit keys are followed by 11 zero bytes")
    amb29_plain_size: bool = kinds.key(
        kinds.FLAG, True, "MessageSize of a message encrypted here is the length before encryption"
    )
    amb27_strict_level: bool = kinds.key(
        kinds.FLAG, False, "the provider is chosen by the privacy level only, not the best there is"
    )
    qb402_sign_direct: bool = kinds.key(kinds.FLAG, True, "messages to direct format names are signed too")
