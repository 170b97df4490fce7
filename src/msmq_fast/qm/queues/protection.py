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
    """Whether the messages of a queue are sent by SRMP."""
    return queue.kind is QueueKind.OUTGOING and queue.core.srmp


def demands(queue: Queue) -> bool:
    """Whether a queue accepts only messages with a certain protection.

    True for a local queue that requires signatures, or that requires or forbids encryption. Also True for an
    outgoing queue whose messages are sent by SRMP, which cannot carry encrypted messages.
    """
    properties = queue.properties
    if queue.kind is QueueKind.OUTGOING:
        return leaves_by_srmp(queue)
    return properties.authenticated or properties.privacy is not Privacy.OPTIONAL


def check_kept(queue: Queue, packet: bytes) -> None:
    """Check that a message from another local queue has the protection that `queue` requires.

    A signature counts if it was verified when the message arrived. Raises what `check_demands` raises.
    """
    if demands(queue):
        message = parse(packet)
        security = security_of(message)
        check_demands(queue, message, signed=security is not None and bool(security.authentication_level))


def check_srmp(queue: Queue, message: ParsedMessage) -> None:
    """Check that a message can be sent by SRMP (SR-226, A-77, A-89).

    SRMP has no encryption except HTTPS, messages to multicast addresses cannot be transactional, and the
    label is sent as XML. Raises ILLEGAL_PROPERTY_VALUE, UNSUPPORTED_FORMATNAME_OPERATION, TRANSACTION_USAGE.
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
    """Raises MESSAGE_NOT_AUTHENTICATED or ILLEGAL_PROPERTY_VALUE if a queue does not accept the message.

    The queue may accept only signed, only encrypted, or only clear messages. `signed`: True if the message
    counts as signed.
    """
    if queue.properties.authenticated and not signed:
        raise MessageNotAuthenticated(f"{queue.name} takes signed messages only")
    start, packet = message.properties_offset + _PRIVACY, message.packet
    private = any(packet[start : start + 4])
    privacy = queue.properties.privacy
    if privacy is Privacy.BODY and not private:
        raise error("MQ_ERROR_ILLEGAL_PROPERTY_VALUE", f"{queue.name} takes encrypted messages only")
    if privacy is Privacy.NONE and private:
        raise error("MQ_ERROR_ILLEGAL_PROPERTY_VALUE", f"{queue.name} accepts no encrypted messages")
