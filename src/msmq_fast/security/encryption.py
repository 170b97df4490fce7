"""Encryption between queue managers (MS-MQQB 3.1.7.1.5, 3.1.5.8.3): providers, session keys, caches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicNumbers

from msmq_fast.protocol.properties import EncryptionAlgorithm, PrivacyLevel
from msmq_fast.security.agingcache import AgingCache
from msmq_fast.security.algorithms import BASE, ENHANCED, ENHANCED_AES, PROVIDERS, Provider
from msmq_fast.security.blobs import (
    PublicKeyEntry,
    RsaPublicKey,
    read_key_list,
    read_simple_blob,
    simple_blob,
)
from msmq_fast.security.ciphers import BodyCipher, body_cipher
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.keyturns import KeyTurns
from msmq_fast.security.switches import SecuritySwitches
from msmq_fast.timing import earliest

__all__ = [
    "EncryptionError",
    "EncryptionPolicy",
    "Failure",
    "ReceivedKeys",
    "SentKeys",
    "SessionKey",
]

_PADDING: Final = padding.PKCS1v15()
_SALT: Final = bytes(11)  # the 88 bits that fill a 40-bit key up to 128
_BY_LEVEL: Final = {provider.level: provider for provider in PROVIDERS}


class Failure(StrEnum):
    """Why a message cannot be encrypted or decrypted."""

    NOT_ADDRESSED = "the destination is neither a public nor a private format name"
    NO_KEYS = "the public keys of the destination's queue manager are not known"
    NO_PROVIDER = "the destination has no key for an acceptable provider "
    BAD_LEVEL = "the privacy level is invalid"
    BAD_ALGORITHM = "the algorithm does not match the privacy level"
    UNSUPPORTED_PROVIDER = "there is no key pair for the provider"
    BAD_KEY = "the session key does not match the algorithm and key pair"
    WEAK_KEY = "the session key has 40 bits instead of 128"
    BAD_BODY = "the session key or the body cannot be decrypted"
    TOO_LARGE = "the encrypted message does not fit into a packet"


class EncryptionError(Exception):
    """Raised if a message cannot be encrypted or decrypted; `failure` is the reason."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.value)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class EncryptionPolicy:
    """The settings for encryption that MS-MQQB 3.1.1.3 names. Lifetimes are in seconds."""

    preferred: Mapping[Provider, EncryptionAlgorithm] = field(
        default_factory=lambda: {
            BASE: EncryptionAlgorithm.RC4,
            ENHANCED: EncryptionAlgorithm.RC4,
            ENHANCED_AES: EncryptionAlgorithm.AES_256,
        }
    )
    send_enhanced_rc2_40: bool = False
    reject_enhanced_rc2_40: bool = False
    send_cache_size: int = 53
    receive_cache_size: int = 127
    key_lifetime: float = 600.0


@dataclass(frozen=True, slots=True)
class SessionKey:
    """CachedSymmetricKey (3.1.1.3.3): a session key as the blob that is sent to the receiver, and as a
    cipher.
    """

    provider: Provider
    algorithm: EncryptionAlgorithm
    blob: bytes
    cipher: BodyCipher
    weak: bool  # the last 88 bits are zero


def _cipher(
    provider: Provider, algorithm: EncryptionAlgorithm, key: bytes, switches: SecuritySwitches
) -> BodyCipher:
    """Return the cipher for a session key. Raises ValueError if the key does not fit the provider and
    algorithm.
    """
    bits = provider.session_bits[algorithm]
    if len(key) * 8 != bits:
        raise ValueError(f"the key has {8 * len(key)} bits instead of {bits}")
    if provider is BASE and switches.amb83_salt:
        key += _SALT
    return body_cipher(algorithm, key, bits)


class SentKeys:
    """The session keys for messages that are sent: chooses the provider and makes the keys (QB-342 … QB-349).

    `published` returns the MQDSPUBLICKEYS of a queue manager, None if it has none.
    """

    def __init__(
        self,
        published: Callable[[UUID], bytes | None],
        random_bytes: Callable[[int], bytes],
        policy: EncryptionPolicy | None = None,
        switches: SecuritySwitches | None = None,
    ) -> None:
        self._published = published
        self._random = random_bytes
        self._policy = policy or EncryptionPolicy()
        self._switches = switches or SecuritySwitches()
        self.cache: AgingCache[tuple[str, int, UUID], SessionKey] = AgingCache(
            self._policy.send_cache_size, self._policy.key_lifetime
        )
        self._remote: AgingCache[UUID, tuple[PublicKeyEntry, ...]] = AgingCache(
            self._policy.send_cache_size, self._policy.key_lifetime
        )

    def forget(self) -> None:
        """Drop all cached keys, because published keys have changed."""
        self.cache.clear()
        self._remote.clear()

    def key_for(
        self, manager: UUID, level: int, now: float, wanted: EncryptionAlgorithm | None = None
    ) -> SessionKey:
        """Return the session key for messages with this privacy level to the queue manager `manager`. Makes
        one if none is cached.

        `wanted` is the algorithm that the sender requested; it is used if the chosen provider has it. Raises
        EncryptionError.
        """
        if level not in _BY_LEVEL:
            raise EncryptionError(Failure.BAD_LEVEL)
        provider, public = self._choose(self._keys_of(manager, now), PrivacyLevel(level))
        algorithm = self._policy.preferred[provider]
        if wanted is not None and wanted in provider.session_bits:
            algorithm = wanted
        found = self.cache.get((provider.name, algorithm, manager))
        if found is None:
            found = self._made(provider, algorithm, public)
            self.cache.put((provider.name, algorithm, manager), found, now)
        return found

    def _keys_of(self, manager: UUID, now: float) -> tuple[PublicKeyEntry, ...]:
        """Return the published keys of a queue manager (RemoteQMPublicKey). Raises EncryptionError if it has
        none.
        """
        known = self._remote.get(manager)
        if known is None:
            try:
                known = read_key_list(self._published(manager) or b"")
            except SecurityDataError:
                known = ()
            if not known:
                raise EncryptionError(Failure.NO_KEYS)
            self._remote.put(manager, known, now)
        return known

    def _choose(self, keys: tuple[PublicKeyEntry, ...], level: PrivacyLevel) -> tuple[Provider, RsaPublicKey]:
        """Return (best provider of the destination, public key of the destination for it). The provider is
        never weaker than the requested level. Raises EncryptionError if there is no such provider.
        """
        by_name = {entry.provider: entry.key for entry in keys}
        order = (ENHANCED_AES, ENHANCED, BASE)
        for provider in order:
            if self._switches.amb27_strict_level and provider.level is not level:
                continue
            if provider.level < level:
                break
            public = by_name.get(provider.name)
            if public is not None:
                return provider, public
        raise EncryptionError(Failure.NO_PROVIDER)

    def _made(self, provider: Provider, algorithm: EncryptionAlgorithm, public: RsaPublicKey) -> SessionKey:
        bits = provider.session_bits[algorithm]
        weak = (
            provider is ENHANCED
            and algorithm is EncryptionAlgorithm.RC2
            and self._policy.send_enhanced_rc2_40
        )
        key = self._random(5) + _SALT if weak else self._random(bits // 8)
        try:
            recipient = RSAPublicNumbers(public.exponent, public.modulus).public_key()
            blob = simple_blob(algorithm, recipient.encrypt(key, _PADDING))
        except ValueError:
            raise EncryptionError(Failure.NO_PROVIDER) from None
        return SessionKey(provider, algorithm, blob, _cipher(provider, algorithm, key, self._switches), weak)

    def next_deadline(self) -> float | None:
        """Return the time at which `expire` is due, None if no timer is running."""
        return earliest(self.cache.next_deadline(), self._remote.next_deadline())

    def expire(self, now: float) -> None:
        """Handle the SendSymmetricKeyCache Cleanup Timer (3.1.6.11), if it is due."""
        self.cache.expire(now)
        self._remote.expire(now)


class ReceivedKeys:
    """The session keys of messages that are received: senders have created them for this queue manager
    (QB-248 … QB-253).

    `own` maps each provider to its key pair. With `turns`, each operation with a private key needs a turn: a
    permission from the budget of `keyturns`.
    """

    def __init__(
        self,
        own: Mapping[Provider, RSAPrivateKey],
        policy: EncryptionPolicy | None = None,
        switches: SecuritySwitches | None = None,
        turns: KeyTurns | None = None,
    ) -> None:
        self._own = own
        self._turns = turns
        self._policy = policy or EncryptionPolicy()
        self._switches = switches or SecuritySwitches()
        self.cache: AgingCache[tuple[str, int, bytes, bytes], SessionKey] = AgingCache(
            self._policy.receive_cache_size, self._policy.key_lifetime
        )
        self._unusable: AgingCache[tuple[str, int, bytes, bytes], None] = AgingCache(
            self._policy.receive_cache_size, self._policy.key_lifetime
        )
        self.opened = 0
        """Number of session keys for which a private key was used since the start, whether successfully or
        not.
        """

    def key_of(self, level: int, algorithm: int, source: bytes, blob: bytes, now: float) -> SessionKey:
        """Return the session key of a message with this PrivacyLevel (`level`), EncryptionAlgorithm,
        SourceQueueManager (`source`) and EncryptionKey (`blob`).

        Raises EncryptionError, with BAD_BODY for every fault that only the private key reveals. Raises
        KeyNeeded if a private key must be used and the caller does not have a turn.
        """
        provider = _BY_LEVEL.get(PrivacyLevel(level)) if level in _BY_LEVEL else None
        if provider is None:
            raise EncryptionError(Failure.BAD_LEVEL)
        if algorithm not in provider.session_bits:
            raise EncryptionError(Failure.BAD_ALGORITHM)
        place = (provider.name, algorithm, source, blob)
        found = self.cache.get(place)
        if found is None:
            if place in self._unusable:
                raise EncryptionError(Failure.BAD_BODY)
            try:
                found = self._opened(provider, EncryptionAlgorithm(algorithm), blob, now)
            except EncryptionError as problem:
                if problem.failure is Failure.BAD_BODY:
                    self._unusable.put(place, None, now)
                raise
            self.cache.put(place, found, now)
        if (
            found.weak
            and provider is ENHANCED
            and algorithm == EncryptionAlgorithm.RC2
            and self._policy.reject_enhanced_rc2_40
        ):
            raise EncryptionError(Failure.WEAK_KEY)
        return found

    def _opened(
        self, provider: Provider, algorithm: EncryptionAlgorithm, blob: bytes, now: float
    ) -> SessionKey:
        private = self._own.get(provider)
        if private is None:
            raise EncryptionError(Failure.UNSUPPORTED_PROVIDER)
        try:
            named, encrypted = read_simple_blob(blob)
        except ValueError:
            raise EncryptionError(Failure.BAD_KEY) from None
        if named != algorithm or len(encrypted) * 8 != private.key_size:
            raise EncryptionError(Failure.BAD_KEY)

        def use() -> SessionKey:
            self.opened += 1
            # OpenSSL gives random bytes for wrong padding: most often of another length than a key has, and
            # otherwise the body will not decrypt.
            key = private.decrypt(encrypted, _PADDING)
            cipher = _cipher(provider, algorithm, key, self._switches)
            return SessionKey(provider, algorithm, blob, cipher, key[-11:] == _SALT)

        try:
            return use() if self._turns is None else self._turns.run(use, now)
        except ValueError:
            raise EncryptionError(Failure.BAD_BODY) from None

    def next_deadline(self) -> float | None:
        """Return the time at which `expire` is due, None if no timer is running."""
        return earliest(self.cache.next_deadline(), self._unusable.next_deadline())

    def expire(self, now: float) -> None:
        """Handle the ReceiveSymmetricKeyCache Cleanup Timer (3.1.6.10), if it is due."""
        self.cache.expire(now)
        self._unusable.expire(now)
