"""Report messages on traced messages that come and go over HTTP and by multicast (MS-MQDMPR 3.1.1.12)."""

from __future__ import annotations

import contextlib
from base64 import b64decode
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from msmq_fast._native.framing import parse
from msmq_fast.mqqb.trace import Reports
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName, NameKind, parse_format_name
from msmq_fast.qm.access import Access
from msmq_fast.srmp.multicast import Feed
from tests.srmp.sending import NAME, Station
from tests.support.clocks import WALL
from tests.support.processes.servers import Server, data_directory
from tests.support.srmp.independent import Sink, post
from tests.support.srmp.partner import Program, request
from tests.support.worlds.queue_manager import World

REPORTS = UUID("12345678-1234-5678-1234-567812345678")
SENDER = UUID("4ba8cea2-a5b7-4564-baa9-f4ec1c78a3f4")
GROUP = "234.1.1.1:8001"


class Collected:
    """Reports, kept instead of sent."""

    def __init__(self, usual: UUID | None = None) -> None:
        self.sent: list[tuple[FormatName, str]] = []
        self._reports = Reports(self._keep, lambda: 1_700_000_000, usual)

    def _keep(self, name: FormatName, report: Message) -> None:
        self.sent.append((name, report.body.decode("utf-16-le")))

    def left(self, packet: bytes, address: str) -> None:
        self._reports.sent(parse(packet), address)


@pytest.mark.long(seconds=4)
def test_reports_on_what_arrives_passes_through_and_leaves(tmp_path: Path) -> None:
    with data_directory() as data, Sink() as sink:
        config = data.parent / "server.toml"
        config.write_text('[srmp]\nstore_and_forward = true\n[[queues]]\nname = "in"\n')
        server = Server(data, "--http-port", "0", "--config", str(config))
        try:
            server.start()
            (queue,) = server.ok("queue", "create", ".\\reports")
            server.kill()
            server.environment |= {
                "MSMQ_FAST_MQQB__REPORT_MESSAGES": "true",
                "MSMQ_FAST_MQQB__REPORT_QUEUE": queue["guid"],
            }
            server.start()
            own, there = "http://localhost/msmq/private$/in", sink.url("private$/there")
            with contextlib.closing(Program(server)) as program:
                for number, (to, flags) in enumerate(
                    ((own, "<Trace/>"), (own, ""), (there, "<Trace/>")), start=1
                ):
                    text = request(to, number=number, sender=SENDER, flags=flags)
                    assert post(server.port("http"), text)[0] == 200
                sink.wait(1)
                found: list[dict[str, Any]] = []
                while len(found) < 3:
                    found += program.messages(f"PUBLIC={queue['guid']}", 10)
                assert len(program.messages("in")) == 2
        finally:
            server.kill()
    bodies = [b64decode(each["body_b64"]).decode("utf-16-le") for each in found]
    assert bodies == [
        f"<MESSAGE ID>00000001</MESSAGE ID>\r\n<TARGET QUEUE>DIRECT={own}</TARGET QUEUE>\r\n",
        f"<MESSAGE ID>00000003</MESSAGE ID>\r\n<TARGET QUEUE>DIRECT={there}</TARGET QUEUE>\r\n",
        f"<MESSAGE ID>00000003</MESSAGE ID>\r\n<TARGET QUEUE>DIRECT={there}</TARGET QUEUE>\r\n"
        "<NEXT HOP>127.0.0.1</NEXT HOP>\r\n<HOP COUNT>00 </HOP COUNT>\r\n",
    ]


@pytest.mark.parametrize("usual", [None, REPORTS])
def test_a_report_on_each_sending_to_the_queue_that_a_message_names_or_to_the_usual_one(
    usual: UUID | None,
) -> None:
    collected = Collected(usual)
    station = Station(report=collected.left)
    named = UUID(int=5)
    for values in ({"trace": True, "trace_queue": named}, {"trace": True}, {}):
        handle = station.manager.open(NAME, Access.SEND)
        station.world.finish(handle.send(Message(body=b"x", **values)))  # type: ignore[arg-type]
        handle.close()
    station.post()
    station.answer(500)
    station.advance(20)
    assert len(station.exchange()) == 3
    queues = [named, named] + [REPORTS] * (usual is not None)
    assert [name for name, _ in collected.sent] == [FormatName(NameKind.PUBLIC, each) for each in queues]
    assert all("<NEXT HOP>10.0.0.8</NEXT HOP>" in text for _, text in collected.sent)


def test_a_report_on_what_is_multicast() -> None:
    world, collected = World(multicast=True), Collected()
    queue = world.manager.outgoing_queues.to(parse_format_name(f"MULTICAST={GROUP}"))
    for trace in (True, False):
        message = Message(body=b"x", sent_time=WALL, trace=trace, trace_queue=REPORTS if trace else None)
        queue.core.enqueue_packets([message.to_packet()])
    world.run()
    sent: list[bytes] = []
    source: Any = SimpleNamespace(backlog=0, send=sent.append)
    owner = world.manager.ledger.new_owner()
    feed = Feed(world.manager, queue, owner, lambda *_: b"", lambda *_: None, 1 << 20, collected.left)
    feed.begin([lambda left: source])
    feed.pump(0.0)
    assert len(sent) == 2
    ((_, text),) = collected.sent
    assert "<NEXT HOP>234.1.1.1</NEXT HOP>" in text
