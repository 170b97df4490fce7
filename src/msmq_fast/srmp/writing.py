"""Writes an `Envelope` as a SOAP envelope, with the elements in the order of [MC-MQSRM] 3.1.7.2.4.

Receivers were written for the bytes of MSMQ on Windows, so the order of elements, the prefixes and the
absence of white space must not change. Values that are None, False or empty are not written.
"""

from __future__ import annotations

from base64 import b64encode
from uuid import UUID

from msmq_fast.packet.text import is_xml
from msmq_fast.protocol.text import quoted
from msmq_fast.srmp.model import Envelope, MsmqPart, SignaturePart, StreamPart
from msmq_fast.srmp.values import Nonconforming, write_date, write_stream_id

__all__ = ["write_envelope"]

_START = (
    '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
    'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
    '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
)
_END = "</se:Header><se:Body></se:Body></se:Envelope>"


def write_envelope(envelope: Envelope, *, stream_name: str = "Stream") -> bytes:
    """Return the envelope in UTF-8.

    `stream_name` is the name of the stream element; in the specification's text it is `stream` (A-05). Raises
    Nonconforming if a text holds characters that XML forbids (A-89).
    """
    path = f"<action>{_text(envelope.action)}</action><to>{_text(envelope.to)}</to>"
    pieces = [_START, path, f"<id>{_text(envelope.id)}</id>"]
    if envelope.via is not None:
        pieces.append(f"<rev><via>{_text(envelope.via)}</via></rev>")
    pieces.append(
        f'</path><properties se:mustUnderstand="1"><expiresAt>{write_date(envelope.expires_at)}</expiresAt>'
    )
    if envelope.sent_at is not None:
        pieces.append(f"<sentAt>{write_date(envelope.sent_at)}</sentAt>")
    pieces.append("</properties>")
    if envelope.services:
        pieces.append(_services(envelope))
    if envelope.stream is not None:
        pieces.append(_stream(envelope.stream, stream_name))
    if envelope.is_receipt:
        pieces.append(_receipts(envelope))
    if envelope.msmq is not None:
        pieces += _msmq(envelope.msmq)
    if envelope.signature is not None:
        pieces.append(_signature(envelope.signature))
    pieces.append(_END)
    return "".join(pieces).encode()


def _text(text: str) -> str:
    """Return escaped character data. A carriage return is escaped too, since parsers would change it."""
    if not is_xml(text):
        raise Nonconforming(f"{quoted(text)} holds characters that XML cannot carry")
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\r", "&#13;")


def _services(envelope: Envelope) -> str:
    pieces = ['<services se:mustUnderstand="1">']
    if envelope.durable:
        pieces.append("<durable/>")
    if envelope.delivery_to is not None:
        url = _text(envelope.delivery_to)
        pieces.append(f"<deliveryReceiptRequest><sendTo>{url}</sendTo></deliveryReceiptRequest>")
    if envelope.commitment_to is not None:
        pieces.append(
            f"<commitmentReceiptRequest><sendTo>{_text(envelope.commitment_to)}</sendTo>"
            + "<positiveOnly/>" * envelope.positive_only
            + "<negativeOnly/>" * envelope.negative_only
            + "</commitmentReceiptRequest>"
        )
    pieces.append("</services>")
    return "".join(pieces)


def _stream(stream: StreamPart, name: str) -> str:
    pieces = [f'<{name} se:mustUnderstand="1">', _stream_id(stream.sender, stream.sequence)]
    pieces.append(f"<current>{stream.current}</current>")
    if stream.previous is not None:
        pieces.append(f"<previous>{stream.previous}</previous>")
    if stream.receipts_to is not None:
        url = _text(stream.receipts_to)
        pieces.append(f"<start><sendReceiptsTo>{url}</sendReceiptsTo></start>")
    pieces.append(f"</{name}>")
    return "".join(pieces)


def _stream_id(sender: UUID, sequence: int) -> str:
    return f"<streamId>{write_stream_id(sender, sequence)}</streamId>"


def _receipts(envelope: Envelope) -> str:
    pieces = []
    if (stream := envelope.stream_receipt) is not None:
        pieces.append(
            f"<streamReceipt>{_stream_id(stream.sender, stream.sequence)}"
            f"<lastOrdinal>{stream.last_ordinal}</lastOrdinal></streamReceipt>"
        )
    if (delivery := envelope.delivery_receipt) is not None:
        pieces.append(
            f"<deliveryReceipt><receivedAt>{write_date(delivery.received_at)}</receivedAt>"
            f"<id>{_text(delivery.id)}</id></deliveryReceipt>"
        )
    if (commitment := envelope.commitment_receipt) is not None:
        pieces.append(
            f"<commitmentReceipt><decidedAt>{write_date(commitment.decided_at)}</decidedAt>"
            f"<decision>{'positive' if commitment.positive else 'negative'}</decision>"
            f"<id>{_text(commitment.id)}</id></commitmentReceipt>"
        )
    return "".join(pieces)


def _msmq(msmq: MsmqPart) -> list[str]:
    pieces = ['<Msmq xmlns="msmq.namespace.xml">']
    pieces.append(f"<Class>{msmq.message_class:d}</Class><Priority>{msmq.priority}</Priority>")
    pieces.append("<Journal/>" * msmq.journal + "<DeadLetter/>" * msmq.deadletter)
    if msmq.correlation is not None:
        pieces.append(f"<Correlation>{b64encode(msmq.correlation).decode()}</Correlation>")
    if msmq.trace:
        pieces.append("<Trace/>")
    if msmq.connector_type is not None:
        pieces.append(f"<ConnectorType>{msmq.connector_type}</ConnectorType>")
    if msmq.app is not None:
        pieces.append(f"<App>{msmq.app}</App>")
    pieces.append(f"<BodyType>{msmq.body_type}</BodyType>")
    if msmq.hash_algorithm is not None:
        pieces.append(f"<HashAlgorithm>{msmq.hash_algorithm}</HashAlgorithm>")
    if (eod := msmq.eod) is not None:
        pieces.append("<Eod>" + "<First/>" * eod.first + "<Last/>" * eod.last)
        if eod.connector is not None:
            pieces.append(f"<ConnectorId>{eod.connector}</ConnectorId>")
        pieces.append("</Eod>")
    if (provider := msmq.provider) is not None:
        name = _text(provider.name)
        pieces.append(f"<Provider><Type>{provider.type}</Type><Name>{name}</Name></Provider>")
    pieces.append(f"<SourceQmGuid>{msmq.source_qm}</SourceQmGuid>")
    for element, names in (
        ("DestinationMqf", msmq.destination_mqf),
        ("AdminMqf", msmq.admin_mqf),
        ("ResponseMqf", msmq.response_mqf),
    ):
        if names:
            pieces.append(f"<{element}>{_text(''.join(f'{name} ' for name in names))}</{element}>")
    pieces.append(f"<TTrq>{write_date(msmq.ttrq)}</TTrq></Msmq>")
    return pieces


def _signature(signature: SignaturePart) -> str:
    keys = "".join(
        f"<X509Data><X509Certificate>{b64encode(each).decode()}</X509Certificate></X509Data>"
        for each in signature.certificates
    )
    return (
        f'<Signature xmlns="http://www.w3.org/2000/02/xmldsig#">{signature.signed_info.decode()}'
        f"<SignatureValue>{b64encode(signature.value).decode()}</SignatureValue>"
        + (f"<KeyInfo>{keys}</KeyInfo>" if keys else "")
        + "</Signature>"
    )
