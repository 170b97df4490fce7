"""Checks that the signer of a message is the sender that the message names (MS-MQQB 3.1.5.8.3): compares its
certificate with the registered ones, and caches the result (UserCertCache).
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from typing import Final
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from msmq_fast.security.agingcache import AgingCache
from msmq_fast.security.blobs import PublicKeyEntry
from msmq_fast.security.certificates import is_cheap
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.principals import SenderType
from msmq_fast.security.sid import Sid

__all__ = ["CERTIFICATE_CACHE_SIZE", "CERTIFICATE_LIFETIME", "SenderCertificates"]

CERTIFICATE_CACHE_SIZE: Final = 53
CERTIFICATE_LIFETIME: Final = 1200.0  # seconds


class SenderCertificates:
    """Checks whether a certificate belongs to the sender that a message names.

    `registered` returns the registered certificates of a user, `signing_keys` the PublicSigningKeyList of a
    queue manager.
    """

    def __init__(
        self,
        registered: Callable[[Sid], Iterable[bytes]],
        signing_keys: Callable[[UUID], Iterable[PublicKeyEntry]],
        *,
        size: int = CERTIFICATE_CACHE_SIZE,
        lifetime: float = CERTIFICATE_LIFETIME,
    ) -> None:
        self._registered = registered
        self._signing_keys = signing_keys
        self.cache: AgingCache[tuple[bytes, bytes], bool] = AgingCache(size, lifetime)

    def forget(self) -> None:
        """Drop all cached results, because certificates were registered or removed."""
        self.cache.clear()

    def belongs(self, kind: int, sender: bytes, certificate: bytes, key: RSAPublicKey, now: float) -> bool:
        """Whether the certificate belongs to the sender; `kind` and `sender` are from the SecurityHeader,
        `key` is from the certificate.

        A message that names no sender (QB-243) is not authenticated, and its certificate need not be
        registered. For such a message, returns whether an operation with the key is cheap, since each such
        message costs one operation.
        """
        match kind:
            case SenderType.NONE:
                return is_cheap(key)
            case SenderType.QUEUE_MANAGER:
                return len(sender) == 16 and self._signs(UUID(bytes_le=sender), key)
            case SenderType.SID:
                return self._has(sender, certificate, now)
            case _:
                return False

    def _signs(self, manager: UUID, key: RSAPublicKey) -> bool:
        numbers = key.public_numbers()
        return any(
            (entry.key.modulus, entry.key.exponent) == (numbers.n, numbers.e)
            for entry in self._signing_keys(manager)
        )

    def _has(self, sender: bytes, certificate: bytes, now: float) -> bool:
        if self.cache.get((sender, certificate)):
            return True
        try:
            user = Sid.from_bytes(sender)
        except SecurityDataError:
            return False
        if not any(hmac.compare_digest(each, certificate) for each in self._registered(user)):
            return False
        self.cache.put((sender, certificate), True, now)
        return True

    def next_deadline(self) -> float | None:
        """Return the time at which `expire` is due, None if the timer is not running."""
        return self.cache.next_deadline()

    def expire(self, now: float) -> None:
        """Handle the UserCertCache Cleanup Timer (3.1.6.13), if it is due."""
        self.cache.expire(now)
