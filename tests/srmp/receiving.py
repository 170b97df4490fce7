"""SRMP messages that arrive: their URLs, what they ask for, multicast and receipts; and one receive."""

from __future__ import annotations

from msmq_fast.qm.access import Access
from tests.support.clocks import WALL
from tests.support.srmp.station import ADMIN, SENDER, Station, compound, envelope, services

DURABLE = services(durable=True)
ADMINISTRATORS = "D:P(A;;CCDCLCSWRPWPSDRCWDWO;;;BA)"
DELIVERY_RECEIPT = (
    f"<deliveryReceipt><receivedAt>20230101T000000</receivedAt><id>uuid:5@{SENDER}</id></deliveryReceipt>"
)
GROUP = "234.1.1.1:8001"


def name(queue: str) -> str:
    return f".\\private$\\{queue}"


def receive(station: Station, queue: str) -> None:
    handle = station.manager.open(name(queue), Access.RECEIVE)
    station.finish(handle.receive(0).completion)
    handle.close()


def url(name: str) -> str:
    return Station.base + name


def late(name: str, ordinal: int) -> str:
    """A message to a queue that has expired, and asks for all that this can have for a consequence."""
    asked = services(durable=True, commitment=ADMIN, negative=True)
    return envelope(
        url(name), ordinal=ordinal, headers=asked, now=WALL - 100, reach=99, flags="<DeadLetter/>"
    )


def apdu(text: str, content: bytes) -> bytes:
    kind, body = compound(text, content)
    head = f"POST {GROUP} HTTP/1.1\r\nHost: {GROUP}\r\n"
    head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
