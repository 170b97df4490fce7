"""Protection that a queue requires of messages: signatures, encryption (MS-MQQB 3.1.7.1.4)."""

from __future__ import annotations

from msmq_fast._native.framing import ParsedMessage, parse
from msmq_fast._native.operations import is_transactional
from msmq_fast.packet.protect import security_of
from msmq_fast.packet.text import is_xml
from msmq_fast.protocol.errors import (
    IllegalPropertyValue,
    MessageNotAuthenticated,
    UnsupportedFormatNameOperation,
    error,
)
from msmq_fast.protocol.text import quoted
from msmq_fast.qm.queues.opening import check_transactional
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.queue import Privacy, Queue, QueueKind

__all__ = ["check_demands", "check_kept", "check_srmp", "demands", "leaves_by_srmp"]

_PRIVACY = 40  # MessagePropertiesHeader.PrivacyLevel


def leaves_by_srmp(queue: Queue) -> bool:
    """Whether messages leave a queue by SRMP."""
    return queue.kind is QueueKind.OUTGOING and queue.core.srmp


def demands(queue: Queue) -> bool:
    """Whether it is looked at how messages are protected that go into a queue: one of this computer, or one
    whose messages leave by SRMP, which protects none.
    """
    properties = queue.properties
    if queue.kind is QueueKind.OUTGOING:
        return leaves_by_srmp(queue)
    return properties.authenticated or properties.privacy is not Privacy.OPTIONAL


def check_kept(queue: Queue, packet: bytes) -> None:
    """Whether a message of another queue of this computer may go into `queue`: one whose signature was
    verified when it came, as that queue demands. Raises as `check_demands`.
    """
    if demands(queue):
        message = parse(packet)
        security = security_of(message)
        check_demands(queue, message, signed=security is not None and bool(security.authentication_level))


def check_srmp(queue: Queue, message: ParsedMessage) -> None:
    """SR-226, A-77, A-89: SRMP has no encryption but that of HTTPS, multicast has no streams, and a label
    stands in XML.

    Raises ILLEGAL_PROPERTY_VALUE, UNSUPPORTED_FORMATNAME_OPERATION, TRANSACTION_USAGE.
    """
    if not is_xml(message.label):
        raise IllegalPropertyValue(
            f"{quoted(message.label)} cannot be the label of a message to {queue.name}: "
            "it is sent as XML, which cannot carry control characters"
        )
    start, packet = message.properties_offset + _PRIVACY, message.packet
    if any(packet[start : start + 4]):
        raise UnsupportedFormatNameOperation(
            f"encrypted messages cannot be sent to {queue.name}; use HTTPS to protect them"
        )
    if isinstance(queue, OutgoingQueue) and is_transactional(packet):
        check_transactional(queue.destination)


def check_demands(queue: Queue, message: ParsedMessage, *, signed: bool) -> None:
    """MESSAGE_NOT_AUTHENTICATED, ILLEGAL_PROPERTY_VALUE: the queue takes signed, encrypted, or clear messages
    only; `signed` tells whether this one counts as signed.
    """
    if queue.properties.authenticated and not signed:
        raise MessageNotAuthenticated(f"{queue.name} takes signed messages only")
    start, packet = message.properties_offset + _PRIVACY, message.packet
    private = any(packet[start : start + 4])
    privacy = queue.properties.privacy
    if privacy is Privacy.BODY and not private:
        raise error("MQ_ERROR_ILLEGAL_PROPERTY_VALUE", f"{queue.name} takes encrypted messages only")
    if privacy is Privacy.NONE and private:
        raise error("MQ_ERROR_ILLEGAL_PROPERTY_VALUE", f"{queue.name} takes no encrypted messages")
