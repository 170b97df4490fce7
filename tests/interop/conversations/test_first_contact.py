"""Handshakes byte for byte, and the end of sessions that break a rule of the protocol."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from uuid import UUID

import pytest

from tests.support.mqqb import frames, wire
from tests.support.mqqb.peer import Peer
from tests.support.processes.servers import Server, until

FOREIGN = UUID("12345678-9abc-def0-1122-334455667788")


def guid_of(server: Server) -> UUID:
    return UUID(server.ready["guid"])


def without_reserved(packet: bytes) -> bytes:
    """BaseHeader.Reserved may be anything."""
    return packet[:1] + b"\0" + packet[2:]


@pytest.mark.rule("QB-029", "QB-032", "QB-033", "QB-034", "QB-040", "QB-181", "QB-189")
def test_a_windows_host_opens_a_session(server: Server, peer: Peer) -> None:
    """Line 1: no ping, ServerGuid zero, OperatingSystem 0x0310, padding arbitrary."""
    line = peer.connect(server.host, server.port("mqqb"))
    padding = random.Random(1).randbytes(512)
    request = b"\x10\xc0\x0b\x00LIOR\x3c\x02\x00\x00\xff\xff\xff\xff" + b"\x00\x00\x02\x00"
    line.send(
        request + peer.guid.bytes_le + bytes(16) + b"\xef\xbe\xad\xde" + b"\x10\x03" + b"\x00\x00" + padding
    )
    answer = (
        b"\x10\x00\x0b\x00LIOR\x3c\x02\x00\x00\xff\xff\xff\xff"
        + b"\x00\x00\x02\x00"
        + peer.guid.bytes_le
        + guid_of(server).bytes_le
        + b"\xef\xbe\xad\xde"
        + b"\x10\x03\x00\x00"
        + b"\x5a" * 512
    )
    assert without_reserved(line.expect("EC")) == answer
    start, proposed = (
        b"\x10\xc0\x0b\x00LIOR\x20\x00\x00\x00\xff\xff\xff\xff" + b"\x00\x00\x03\x00",
        b"\xd8\x05\0\0\xc0\xd4\x01\0",
    )
    line.send(start + proposed + b"\0\0" + b"\x40\0")
    assert line.expect("CP") == b"\x10\x00" + start[2:] + proposed + b"\0\0" + b"\x40\0"
    line.silent(0.1)


@pytest.mark.rule("QB-021", "QB-181", "QB-182")
def test_a_session_for_somebody_else_is_refused(server: Server, peer: Peer) -> None:
    line = peer.connect(server.host, server.port("mqqb"))
    line.send(wire.establish(peer.guid, FOREIGN))
    answer = line.expect("EC")
    assert answer[16:20] == b"\x00\x00\x12\x00"
    assert answer[36:52] == guid_of(server).bytes_le
    line.closed()


@pytest.mark.rule("QB-030", "QB-031", "QB-035", "QB-036", "QB-037", "QB-176", "QB-185")
def test_the_server_opens_a_session(peer: Peer, start: Callable[..., Server]) -> None:
    server = start(peer_port=peer.listen())
    server.ok("send", rf"DIRECT=TCP:{peer.address}\private$\far", "--body", "x")
    line = peer.accepted()
    request = line.expect("EC")
    stamp = request[52:56]
    assert without_reserved(request) == (
        b"\x10\x00\x0b\x00LIOR\x3c\x02\x00\x00\xff\xff\xff\xff"
        + b"\x00\x00\x02\x00"
        + guid_of(server).bytes_le
        + bytes(16)
        + stamp
        + b"\x10\x03\x00\x00"
        + b"\x5a" * 512
    )
    line.send(wire.establish(guid_of(server), peer.guid, int.from_bytes(stamp, "little")))
    proposed = line.expect("CP")
    recoverable, ack, reserved, window = struct.unpack_from("<IIHH", proposed, 20)
    assert 500 <= recoverable <= 120_000
    assert (ack, reserved, window) == (20_000, 0, 64)
    line.send(wire.parameters(recoverable, ack))
    assert line.message().body == b"x"


@pytest.mark.rule("QB-183", "QB-305")
def test_an_answer_that_does_not_fit_ends_the_attempt(peer: Peer, start: Callable[..., Server]) -> None:
    server = start(peer_port=peer.listen(), retry_interval=0.2)
    server.ok("send", rf"DIRECT=TCP:{peer.address}\private$\far", "--body", "x")
    own = guid_of(server)
    for answer in (
        wire.establish(FOREIGN, peer.guid),
        wire.establish(own, frames.NULL),
        wire.establish(own, peer.guid, refused=True),
    ):
        line = peer.accepted()
        line.expect("EC")
        line.send(answer)
        line.closed()
    assert peer.answer().message().body == b"x"


def internal(kind: int, size: int, content: bytes = b"", flags: int = 0x0B) -> bytes:
    return wire.base(flags, size) + struct.pack("<HH", 0, kind) + content


def faults(peer: Peer) -> dict[str, bytes]:
    """What ends an open session at once, each by a rule of the document."""
    sound = peer.message("q")
    header = wire.header()

    def patched(at: int, content: bytes) -> bytes:
        return sound[:at] + content + sound[at + len(content) :]

    direct = b"\x1a\0" + "OS:server".encode("utf-16-le")
    assert sound[64:66] != direct[:2]
    return {
        "version": patched(0, b"\x11"),
        "signature": patched(4, b"ROIL"),
        "size of 0": patched(8, bytes(4)),
        "size of 4 MiB and 1": patched(8, b"\x01\0\x40\0"),
        "packet type 0": internal(0, 36, header, 0x1B),
        "packet type 4": internal(4, 36, header, 0x1B),
        "packet type 15": internal(15, 36, header, 0x1B),
        "SessionAck without SH": internal(1, 36, header),
        "SessionAck too long": internal(1, 40, header + bytes(4), 0x1B),
        "second EstablishConnection": wire.establish(peer.guid),
        "second ConnectionParameters": wire.parameters(),
        "destination type 1": patched(60, struct.pack("<I", 1 << 10 | 1 << 21)),
        "destination type 6": patched(60, struct.pack("<I", 6 << 10 | 1 << 21)),
        "administration type 4": patched(60, struct.pack("<I", 7 << 10 | 4 << 13 | 1 << 21)),
        "delivery 2": patched(60, struct.pack("<I", 7 << 10 | 2 << 5 | 1 << 21)),
        "no MessagePropertiesHeader": patched(60, struct.pack("<I", 7 << 10)),
        "queue name beyond the packet": patched(64, b"\xff\xff"),
        "queue name of odd length": patched(64, b"\x1b\0"),
        "a header that is not there": patched(60, struct.pack("<I", 7 << 10 | 1 << 19 | 1 << 21)),
        "label of 251 characters": peer.message("q", label="x" * 250),
        "acknowledges what was not sent": wire.session_ack(1),
        "counts too many": wire.session_ack(sent=1),
        "counts too many recoverable": wire.session_ack(sent=0, recoverable=1),
    }


@pytest.mark.rule(
    "QB-005", "QB-010", "QB-019", "QB-157", "QB-162", "QB-163", "QB-178", "QB-187", "QB-202", "QB-295"
)
@pytest.mark.parametrize("fault", list(faults(Peer("127.0.9.1"))))
def test_whatever_is_wrong_the_connection_just_ends(server: Server, peer: Peer, fault: str) -> None:
    """Line 11: no packet announces it, and nothing is enqueued."""
    line = peer.dial(server.host, server.port("mqqb"))
    line.send(faults(peer)[fault])
    line.closed()
    assert server.messages("q") == []


def early(peer: Peer) -> dict[str, bytes]:
    """What belongs into open sessions only."""
    queue = frames.direct("OS:server\\private$\\order_queue$")
    return {
        "message": peer.message("q"),
        "SessionAck": wire.session_ack(),
        "OrderAck": frames.order_ack(1, peer.guid, queue, 1, 1, 1),
        "FinalAck": frames.final_ack(1, peer.guid, queue, 0x4000, (1, 1, 1, 0), (FOREIGN, 1)),
    }


@pytest.mark.rule("QB-007", "QB-193", "QB-205", "QB-215", "QB-221")
@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("what", list(early(Peer("127.0.9.1"))))
def test_nothing_comes_before_the_handshake(server: Server, peer: Peer, step: int, what: str) -> None:
    line = peer.connect(server.host, server.port("mqqb"))
    if step:
        line.send(wire.establish(peer.guid))
        line.expect("EC")
    line.send(early(peer)[what])
    line.closed()
    assert server.messages("q") == []


@pytest.mark.rule("QB-010")
def test_a_packet_that_is_too_large_is_refused_by_its_header(server: Server, peer: Peer) -> None:
    line = peer.dial(server.host, server.port("mqqb"))
    line.send(wire.base(3, 0x400001))
    line.closed()
    before = server.resident
    largest = peer.dial(server.host, server.port("mqqb"))
    largest.send(wire.base(3, 0x400000))
    largest.silent(0.2)
    assert server.resident - before < 2 << 20


@pytest.mark.rule("QB-025", "QB-026")
@pytest.mark.parametrize(
    ("recoverable", "ack"), [(499, 20_000), (120_001, 20_000), (500, 19_999), (500, 120_001)]
)
def test_times_out_of_range_end_the_session(server: Server, peer: Peer, recoverable: int, ack: int) -> None:
    line = peer.connect(server.host, server.port("mqqb"))
    line.send(wire.establish(peer.guid))
    line.expect("EC")
    line.send(wire.parameters(recoverable, ack))
    line.closed()


@pytest.mark.rule("QB-163")
def test_the_refusals_are_counted(server: Server, peer: Peer) -> None:
    before = server.ok("stats")[0]["refusals"].get("session: malformed packet", 0)
    line = peer.dial(server.host, server.port("mqqb"))
    line.send(b"\x11" + bytes(15))
    line.closed()
    until(lambda: server.ok("stats")[0]["refusals"].get("session: malformed packet", 0) == before + 1)
