"""Messages that dependent clients send: converts a CACTransferBufferV1 to a message and enqueues it (MS-MQMP
3.1.1.11, 3.1.5.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msmq_fast._native.framing import parse
from msmq_fast._native.queue import TAKEN
from msmq_fast.packet.base import INFINITE
from msmq_fast.packet.message import Message
from msmq_fast.packet.protect import security_of
from msmq_fast.packet.text import decode_text
from msmq_fast.packet.user import SecurityHeader, provider_info
from msmq_fast.protocol.classes import CUSTOM_MASK, MessageClass
from msmq_fast.protocol.errors import (
    IllegalPropertyValue,
    InvalidParameter,
    TransactionUsage,
    UnsupportedFormatNameOperation,
    UnsupportedOperation,
    error,
)
from msmq_fast.protocol.properties import Acknowledge, Delivery, Journal, PrivacyLevel
from msmq_fast.qm.handles.handle import refusal
from msmq_fast.qm.identity.signing import Signing, prepare
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.qm.transactions.multiple import MultipleQueue
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.rpc.services.queueformat import name_of
from msmq_fast.store.completion import Completion

if TYPE_CHECKING:
    from msmq_fast.packet.names import FormatName
    from msmq_fast.qm.handles.handle import OpenQueue, SentMessage
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.qm.transactions.multiple import Finish
    from msmq_fast.qm.transactions.transaction import Transaction
    from msmq_fast.rpc.services.dependent.queues import DependentQueue, DependentQueues
    from msmq_fast.security.token import Token

__all__ = ["Sender", "message_of"]

SEND: Final = 0
"""CACTB_SEND"""
MOST_TITLE: Final = 250
"""The largest number of characters of a label that are read."""
PROV_RSA_FULL: Final = 1
_ENHANCED: Final = 2  # MQMSG_PRIV_LEVEL_BODY_ENHANCED in MS-MQMP; it is 3 in packets, and in programs
_REFUSALS: Final = {
    MessageClass.NACK_ACCESS_DENIED: "MQ_ERROR_ACCESS_DENIED",
    MessageClass.NACK_BAD_SIGNATURE: "MQ_ERROR_MESSAGE_NOT_AUTHENTICATED",
    MessageClass.NACK_BAD_ENCRYPTION: "MQ_ERROR_CORRUPTED_SECURITY_DATA",
    MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER: "MQ_ERROR_ENCRYPTION_PROVIDER_NOT_SUPPORTED",
}


def message_of(buffer: Any) -> Message:
    """Returns the message in the buffer of a send (CACTransferBufferV1), without the fields that are set when
    it is sent.

    Raises INVALID_PARAMETER, ILLEGAL_PROPERTY_VALUE or ILLEGAL_FORMATNAME if the buffer breaks a rule of
    3.1.5.2.
    """
    if buffer.uTransferType != SEND:
        raise InvalidParameter("the buffer is not the buffer of a send")
    send = buffer.transfer
    return Message(
        body=_array(buffer.ppBody, buffer.ulBodyBufferSizeInBytes),
        label=_label(buffer),
        priority=_or(buffer.pPriority, 3),
        delivery=_delivery(buffer.pDelivery),
        body_type=_or(buffer.pulBodyType, 0),
        app_specific=_or(buffer.pApplicationTag, 0),
        extension=_array(buffer.ppMsgExtension, buffer.ulMsgExtensionBufferInBytes),
        correlation_id=bytes(20 if buffer.ppCorrelationID is None else buffer.ppCorrelationID),
        message_class=_bits(buffer.pClass, CUSTOM_MASK, "pClass"),
        acknowledge=Acknowledge(_bits(buffer.pAcknowledge, 0x0F, "pAcknowledge")),
        journal=Journal(_bits(buffer.pAuditing, 0x03, "pAuditing")),
        admin_queue=_name(send.pAdminQueueFormat),
        response_queue=_name(send.pResponseQueueFormat),
        time_to_reach_queue=buffer.ulAbsoluteTimeToQueue or INFINITE,
        time_to_be_received=buffer.ulRelativeTimeToLive,
        trace=bool(_bits(buffer.pTrace, 0x01, "pTrace")),
        connector_type=buffer.ppConnectorType,
        privacy_level=_privacy(buffer.pulPrivLevel),
        hash_algorithm=_or(buffer.pulHashAlg, 0),
        encryption_algorithm=_or(buffer.pulEncryptAlg, 0),
        security=_security(buffer),
    )


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _delivery(value: int | None) -> Delivery:
    if value not in (None, 0, 1):
        raise IllegalPropertyValue(f"pDelivery is {value}: expected 0 or 1")
    return Delivery(value or 0)


def _bits(value: int | None, mask: int, name: str) -> int:
    if value is not None and value & ~mask:
        raise IllegalPropertyValue(f"{name} is 0x{value:02X}: only the bits of 0x{mask:02X} are allowed")
    return value or 0


def _array(data: bytes | memoryview | None, size: int) -> bytes:
    """Returns the first `size` bytes of an array."""
    return b"" if data is None else bytes(data[:size])


def _label(buffer: Any) -> str:
    if buffer.ppTitle is None:
        return ""
    count = min(buffer.ulTitleBufferSizeInWCHARs, MOST_TITLE)
    return decode_text(bytes(buffer.ppTitle[: 2 * count]))[: MOST_TITLE - 1]


def _name(given: Any) -> FormatName | None:
    return None if given is None else name_of(given)


_MOST_CERTIFICATE: Final = 0xFFFF
"""The largest certificate in bytes; a packet cannot hold a larger one."""


def _privacy(value: int | None) -> int:
    level = PrivacyLevel.ENHANCED if value == _ENHANCED else value or 0
    if level not in tuple(PrivacyLevel):
        raise IllegalPropertyValue(f"pulPrivLevel is {value}")
    return level


def _security(buffer: Any) -> SecurityHeader | None:
    """Returns the SecurityHeader of the message, or None if the buffer has no values for one."""
    header = SecurityHeader(
        encrypted=bool(buffer.bEncrypted),
        sender_id=_array(buffer.ppSenderID, buffer.uSenderIDLen),
        encryption_key=_array(buffer.ppSymmKeys, buffer.ulSymmKeysSize),
        signature=_signature(buffer),
        certificate=_array(buffer.ppSenderCert, buffer.ulSenderCertLen),
    )
    if buffer.uSenderIDLen and buffer.pulSenderIDType is None:
        raise InvalidParameter("pulSenderIDType is missing")
    header.sender_id_type = _bits(buffer.pulSenderIDType, 0x03, "pulSenderIDType")
    if not header.sender_id_type:
        header.sender_id = b""  # without a type, there is no sender identifier
    if len(header.certificate) > _MOST_CERTIFICATE:
        raise InvalidParameter(f"the certificate has more than {_MOST_CERTIFICATE} bytes")
    if header.signature:
        header.default_provider = bool(buffer.fDefaultProvider)
        if header.default_provider:
            if buffer.pulProvType != PROV_RSA_FULL:
                raise InvalidParameter("with the default provider, pulProvType must be PROV_RSA_FULL")
        elif buffer.ppwcsProvName is None:
            raise InvalidParameter("ppwcsProvName is missing")
        else:
            name = decode_text(bytes(buffer.ppwcsProvName))
            header.provider_info = provider_info(_or(buffer.pulProvType, 0), name)
    used = header.sender_id_type or header.encryption_key or header.signature or header.certificate
    return header if used or header.encrypted else None


def _signature(buffer: Any) -> bytes:
    """Returns the signature in the buffer. If there are two, an MSMQ 1.0 signature followed by an MSMQ 2.0
    signature, returns the latter.
    """
    data = _array(buffer.ppSignature, buffer.ulSignatureSize)
    if buffer.pulAuthProvNameLenProp is None:
        return data
    second = buffer.pulAuthProvNameLenProp - buffer.ulProvNameLen
    if not 0 <= second <= len(data):
        raise InvalidParameter("pulAuthProvNameLenProp is not the length of a part of the signature")
    return data[len(data) - second :]


class Sender:
    """Sends messages for dependent clients."""

    def __init__(self, manager: QueueManager, queues: DependentQueues, signing: Signing | None) -> None:
        self._manager = manager
        self._signing = signing
        self._queues = queues

    def send(self, queue: DependentQueue, buffer: Any, transaction: Transaction | None) -> Completion[int]:
        """Enqueues the message of a buffer.

        The completion is resolved when the message is durable or has become a part of the transaction. Its
        result is the ordinal of the message identifier; for several queues, that of the first copy.

        Raises what `message_of`, the open queue and signing raise. Raises ACCESS_DENIED if the queue is not
        open for sending, or if the caller may not use the administration queue that the message names. Raises
        UNSUPPORTED_FORMATNAME_OPERATION if the message is to be encrypted for a direct name.
        """
        opened = queue.opened
        message = message_of(buffer)
        if message.admin_queue is not None and message.acknowledge:
            self._queues.check_admin_queue(queue.caller, message.admin_queue)

        def finish(packet: bytes, target: Queue) -> bytes:
            return self._finish(packet, target, queue.caller.token)

        if isinstance(opened, MultipleQueue):
            if transaction is None:
                return opened.send(message, finish=finish).then(_first_copy)
            return Completion.of(opened.send_in(transaction, message, finish=finish)[0])
        if message.privacy_level and opened.format_name.direct is not None:
            raise UnsupportedFormatNameOperation("messages to a direct format name cannot be encrypted")
        return self._send_one(opened, message, transaction, finish)

    @staticmethod
    def _send_one(
        opened: OpenQueue, message: Message, transaction: Transaction | None, finish: Finish
    ) -> Completion[int]:
        queue = opened.queue
        if transaction is not None:
            inside = TransactedQueue(opened, transaction)
            transaction.check()
            message.transaction = transaction.header(queue.core)
        elif queue.transactional and queue.kind is not QueueKind.OUTGOING:
            raise TransactionUsage("a transactional queue takes only messages that are sent in a transaction")
        packet = finish(opened.stamp(message).to_packet(), queue)
        ordinal = message.message_id

        def kept(results: list[int]) -> Completion[int]:
            if results[0] not in TAKEN:
                raise refusal(results[0])
            return Completion.of(ordinal)

        if transaction is not None:
            return kept(inside.send_packets([packet]))
        return opened.send_packets([packet]).then(lambda sent: kept(sent[0]))

    def _finish(self, packet: bytes, queue: Queue, token: Token) -> bytes:
        """Returns the form of the packet in which it is enqueued.

        A packet that the client has signed, or encrypted for a queue of this computer, is verified and
        decrypted like a packet from another computer.
        """
        security = security_of(parse(packet))
        protected = security is not None and (security.encrypted or security.signature)
        if queue.kind is QueueKind.OUTGOING or not protected:
            return prepare(self._signing, queue, packet, None, token)
        kept = self._manager.incoming.judge(queue, packet)
        if kept is None:
            raise UnsupportedOperation("this server does not verify signatures or decrypt messages")
        if isinstance(kept, bytes):
            return kept
        raise error(_REFUSALS.get(kept, "MQ_ERROR"), f"{queue.name} refuses the message: {kept.name}")


def _first_copy(copies: tuple[SentMessage, ...]) -> Completion[int]:
    return Completion.of(copies[0].message_id)
