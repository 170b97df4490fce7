"""EstablishConnection and ConnectionParameters in both roles, byte for byte."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest

from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.sessionstate import SessionState
from msmq_fast.mqqb.switches import Switches
from tests.support.mqqb import wire
from tests.support.worlds.hosts import OWN, Host, sent

pytestmark = pytest.mark.smoke

OTHER = UUID("11111111-2222-3333-4444-555555555555")


@pytest.mark.rule(
    "QB-024", "QB-029", "QB-030", "QB-032", "QB-033", "QB-034", "QB-035", "QB-040", "QB-181", "QB-189"
)
@pytest.mark.parametrize("server", [wire.NULL, OWN])
@pytest.mark.parametrize("system", [0x310, 0x210, 0x010])
def test_acceptor_answers_with_exact_bytes(server: UUID, system: int) -> None:
    session = Host().accept()
    assert session.state is SessionState.WAITING_EC_MSG
    session.receive(wire.establish(server=server, stamp=0xDEADBEEF, system=system, padding=bytes(512)), 100.0)
    assert sent(session) == [wire.establish(server=OWN, stamp=0xDEADBEEF, system=system)]
    assert session.state is SessionState.WAITING_CP_MSG
    assert session.peer_guid == wire.PEER
    session.receive(wire.parameters(700, 30_000, 10), 100.1)
    assert sent(session) == [wire.parameters(700, 30_000, 64)]
    assert session.state is SessionState.OPEN


@pytest.mark.rule("QB-155", "QB-156")
@pytest.mark.rule(
    "QB-025", "QB-026", "QB-031", "QB-036", "QB-037", "QB-103", "QB-142", "QB-144", "QB-176", "QB-185"
)
def test_initiator_sends_exact_bytes() -> None:
    session = Host().dial(now=5_000.25)
    assert sent(session) == [wire.establish(client=OWN, server=wire.NULL, stamp=5_000_250)]
    session.receive(wire.establish(client=OWN, server=wire.PEER, stamp=5_000_250), 5_000.437)
    assert sent(session) == [wire.parameters(1496, 20_000, 64)]
    assert session.state is SessionState.WAITING_CPR_MSG
    assert session.peer_guid == wire.PEER
    session.receive(wire.parameters(1496, 20_000, 10), 5_000.5)
    assert session.state is SessionState.OPEN
    assert session.sent.peer_size == 10


@pytest.mark.rule("QB-031", "QB-035", "QB-176", "QB-183")
def test_initiator_names_the_server_it_expects_and_says_that_it_pinged() -> None:
    session = Host().dial(now=1.0, server_guid=OTHER, pinged=True)
    assert sent(session) == [wire.establish(client=OWN, server=OTHER, stamp=1000, system=0x210)]
    session.receive(wire.establish(client=OWN, server=wire.PEER, stamp=1000, system=0x210), 1.0)
    assert session.reason is CloseReason.WRONG_RESPONSE
    assert sent(session) == []


@pytest.mark.rule("QB-033", "QB-184")
@pytest.mark.parametrize(("delay", "timeout"), [(0.0, 500), (0.1, 800), (60.0, 120_000)])
def test_recoverable_ack_timeout_is_eight_round_trips(delay: float, timeout: int) -> None:
    now = 2**32 / 1000 - 0.05  # the time stamp wraps in between
    session = Host().dial(now=now)
    (request,) = sent(session)
    stamp = struct.unpack_from("<I", request, 52)[0]
    session.receive(wire.establish(client=OWN, server=wire.PEER, stamp=stamp), now + delay)
    (answer,) = sent(session)
    assert abs(struct.unpack_from("<I", answer, 20)[0] - timeout) <= 8


@pytest.mark.rule("QB-033")
def test_the_time_stamp_wraps_at_32_bits() -> None:
    session = Host().dial(now=4_294_972.5)
    assert sent(session) == [wire.establish(client=OWN, stamp=4_294_972_500 - 2**32)]


@pytest.mark.rule("QB-021", "QB-020")
def test_foreign_server_guid_is_refused_and_closed() -> None:
    session = Host().accept()
    session.receive(wire.establish(server=OTHER), 100.0)
    assert sent(session) == [wire.establish(server=OWN, refused=True)]
    assert session.state is SessionState.CLOSED
    assert session.reason is CloseReason.WRONG_SERVER


@pytest.mark.rule("QB-022")
def test_refusal_by_limit_is_an_answer_not_silence() -> None:
    session = Host().accept(refusal=CloseReason.SESSION_LIMIT)
    session.receive(wire.establish(), 100.0)
    assert sent(session) == [wire.establish(server=OWN, refused=True)]
    assert session.reason is CloseReason.SESSION_LIMIT


@pytest.mark.rule("QB-183")
@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (wire.establish(client=OTHER, server=wire.PEER), CloseReason.WRONG_RESPONSE),
        (wire.establish(client=OWN, server=wire.NULL), CloseReason.WRONG_RESPONSE),
        (wire.establish(client=OWN, server=wire.PEER, refused=True), CloseReason.REFUSED),
    ],
)
def test_initiator_closes_on_a_wrong_response(response: bytes, reason: CloseReason) -> None:
    session = Host().dial()
    session.data_to_send()
    session.receive(response, 100.0)
    assert session.reason is reason
    assert session.data_to_send() == []


@pytest.mark.rule("QB-025", "QB-026")
@pytest.mark.parametrize(
    ("recoverable", "ack"), [(499, 20_000), (120_001, 20_000), (500, 19_999), (500, 120_001)]
)
def test_parameters_out_of_range(recoverable: int, ack: int) -> None:
    session = Host().accept()
    session.receive(wire.establish() + wire.parameters(recoverable, ack), 100.0)
    assert session.reason is CloseReason.BAD_PARAMETERS
    lenient = Host(switches=Switches(amb60_clamp_parameters=True)).accept()
    lenient.receive(wire.establish() + wire.parameters(recoverable, ack), 100.0)
    assert lenient.state is SessionState.OPEN
    limited = wire.parameters(min(max(recoverable, 500), 120_000), min(max(ack, 20_000), 120_000))
    assert sent(lenient)[1] == limited


@pytest.mark.rule("QB-025", "QB-026")
@pytest.mark.parametrize(("recoverable", "ack"), [(500, 20_000), (120_000, 120_000)])
def test_parameters_at_the_ends_of_their_range(recoverable: int, ack: int) -> None:
    session = Host().accept()
    session.receive(wire.establish() + wire.parameters(recoverable, ack), 100.0)
    assert session.state is SessionState.OPEN
    assert sent(session)[1] == wire.parameters(recoverable, ack)


@pytest.mark.rule("QB-018", "QB-023", "QB-027", "QB-038", "QB-039", "QB-037")
def test_reserved_bits_are_ignored() -> None:
    session = Host().accept()
    packet = bytearray(wire.establish(system=0xFF10))
    packet[16:18] = b"\xff\xff"
    packet[18:20] = struct.pack("<H", 0xFFE2)
    packet[56:60] = struct.pack("<HH", 0xFF10, 0xFFFF)
    session.receive(bytes(packet), 100.0)
    assert sent(session) == [wire.establish(server=OWN, stamp=0x1DDECA4E, system=0x310)]
    session.receive(wire.parameters(reserved=0xFFFF), 100.0)
    assert sent(session) == [wire.parameters()]
    assert session.state is SessionState.OPEN


@pytest.mark.rule("QB-151", "QB-182", "QB-007", "QB-178", "QB-187", "QB-193", "QB-221")
@pytest.mark.parametrize(
    "packets",
    [
        [wire.message(1)],
        [wire.parameters()],
        [wire.session_ack()],
        [wire.establish(), wire.establish()],
        [wire.establish(), wire.message(1)],
        [wire.establish(), wire.session_ack()],
        [wire.establish(), wire.parameters(), wire.parameters()],
        [wire.establish(), wire.parameters(), wire.establish()],
    ],
)
def test_acceptor_closes_on_packets_out_of_state(packets: list[bytes]) -> None:
    host = Host()
    session = host.accept()
    for packet in packets:
        session.receive(packet, 100.0)
    assert session.state is SessionState.CLOSED
    assert session.reason is CloseReason.OUT_OF_STATE
    assert host.messages() == []


@pytest.mark.rule("QB-007", "QB-178", "QB-187", "QB-193", "QB-221")
@pytest.mark.parametrize("packet", [wire.message(1), wire.parameters(), wire.session_ack()])
def test_initiator_closes_on_packets_out_of_state(packet: bytes) -> None:
    session = Host().dial()
    session.receive(packet, 100.0)
    assert session.reason is CloseReason.OUT_OF_STATE


PACKETS = {
    "EC": wire.establish(),
    "ECR": wire.establish(client=OWN, server=wire.PEER),
    "CP": wire.parameters(),
    "MSG": wire.message(1),
    "ACK": wire.session_ack(),
}
STATES = {  # how a session comes there, and the packets that do not end it; LINGERING: test_full.py
    SessionState.WAITING_EC_MSG: (False, [], {"EC": SessionState.WAITING_CP_MSG}),
    SessionState.WAITING_CP_MSG: (False, ["EC"], {"CP": SessionState.OPEN}),
    SessionState.WAITING_ECR_MSG: (True, [], {"ECR": SessionState.WAITING_CPR_MSG}),
    SessionState.WAITING_CPR_MSG: (True, ["ECR"], {"CP": SessionState.OPEN}),
    SessionState.OPEN: (True, ["ECR", "CP"], {"MSG": SessionState.OPEN, "ACK": SessionState.OPEN}),
    SessionState.CLOSED: (False, ["EC", "CP", "CP"], {}),
}


@pytest.mark.rule("QB-103")
@pytest.mark.parametrize("packet", PACKETS)
@pytest.mark.parametrize("state", STATES)
def test_every_packet_in_every_state(state: SessionState, packet: str) -> None:
    dialled, before, following = STATES[state]
    session = Host().dial() if dialled else Host().accept()
    for name in before:
        session.receive(PACKETS[name], 100.0)
    assert session.state is state
    session.receive(PACKETS[packet], 100.0)
    assert session.state is following.get(packet, SessionState.CLOSED)


@pytest.mark.rule("QB-005", "QB-010", "QB-019", "QB-157", "QB-162", "QB-163", "QB-295")
@pytest.mark.parametrize(
    "garbage",
    [
        wire.base(0x0B, 32, version=0x11) + bytes(16),
        wire.base(0x0B, 32, signature=b"ROIL") + bytes(16),
        wire.base(0x03, 0x00400001),
        wire.base(0x0B, 32) + struct.pack("<HH", 0, 0) + bytes(12),
        wire.base(0x0B, 32) + struct.pack("<HH", 0, 9) + bytes(12),
        wire.base(0x0B, 36) + struct.pack("<HH", 0, 1) + bytes(16),
        wire.base(0x03, 15),
    ],
)
def test_malformed_packets_close_without_an_answer(garbage: bytes) -> None:
    host = Host()
    session = host.opened()
    session.receive(garbage, 101.0)
    assert session.state is SessionState.CLOSED
    assert session.reason is CloseReason.MALFORMED
    assert session.data_to_send() == []
    assert host.messages() == []


@pytest.mark.rule("QB-005", "QB-019")
@pytest.mark.parametrize("packet", [wire.establish(), wire.parameters(), wire.session_ack()])
@pytest.mark.parametrize("kind", [0, *range(4, 16)])
def test_a_sound_packet_of_another_type_closes(packet: bytes, kind: int) -> None:
    session = Host().opened()
    session.receive(packet[:18] + bytes((kind,)) + packet[19:], 101.0)
    assert session.reason is CloseReason.MALFORMED


@pytest.mark.rule("QB-028")
def test_window_of_zero_counts_as_one() -> None:
    host = Host()
    session = host.opened(window=0)
    assert session.sent.peer_size == 1


@pytest.mark.rule("QB-175", "QB-299", "QB-302")
def test_a_handshake_that_stalls_is_closed() -> None:
    host = Host()
    for steps in ([], [wire.establish()]):
        session = host.accept(now=100.0)
        for packet in steps:
            session.receive(packet, 130.0)
        assert session.next_deadline() == 160.0
        session.expire(159.9)
        assert session.state is not SessionState.CLOSED
        session.expire(160.0)
        assert session.reason is CloseReason.HANDSHAKE_TIMEOUT
    session = host.dial(now=100.0)
    session.expire(160.0)
    assert session.reason is CloseReason.HANDSHAKE_TIMEOUT


@pytest.mark.rule("QB-190", "QB-192")
def test_the_initialization_timer_stops_when_the_session_opens() -> None:
    session = Host().opened(now=100.0)
    session.expire(170.0)
    assert session.state is SessionState.OPEN
