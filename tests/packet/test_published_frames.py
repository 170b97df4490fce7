"""The frames that MS-MQQB section 4 publishes: decoded field for field, encoded to the same bytes."""

from uuid import UUID

import pytest

from msmq_fast._native.framing import parse
from msmq_fast._native.scanner import PacketScanner
from msmq_fast.packet import Message
from msmq_fast.packet.session import ConnectionParameters, EstablishConnection, Ping, SessionAck
from msmq_fast.packet.user_message import UserMessagePacket
from msmq_fast.security.sid import Sid
from tests.support.packet.samples import frame, published

FRAMES = published()


def guid(entry: dict[str, str]) -> UUID:
    return UUID(entry["guid"])


@pytest.mark.rule("QB-009", "QB-066", "QB-067")
@pytest.mark.parametrize("number", [1, 2])
def test_ping(number: int) -> None:
    fields = FRAMES[number - 1]["fields"]
    ping = Ping.decode(frame(number))
    assert ping is not None
    assert ping.cookie == fields["Cookie"] == 4
    assert ping.manager == guid(fields["QMGuid"])
    assert ping.client_class is bool(fields["Flags"]["RC"])
    assert ping.refused is bool(fields["Flags"]["RF"])
    assert ping.encode() == frame(number)
    assert Ping.decode(frame(number)[:-1]) is None
    assert Ping.decode(b"\0\0\x48\x56" + frame(number)[4:]) is None


@pytest.mark.rule("QB-006", "QB-029", "QB-034", "QB-036", "QB-040")
@pytest.mark.parametrize("number", [3, 4])
def test_establish_connection(number: int) -> None:
    fields = FRAMES[number - 1]["fields"]
    header = fields["EstablishConnectionHeader"]
    packet = EstablishConnection.decode(frame(number))
    assert packet.base is not None
    assert packet.base.priority == 3
    assert packet.base.reserved == fields["BaseHeader"]["Reserved"]
    assert packet.client == guid(header["ClientGuid"])
    assert packet.server == guid(header["ServerGuid"])
    assert packet.timestamp == header["TimeStamp"]
    assert packet.operating_system == header["OperatingSystem"]["raw"] == 0x0310
    assert not packet.refused
    assert packet.encode() == frame(number)
    # what we send ourselves differs from the published bytes in BaseHeader.Reserved only
    packet.base = None
    assert packet.encode()[2:] == frame(number)[2:]


@pytest.mark.rule("QB-024")
@pytest.mark.parametrize("number", [5, 6])
def test_connection_parameters(number: int) -> None:
    packet = ConnectionParameters.decode(frame(number))
    assert (packet.recoverable_ack_timeout, packet.ack_timeout, packet.window_size) == (1496, 120_000, 64)
    assert packet.encode() == frame(number)


@pytest.mark.rule("QB-060", "QB-157")
def test_session_ack() -> None:
    packet = SessionAck.decode(frame(8))
    header = packet.header
    assert (header.ack_sequence, header.recoverable_ack_sequence, header.recoverable_ack_flags) == (1, 0, 0)
    assert (header.user_sequence, header.recoverable_sequence, header.window_size) == (0, 0, 64)
    assert packet.encode() == frame(8)


@pytest.mark.rule("QB-006", "QB-372", "DM-179", "DM-188", "DM-194")
def test_user_message() -> None:
    packet, used = UserMessagePacket.decode(frame(7))
    fields = FRAMES[6]["fields"]
    assert used == 2224 == fields["BaseHeader"]["PacketSize"]
    assert packet.base.time_to_reach_queue == 345_600
    assert packet.user.source == guid(fields["UserHeader"]["SourceQueueManager"])
    assert packet.user.message_id == fields["UserHeader"]["MessageID"] == 2286
    assert packet.user.flags == fields["UserHeader"]["Flags"]["raw"] == 0x00281C00
    assert packet.security is not None
    assert str(Sid.from_bytes(packet.security.sender_id)) == "S-1-5-21-3181267629-1039849782-3663111779-1000"
    assert packet.properties.acknowledge == 0x0F
    assert packet.properties.hash_algorithm == 0x8004
    assert packet.properties.encryption_algorithm == 0x6801
    assert packet.encode() == frame(7)

    message = Message.from_packet(frame(7))
    assert message.label == "mqsender label"
    assert str(message.destination) == "DIRECT=OS:a04bm02\\q"
    assert message.body == "a".encode("utf-16-le") * 1000
    assert message.body_type == 8
    assert message.identifier == "{557358d1-9150-9595-4997-b6e611ea26c6}\\2286"
    assert message.to_packet() == frame(7)


def test_native_offsets_of_the_user_message() -> None:
    parsed = parse(frame(7))
    assert (parsed.dest_offset, parsed.dest_length) == (64, 28)
    assert (parsed.security_offset, parsed.sender_id_offset, parsed.sender_id_length) == (92, 108, 28)
    assert (parsed.properties_offset, parsed.label_offset, parsed.label_chars) == (136, 192, 15)
    assert (parsed.body_offset, parsed.body_length) == (222, 2000)


@pytest.mark.rule("QB-155", "QB-156")
def test_the_conversation_is_cut_into_its_packets() -> None:
    scanner = PacketScanner()
    scanner.feed(b"".join(frame(number) for number in range(3, 9)))
    taken = [scanner.take() for _ in range(6)]
    assert [packet for _, packet in filter(None, taken)] == [frame(number) for number in range(3, 9)]
    assert [kind for kind, _ in filter(None, taken)] == [3, 3, 4, 4, 1, 2]
    assert scanner.take() is None
