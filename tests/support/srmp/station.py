"""A queue manager that takes SRMP in, in one process: store in memory, clocks that stand still.

Envelopes are written here as text, by nobody else's code.
"""

from __future__ import annotations

from base64 import b64encode
from time import gmtime, strftime
from uuid import UUID

from msmq_fast._native.history import DuplicateHistory
from msmq_fast.packet.message import Message
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.security.allowance import Allowance
from msmq_fast.security.keyturns import KeyTurns
from msmq_fast.srmp.destinations import Destinations
from msmq_fast.srmp.http.request import HttpRequest
from msmq_fast.srmp.outgoing import Requests
from msmq_fast.srmp.reasons import Reason
from msmq_fast.srmp.receipts import Receipts
from msmq_fast.srmp.receive import Parts, Pipeline, Verify
from msmq_fast.srmp.redirection import Redirections, Redirector
from msmq_fast.srmp.returnpath import ReturnPaths, split
from msmq_fast.srmp.sending import url_of
from msmq_fast.srmp.streams import IncomingStreams
from msmq_fast.srmp.urls import OwnUrls
from msmq_fast.store.completion import Completion
from tests.support.clocks import WALL, StillClock
from tests.support.srmp.independent import Sent, read, read_request
from tests.support.worlds.queue_manager import World

SENDER = UUID("4ba8cea2-a5b7-4564-baa9-f4ec1c78a3f4")
SINK = "http://sender.example/msmq/private$/order_queue$"
ADMIN = "http://sender.example/msmq/private$/admin"
ORDERING = "MSMQ:QM Ordering Ack"
ANONYMOUS_MAY_SEND = "D:(A;;CCDCLCSWRPWPSDRCWDWO;;;WD)(A;;DC;;;AN)"


def date(seconds: int) -> str:
    return strftime("%Y%m%dT%H%M%S", gmtime(seconds))


def stream(
    number: int,
    current: int,
    *,
    previous: int | None = None,
    to: str | None = SINK,
    sender: UUID = SENDER,
) -> str:
    """A stream element; message 1 has a start element."""
    text = f"<streamId>uid:{sender}\\{number}</streamId><current>{current}</current>"
    if previous is not None:
        text += f"<previous>{previous}</previous>"
    if current == 1 and to is not None:
        text += f"<start><sendReceiptsTo>{to}</sendReceiptsTo></start>"
    return f'<Stream se:mustUnderstand="1">{text}</Stream>'


def services(
    *,
    durable: bool = False,
    delivery: str = "",
    commitment: str = "",
    positive: bool = False,
    negative: bool = False,
) -> str:
    """A services element."""
    text = "<durable/>" if durable else ""
    if delivery:
        text += f"<deliveryReceiptRequest><sendTo>{delivery}</sendTo></deliveryReceiptRequest>"
    if commitment:
        text += f"<commitmentReceiptRequest><sendTo>{commitment}</sendTo>"
        text += "<positiveOnly/>" * positive + "<negativeOnly/>" * negative + "</commitmentReceiptRequest>"
    return f'<services se:mustUnderstand="1">{text}</services>'


def envelope(
    to: str,
    *,
    ordinal: int = 7,
    label: str = "MSMQ:a label",
    headers: str = "",
    body: str = "",
    now: int = WALL,
    reach: int = 345_600,
    expires: int | None = None,
    sender: UUID = SENDER,
    msmq: bool = True,
    message_class: int = 0,
    priority: int = 3,
    flags: str = "",
) -> str:
    """`headers` stand between properties and Msmq, `flags` behind Priority; dates by `now`."""
    own = (
        f'<Msmq xmlns="msmq.namespace.xml"><Class>{message_class}</Class><Priority>{priority}</Priority>'
        f"{flags}"
        f"<BodyType>0</BodyType><SourceQmGuid>{sender}</SourceQmGuid><TTrq>{date(now + reach)}</TTrq></Msmq>"
    )
    until = date(expires if expires is not None else now + reach if not msmq else 0x7FFF_FFFF)
    return (
        '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
        'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
        '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
        f"<action>{label}</action><to>{to}</to><id>uuid:{ordinal}@{sender}</id></path>"
        f'<properties se:mustUnderstand="1"><expiresAt>{until}</expiresAt>'
        f"<sentAt>{date(now)}</sentAt></properties>"
        f"{headers}{own * msmq}</se:Header><se:Body>{body}</se:Body></se:Envelope>"
    )


def compound(text: str, content: bytes | None, extension: bytes | None = None) -> tuple[str, bytes]:
    """Content-Type and request body."""
    soap = text.encode()
    if content is None and extension is None:
        return "text/xml", soap
    body = b"--B\r\nContent-Type: text/xml; charset=UTF-8\r\nContent-Length: %d\r\n\r\n" % len(soap) + soap
    for kind, octets in (("body", content), ("extension", extension)):
        if octets is not None:
            head = f"--B\r\nContent-Type: application/octet-stream\r\nContent-Length: {len(octets)}\r\n"
            body += f"{head}Content-Id: {kind}@{SENDER}\r\n\r\n".encode() + octets
    return 'multipart/related; boundary="B"; type=text/xml', body + b"--B--\r\n"


def correlation(sender: UUID, ordinal: int) -> str:
    return b64encode(sender.bytes_le + ordinal.to_bytes(4, "little")).decode()


class Recorder:
    """What receipts that arrive do to streams that leave."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def stream_receipt(self, sender: UUID, sequence: int, last_ordinal: int, now: float) -> None:
        self.calls.append(("stream", sender, sequence, last_ordinal))

    def final_receipt(
        self, sender: UUID, sequence: int, ordinal: int, message: int, message_class: int, now: float
    ) -> None:
        self.calls.append(("final", sender, sequence, ordinal, message, message_class))


class Station(World):
    """`base` is the URL of its private queues."""

    base = "http://host/msmq/private$/"

    def __init__(
        self,
        redirections: Redirections | None = None,
        *,
        dead_letters: Allowance | None = None,
        receipts_to: tuple[str, ...] = (),
        verify: Verify | None = None,
        turns: KeyTurns | None = None,
        **settings: object,
    ) -> None:
        self.verify, self.turns = verify, turns
        self.receipts_to = receipts_to
        self.receipts_refused: list[tuple[Reason, str]] = []
        self.dead_letters = dead_letters or Allowance(1 << 20, 3600.0)
        self.redirections = redirections or Redirections()
        self.refused: list[tuple[Reason, str]] = []
        self.traced: list[Message] = []
        self.recorder = Recorder()
        super().__init__(clock=StillClock(), **settings)

    def _begin(self) -> None:
        super()._begin()
        manager = self.manager
        own = OwnUrls(manager.registry, "host")
        own.listen("http", [80])
        self.destinations = Destinations(
            Redirector(own, self.redirections), manager.guard, manager.registry.local
        )
        manager.changes.changed.connect(self.destinations.forget)
        self.streams = IncomingStreams(manager.ledger, self.clock.monotonic)
        self.receipts = Receipts(
            manager,
            self.destinations,
            self.recorder,
            self.streams,
            ReturnPaths(self.receipts_to),
            lambda reason, text, _: self.receipts_refused.append((reason, text)),
        )
        manager.incoming.register(receipts=self.receipts)
        history = DuplicateHistory()
        for item in self.store.load_history():
            history.add(item.source + item.ordinal.to_bytes(4, "little"), item.time_s)
        self.streams.load(self.store.tables.scan, manager.report_corrupt)
        parts = Parts(
            self.destinations,
            history,
            self.streams,
            self.receipts,
            self.recorder,
            report=lambda packet: self.traced.append(Message.from_packet(packet)),
            dead_letters=self.dead_letters,
            verify=self.verify,
            turns=self.turns,
        )
        self.pipeline = Pipeline(manager, parts, lambda reason, text, _: self.refused.append((reason, text)))

    def make(self, name: str = "in", **properties: object) -> Queue:
        """A private queue that everybody may send to."""
        return self.create(f".\\private$\\{name}", **properties)

    def begin(
        self,
        text: str,
        content: bytes | None = None,
        extension: bytes | None = None,
        *,
        peer: str = "192.0.2.1",
        fields: str = "",
    ) -> Completion[int]:
        """Hand a request over, and nothing more."""
        kind, body = compound(text, content, extension)
        head = f"POST /msmq/x HTTP/1.1\r\nHost: host\r\n{fields}"
        head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        known = [(b"host", b"host"), (b"content-type", kind.encode())]
        self.manager.tick()
        return self.pipeline.handle(
            HttpRequest("POST", b"/msmq/x", known, body, peer, raw_head=head.encode())
        )

    def post(
        self,
        text: str,
        content: bytes | None = None,
        extension: bytes | None = None,
        *,
        peer: str = "192.0.2.1",
        fields: str = "",
    ) -> int:
        """Hand a request over, with more header lines; its status when everything has settled."""
        return int(self.finish(self.begin(text, content, extension, peer=peer, fields=fields)))

    def dead(self) -> list[bytes]:
        """Bodies of the dead letters."""
        queue = self.manager.find(f"DIRECT=OS:{self.manager.name}\\SYSTEM$;DEADLETTER")
        return [message.body for message in self.messages(queue)]

    def advance(self, seconds: float) -> None:
        """Time passes, in steps of at most 50 ms while something is armed."""
        while seconds > 0:
            self.run()
            due = self.streams.next_deadline()
            step = min(seconds, max(due - self.clock.seconds, 0.001))
            super().advance(step)
            seconds -= step
            if self.streams.next_deadline() <= self.clock.seconds:
                self.streams.expire(self.clock.seconds, self.receipts.stream)
            self.run()

    def taken(self, name: str = "in") -> list[bytes]:
        """Bodies of a private queue, first to last."""
        return self.bodies(f".\\private$\\{name}")

    def messages(self, queue: Queue) -> list[Message]:
        """What stands in a queue, without taking anything."""
        found: list[Message] = []
        for key in queue.core.positions.keys():  # noqa: SIM118 - no mapping
            queue.core.peek(key, lambda message, _: found.append(Message.from_packet(message.packet)))
            self.store.reader.complete()
        return found

    def wire(self, url: str) -> list[Sent]:
        """What waits for a URL, as it would be sent, read by the independent reader."""
        self.run()
        requests = Requests(lambda to: SINK)
        found: list[Sent] = []
        for queue in self.manager.outgoing():
            if split(queue.key)[0] == f"direct={url}".casefold():
                for key in queue.core.positions.keys():  # noqa: SIM118 - no mapping
                    packets: list[bytes] = []
                    queue.core.peek(key, lambda message, _: packets.append(message.packet))  # noqa: B023
                    self.store.reader.complete()
                    found += [read(read_request(requests(each, url_of(queue)).text)) for each in packets]
        return found

    def sent(self, url: str = "") -> list[Message]:
        """What waits in outgoing queues, in one or in all."""
        self.run()
        wanted = f"direct={url}".casefold()
        queues = [each for each in self.manager.outgoing() if not url or split(each.key)[0] == wanted]
        return [message for queue in queues for message in self.messages(queue)]
