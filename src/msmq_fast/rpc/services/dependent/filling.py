"""Copies a message into a client's buffer, a CACTransferBufferV2 (MS-MQMP 3.1.1.11, 3.1.5.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.packet.base import INFINITE, NULL_GUID, VERSION, utf16z
from msmq_fast.packet.message import Message
from msmq_fast.packet.user import SecurityHeader, parse_provider_info
from msmq_fast.protocol.errors import code_of
from msmq_fast.rpc.idl.mqmq import OBJECTID

if TYPE_CHECKING:
    from msmq_fast._native.queuebase import Received
    from msmq_fast.packet.names import FormatName
    from msmq_fast.rpc.ndr.record import Record

__all__ = ["fill"]

_OVERFLOW: Final = code_of("MQ_ERROR_BUFFER_OVERFLOW")
_NAME: Final = code_of("MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL")
_PROVIDER: Final = code_of("MQ_ERROR_PROV_NAME_BUFFER_TOO_SMALL")
_WIDE: Final = 2  # bytes of a character


@dataclass(frozen=True, slots=True)
class _Place:
    """The names of the members of a buffer that describe one array.

    `array` is the member with the array itself, `size` the one with its size, `length` the one with the
    length of its content. Size and length count units of `unit` bytes. `too_small` is the HRESULT if the
    content does not fit.
    """

    array: str
    size: str
    length: str
    too_small: int
    unit: int = 1


_BODY: Final = _Place("ppBody", "ulBodyBufferSizeInBytes", "pBodySize", _OVERFLOW)
_EXTENSION: Final = _Place("ppMsgExtension", "ulMsgExtensionBufferInBytes", "pMsgExtensionSize", _OVERFLOW)
_TITLE: Final = _Place(
    "ppTitle",
    "ulTitleBufferSizeInWCHARs",
    "pulTitleBufferSizeInWCHARs",
    code_of("MQ_ERROR_LABEL_BUFFER_TOO_SMALL"),
)
_SENDER: Final = _Place(
    "ppSenderID", "uSenderIDLen", "pulSenderIDLenProp", code_of("MQ_ERROR_SENDERID_BUFFER_TOO_SMALL")
)
_CERTIFICATE: Final = _Place(
    "ppSenderCert",
    "ulSenderCertLen",
    "pulSenderCertLenProp",
    code_of("MQ_ERROR_SENDER_CERT_BUFFER_TOO_SMALL"),
)
_KEY: Final = _Place(
    "ppSymmKeys", "ulSymmKeysSize", "pulSymmKeysSizeProp", code_of("MQ_ERROR_SYMM_KEY_BUFFER_TOO_SMALL")
)
_SIGNATURE: Final = _Place(
    "ppSignature",
    "ulSignatureSize",
    "pulSignatureSizeProp",
    code_of("MQ_ERROR_SIGNATURE_BUFFER_TOO_SMALL"),
)
_NAMES: Final = {
    stem: _Place(f"pp{stem}FormatName", f"ul{stem}FormatNameLen", f"pul{stem}FormatNameLenProp", _NAME)
    for stem in ("Response", "Admin", "Dest", "Ordering")
}
_PROVIDER_NAME: Final = _Place(
    "ppwcsProvName", "ulProvNameLen", "pulAuthProvNameLenProp", _PROVIDER, unit=_WIDE
)


def fill(buffer: Record, received: Received, now_s: int) -> int:
    """Copies a message into the members that the client requested. `now_s` is Unix time.

    Returns 0, or the HRESULT of the first array that is too small. In that case the buffer has the lengths of
    all contents, and each array has as much of its content as fits.
    """
    message = Message.from_packet(received.packet)
    security = message.security or SecurityHeader()
    old = buffer.old
    provider_type, provider = 0, b""
    if security.provider_info:
        provider_type, name = parse_provider_info(security.provider_info)
        provider = utf16z(name)
    _set_values(old, _values(message, received, security, provider_type, now_s))
    transaction = message.transaction
    _set_values(
        buffer,
        {
            "pbFirstInXact": int(transaction is not None and transaction.first),
            "pbLastInXact": int(transaction is not None and transaction.last),
            "ppXactID": OBJECTID(NULL_GUID, 0)
            if transaction is None
            else OBJECTID(message.source_machine, transaction.transaction_id),
        },
    )
    problems = [
        _put(old, _BODY, message.body),
        _put_wide(old, _TITLE, utf16z(message.label)),
        _put(old, _EXTENSION, message.extension),
        *_put_names(old.transfer, message),
        _put(old, _SENDER, security.sender_id),
        _put(old, _CERTIFICATE, security.certificate),
        _put(old, _KEY, security.encryption_key),
        _put(old, _SIGNATURE, security.signature),
        _put(old, _PROVIDER_NAME, provider),
    ]
    return next(filter(None, problems), 0)


def _values(
    message: Message, received: Received, security: SecurityHeader, provider_type: int, now_s: int
) -> dict[str, Any]:
    left = message.time_to_be_received
    if left != INFINITE:
        left = max(0, message.sent_time + left - now_s)
    return {
        "pClass": received.reason or int(message.message_class),
        "ppMessageID": OBJECTID(message.source_machine, message.message_id),
        "ppCorrelationID": message.correlation_id,
        "pSentTime": message.sent_time,
        "pArrivedTime": received.arrived_time,
        "pPriority": message.priority,
        "pDelivery": int(message.delivery),
        "pAcknowledge": int(message.acknowledge),
        "pAuditing": int(message.journal),
        "pApplicationTag": message.app_specific,
        "pulRelativeTimeToQueue": message.time_to_reach_queue,
        "pulRelativeTimeToLive": left,
        "pTrace": int(message.trace),
        "pulSenderIDType": security.sender_id_type,
        "pulPrivLevel": message.privacy_level,
        "pAuthenticated": security.authentication_level,
        "pulHashAlg": message.hash_algorithm,
        "pulEncryptAlg": message.encryption_algorithm,
        "pulProvType": provider_type,
        "ppSrcQMID": message.source_machine,
        "ppConnectorType": message.connector_type or NULL_GUID,
        "pulBodyType": message.body_type,
        "pulVersion": VERSION,
    }


def _set_values(record: Record, values: dict[str, Any]) -> None:
    """Sets the members of a record that `values` names. Members that are NULL stay NULL."""
    for name, value in values.items():
        if getattr(record, name) is not None:
            setattr(record, name, value)


def _put(old: Record, place: _Place, content: bytes) -> int:
    """Puts `content` into an array without changing the size of the array. Returns 0, or the HRESULT if the
    array is too small.
    """
    _set_values(old, {place.length: len(content) // place.unit})
    if getattr(old, place.array) is None:
        return 0
    room = getattr(old, place.size) * place.unit
    setattr(old, place.array, content[:room].ljust(room, b"\0"))
    return place.too_small if len(content) > room else 0


def _put_names(receive: Record, message: Message) -> list[int]:
    names = {
        "Response": _all(message.response_queue, message.response_queues),
        "Admin": _all(message.admin_queue, message.admin_queues),
        "Dest": _all(message.destination, message.destinations),
        "Ordering": "",
    }
    return [_put_wide(receive, _NAMES[stem], utf16z(text) if text else b"") for stem, text in names.items()]


def _all(one: FormatName | None, several: tuple[FormatName, ...]) -> str:
    return ",".join(map(str, several)) if several else "" if one is None else str(one)


def _put_wide(record: Record, place: _Place, content: bytes) -> int:
    """Puts a text into an array of characters. The size of the array becomes the number of characters put.

    Before the call, the length member is the number of characters for which the client has room; after the
    call, it is the length of the whole text. Returns 0, or the HRESULT if the array is too small.
    """
    needed = len(content) // _WIDE
    room = getattr(record, place.length)
    if room is not None:
        setattr(record, place.length, needed)
    if getattr(record, place.array) is None:
        return 0
    size = getattr(record, place.size)
    sent = min(size, needed)
    setattr(record, place.size, sent)
    setattr(record, place.array, content[: sent * _WIDE])
    return place.too_small if needed > (size if room is None else room) else 0
