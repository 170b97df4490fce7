"""Signs messages of local programs when they are sent (MS-MQQB 3.1.7.1.4), with the certificates stored here.

Messages for HTTP, HTTPS and multicast get an XML signature (MC-MQSRM 3.1.7.2.4).
"""

from __future__ import annotations

from uuid import UUID

from msmq_fast._native.framing import parse
from msmq_fast.packet.names import NameKind
from msmq_fast.packet.protect import protected, security_of, with_multi_signature
from msmq_fast.packet.user import SecurityHeader
from msmq_fast.protocol.errors import (
    UnsupportedFormatNameOperation,
    UnsupportedOperation,
    error,
)
from msmq_fast.protocol.properties import HashAlgorithm
from msmq_fast.qm.identity.certificates import Certificates
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.protection import check_demands, check_srmp, demands, leaves_by_srmp
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.security.algorithms import SignatureType
from msmq_fast.security.principals import SenderType
from msmq_fast.security.sid import Sid
from msmq_fast.security.signature import sign
from msmq_fast.security.switches import SecuritySwitches
from msmq_fast.security.token import Token
from msmq_fast.security.xmlsignature import XML_SIGNATURE, sign_value, signed_info

__all__ = ["SignatureRequest", "Signing", "prepare", "sender_header"]

SignatureRequest = tuple[int, int, bytes]
"""How to sign a message: level, hash algorithm (0: the default), MD5 of the certificate (empty: the default).

At level 0 the message carries the sender's SID but no signature: see `sender_header`.
"""

_KINDS = {1: SignatureType.MSMQ_1, 2: SignatureType.MSMQ_2}
_HASHES = tuple(HashAlgorithm)


class Signing:
    """Signs messages. `algorithm` is the hash algorithm for messages that do not name one."""

    def __init__(
        self, certificates: Certificates, algorithm: HashAlgorithm, switches: SecuritySwitches
    ) -> None:
        self._certificates = certificates
        self._algorithm = algorithm
        self._switches = switches

    @property
    def to_direct_names(self) -> bool:
        """Whether messages to direct format names of other computers can be signed (QB-402)."""
        return self._switches.qb402_sign_direct

    def sign(
        self,
        packet: bytes,
        user: Sid,
        *,
        level: int,
        algorithm: int = 0,
        digest: bytes = b"",
        local: bool = False,
    ) -> bytes:
        """Returns the signed packet, with the SID of its sender.

        `level` is the MSMQ version of the signature: 1 for 1.0, 2 for 2.0. A message for several queues
        always gets a 3.0 signature, whatever `level` is. `digest` is the MD5 digest that selects the
        certificate. The signature of a message for a queue of this computer (`local`) counts as verified.
        Raises ILLEGAL_PROPERTY_VALUE, CERTIFICATE_NOT_PROVIDED, CANNOT_SIGN_DATA_EX, INSUFFICIENT_RESOURCES.
        """
        if level not in _KINDS or algorithm not in (0, *_HASHES):
            raise error("MQ_ERROR_ILLEGAL_PROPERTY_VALUE", "unknown authentication level or hash algorithm")
        chosen = HashAlgorithm(algorithm) if algorithm else self._algorithm
        signer = self._certificates.signer(user, digest)
        message = parse(packet)
        kind = SignatureType.MSMQ_3 if message.mqf_offset else _KINDS[level]
        header = security_of(message) or SecurityHeader()
        header.sender_id_type, header.sender_id = SenderType.SID, user.data
        header.certificate, header.default_provider = signer.certificate, True
        header.authentication_level = int(kind) if local else 0
        try:
            signature = sign(message, kind, chosen, signer.key, self._switches)
        except ValueError as problem:
            raise error("MQ_ERROR_CANNOT_SIGN_DATA_EX", str(problem)) from None
        if kind is not SignatureType.MSMQ_3:
            header.signature = signature
            return protected(message, header, hash_algorithm=chosen)
        return with_multi_signature(parse(protected(message, header, hash_algorithm=chosen)), signature)

    def sign_xml(self, packet: bytes, user: Sid, *, digest: bytes = b"") -> bytes:
        """Returns the packet with an XML signature for SRMP over the bytes of its body and extension.

        Raises CERTIFICATE_NOT_PROVIDED, CANNOT_SIGN_DATA_EX, INSUFFICIENT_RESOURCES.
        """
        signer = self._certificates.signer(user, digest)
        message = parse(packet)
        octets = signed_info(UUID(bytes_le=message.source), bytes(message.body), bytes(message.extension))
        header = security_of(message) or SecurityHeader()
        header.sender_id_type, header.sender_id = SenderType.SID, user.data
        header.certificate, header.default_provider = signer.certificate, True
        header.authentication_level = XML_SIGNATURE
        try:
            header.signature = sign_value(signer.key, octets)
        except ValueError as problem:
            raise error("MQ_ERROR_CANNOT_SIGN_DATA_EX", str(problem)) from None
        return protected(message, header, hash_algorithm=HashAlgorithm.SHA1)


def sender_header(token: Token) -> bytes:
    """Returns the SecurityHeader of a message that carries the SID of its sender, but no signature that
    proves it (PROPID_M_SENDERID_TYPE).
    """
    return SecurityHeader(sender_id_type=SenderType.SID, sender_id=token.user.data).encode()


def _is_direct(queue: Queue) -> bool:
    return isinstance(queue, OutgoingQueue) and queue.destination.kind is NameKind.DIRECT


def prepare(
    signing: Signing | None,
    queue: Queue,
    packet: bytes,
    request: SignatureRequest | None,
    token: Token | None,
) -> bytes:
    """Returns the packet of a local program in the form in which it is put into `queue`: signed if the
    program requests it.

    A message for a local queue is not encrypted, since it does not leave the computer; the queue's privacy
    level is checked against what the program requested.

    Raises what `Signing.sign` raises; UNSUPPORTED_OPERATION if a signature is requested without `signing` or
    `token`; UNSUPPORTED_FORMATNAME_OPERATION if messages to direct names are not signed, or if encrypted
    messages cannot be sent to this name; TRANSACTION_USAGE if transactional messages cannot be sent to this
    name; MESSAGE_NOT_AUTHENTICATED or ILLEGAL_PROPERTY_VALUE if the queue accepts only signed, only
    encrypted, or only clear messages.
    """
    local = queue.kind is not QueueKind.OUTGOING
    if request is not None:
        if signing is None or token is None:
            raise UnsupportedOperation("this server does not sign messages")
        level, algorithm, digest = request
        if _is_direct(queue) and not signing.to_direct_names:
            raise UnsupportedFormatNameOperation("messages to direct format names cannot be signed")
        if leaves_by_srmp(queue):
            packet = signing.sign_xml(packet, token.user, digest=digest)
        else:
            packet = signing.sign(
                packet, token.user, level=level, algorithm=algorithm, digest=digest, local=local
            )
    if not demands(queue):
        return packet
    if not local:
        check_srmp(queue, parse(packet))
        return packet
    check_demands(queue, parse(packet), signed=request is not None)
    return packet
