"""Signed and encrypted messages, on arrival (MS-MQQB 3.1.5.8.3) and on transmission (3.1.7.1.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from msmq_fast._native.framing import ParsedMessage, parse
from msmq_fast._native.outbound import give_up
from msmq_fast.mqqb.reasons import Refusal
from msmq_fast.packet.names import NameKind
from msmq_fast.packet.protect import protected, security_of
from msmq_fast.packet.user import SecurityHeader
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.errors import InsufficientResources, code_of
from msmq_fast.protocol.properties import EncryptionAlgorithm, HashAlgorithm, PrivacyLevel
from msmq_fast.qm.queues.outgoing import ConnectionStatus
from msmq_fast.security.algorithms import SignatureType
from msmq_fast.security.certificates import CertificateKeys
from msmq_fast.security.encryption import EncryptionError, Failure, ReceivedKeys, SentKeys
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.principals import SenderType
from msmq_fast.security.senders import SenderCertificates
from msmq_fast.security.signature import multi_signature, verify
from msmq_fast.security.switches import SecuritySwitches

if TYPE_CHECKING:
    from msmq_fast.mqqb.destination import Destination
    from msmq_fast.packet.names import FormatName
    from msmq_fast.qm.queues.outgoing import OutgoingQueue

__all__ = ["DEFAULT_ACCEPTED", "OutgoingProtection", "ReceivedProtection", "SentProtection"]

DEFAULT_ACCEPTED: Final = frozenset((HashAlgorithm.SHA512,))
"""Hash algorithms whose signatures are accepted unless the configuration says otherwise (QB-242)."""

_ERRORS: Final = {
    Failure.NOT_ADDRESSED: code_of("MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"),
    Failure.NO_KEYS: code_of("MQ_ERROR_PUBLIC_KEY_NOT_FOUND"),
    Failure.NO_PROVIDER: code_of("MQ_ERROR_ENCRYPTION_PROVIDER_NOT_SUPPORTED"),
    Failure.TOO_LARGE: code_of("MQ_ERROR_INSUFFICIENT_RESOURCES"),
}
_OTHER_ERROR: Final = code_of("MQ_ERROR_COMPUTER_DOES_NOT_SUPPORT_ENCRYPTION")

_PRIVACY, _HASH, _ENCRYPTION = 40, 44, 48  # fields of the MessagePropertiesHeader


class ReceivedProtection:
    """Implements `hooks.Protection`: decrypts a message, then verifies its signature (AMB-25).

    `monotonic` returns seconds. `msmq_1`: signatures of MSMQ 1.0 are accepted, although they do not cover the
    destination.

    `tell` is for errors that only a private key or session key can reveal. True: such a message is refused
    like one with any other encryption error, and its sender is notified. A peer that gets these notifications
    can decrypt messages of others, by sending changed copies of them. So by default such a message is
    refused as `UNDECIPHERED`, without a notification. All checks that need no key are done first.
    """

    def __init__(
        self,
        keys: ReceivedKeys,
        senders: SenderCertificates,
        monotonic: Callable[[], float],
        accepted: frozenset[HashAlgorithm] = DEFAULT_ACCEPTED,
        switches: SecuritySwitches | None = None,
        *,
        msmq_1: bool = True,
        tell: bool = False,
    ) -> None:
        self._msmq_1 = msmq_1
        self._undeciphered = Refusal.ENCRYPTED if tell else Refusal.UNDECIPHERED
        self._keys = keys
        self._senders = senders
        self._now = monotonic
        self._accepted = accepted
        self._switches = switches or SecuritySwitches()
        self._certificates = CertificateKeys()
        self.counts: Counter[str] = Counter()

    def open(self, message: ParsedMessage, target: Destination) -> bytes | Refusal:
        """See `hooks.Protection`. The demands of the queue are checked first (AMB-24)."""
        security = security_of(message)
        encrypted = security is not None and security.encrypted
        if (target.encrypted_only and not encrypted) or (target.clear_only and encrypted):
            return Refusal.ENCRYPTED
        header = security and replace(security, authenticated=False, authentication_level=0)
        signed = bool(message.signature_length or multi_signature(message))
        signer = self._signer(message, header) if signed and header is not None else None
        # Anyone can make a certificate: the signer is known only if the certificate is registered for it.
        known = header is not None and header.sender_id_type != SenderType.NONE
        if (signer is None and signed) or (target.authenticated and (signer is None or not known)):
            return Refusal.SIGNED
        clear = message
        if header is not None and encrypted:
            try:
                body = self._decrypted(message, header)
            except EncryptionError as problem:
                return self._not_opened(problem.failure)
            header = replace(header, encrypted=False, encryption_key=b"")
            clear = parse(protected(message, _or_nothing(header), body=body))
        if header is None or signer is None:
            return clear.packet if clear is not message else protected(clear, header)
        kind = verify(clear, *signer, self._switches)
        if kind is SignatureType.NONE or (kind is SignatureType.MSMQ_1 and not self._msmq_1):
            return self._undeciphered if encrypted else Refusal.SIGNED
        return protected(clear, replace(header, authentication_level=int(kind) if known else 0))

    @property
    def opened(self) -> int:
        """See `hooks.Protection`."""
        return self._keys.opened

    def _not_opened(self, failure: Failure) -> Refusal:
        self.counts[failure.value] += 1
        if failure is Failure.UNSUPPORTED_PROVIDER:
            return Refusal.UNSUPPORTED_PROVIDER
        return self._undeciphered if failure is Failure.BAD_BODY else Refusal.ENCRYPTED

    def _decrypted(self, message: ParsedMessage, header: SecurityHeader) -> bytes:
        algorithm = _number(message, _ENCRYPTION)
        key = self._keys.key_of(
            _number(message, _PRIVACY), algorithm, message.source, header.encryption_key, self._now()
        )
        try:
            body = key.cipher.decrypt(bytes(message.body))
        except ValueError:
            raise EncryptionError(Failure.BAD_BODY) from None
        # MessageSize is the length before or after encryption (AMB-29).
        if _number(message, 32) not in (len(body), message.body_length):
            raise EncryptionError(Failure.BAD_BODY)
        return body

    def _signer(
        self, message: ParsedMessage, header: SecurityHeader
    ) -> tuple[HashAlgorithm, RSAPublicKey] | None:
        """Returns the signature algorithm and the signer's key that a message names (5.15); None unless the
        algorithm is accepted and the key belongs to the sender.
        """
        try:
            algorithm = HashAlgorithm(_number(message, _HASH))
            key = self._certificates(header.certificate)
        except (ValueError, SecurityDataError):
            return None
        known = algorithm in self._accepted and self._senders.belongs(
            header.sender_id_type, header.sender_id, header.certificate, key, self._now()
        )
        return (algorithm, key) if known else None


def _number(message: ParsedMessage, offset: int) -> int:
    start = message.properties_offset + offset
    return int.from_bytes(message.packet[start : start + 4], "little")


def _or_nothing(header: SecurityHeader) -> SecurityHeader | None:
    """Returns the SecurityHeader, or None if it is empty: it must have at least one item (MS-MQMQ
    2.2.20.6).
    """
    items = (header.sender_id, header.encryption_key, header.signature, header.certificate)
    return header if any(items) or header.provider_info else None


class SentProtection:
    """Encrypts messages when they are transmitted.

    The outgoing queue keeps messages in clear, so that a message is encrypted anew when it is sent again,
    becomes a dead letter or is resubmitted (QB-327). `own` is the GUID of this queue manager: messages of
    other queue managers are forwarded unchanged.
    """

    def __init__(
        self,
        own: UUID,
        keys: SentKeys,
        monotonic: Callable[[], float],
        switches: SecuritySwitches | None = None,
    ) -> None:
        self._own = own.bytes_le
        self._keys = keys
        self._now = monotonic
        self._switches = switches or SecuritySwitches()

    def protect(self, packet: bytes, destination: FormatName, manager: UUID | None) -> bytes:
        """Returns the packet to transmit to `manager`, the queue manager that hosts the destination.

        Raises EncryptionError if the message must not be transmitted (3.1.7.1.5.1).
        """
        message = parse(packet)
        level = _number(message, _PRIVACY)
        security = security_of(message)
        done = level == PrivacyLevel.NONE or (security is not None and security.encrypted)
        if done or message.source != self._own:
            return packet
        if destination.kind not in (NameKind.PUBLIC, NameKind.PRIVATE) or manager is None:
            raise EncryptionError(Failure.NOT_ADDRESSED)
        key = self._keys.key_for(manager, level, self._now(), _algorithm(_number(message, _ENCRYPTION)))
        body = bytes(message.body)
        header = replace(security or SecurityHeader(), encrypted=True, encryption_key=key.blob)
        encrypted = key.cipher.encrypt(body)
        try:
            return protected(
                message,
                header,
                body=encrypted,
                message_size=len(body) if self._switches.amb29_plain_size else None,
                privacy_level=int(key.provider.level),
                encryption_algorithm=int(key.algorithm),
            )
        except InsufficientResources:
            raise EncryptionError(Failure.TOO_LARGE) from None


def _algorithm(number: int) -> EncryptionAlgorithm | None:
    """Returns the encryption algorithm that the `number` in a message requests; None for an unknown number.

    RC4 also results in None: a message whose sender requested no algorithm contains the number of RC4.
    """
    known = number in tuple(EncryptionAlgorithm)
    return EncryptionAlgorithm(number) if known and number != EncryptionAlgorithm.RC4 else None


class OutgoingProtection:
    """Encrypts the messages of an `OutgoingChannel` that have a privacy level.

    A message that cannot be encrypted is not sent (3.1.7.1.5.1). It goes to a dead-letter queue, with the
    class COULD_NOT_ENCRYPT, if it requests that. The failure is added to the ConnectionHistory and passed to
    `on_failure(failure, text)`; the text has the identifier of the message and the name of its queue.
    """

    def __init__(
        self,
        queue: OutgoingQueue,
        sent: SentProtection | None,
        unix_time: Callable[[], int],
        on_failure: Callable[[Failure, str], None] | None = None,
    ) -> None:
        self._queue = queue
        self._sent = sent
        self._unix_time = unix_time
        self._on_failure = on_failure

    def __call__(self, lookup_id: int, packet: bytes) -> bytes | None:
        """Returns the packet to transmit; None if the message was removed."""
        queue = self._queue
        try:
            if self._sent is None:
                raise EncryptionError(Failure.NO_KEYS)
            _, manager = queue.locate()
            return self._sent.protect(packet, queue.destination, manager)
        except EncryptionError as problem:
            failure = problem.failure
        give_up(queue.core, lookup_id, MessageClass.NACK_COULD_NOT_ENCRYPT)
        code = _ERRORS.get(failure, _OTHER_ERROR)
        queue.note(ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE, self._unix_time(), code, queue.next_hops)
        if self._on_failure is not None:
            message = parse(packet)
            source = UUID(bytes_le=message.source)
            self._on_failure(failure, f"{{{source}}}\\{message.message_id} to {queue.name}")
        return None
