"""Converts UserMessage packets to SRMP requests and to APDUs for PGM ([MC-MQSRM] 3.1.7.2.4; sections 1.1,
4.8, 4.11).

A packet is converted to the same bytes each time it is sent, except for `previous` in the stream element
(A-10, A-11).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from msmq_fast._native.framing import BadPacket, ParsedMessage, parse
from msmq_fast.packet.message import Message
from msmq_fast.packet.soap import CompoundMessageHeader, has_envelope
from msmq_fast.protocol.errors import PacketFault
from msmq_fast.srmp.compose import NO_STREAM, Place, Spelling, to_envelope
from msmq_fast.srmp.compound import content_of, via_of
from msmq_fast.srmp.model import MULTICAST_PREFIX, SignaturePart
from msmq_fast.srmp.multipart import build
from msmq_fast.srmp.urls import Url
from msmq_fast.srmp.writing import write_envelope

__all__ = ["Request", "Requests"]

_PART: Final = b"text/xml; charset=UTF-8"
_OCTETS: Final = b"application/octet-stream"
_MULTIPART: Final = b'multipart/related; boundary="%b"; type=text/xml'
_BOUNDARIES: Final = 100_000
_OURSELVES: Final = b"1.1 msmq-fast"  # in Via, where hosts may have made-up names

Sign = Callable[[ParsedMessage], SignaturePart | None]


@dataclass(frozen=True, slots=True)
class Request:
    """One POST request. `headers` are all header fields, Host and Content-Length included, in the order in
    which they are sent.
    """

    target: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes

    @property
    def host(self) -> str:
        """The value of the Host header."""
        return self.headers[0][1].decode("latin-1")

    @property
    def text(self) -> bytes:
        """The complete request, as text with its head."""
        head = b"".join(b"%b: %b\r\n" % header for header in self.headers)
        return b"POST %b HTTP/1.1\r\n%b\r\n%b" % (self.target, head, self.body)


class Requests:
    """Builds requests from packets; one object serves all outgoing queues."""

    def __init__(
        self,
        receipts_to: Callable[[str], str],
        sign: Sign | None = None,
        spelling: Spelling = Spelling(),  # noqa: B008 - immutable
        more: Callable[[bytes, Url], list[tuple[bytes, bytes]]] | None = None,
    ) -> None:
        """`receipts_to` returns the URL to which stream receipts for messages to a URL are to be sent. `sign`
        returns the signature of a message that has a SecurityHeader. `more` returns further header fields of
        the request for a packet to a URL.
        """
        self._more = more
        self._receipts_to = receipts_to
        self._sign = sign
        self._spelling = spelling

    def __call__(self, packet: bytes, url: Url, place: Place = NO_STREAM) -> Request:
        """Return the request that sends a message to a URL; `place` is the place of the message in the stream
        that its receiver sees.

        The body of a message that arrived by SRMP and is forwarded stays unchanged (A-53); its request has a
        new target and Host, and a Via field that lists the servers that forwarded it. Raises Nonconforming if
        SRMP cannot express the message, PacketFault if the packet is malformed.
        """
        host, target = url.authority.encode("idna" if not url.authority.isascii() else "ascii"), url.target
        if has_envelope(packet):
            came = self._as_it_came(packet)
            content_type, body = content_of(came)
            more = [(b"Via", b", ".join([*via_of(came), _OURSELVES]))]
        else:
            to = url.scheme + url.text[len(url.scheme) :]
            content_type, body = self._content(packet, to, place)
            more = []
        if self._more is not None:
            more += self._more(packet, url)
        return _request(target.encode("ascii"), host, content_type, body, more)

    def apdu(self, packet: bytes, group: str) -> bytes:
        """Return the APDU for a message to the multicast group `address:port`: the bytes of an HTTP request
        (SR-008).

        Raises Nonconforming if SRMP cannot express the message, PacketFault if the packet is malformed.
        """
        content_type, body = self._content(packet, MULTICAST_PREFIX + group, NO_STREAM)
        address = group.encode("ascii")
        return _request(address, address, content_type, body, []).text

    def _content(self, packet: bytes, to: str, place: Place) -> tuple[bytes, bytes]:
        """Return the Content-Type and the body of the request for a message that this computer sends."""
        message = Message.from_packet(packet)
        signature = None
        if message.security is not None and self._sign is not None:
            signature = self._sign(parse(packet))
        envelope = to_envelope(message, to, place, self._receipts_to, self._spelling, signature)
        xml = write_envelope(envelope, stream_name=self._spelling.stream)
        parts = [(_PART, b"", xml)]
        if not envelope.is_receipt:  # which have no payload (SR-036)
            source = str(message.source_machine).encode()
            if message.body:
                parts.append((_OCTETS, b"body@" + source, message.body))
            if message.extension:
                parts.append((_OCTETS, b"extension@" + source, message.extension))
        if len(parts) == 1:
            return b"text/xml", xml
        boundary = _boundary(message.message_id, [content for _, _, content in parts])
        return _MULTIPART % boundary, build(boundary, parts)

    @staticmethod
    def _as_it_came(packet: bytes) -> bytes:
        """Return the request with which a message arrived."""
        try:
            at = parse(packet).fields()["compound_offset"]
        except BadPacket as problem:
            raise PacketFault(problem.code) from None
        compound, _ = CompoundMessageHeader.decode(packet, at)
        return compound.data


def _boundary(number: int, contents: list[bytes]) -> bytes:
    """Return a boundary in the form that Windows uses. It occurs in none of the parts, since some receivers
    search for delimiters.
    """
    while True:
        boundary = b"MSMQ - SOAP boundary, %d" % (number % _BOUNDARIES)
        if not any(boundary in content for content in contents):
            return boundary
        number += 1


def _request(
    target: bytes, host: bytes, content_type: bytes, body: bytes, more: list[tuple[bytes, bytes]]
) -> Request:
    headers = [
        (b"Host", host),
        (b"Content-Type", content_type),
        (b"Content-Length", b"%d" % len(body)),
        (b"SOAPAction", b'"MSMQMessage"'),
        (b"Proxy-Accept", b"NonInteractiveClient"),
        *more,
    ]
    return Request(target, headers, body)
