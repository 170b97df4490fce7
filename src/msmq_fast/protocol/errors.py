"""Errors with their MQ_ERROR_* HRESULTs (MS-MQMQ 2.4), and the faults of malformed packets."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar

from msmq_fast.protocol.hresults import HRESULTS

_NAMES = {name: code for code, name in HRESULTS.items()}
_OWN = {0xE00E0001: "MSMQ_FAST_CHANGED"}
"""Codes of this project, which have the C bit of an HRESULT."""


class MSMQError(Exception):
    """An error of the queue manager, with its HRESULT.

    The common codes have classes of their own; `error(code)` finds the class of any code. `code` is the
    HRESULT, `name` its published name (MQ_ERROR_…), `detail` adds details in words.
    """

    default_code: ClassVar[int] = _NAMES["MQ_ERROR"]

    def __init__(self, detail: str = "", *, code: int | None = None) -> None:
        self.code = self.default_code if code is None else code
        self.name = HRESULTS.get(self.code) or _OWN.get(self.code) or f"0x{self.code:08X}"
        self.detail = detail
        super().__init__(f"{self.name} (0x{self.code:08X}){': ' + detail if detail else ''}")


class BufferTooSmall(MSMQError):
    """A message exceeds the sizes that its reader accepts; the message stays in its queue.

    `needed` holds the sizes of the message: see `protocol.frames.MessageSizes`. The code says which part
    exceeded its limit first.
    """

    default_code = _NAMES["MQ_ERROR_BUFFER_OVERFLOW"]

    def __init__(self, detail: str = "", *, code: int | None = None, needed: Sequence[int] = ()) -> None:
        super().__init__(detail, code=code)
        self.needed = tuple(needed)


class PropertyError(MSMQError):
    default_code = _NAMES["MQ_ERROR_PROPERTY"]


class QueueNotFound(MSMQError):
    default_code = _NAMES["MQ_ERROR_QUEUE_NOT_FOUND"]


class QueueNotActive(MSMQError):
    default_code = _NAMES["MQ_ERROR_QUEUE_NOT_ACTIVE"]


class QueueExists(MSMQError):
    default_code = _NAMES["MQ_ERROR_QUEUE_EXISTS"]


class InvalidParameter(MSMQError):
    default_code = _NAMES["MQ_ERROR_INVALID_PARAMETER"]


class InvalidHandle(MSMQError):
    default_code = _NAMES["MQ_ERROR_INVALID_HANDLE"]


class OperationCancelled(MSMQError):
    default_code = _NAMES["MQ_ERROR_OPERATION_CANCELLED"]


class SharingViolation(MSMQError):
    default_code = _NAMES["MQ_ERROR_SHARING_VIOLATION"]


class ServiceNotAvailable(MSMQError):
    default_code = _NAMES["MQ_ERROR_SERVICE_NOT_AVAILABLE"]


class MachineNotFound(MSMQError):
    default_code = _NAMES["MQ_ERROR_MACHINE_NOT_FOUND"]


class NoDirectory(MSMQError):
    default_code = _NAMES["MQ_ERROR_NO_DS"]


class IllegalQueuePathName(MSMQError):
    default_code = _NAMES["MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"]


class IllegalPropertyValue(MSMQError):
    default_code = _NAMES["MQ_ERROR_ILLEGAL_PROPERTY_VALUE"]


class IOTimeout(MSMQError):
    default_code = _NAMES["MQ_ERROR_IO_TIMEOUT"]


class IllegalCursorAction(MSMQError):
    default_code = _NAMES["MQ_ERROR_ILLEGAL_CURSOR_ACTION"]


class MessageAlreadyReceived(MSMQError):
    default_code = _NAMES["MQ_ERROR_MESSAGE_ALREADY_RECEIVED"]


class IllegalFormatName(MSMQError):
    default_code = _NAMES["MQ_ERROR_ILLEGAL_FORMATNAME"]


class UnsupportedFormatNameOperation(MSMQError):
    default_code = _NAMES["MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"]


class AccessDenied(MSMQError):
    default_code = _NAMES["MQ_ERROR_ACCESS_DENIED"]


class InsufficientResources(MSMQError):
    default_code = _NAMES["MQ_ERROR_INSUFFICIENT_RESOURCES"]


class MessageStorageFailed(MSMQError):
    default_code = _NAMES["MQ_ERROR_MESSAGE_STORAGE_FAILED"]


class UnsupportedAccessMode(MSMQError):
    default_code = _NAMES["MQ_ERROR_UNSUPPORTED_ACCESS_MODE"]


class QueueNotAvailable(MSMQError):
    default_code = _NAMES["MQ_ERROR_QUEUE_NOT_AVAILABLE"]


class TransactionUsage(MSMQError):
    default_code = _NAMES["MQ_ERROR_TRANSACTION_USAGE"]


class TransactionSequence(MSMQError):
    default_code = _NAMES["MQ_ERROR_TRANSACTION_SEQUENCE"]


class StaleHandle(MSMQError):
    default_code = _NAMES["MQ_ERROR_STALE_HANDLE"]


class QueueDeleted(MSMQError):
    default_code = _NAMES["MQ_ERROR_QUEUE_DELETED"]


class TransactionEnlist(MSMQError):
    default_code = _NAMES["MQ_ERROR_TRANSACTION_ENLIST"]


class LabelTooLong(MSMQError):
    default_code = _NAMES["MQ_ERROR_LABEL_TOO_LONG"]


class IllegalOperation(MSMQError):
    default_code = _NAMES["MQ_ERROR_ILLEGAL_OPERATION"]


class RemoteMachineNotAvailable(MSMQError):
    default_code = _NAMES["MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE"]


class UnsupportedOperation(MSMQError):
    default_code = _NAMES["MQ_ERROR_UNSUPPORTED_OPERATION"]


class PropertiesConflict(MSMQError):
    default_code = _NAMES["MQ_ERROR_PROPERTIES_CONFLICT"]


class MessageNotFound(MSMQError):
    default_code = _NAMES["MQ_ERROR_MESSAGE_NOT_FOUND"]


class ResolveAddress(MSMQError):
    default_code = _NAMES["MQ_ERROR_RESOLVE_ADDRESS"]


class MessageNotAuthenticated(MSMQError):
    default_code = _NAMES["MQ_ERROR_MESSAGE_NOT_AUTHENTICATED"]


class MessageLocked(MSMQError):
    default_code = _NAMES["MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION"]


class Changed(MSMQError):
    """Settings have another version than the request expects: they were changed since they were read."""

    default_code = 0xE00E0001


_CLASSES = {cls.default_code: cls for cls in MSMQError.__subclasses__()}


def code_of(name: str) -> int:
    """Return the HRESULT of a published name. Raises KeyError if there is no such name."""
    return _NAMES[name]


def error(code: int | str, detail: str = "") -> MSMQError:
    """Return the exception for an HRESULT or its name, of the code's own class if it has one."""
    number = _NAMES[code] if isinstance(code, str) else code
    return _CLASSES.get(number, MSMQError)(detail, code=number)


class PacketFaultCode(IntEnum):
    """The reason why a packet is malformed; the numbers are those of the native parser."""

    NONE = 0
    TRUNCATED = 1
    VERSION = 2
    SIGNATURE = 3
    PACKET_SIZE = 4
    PACKET_TYPE = 5
    ESTABLISH_SIZE = 6
    PARAMETERS_SIZE = 7
    SESSION_ACK_SIZE = 8
    SESSION_ACK_NO_HEADER = 9
    INTERNAL = 10
    USER_SIZE = 11
    DESTINATION_TYPE = 12
    ADMIN_TYPE = 13
    DELIVERY = 14
    TRANSACTION_EXPRESS = 15
    NO_PROPERTIES = 16
    QUEUE_NAME_SIZE = 17
    QUEUE_NAME = 18
    TRANSACTION_SIZE = 19
    SECURITY_SIZE = 20
    SENDER_ID = 21
    CERTIFICATE_SIZE = 22
    PROVIDER_SIZE = 23
    PROPERTIES_SIZE = 24
    LABEL_LENGTH = 25
    EXTENSION_SIZE = 26
    BODY_SIZE = 27
    DEBUG_SIZE = 28
    DEBUG_TYPE = 29
    ENVELOPE_SIZE = 30
    COMPOUND_SIZE = 31
    SOAP_SECTION = 32
    SOAP_SIZE = 33
    MQF_SECTION = 34
    MQF_SIZE = 35
    MQF_ELEMENT = 36
    LENGTH_MISMATCH = 37

    @property
    def label(self) -> str:
        """The name in counters and logs: lower case, with hyphens."""
        return self.name.lower().replace("_", "-")

    @property
    def text(self) -> str:
        """The reason as one line for a log."""
        return _FAULT_TEXT[self]


_FAULT_TEXT = {
    PacketFaultCode.NONE: "no fault",
    PacketFaultCode.TRUNCATED: "the bytes end before the packet does",
    PacketFaultCode.VERSION: "BaseHeader.VersionNumber is not 0x10",
    PacketFaultCode.SIGNATURE: "BaseHeader.Signature is not LIOR",
    PacketFaultCode.PACKET_SIZE: "BaseHeader.PacketSize is out of range",
    PacketFaultCode.PACKET_TYPE: "InternalHeader.PT names no packet type",
    PacketFaultCode.ESTABLISH_SIZE: "an EstablishConnection packet does not have 572 bytes",
    PacketFaultCode.PARAMETERS_SIZE: "a ConnectionParameters packet does not have 32 bytes",
    PacketFaultCode.SESSION_ACK_SIZE: "a SessionAck packet does not have 36 bytes",
    PacketFaultCode.SESSION_ACK_NO_HEADER: "a SessionAck packet without BaseHeader.Flags.SH",
    PacketFaultCode.INTERNAL: "an internal packet where a UserMessage is expected",
    PacketFaultCode.USER_SIZE: "the UserHeader runs past the end of the packet",
    PacketFaultCode.DESTINATION_TYPE: "UserHeader.Flags.DQ is not 0, 3, 5 or 7",
    PacketFaultCode.ADMIN_TYPE: "UserHeader.Flags.AQ is 1 or 4",
    PacketFaultCode.DELIVERY: "UserHeader.Flags.DM is not 0 or 1",
    PacketFaultCode.TRANSACTION_EXPRESS: "a TransactionHeader in an express message",
    PacketFaultCode.NO_PROPERTIES: "UserHeader.Flags.MP is clear",
    PacketFaultCode.QUEUE_NAME_SIZE: "a queue name runs past the end of the packet",
    PacketFaultCode.QUEUE_NAME: "a direct queue name has an odd length or no NUL",
    PacketFaultCode.TRANSACTION_SIZE: "the TransactionHeader runs past the end of the packet",
    PacketFaultCode.SECURITY_SIZE: "the SecurityHeader runs past the end of the packet",
    PacketFaultCode.SENDER_ID: "a SecurityID where SecurityHeader.Flags.ST says none",
    PacketFaultCode.CERTIFICATE_SIZE: "SecurityHeader.SenderCertSize is larger than 0xFFFF",
    PacketFaultCode.PROVIDER_SIZE: "SecurityHeader.ProviderInfoSize is too small for its content",
    PacketFaultCode.PROPERTIES_SIZE: "the MessagePropertiesHeader runs past the end of the packet",
    PacketFaultCode.LABEL_LENGTH: "the label is longer than 250 characters or than the packet",
    PacketFaultCode.EXTENSION_SIZE: "ExtensionSize runs past the end of the packet",
    PacketFaultCode.BODY_SIZE: "MessageSize runs past the end of the packet",
    PacketFaultCode.DEBUG_SIZE: "the DebugHeader runs past the end of the packet",
    PacketFaultCode.DEBUG_TYPE: "DebugHeader.Flags.QT is not 0 or 1",
    PacketFaultCode.ENVELOPE_SIZE: "the SRMPEnvelopeHeader runs past the end of the packet",
    PacketFaultCode.COMPOUND_SIZE: "the CompoundMessageHeader contradicts itself or runs past the packet",
    PacketFaultCode.SOAP_SECTION: "a SoapHeader section has the wrong identifier",
    PacketFaultCode.SOAP_SIZE: "the SoapHeader runs past the end of the packet",
    PacketFaultCode.MQF_SECTION: "a MultiQueueFormatHeader section has the wrong identifier",
    PacketFaultCode.MQF_SIZE: "the MultiQueueFormatHeader runs past the end of the packet",
    PacketFaultCode.MQF_ELEMENT: "a MultiQueueFormatHeader element is unknown or too long",
    PacketFaultCode.LENGTH_MISMATCH: "the headers do not add up to BaseHeader.PacketSize",
}


class PacketFault(ValueError):
    """A malformed packet. The receiver discards it and closes its session (MS-MQQB 3.1.5.1.3)."""

    def __init__(self, code: int) -> None:
        self.code = PacketFaultCode(code)
        super().__init__(f"{self.code.text} ({self.code.label})")
