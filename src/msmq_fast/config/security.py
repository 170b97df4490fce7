"""Sections [security] and [protection] of the configuration: rights, signatures, encryption."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msmq_fast.config import kinds, name_kinds
from msmq_fast.config.kinds import key as _key

__all__ = ["ProtectionConfig", "SecurityConfig"]

_HASHES = ("md2", "md4", "md5", "sha1", "sha256", "sha512")


@dataclass(slots=True)
class SecurityConfig:
    """Section [security]: who may do what."""

    profile: str = _key(
        kinds.choice("windows", "hardened"),
        "windows",
        "group of defaults: windows: as a Windows host, anonymous senders included; hardened: only hosts of "
        "mqqb.allow reach port 1801, nothing else is open; keys that are set win",
    )
    users_file: Path | None = _key(kinds.PATH, None, "users; empty: users.toml in the data directory")  # noqa: RUF009
    default_queue_acl: str = _key(
        kinds.choice("spec", "restrictive"),
        "restrictive",
        "what Everyone may do with a new queue: spec: all, as MS-MQDMPR has it; restrictive: look and send, "
        "as on Windows",
    )
    anonymous_may_send: bool = _key(
        kinds.FLAG, True, "new queues take messages of senders that do not say who they are"
    )
    everyone_creates_queues: bool = _key(kinds.FLAG, False, "not only administrators create queues")
    domains: tuple[str, ...] = _key(kinds.TEXTS, (), "SIDs of the domains whose accounts are domain users")
    amb23_unsigned_sid: str = _key(
        kinds.choice("use", "anonymous"), "anonymous", "what the sender id of an unsigned message counts for"
    )
    quarantine: str = _key(
        name_kinds.QUEUE, "", "queue for messages of refused senders; empty: they are dropped"
    )
    audit_interval: float = _key(kinds.duration(0, 86_400), 10.0, "equal refusals are logged once in so long")


@dataclass(slots=True)
class ProtectionConfig:
    """Section [protection]: signatures and encryption of messages."""

    key: str = _key(
        kinds.TEXT, "", "key that seals private keys in the store, 32 bytes in hexadecimal or base64"
    )
    key_file: Path | None = _key(  # noqa: RUF009
        kinds.PATH,
        None,
        "file that holds that key, made if missing; empty: secrets.key in the data directory",
    )
    discard_keys: bool = _key(
        kinds.FLAG, False, "start with new key pairs where the stored ones cannot be opened"
    )
    providers: tuple[str, ...] = _key(
        kinds.TEXTS,
        ("enhanced", "advanced"),
        "providers with a key pair: base (old peers), enhanced, advanced",
    )
    rsa_bits: str = _key(
        kinds.choice("1024", "2048", "3072", "4096"), "2048", "bits of new key pairs; those of base have 512"
    )
    hash: str = _key(kinds.choice(*_HASHES), "sha512", "hash algorithm of signatures made here")
    accept_hashes: tuple[str, ...] = _key(
        kinds.TEXTS, ("sha512",), "hash algorithms of signatures that are believed"
    )
    accept_msmq1: bool = _key(
        kinds.FLAG, False, "believe signatures of MSMQ 1.0, which do not cover the destination"
    )
    base_algorithm: str = _key(kinds.choice("rc4", "rc2"), "rc4", "for destinations with a base key only")
    enhanced_algorithm: str = _key(kinds.choice("rc4", "rc2"), "rc4", "for destinations without AES")
    advanced_algorithm: str = _key(kinds.choice("aes256", "aes192", "aes128"), "aes256", "for all others")
    send_enhanced_rc2_40: bool = _key(kinds.FLAG, False, "RC2 for destinations without AES with 40 bits only")
    reject_enhanced_rc2_40: bool = _key(kinds.FLAG, False, "refuse such messages")
    send_cache: int = _key(kinds.integer(2, 1_000_000), 53, "session keys kept for sending")
    receive_cache: int = _key(kinds.integer(2, 1_000_000), 127, "session keys kept for receiving")
    key_lifetime: float = _key(kinds.duration(1, 10**7), 600.0, "of session keys")
    certificate_cache: int = _key(kinds.integer(2, 1_000_000), 53, "certificates of senders kept")
    certificate_lifetime: float = _key(kinds.duration(1, 10**7), 1200.0, "of what is known of them")
    amb82_names: str = _key(
        kinds.choice("field", "content", "text", "text-nul"),
        "field",
        "queue names in the hash of a signature",
    )
    amb82_label_nul: bool = _key(kinds.FLAG, True, "the label is hashed with its NUL")
    amb82_absent_connector: bool = _key(kinds.FLAG, False, "no connector type is hashed as 16 zero bytes")
    amb82_all_lists: bool = _key(kinds.FLAG, False, "an MSMQ 3.0 signature covers all lists of queues")
    amb82_reversed: bool = _key(kinds.FLAG, True, "signatures are stored byte-reversed")
    amb83_salt: bool = _key(kinds.FLAG, True, "40-bit keys are followed by 11 zero bytes")
    amb29_plain_size: bool = _key(
        kinds.FLAG, True, "MessageSize of a message encrypted here is the length before encryption"
    )
    amb27_strict_level: bool = _key(
        kinds.FLAG, False, "the provider is chosen by the privacy level only, not the best there is"
    )
    qb402_sign_direct: bool = _key(kinds.FLAG, True, "messages to direct format names are signed too")
