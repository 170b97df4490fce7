"""Transactional streams that strangers speak of, and of senders that move; who acknowledges what was sent."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmq_fast._native.memorystore import MemoryTables
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.session import Session
from msmq_fast.packet.acks import OrderAck
from msmq_fast.store.schema import Table
from tests.mqqb.streams import Telling, tx
from tests.support.mqqb import wire

STRANGER = UUID("0bad0001-0000-4000-8000-000000000000")
HOME, ELSEWHERE, AWAY = "10.0.0.1", "10.0.0.2", "10.0.0.66"


@pytest.fixture(params=[False, True], ids=["general", "plain"])
def plain(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


class Receiver(Telling):
    """A host with a transactional queue, and sessions from several addresses."""

    def __init__(self, plain: bool, tables: MemoryTables | None = None) -> None:
        super().__init__(tables=tables)
        self.plain = plain
        self.add("t", transactional=True)

    def session(self, address: str, peer: UUID = wire.PEER) -> Session:
        opened = self.opened(self.now, peer=peer, address=address)
        opened.receiver.plain = self.plain
        self.session_context.peers.expire(self.now)  # nobody is asked by ping
        return opened

    def bring(self, session: Session, *packets: bytes) -> None:
        for packet in packets:
            session.receive(packet, self.now)
        self.commit()

    def told(self) -> list[tuple[str, int, int]]:
        """Where OrderAcks go, and (ordinal, number) that they say, since the last call."""
        self.advance(1.0)
        found = []
        for message in self.acks:
            ack = OrderAck.decode_body(message.body)
            found.append((str(message.destination), ack.sequence_ordinal, ack.sequence_number))
        self.acks.clear()
        return found


def queue_at(address: str) -> str:
    return f"DIRECT=TCP:{address}\\PRIVATE$\\order_queue$"


def test_a_great_sequence_of_a_stranger_blocks_no_stream(plain: bool) -> None:
    host = Receiver(plain)
    owner, stranger = host.session(HOME), host.session(AWAY, STRANGER)
    host.bring(owner, tx(1), tx(2))
    forged = tx(1, 0, ordinal=0xFFFFF, stamp=0xFFFFFFFF, body=b"forged")
    host.bring(stranger, forged)
    host.bring(owner, tx(3), tx(1, 0, ordinal=2), tx(2, ordinal=2))
    ordinals = host.messages("t")
    assert [number for number in ordinals if number < 1_000] == [101, 102, 103, 201, 202]
    assert (queue_at(HOME), 2, 2) in host.told()
    # The same for who came first.
    other = UUID(int=77)
    host.bring(stranger, tx(1, 0, ordinal=0xFFFFF, stamp=0xFFFFFFFF, body=b"forged", source=other))
    host.bring(host.session(HOME, other), tx(1, source=other), tx(2, source=other))
    assert host.messages("t")[-2:] == [101, 102]


def test_a_sequence_that_a_stranger_stole_before_is_taken_from_its_sender(plain: bool) -> None:
    host = Receiver(plain)
    stranger = host.session(AWAY, STRANGER)
    host.bring(stranger, tx(1, 0, body=b"forged"), tx(900, 1, body=b"forged"))
    owner = host.session(HOME)
    host.bring(owner, tx(1), tx(2))
    assert host.messages("t") == [101, 1000, 101, 102]
    # What the stranger made of it is told to nobody, least of all to the sender.
    assert host.told() == [(queue_at(HOME), 1, 2)]
    host.bring(stranger, tx(901, 900, body=b"forged"))
    assert host.told() == []
    host.bring(owner, tx(3))
    assert host.told() == [(queue_at(HOME), 1, 3)]


def test_a_stranger_learns_nothing_of_a_stream_and_moves_it_nowhere(plain: bool) -> None:
    host = Receiver(plain)
    owner, stranger = host.session(HOME), host.session(AWAY, STRANGER)
    host.bring(owner, tx(1), tx(2), tx(3))
    assert host.told() == [(queue_at(HOME), 1, 3)]
    host.bring(stranger, tx(1), tx(2), tx(5, 4), tx(9, 1))
    assert host.told() == []
    assert host.messages("t") == [101, 102, 103]
    host.bring(
        stranger, tx(4, 0)
    )  # another message than the one that the sequence began with: the stranger's own
    assert host.told() == []
    host.bring(owner, tx(4))
    assert host.messages("t") == [101, 102, 103, 104, 104]
    assert host.told() == [(queue_at(HOME), 1, 4)]


def test_a_sender_that_moves_goes_on_and_nothing_comes_twice(plain: bool) -> None:
    host = Receiver(plain)
    host.bring(host.session(HOME), tx(1), tx(2), tx(3))
    host.told()
    moved = host.session(ELSEWHERE)
    host.bring(moved, tx(1), tx(2), tx(3))  # the OrderAck was lost
    assert host.told() == [(queue_at(ELSEWHERE), 1, 3)]
    host.bring(moved, tx(4), tx(5))
    assert host.messages("t") == [101, 102, 103, 104, 105]
    assert host.told() == [(queue_at(ELSEWHERE), 1, 5)]
    # Its next sequence as well, and back again.
    host.bring(moved, tx(1, 0, ordinal=2))
    host.bring(host.session(HOME), tx(1, 0, ordinal=2), tx(2, ordinal=2), tx(1, 0, ordinal=3))
    assert host.messages("t") == [101, 102, 103, 104, 105, 201, 202, 301]


def test_a_sender_with_two_addresses_that_come_in_turns(plain: bool) -> None:
    host = Receiver(plain)
    sessions = [host.session(HOME), host.session(ELSEWHERE)]
    for number in range(1, 21):
        host.bring(sessions[number % 2], tx(number))
    assert host.messages("t") == list(range(101, 121))
    assert len(host.order_acks.streams) == 1


def test_several_senders_behind_one_address(plain: bool) -> None:
    host = Receiver(plain)
    guids = [UUID(int=number) for number in range(1, 4)]
    sessions = [host.session(HOME, guid) for guid in guids]
    for number in (1, 2, 3):
        for guid, session in zip(guids, sessions, strict=True):
            host.bring(session, tx(number, source=guid), tx(number, source=guid))
    assert host.messages("t") == [101, 101, 101, 102, 102, 102, 103, 103, 103]


def test_a_stream_by_two_routers_in_turns(plain: bool) -> None:
    host = Receiver(plain)
    routers = [host.session(HOME, STRANGER), host.session(ELSEWHERE, UUID(int=5))]
    for number in range(1, 6):
        for router in routers:
            host.bring(router, tx(number))
    assert host.messages("t") == [101, 102, 103, 104, 105]


def test_homes_are_kept_over_a_restart(plain: bool) -> None:
    host = Receiver(plain)
    host.bring(host.session(HOME), tx(1), tx(2))
    host.bring(host.session(AWAY, STRANGER), tx(1, 0, ordinal=9, stamp=99, body=b"forged"))
    tables = host.writer.crash()
    again = Receiver(plain, tables)
    streams = sorted(
        (stream.home, stream.identifier >> 32, stream.number) for stream in again.order_acks.streams
    )
    assert sorted(streams) == [(HOME, 7, 2), (AWAY, 99, 1)]
    records = [value for _, value in tables.scan(Table.SEQUENCE, b"I", b"J", 10)]
    assert len(records) == 2
    again.bring(again.session(HOME), tx(2), tx(3), tx(1, 0, ordinal=2))
    assert {stream.home for stream in again.order_acks.streams} == {HOME, AWAY}
    assert again.messages("t") == [103, 201]


def test_strangers_begin_a_bounded_number_of_streams(plain: bool) -> None:
    host = Receiver(plain)
    owner = host.session(HOME)
    host.bring(owner, tx(1))
    for number in range(40):
        stranger = host.session(f"10.9.0.{number}", UUID(int=1000 + number))
        host.bring(stranger, tx(1, 0, ordinal=100 + number, body=b"%d" % number))
    assert len(host.order_acks.streams) == 8
    host.bring(owner, tx(2), tx(1, 0, ordinal=2))
    assert host.messages("t")[-2:] == [102, 201]
    # A day later those of whom nothing came since make room.
    host.advance(90_000.0)
    host.bring(owner, tx(2, ordinal=2))
    late = host.session("10.9.1.1", UUID(int=5000))
    host.bring(late, tx(1, 0, ordinal=500, body=b"late"))
    assert host.messages("t")[-1] == 50_001
    assert len(host.order_acks.streams) == 8


def test_a_sequence_that_is_guessed_is_not_found(plain: bool) -> None:
    host = Receiver(plain)
    owner = host.session(HOME)
    host.bring(owner, tx(1, ordinal=500), tx(2, ordinal=500))
    stranger = host.session(AWAY, STRANGER)
    host.bring(stranger, *(tx(3, ordinal=number, body=b"forged") for number in range(1, 600)))
    assert host.messages("t") == [50_001, 50_002]
    # A sender that moves goes on all the same, as soon as it is believed to be there.
    moved = host.session(ELSEWHERE)
    host.bring(moved, tx(3, ordinal=500))
    assert host.messages("t") == [50_001, 50_002]
    owner.close(CloseReason.DISCONNECTED, host.now)
    moved = host.session(ELSEWHERE)
    host.bring(moved, tx(3, ordinal=500))
    assert host.messages("t") == [50_001, 50_002, 50_003]
    # Another address does when the guesses are forgiven.
    host.bring(host.session("10.0.0.3"), tx(4, ordinal=500))
    assert host.messages("t") == [50_001, 50_002, 50_003]
    host.advance(20.0)
    host.bring(host.session("10.0.0.3"), tx(4, ordinal=500))
    assert host.messages("t") == [50_001, 50_002, 50_003, 50_004]


def test_strangers_that_take_every_place_beside_a_stream_keep_out_no_peer(plain: bool) -> None:
    host = Receiver(plain)
    for number in range(300):
        stranger = host.session(f"10.9.{number // 200}.{number % 200}", UUID(int=1000 + number))
        host.bring(stranger, tx(1, 0, ordinal=100 + number, body=b"%d" % number))
    found = host.messages("t")
    for ordinal, address in enumerate((HOME, ELSEWHERE, *(f"10.0.0.{number}" for number in range(3, 9))), 1):
        session = host.session(address)
        host.bring(session, tx(1, 0, ordinal=ordinal), tx(2, ordinal=ordinal))
        found += [100 * ordinal + 1, 100 * ordinal + 2]
        assert host.messages("t") == found
        session.close(CloseReason.DISCONNECTED, host.now)
        host.advance(5.0)
    assert len(host.order_acks.streams) == 12


def test_a_stranger_with_the_identifier_of_a_sequence_stops_no_acknowledgment(plain: bool) -> None:
    host = Receiver(plain)
    owner, stranger = host.session(HOME), host.session(AWAY)
    host.session(HOME, UUID(int=6))  # two queue managers at one address: acknowledgments go by the GUID
    host.bring(owner, tx(1), tx(2))
    host.bring(stranger, tx(1, 0, body=b"forged"), tx(900, 1, body=b"forged"))
    host.advance(5.0)
    host.acks.clear()
    host.bring(owner, tx(3))
    assert [told[1:] for told in host.told()] == [(1, 3)]


class Small(Receiver):
    """A host with room for few streams."""

    streams_limit = 40


def test_each_address_may_have_some_streams_whatever_others_have(plain: bool) -> None:
    host = Small(plain)
    for number in range(60):
        guid = UUID(int=1000 + number)
        host.bring(host.session(AWAY, STRANGER), tx(1, source=guid))
    assert len(host.messages("t")) == 40
    for number in range(1, 4):
        guid = UUID(int=number)
        host.bring(host.session(f"10.1.0.{number}", guid), tx(1, source=guid), tx(2, source=guid))
    assert len(host.messages("t")) == 46
    for number in range(4, 60):
        guid = UUID(int=number)
        host.bring(host.session(f"10.1.0.{number}", guid), tx(1, source=guid))
    assert len(host.order_acks.streams) == 50, "a quarter more in all"
