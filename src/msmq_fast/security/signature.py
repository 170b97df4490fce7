"""Digital signatures of messages (MS-MQMQ 2.5): hashing, signing and verifying.

The hash of MSMQ 1.0, 2.0 or 3.0 is signed by RSA with PKCS #1 v1.5 padding and DigestInfo. The switches
select the encoding of fields that the specifications leave open.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.utils import NoDigestInfo

from msmq_fast._native.framing import ParsedMessage
from msmq_fast.packet.base import align4, utf16z
from msmq_fast.packet.fields import Hosts, QueueField, field_name
from msmq_fast.protocol.properties import HashAlgorithm
from msmq_fast.security.algorithms import SignatureType
from msmq_fast.security.hashing import digest, digest_info
from msmq_fast.security.switches import NameForm, SecuritySwitches

__all__ = ["multi_signature", "sign", "signed_parts", "verify"]

_PADDING: Final = padding.PKCS1v15()
_RAW: Final = NoDigestInfo()
_DIRECT: Final = 7
_HEAD: Final = 12  # of an MQFAddressHeader
_LISTS: Final = 3


def signed_parts(message: ParsedMessage, kind: SignatureType, switches: SecuritySwitches) -> list[bytes]:
    """Return the byte strings whose concatenation is hashed, for a packet with an unencrypted body."""
    packet = message.packet
    properties = message.properties_offset
    label = packet[message.label_offset : message.label_offset + 2 * message.label_chars]
    if not switches.amb82_label_nul and label.endswith(b"\0\0"):
        label = label[:-2]
    parts = [
        packet[properties + 4 : properties + 24],  # CorrelationID
        packet[properties + 28 : properties + 32],  # ApplicationTag
        packet[message.body_offset : message.body_offset + message.body_length],
        label,
        *_replies(message, switches),
    ]
    if kind is SignatureType.MSMQ_1:
        return parts
    if kind is SignatureType.MSMQ_3:
        parts.append(bytes(message.extension))
        parts.append(_format_names(message, switches))
    flags = message.user_flags
    journal = (flags >> 9 & 1) << 1 | flags >> 8 & 1
    parts.append(message.source)
    parts.append(bytes((message.delivery, message.priority, journal, message.ack_flags)))
    parts.append(packet[properties + 2 : properties + 4])  # MessageClass
    parts.append(packet[properties + 24 : properties + 28])  # BodyType
    start = message.connector_offset
    if start:
        parts.append(packet[start : start + 16])
    elif switches.amb82_absent_connector:
        parts.append(bytes(16))
    if kind is SignatureType.MSMQ_2:
        field = QueueField(message.dest_type, bytes(message.destination))
        parts.append(_name(field, _hosts(message), None, switches))
    return parts


def _hosts(message: ParsedMessage) -> Hosts:
    return Hosts(UUID(bytes_le=message.source), UUID(bytes_le=message.destination_manager))


def _replies(message: ParsedMessage, switches: SecuritySwitches) -> tuple[bytes, bytes]:
    """Return (ResponseQueue, AdminQueue) of a message, in the form in which they are hashed."""
    admin = QueueField(message.admin_type, bytes(message.admin))
    response = QueueField(message.response_type, bytes(message.response))
    hosts = _hosts(message)
    return _name(response, hosts, admin, switches), _name(admin, hosts, None, switches)


def _name(field: QueueField, hosts: Hosts, admin: QueueField | None, switches: SecuritySwitches) -> bytes:
    form = switches.amb82_names
    if form is NameForm.FIELD or not field.kind:
        return field.wire
    if form is NameForm.CONTENT:
        if field.kind != _DIRECT:
            return field.wire
        return field.wire[2 : 2 + int.from_bytes(field.wire[:2], "little")]
    name = field_name(field, hosts, None if admin is None else field_name(admin, hosts))
    text = utf16z("" if name is None else str(name))
    return text if form is NameForm.TEXT_NUL else text[:-2]


def _format_names(message: ParsedMessage, switches: SecuritySwitches) -> bytes:
    packet, at = message.packet, message.mqf_offset
    lists = []
    for _ in range(_LISTS):
        size = int.from_bytes(packet[at : at + 4], "little")
        lists.append(packet[at + _HEAD : at + size])
        at += align4(size)
    return b"".join(lists) if switches.amb82_all_lists else lists[0]


def multi_signature(message: ParsedMessage) -> bytes:
    """Return MultiQueueFormatHeader.Signature, b"" if there is none."""
    packet, at = message.packet, message.mqf_offset
    if not at:
        return b""
    for _ in range(_LISTS):
        at += align4(int.from_bytes(packet[at : at + 4], "little"))
    size = int.from_bytes(packet[at + 4 : at + 8], "little")
    return packet[at + 8 : at + 8 + size]


def sign(
    message: ParsedMessage,
    kind: SignatureType,
    algorithm: HashAlgorithm,
    key: RSAPrivateKey,
    switches: SecuritySwitches,
) -> bytes:
    """Return the signature of an unencrypted message. Raises ValueError if the key is too short for the
    hash.
    """
    value = digest(algorithm, signed_parts(message, kind, switches))
    signature = key.sign(digest_info(algorithm, value), _PADDING, _RAW)
    return signature[::-1] if switches.amb82_reversed else signature


def verify(
    message: ParsedMessage,
    algorithm: HashAlgorithm,
    key: RSAPublicKey,
    switches: SecuritySwitches,
) -> SignatureType:
    """Verify the signature of an unencrypted message (3.1.5.8.3). Return the version of hash for which the
    signature is valid; NONE if there is no such version.
    """
    start = message.signature_offset
    signature = message.packet[start : start + message.signature_length]
    kinds: Iterable[SignatureType] = (SignatureType.MSMQ_2, SignatureType.MSMQ_1)
    if not signature:
        signature, kinds = multi_signature(message), (SignatureType.MSMQ_3,)
    if not signature:
        return SignatureType.NONE
    try:
        signed = key.recover_data_from_signature(
            signature[::-1] if switches.amb82_reversed else signature, _PADDING, None
        )
    except (InvalidSignature, ValueError):
        return SignatureType.NONE
    for kind in kinds:
        value = digest_info(algorithm, digest(algorithm, signed_parts(message, kind, switches)))
        if hmac.compare_digest(signed, value):
            return kind
    return SignatureType.NONE
