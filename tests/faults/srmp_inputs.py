"""Damaged bytes on an HTTP connection for `fuzz_srmp.py`, and what SRMP must make of them."""

from __future__ import annotations

import random
import re
import time
from base64 import b64encode
from uuid import UUID

from msmq_fast._native.framing import parse
from msmq_fast.packet.message import Message
from msmq_fast.protocol.errors import InsufficientResources
from msmq_fast.protocol.properties import HashAlgorithm
from msmq_fast.srmp.compound import Compound, read_http
from msmq_fast.srmp.http.request import HttpRequest
from msmq_fast.srmp.http.server import BadRequest, Limits, Refused, ServerConnection
from msmq_fast.srmp.incoming import to_packet
from msmq_fast.srmp.receipts import envelope_of
from msmq_fast.srmp.returnpath import peer_of, split, with_peer
from msmq_fast.srmp.signature import SignaturePolicy, Verifier
from msmq_fast.srmp.values import Nonconforming
from tests.support.srmp.station import WALL, Station, envelope, services, stream
from tests.support.timing import processor_time

PEER = "192.0.2.66"
HERE = Station.base + "in"
NS = "http://www.w3.org/2000/02/xmldsig#"
GUID = UUID("11111111-2222-3333-4444-555555555555")
MOST = 12_000  # bytes of an input
SLOWEST = 2.0  # seconds of CPU that one input may take
_SCENE = 300  # inputs for one queue manager
_STATUSES = frozenset((200, 400, 500))


def _signature(certificates: int) -> str:
    reference = f'<Reference URI="cid:body@x"><DigestMethod Algorithm="{NS}sha1"></DigestMethod>'
    reference += "<DigestValue>qvTGHdzF6KLavt4PO0gs2a6pQ00=</DigestValue></Reference>"
    info = f'<SignedInfo><SignatureMethod Algorithm="{NS}dsa"></SignatureMethod>{reference}</SignedInfo>'
    carried = "".join(
        f"<X509Certificate>{b64encode(b'0' * number).decode()}</X509Certificate>"
        for number in range(1, certificates + 1)
    )
    return (
        f'<Signature xmlns="{NS}">{info}<SignatureValue>AAAA</SignatureValue>'
        f"<KeyInfo><X509Data>{carried}</X509Data></KeyInfo></Signature>"
    )


def seeds() -> list[bytes]:
    """Requests with everything that an envelope may have, over each kind of framing."""
    url = "http://c.example/msmq/r"
    asked = services(durable=True, delivery=url, commitment=url, positive=True, negative=True)
    flags = (
        "<Journal/><DeadLetter/><Correlation>AAAAAAAAAAAAAAAAAAAAAAEAAAA=</Correlation><Trace/><App>7</App>"
        "<Eod><First/><Last/></Eod><Provider><Type>1</Type><Name>x</Name></Provider>"
        "<DestinationMqf>http://a/msmq/q DIRECT=OS:h\\q</DestinationMqf>"
        f"<AdminMqf>PUBLIC={GUID}</AdminMqf><ResponseMqf>MSMQ:DIRECT=TCP:1.2.3.4\\private$\\q</ResponseMqf>"
    )
    receipt = (
        f"<deliveryReceipt><receivedAt>20261123T000000</receivedAt><id>uuid:5@{GUID}</id></deliveryReceipt>"
    )
    texts = [
        envelope(HERE, ordinal=1),
        envelope(HERE, ordinal=2, headers=asked, flags=flags),
        envelope(HERE, ordinal=3, headers=asked, now=WALL - 100, reach=99, flags="<DeadLetter/>"),
        envelope(Station.base + "tx", ordinal=4, headers=stream(5, 1), flags="<DeadLetter/>"),
        envelope(Station.base + "tx", ordinal=5, headers=stream(5, 2)),
        envelope(HERE, ordinal=6, headers=receipt, message_class=2),
        envelope(Station.base + "signed", ordinal=7, headers=_signature(2)),
        envelope(HERE, ordinal=8, msmq=False),
        '<?xml version="1.0"?>' + envelope("http://localhost/msmq/private$/in?x", ordinal=9),
    ]
    found = []
    head = b'POST /msmq/private$/in HTTP/1.1\r\nHost: host\r\nSOAPAction: "MSMQMessage"\r\n'
    for number, text in enumerate(texts):
        xml = text.encode()
        parts = (
            b"--p\r\nContent-Type: text/xml; charset=UTF-8\r\nContent-Length: %d\r\n\r\n%b"
            b"--p\r\nContent-Type: application/octet-stream\r\nContent-Length: 5\r\n"
            b"Content-Id: body@x\r\n\r\nhello"
            b"--p\r\nContent-Type: application/octet-stream\r\nContent-Id: extension@x\r\n\r\n"
            b"ext\r\n--p--\r\n"
        ) % (len(xml), xml)
        kind = b"Content-Type: multipart/related; boundary=p; type=text/xml\r\n"
        forged = b"X-MSMQ-Fast-Peer: 10.0.0.5\r\n"
        steps = bytes((number * 31 % 256,))
        found += [
            steps + head + kind + b"Content-Length: %d\r\n%b\r\n%b" % (len(parts), forged, parts),
            steps + head + b"Content-Type: text/xml\r\nContent-Length: %d\r\n\r\n%b" % (len(xml), xml),
            steps
            + head
            + kind.replace(b"; type", b";\r\n type")
            + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(parts), parts),
        ]
    found.append(found[0] + found[1][1:] + found[2][1:])
    return found


TOKENS = (
    *(b"&#0;", b"&#xD800;", b"&lt;", b"<![CDATA[", b"]]>", b"<?x y?>", b"<!--", b"-->", b"\xef\xbb\xbf"),
    *(b'<!DOCTYPE a [<!ENTITY b "c">]>', b"&b;", b"\xff\xfe", b"\0", b"\\", b"//", b"%00", b"%ff", b"q:"),
    *(
        b"99999999999999999999",
        b"-1",
        b"0",
        b"4294967295",
        b"4294967296",
        b"00010101T000000",
        b"99991231T235959",
    ),
    *(b"http://[::1]:0/msmq/q", b"http://h:65536/msmq/q", b"http://10.0.0.5:9200/msmq/x;at=10.0.0.5"),
    *(
        b"\r\n",
        b"\n",
        b"\r\n ",
        b"--p",
        b"--p--",
        b"Content-Length: 4294967295\r\n",
        b"Content-Length: 5\r\n",
    ),
    *(b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"Connection: close\r\n"),
    *(b"DIRECT=HTTP://x/msmq/y", b"PRIVATE=11111111-2222-3333-4444-555555555555\\1", b"MULTICAST=1.2.3.4:5"),
    *(b'xmlns=""', b'xmlns:q="a"', "\U0001f600".encode() * 130, b"A" * 300),
)
LINES = (
    *(token for token in TOKENS if token.endswith(b"\r\n")),
    b"Transfer-Encoding:\r\n chunked\r\n",
    b"X-MSMQ-Fast-Peer: 10.0.0.5\r\n",
    b"Content-Type: text/xml\r\n",
    b"Via: 1.1 a\r\n",
)
_LENGTH = re.compile(rb"Content-Length: \d+")


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Another input: XML, multipart and HTTP are cut where they have their joints, and lengths are mostly put
    right again, so that inputs get deep.
    """
    whole = bytearray(data if len(data) > 40 and rng.random() < 0.9 else rng.choice(SEEDS))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        _change(rng, whole)
    if rng.random() < 0.8:
        _mend(whole)
    return bytes(whole[:MOST])


def _change(rng: random.Random, whole: bytearray) -> None:
    at = _joint(rng, whole) if rng.random() < 0.7 else rng.randrange(1, len(whole) + 1)
    kind = rng.randrange(7)
    if kind == 0:
        whole[at:at] = rng.choice(TOKENS)
    elif kind == 1:
        del whole[at : at + rng.choice((1, 2, 8, 40, 200))]
    elif kind == 2:
        other = rng.choice(SEEDS)
        start = rng.randrange(len(other))
        whole[at:at] = other[start : start + rng.choice((4, 40, 400))]
    elif kind == 3 and at < len(whole):
        whole[at] = rng.randrange(256)
    elif kind == 4:  # the text of an element
        begin = whole.find(b">", at)
        end = whole.find(b"<", begin)
        if 0 < begin < end:
            whole[begin + 1 : end] = rng.choice(TOKENS)
    elif kind == 5:  # one more line in the head
        line = whole.find(b"\n") + 1
        whole[line:line] = rng.choice(LINES)
    else:  # a line or a tag twice
        begin, end = (
            (whole.find(b"<", at), b">") if rng.random() < 0.6 else (whole.find(b"\n", at) + 1, b"\n")
        )
        stop = whole.find(end, begin)
        if 0 < begin < stop:
            whole[begin:begin] = whole[begin : stop + 1]


def _joint(rng: random.Random, whole: bytearray) -> int:
    """A place behind a tag or a line."""
    start = rng.randrange(len(whole))
    places = [found + 1 for found in (whole.find(b">", start), whole.find(b"\n", start)) if found >= 0]
    return min(places, default=len(whole))


def _mend(whole: bytearray) -> None:
    """Put the lengths right of the envelope's part and of the request."""
    begin, end = whole.find(b"<se:Envelope"), whole.rfind(b"</se:Envelope>") + len(b"</se:Envelope>")
    part = re.search(rb"charset=UTF-8\r\nContent-Length: \d+\r\n\r\n", whole)
    if part is not None and part.end() <= begin < end:
        size = end - part.end()
        whole[part.start() : part.end()] = b"charset=UTF-8\r\nContent-Length: %d\r\n\r\n" % size
    head = whole.find(b"\r\n\r\n")
    length = _LENGTH.search(whole, 0, max(head, 0))
    if length is not None:
        rest = len(whole) - head - 4
        whole[length.start() : length.end()] = b"Content-Length: %d" % rest


SEEDS = seeds()


class Scene:
    """A queue manager that gets the requests, made anew now and then."""

    def __init__(self) -> None:
        strict = SignaturePolicy(frozenset((HashAlgorithm.SHA1,)), unregistered=True, always=True)
        self.station = Station(verify=Verifier(lambda: [], strict))
        self.station.make("in")
        self.station.make("tx", transactional=True)
        self.station.make("signed", authenticated=True)
        self.inputs = 0
        self.packets = 0

    def take(self, request: HttpRequest) -> None:
        """What SRMP makes of a request, and what must hold of it."""
        kind = (request.header(b"content-type") or b"").decode("latin-1")
        try:
            compound = read_http(kind, request.body)
            self._check(compound, request)
        except (Nonconforming, InsufficientResources):
            pass
        station = self.station
        station.manager.tick()
        answer = station.pipeline.handle(request)
        station.run()
        assert answer.done
        assert answer.result() in _STATUSES
        for queue in station.manager.outgoing():
            assert split(queue.destination.text)[1] == PEER, "a receipt leads elsewhere"

    def _check(self, compound: Compound, request: HttpRequest) -> None:
        assert b"<!DOCTYPE" not in compound.envelope_xml
        raw = request.raw_head + bytes(request.body)
        packet = to_packet(compound, with_peer(raw, compound.size, PEER), WALL)
        message = Message.from_packet(packet)
        assert peer_of(packet) == PEER
        assert message.body == (compound.body or b"")
        assert bytes(parse(packet).extension) == (compound.extension or b"")
        assert envelope_of(packet) == compound.envelope, "the stored envelope reads differently"
        if compound.body is not None:
            at = compound.body_offset + len(compound.body)
            behind = bytes(request.body)[len(request.body) - compound.size :][at : at + 4]
            assert behind.lstrip(b"\r\n").startswith(b"-"), "a body that does not end at a delimiter"
        signature = compound.envelope.signature
        if signature is not None:
            assert len(set(signature.certificates)) == len(signature.certificates) <= 8
        self.packets += 1


_scene: Scene | None = None


def scene() -> Scene:
    """The one that is in use."""
    global _scene
    if _scene is None or _scene.inputs >= _SCENE:
        _scene = Scene()
    return _scene


def forget_scene() -> None:
    """The next input gets a new one."""
    global _scene
    _scene = None


def _cut(data: bytes, step: int) -> list[HttpRequest | Refused | type[BadRequest]]:
    """What the engine makes of bytes that come by `step`."""
    engine = ServerConnection(Limits(), PEER)
    found: list[HttpRequest | Refused | type[BadRequest]] = []
    try:
        for start in range(0, len(data), step):
            engine.receive(data[start : start + step])
            while (item := engine.next()) is not None:
                found.append(item)
                engine.answer(item.status if isinstance(item, Refused) else 200, b"")
                if isinstance(item, HttpRequest) and _is_ambiguous(item):
                    assert engine.ended, "a connection goes on behind a request with two lengths"
    except BadRequest:
        found.append(BadRequest)
    return found


def _is_ambiguous(request: HttpRequest) -> bool:
    names = {name for name, _ in request.headers}
    return {b"content-length", b"transfer-encoding"} <= names


def _told(items: list[HttpRequest | Refused | type[BadRequest]]) -> list[object]:
    """What came of the bytes. A body that is both too long and no HTTP ends the connection either way, by
    what is seen first.
    """
    return [
        (item.target, item.headers, bytes(item.body))
        if isinstance(item, HttpRequest)
        else "the end"
        if item is BadRequest or (isinstance(item, Refused) and item.close)
        else item
        for item in items
    ]


def one_input(data: bytes) -> None:
    """What a fuzzer calls. The first byte says in which pieces the others come."""
    with processor_time() as spent:
        step = data[0] * 8 + 1 if data else 1
        items = _cut(data[1:], max(len(data), 1))
        assert _told(_cut(data[1:], step)) == _told(items), "it depends on how the bytes come"
        current = scene()
        current.inputs += 1
        for item in items:
            if isinstance(item, HttpRequest):
                current.take(item)
    assert spent.seconds < SLOWEST, f"{spent.seconds:.1f} s for {len(data)} bytes"


def run_random(seconds: float, seed: int) -> tuple[int, int]:
    """Inputs by mutation alone; how many, and how many packets came of them."""
    rng = random.Random(seed)
    kept = list(SEEDS)
    inputs = packets = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        data = mutate(rng, rng.choice(kept))
        before = scene().packets
        one_input(data)
        inputs += 1
        gained = max(scene().packets - before, 0)
        packets += gained
        if gained and len(kept) < 2000:
            kept.append(data)
    return inputs, packets
