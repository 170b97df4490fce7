"""Parses SOAP envelopes ([MC-MQSRM] 2.2.2 to 2.2.6). Elements are identified by namespace and local name."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast.packet.text import utf16_units
from msmq_fast.srmp.model import (
    LABEL_PREFIX,
    MULTICAST_PREFIX,
    CommitmentReceipt,
    DeliveryReceipt,
    Envelope,
    Eod,
    MsmqPart,
    Provider,
    StreamPart,
    StreamReceipt,
)
from msmq_fast.srmp.readingsignature import read_signature
from msmq_fast.srmp.values import (
    Nonconforming,
    read_base64,
    read_date,
    read_guid,
    read_message_id,
    read_number,
    read_stream_id,
)
from msmq_fast.srmp.xmlbounds import parse_xml

__all__ = ["read_envelope"]

MAX_LABEL: Final = 249  # UTF-16 units
_U16, _U32 = 0xFFFF, 0xFFFFFFFF

_SE: Final = "{http://schemas.xmlsoap.org/soap/envelope/}"
_RP: Final = "{http://schemas.xmlsoap.org/rp/}"
_SRMP: Final = "{http://schemas.xmlsoap.org/srmp/}"
_MSMQ: Final = "{msmq.namespace.xml}"
_DS: Final = "{http://www.w3.org/2000/02/xmldsig#}"
_ENVELOPE, _HEADER, _BODY = f"{_SE}Envelope", f"{_SE}Header", f"{_SE}Body"
_MUST_UNDERSTAND, _ACTOR = f"{_SE}mustUnderstand", f"{_SE}actor"
_NEXT: Final = "http://schemas.xmlsoap.org/soap/actor/next"


def _names(namespace: str, *local: str) -> dict[str, str]:
    return {namespace + name: name for name in local}


_HEADERS: Final = {
    f"{_RP}path": "path",
    f"{_SRMP}stream": "stream",  # the text of the specification
    f"{_SRMP}Stream": "stream",  # its examples, and what Windows sends
    f"{_MSMQ}Msmq": "Msmq",
    f"{_DS}Signature": "Signature",
    **_names(_SRMP, "properties", "services", "deliveryReceipt", "commitmentReceipt", "streamReceipt"),
}
_PATH: Final = _names(_RP, "action", "to", "id", "rev")
_REV: Final = _names(_RP, "via")
_ACTION, _REV_ELEMENT = f"{_RP}action", f"{_RP}rev"
_PROPERTIES: Final = _names(_SRMP, "expiresAt", "sentAt")
_SERVICES: Final = _names(_SRMP, "durable", "deliveryReceiptRequest", "commitmentReceiptRequest")
_REQUEST: Final = _names(_SRMP, "sendTo", "positiveOnly", "negativeOnly")
_STREAM: Final = _names(_SRMP, "streamId", "current", "previous", "start")
_START: Final = _names(_SRMP, "sendReceiptsTo")
_START_ELEMENT: Final = f"{_SRMP}start"
_RECEIPT: Final = _names(
    _SRMP, "receivedAt", "decidedAt", "decision", "id", "streamId", "lastOrdinal"
)  # of all three kinds
_MSMQ_PARTS: Final = _names(
    _MSMQ,
    *("Class", "Priority", "Journal", "DeadLetter", "Correlation", "Trace", "ConnectorType", "App"),
    *("BodyType", "HashAlgorithm", "Eod", "Provider", "SourceQmGuid"),
    *("DestinationMqf", "AdminMqf", "ResponseMqf", "TTrq"),
)
_EOD: Final = _names(_MSMQ, "First", "Last", "ConnectorId")
_PROVIDER: Final = _names(_MSMQ, "Type", "Name")

_SPACE: Final = " \t\r\n"

_Found = dict[str, Any]  # elements
_Texts = dict[str, str]


def read_envelope(xml: bytes) -> Envelope:
    """Parse an envelope in UTF-8. Raises Nonconforming if it violates section 2 of the specification."""
    root = parse_xml(xml)
    if root.tag != _ENVELOPE or len(root) < 2 or root[0].tag != _HEADER or root[1].tag != _BODY:
        raise Nonconforming("expected se:Envelope with se:Header followed by se:Body")
    found = _headers(root[0])
    path, properties = found.get("path"), found.get("properties")
    if path is None or properties is None:
        raise Nonconforming(f"se:Header has no element <{'path' if path is None else 'properties'}>")
    for name in ("path", "properties", "services", "stream"):
        if name in found and found[name].get(_MUST_UNDERSTAND) != "1":
            raise Nonconforming(f'<{name}> lacks the attribute se:mustUnderstand="1"')
    action, to, identifier, via = _read_path(path)
    dates = _texts(properties, _PROPERTIES)
    msmq = _read_msmq(found["Msmq"]) if "Msmq" in found else None
    if msmq is not None:
        read_message_id(identifier)
    elif "stream" in found:
        raise Nonconforming("an envelope with a stream must have the Msmq element")
    services = _read_services(found["services"]) if "services" in found else {}
    return Envelope(
        action=action,
        to=to,
        id=identifier,
        via=via,
        expires_at=read_date(_required(dates, "expiresAt")),
        sent_at=read_date(dates["sentAt"]) if "sentAt" in dates else None,
        services="services" in found,
        stream=_read_stream(found["stream"]) if "stream" in found else None,
        delivery_receipt=_read_delivery(found["deliveryReceipt"]) if "deliveryReceipt" in found else None,
        commitment_receipt=(
            _read_commitment(found["commitmentReceipt"]) if "commitmentReceipt" in found else None
        ),
        stream_receipt=_read_stream_receipt(found["streamReceipt"]) if "streamReceipt" in found else None,
        msmq=msmq,
        signature=read_signature(found["Signature"], xml) if "Signature" in found else None,
        **services,
    )


def _headers(header: Any) -> _Found:
    """Return the header elements of SRMP by name. Raises Nonconforming if the header has an unknown element
    with mustUnderstand (A-04).
    """
    found = _children(header, _HEADERS)
    if len(found) < len(header):
        for child in header:
            for_us = child.tag not in _HEADERS and child.get(_ACTOR, _NEXT) in ("", _NEXT)
            if for_us and child.get(_MUST_UNDERSTAND) == "1":
                raise Nonconforming('se:Header has an unknown element with se:mustUnderstand="1"')
    return found


def _children(parent: Any, names: dict[str, str]) -> _Found:
    """Return the child elements with these tags by name; other children are ignored.

    `names` maps tags to names. Raises Nonconforming if a child occurs twice.
    """
    found: _Found = {}
    for child in parent:
        name = names.get(child.tag)
        if name is not None:
            if name in found:
                raise Nonconforming(f"{name} occurs twice")
            found[name] = child
    return found


def _texts(parent: Any, names: dict[str, str]) -> _Texts:
    """Return the texts of child elements, by the names that `names` has for their tags. Other elements are
    passed over.
    """
    found: _Texts = {}
    for child in parent:
        name = names.get(child.tag)
        if name is not None:
            if name in found:
                raise Nonconforming(f"{name} occurs twice")
            found[name] = (child.text or "").strip(_SPACE)
    return found


def _required(found: _Texts, name: str) -> str:
    """Return the text of a required element. Raises Nonconforming if the element is missing."""
    text = found.get(name)
    if text is None:
        raise Nonconforming(f"{name} is missing")
    return text


def _read_path(path: Any) -> tuple[str, str, str, str | None]:
    parts = _texts(path, _PATH)
    to, identifier, action = (_required(parts, name) for name in ("to", "id", "action"))
    if action.startswith(LABEL_PREFIX):
        raw: str = path.find(_ACTION).text
        if raw.startswith(LABEL_PREFIX):  # white space at the end belongs to the label
            action = raw
    if action.startswith(LABEL_PREFIX) and utf16_units(action) > MAX_LABEL + len(LABEL_PREFIX):
        raise Nonconforming(f"a label may have at most {MAX_LABEL} characters")
    if not (_is_url(to) or to[: len(MULTICAST_PREFIX)].upper() == MULTICAST_PREFIX):
        raise Nonconforming("<to> holds neither an http or https URL nor MSMQ:MULTICAST=address:port")
    via = None
    if "rev" in parts:
        via = _required(_texts(path.find(_REV_ELEMENT), _REV), "via") or None
        if via is not None and not _is_url(via) and via[: len(LABEL_PREFIX)].upper() != LABEL_PREFIX:
            raise Nonconforming("<via> holds neither an http or https URL nor MSMQ: and a format name")
    return action, to, identifier, via


def _is_url(text: str) -> bool:
    return text[:8].lower().startswith(("http://", "https://"))


def _url(found: _Texts, name: str) -> str:
    text = _required(found, name)
    if not _is_url(text):
        raise Nonconforming(f"<{name}> does not hold an http or https URL")
    return text


def _read_services(services: Any) -> dict[str, Any]:
    parts = _children(services, _SERVICES)
    read: dict[str, Any] = {"durable": "durable" in parts}
    if "deliveryReceiptRequest" in parts:
        read["delivery_to"] = _url(_texts(parts["deliveryReceiptRequest"], _REQUEST), "sendTo")
    if "commitmentReceiptRequest" in parts:
        request = _texts(parts["commitmentReceiptRequest"], _REQUEST)
        read["commitment_to"] = _url(request, "sendTo")
        read["positive_only"] = "positiveOnly" in request
        read["negative_only"] = "negativeOnly" in request
    return read


def _read_stream(stream: Any) -> StreamPart:
    parts = _texts(stream, _STREAM)
    sender, sequence = read_stream_id(_required(parts, "streamId"))
    current = read_number(_required(parts, "current"), _U32)
    if current == 0:
        raise Nonconforming("<current> must be at least 1")
    if ("start" in parts) != (current == 1):
        raise Nonconforming("<start> must be present if <current> is 1, and absent otherwise")
    start = stream.find(_START_ELEMENT)
    return StreamPart(
        sender=sender,
        sequence=sequence,
        current=current,
        previous=read_number(parts["previous"], _U32) if "previous" in parts else None,
        receipts_to=None if start is None else _url(_texts(start, _START), "sendReceiptsTo"),
        start=current == 1,
    )


def _original(parts: _Texts) -> str:
    """Return the identifier of a receipt's original message. Raises Nonconforming if it is invalid."""
    text = _required(parts, "id")
    read_message_id(text)
    return text


def _read_delivery(receipt: Any) -> DeliveryReceipt:
    parts = _texts(receipt, _RECEIPT)
    return DeliveryReceipt(read_date(_required(parts, "receivedAt")), _original(parts))


def _read_commitment(receipt: Any) -> CommitmentReceipt:
    parts = _texts(receipt, _RECEIPT)
    decision = _required(parts, "decision")
    if decision not in ("positive", "negative"):
        raise Nonconforming("<decision> is neither positive nor negative")
    decided_at = read_date(_required(parts, "decidedAt"))
    return CommitmentReceipt(decided_at, decision == "positive", _original(parts))


def _read_stream_receipt(receipt: Any) -> StreamReceipt:
    parts = _texts(receipt, _RECEIPT)
    sender, sequence = read_stream_id(_required(parts, "streamId"))
    return StreamReceipt(sender, sequence, read_number(_required(parts, "lastOrdinal"), _U32))


def _read_msmq(msmq: Any) -> MsmqPart:
    parts = _texts(msmq, _MSMQ_PARTS)

    def number(name: str) -> int | None:
        return read_number(parts[name], _U32) if name in parts else None

    def names(name: str) -> tuple[str, ...]:
        return tuple(parts[name].split()) if name in parts else ()

    return MsmqPart(
        message_class=read_number(_required(parts, "Class"), _U16),
        priority=read_number(_required(parts, "Priority"), 7),
        journal="Journal" in parts,
        deadletter="DeadLetter" in parts,
        correlation=read_base64(parts["Correlation"], 20) if "Correlation" in parts else None,
        trace="Trace" in parts,
        connector_type=read_guid(parts["ConnectorType"]) if "ConnectorType" in parts else None,
        app=number("App"),
        body_type=read_number(_required(parts, "BodyType"), _U32),
        hash_algorithm=number("HashAlgorithm"),
        eod=_read_eod(msmq.find(f"{_MSMQ}Eod")) if "Eod" in parts else None,
        provider=_read_provider(msmq.find(f"{_MSMQ}Provider")) if "Provider" in parts else None,
        source_qm=read_guid(_required(parts, "SourceQmGuid")),
        destination_mqf=names("DestinationMqf"),
        admin_mqf=names("AdminMqf"),
        response_mqf=names("ResponseMqf"),
        ttrq=read_date(_required(parts, "TTrq")),
    )


def _read_eod(eod: Any) -> Eod:
    parts = _texts(eod, _EOD)
    connector = read_guid(parts["ConnectorId"]) if "ConnectorId" in parts else None
    return Eod("First" in parts, "Last" in parts, connector)


def _read_provider(provider: Any) -> Provider:
    parts = _texts(provider, _PROVIDER)
    return Provider(read_number(_required(parts, "Type"), _U32), _required(parts, "Name"))
