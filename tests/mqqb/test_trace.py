"""Report messages on traced messages."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest

from msmq_fast._native.framing import parse
from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.mqqb.trace import Reports
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName, NameKind
from tests.mqqb.forwarding import opened, private
from tests.mqqb.stations import Network
from tests.support.mqqb import wire
from tests.support.worlds.hosts import OWN, Host, sent
from tests.support.worlds.tracing import REPORTS, traced

NOON = 1_700_049_600  # Wednesday, 15 November 2023, 12:00:00 UTC


class Collected:
    """Reports, kept instead of sent."""

    def __init__(self, at: int = NOON) -> None:
        self.sent: list[tuple[FormatName, Message]] = []
        self.reports = Reports(lambda name, report: self.sent.append((name, report)), lambda: at)

    @property
    def text(self) -> str:
        (_, report) = self.sent[-1]
        return report.body.decode("utf-16-le")


@pytest.mark.rule("QB-288", "QB-289", "QB-290", "QB-291")
def test_a_report_on_arrival() -> None:
    collected = Collected()
    collected.reports.arrived(parse(traced(wire.message(0xABC, queue="OS:host\\private$\\q"))))
    ((name, report),) = collected.sent
    assert name == FormatName(NameKind.PUBLIC, REPORTS)
    assert report.message_class == 1
    assert report.delivery == 0
    assert report.acknowledge == 0
    assert not report.trace
    assert report.label == (
        "5573:00000ABC:00 received by 557358D1-9150-9595-4997-B6E611EA26C6 at 12:00:00 PM Wed,Nov 15 23"
    )
    assert collected.text == (
        "<MESSAGE ID>00000ABC</MESSAGE ID>\r\n<TARGET QUEUE>DIRECT=OS:host\\private$\\q</TARGET QUEUE>\r\n"
    )


@pytest.mark.rule("QB-290")
def test_the_label_of_a_report_has_the_hops_in_hexadecimal() -> None:
    collected = Collected()
    packet = bytearray(traced(wire.message(0xABC)))
    packet[60] |= 26  # UserHeader.Flags.RC
    collected.reports.arrived(parse(bytes(packet)))
    ((_, report),) = collected.sent
    assert report.label.startswith("5573:00000ABC:1A received by ")


def test_a_report_escapes_a_name_that_is_no_text() -> None:
    """A message is traced after it was stored: an exception here would end the session that brought it."""
    collected = Collected()
    collected.reports.arrived(parse(traced(wire.message(1, queue="OS:h\ud800\n\\private$\\q"))))
    assert "<TARGET QUEUE>DIRECT=OS:h\\xd800\\x0a\\private$\\q</TARGET QUEUE>" in collected.text


@pytest.mark.rule("QB-290")
@pytest.mark.parametrize(
    ("at", "text"),
    [
        (NOON - 1, "11:59:59 AM Wed,Nov 15 23"),
        (NOON - 43_200, "12:00:00 AM Wed,Nov 15 23"),
        (NOON + 4 * 86_400 + 3_600, "01:00:00 PM Sun,Nov 19 23"),
        (1_709_164_800, "12:00:00 AM Thu,Feb 29 24"),
    ],
)
def test_times_of_reports(at: int, text: str) -> None:
    collected = Collected(at)
    collected.reports.arrived(parse(traced(wire.message(1))))
    assert collected.sent[0][1].label.endswith(f" at {text}")


@pytest.mark.rule("QB-356")
def test_a_report_on_sending_names_the_next_hop() -> None:
    collected = Collected()
    goal = UUID(int=77)
    collected.reports.sent(parse(traced(private(7, goal, hops=0x1B))), "10.0.0.7")
    ((name, report),) = collected.sent
    assert name == FormatName(NameKind.PUBLIC, REPORTS)
    assert (report.message_class, report.delivery, report.trace) == (1, 0, False)
    assert collected.sent[0][1].label.startswith("5573:00000007:1B received by ")
    assert collected.text == (
        "<MESSAGE ID>00000007</MESSAGE ID>\r\n"
        f"<TARGET QUEUE>PRIVATE={goal}\\00000001</TARGET QUEUE>\r\n"
        "<NEXT HOP>10.0.0.7</NEXT HOP>\r\n"
        "<HOP COUNT>1B </HOP COUNT>\r\n"
    )


@pytest.mark.parametrize(
    "packet",
    [
        traced(wire.message(1), struct.pack("<HH", 0, 0)),
        traced(wire.message(1, message_class=1)),
        wire.message(1),
    ],
    ids=["no queue", "a report", "not traced"],
)
def test_nothing_is_reported(packet: bytes) -> None:
    collected = Collected()
    collected.reports.arrived(parse(packet))
    assert collected.sent == []


@pytest.mark.rule("QB-288")
def test_messages_that_arrive_are_reported_where_that_is_enabled() -> None:
    collected = Collected()
    host = Host(hooks=Hooks(trace=collected.reports.arrived))
    session = host.opened()
    session.receive(wire.message(1) + traced(wire.message(2)) + wire.message(3), 100.0)
    assert host.messages() == [1, 2, 3]
    assert len(collected.sent) == 1


@pytest.mark.rule("QB-356")
@pytest.mark.parametrize("enabled", [True, False])
def test_messages_that_leave_are_reported_where_that_is_enabled(enabled: bool) -> None:
    collected = Collected()
    host = Host(hooks=Hooks(trace_sent=collected.reports.sent if enabled else None))
    session = host.opened()
    packets = [wire.message(1, source=OWN), traced(wire.message(2, source=OWN))]
    session.attach(host.outgoing(packets))
    session.pump(100.0)
    assert [wire.ordinal(packet) for packet in sent(session)] == [1, 2]
    assert [report.label[5:13] for _, report in collected.sent] == (["00000002"] if enabled else [])
    if enabled:
        assert "<NEXT HOP>127.0.0.9</NEXT HOP>" in collected.text


@pytest.mark.rule("QB-288")
def test_a_router_reports_what_it_passes_on() -> None:
    collected = Collected()
    router = Network().add("ROUTER", "10.0.0.2", routes=True, trace=collected.reports.arrived)
    session = opened(router)
    goal = UUID(int=77)
    session.receive(private(1, goal) + traced(private(2, goal, hops=3)) + private(3, goal), router.now)
    assert [report.label[5:16] for _, report in collected.sent] == ["00000002:03"]
    assert session.receiver.relayed == 3
