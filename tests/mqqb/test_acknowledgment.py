"""Receiver and sender side of session acknowledgment, seen from the wire."""

from __future__ import annotations

from array import array
from uuid import UUID

import pytest

from msmq_fast._native.tables import StoreError
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.sessionstate import SessionState
from msmq_fast.mqqb.switches import Switches
from msmq_fast.packet import Message
from tests.support.mqqb import wire
from tests.support.worlds.hosts import OWN, Host, sent

TIMED = Switches(amb19_prompt_ack=False, amb19_count_ack=False)


def express(first: int, count: int = 1, **fields: object) -> bytes:
    return b"".join(wire.message(first + i, **fields) for i in range(count))  # type: ignore[arg-type]


def recoverable(first: int, count: int = 1, **fields: object) -> bytes:
    return express(first, count, recoverable=True, **fields)


# ------------------------------------------------------------------------------------------------- receiver


@pytest.mark.rule("QB-275", "QB-020", "QB-107", "QB-115", "QB-226", "QB-229", "QB-309", "QB-310", "QB-311")
def test_a_lone_express_message_is_acknowledged_after_half_of_the_ack_timeout() -> None:
    host = Host(switches=Switches(amb19_count_ack=False))
    session = host.opened(now=100.0)
    session.receive(express(1), 101.0)
    assert host.messages() == [1]
    assert (session.window.received, session.window.recoverable) == (1, 0)
    assert sent(session) == []
    session.expire(110.9)
    assert sent(session) == []
    session.expire(111.0)
    assert sent(session) == [wire.session_ack(ack=1)]
    session.expire(200.0)
    assert sent(session) == []  # an idle session emits no acknowledgments


def test_few_express_messages_are_acknowledged_soon() -> None:
    session = Host().opened(now=100.0)
    session.receive(express(1), 101.0)
    session.expire(101.04)
    assert sent(session) == []
    session.expire(101.05)
    assert sent(session) == [wire.session_ack(ack=1)]


@pytest.mark.rule("QB-275", "QB-060", "QB-106", "QB-117", "QB-278", "QB-280", "QB-282")
def test_a_recoverable_message_is_acknowledged_when_it_is_durable() -> None:
    host = Host()
    session = host.opened()
    session.receive(recoverable(1), 101.0)
    host.writer.submit()
    session.pump(101.0)
    assert sent(session) == []
    assert host.messages() == []
    host.writer.complete_all()
    session.pump(101.0)
    assert sent(session) == [wire.session_ack(ack=1, base_ack=1, flags=1)]
    assert host.messages() == [1]


@pytest.mark.rule("QB-107", "QB-108")
def test_the_owner_is_woken_once_for_each_batch() -> None:
    host = Host()
    session = host.opened()
    session.receive(recoverable(1, 20), 101.0)
    host.commit()
    assert host.woken == [session]


@pytest.mark.rule("QB-120", "QB-104", "QB-119")
def test_half_a_window_is_acknowledged_at_once() -> None:
    host = Host()
    session = host.opened()
    session.receive(express(1, 31), 101.0)
    assert sent(session) == []
    session.receive(express(32), 101.0)
    assert sent(session) == [wire.session_ack(ack=32)]
    session.receive(express(33, 31), 101.0)
    assert sent(session) == []  # counted from the last one on
    narrow = host.opened(window=4)
    narrow.receive(express(101, 2), 101.0)
    assert sent(narrow) == [wire.session_ack(ack=2)]


@pytest.mark.rule("QB-276", "QB-277")
def test_more_than_32_durable_messages_need_several_headers() -> None:
    host = Host(switches=TIMED)
    session = host.opened()
    session.receive(recoverable(1, 33), 101.0)
    host.commit()
    session.pump(101.0)
    assert sent(session) == [
        wire.session_ack(ack=33, base_ack=1, flags=0xFFFFFFFF),
        wire.session_ack(ack=33, base_ack=33, flags=1),
    ]


@pytest.mark.rule("QB-279", "QB-309", "QB-188")
def test_the_negotiated_recoverable_timeout_is_the_latest_acknowledgment() -> None:
    host = Host(switches=TIMED)
    session = host.opened(recoverable=700)
    session.receive(express(1) + recoverable(2, 2), 101.0)
    host.commit()
    session.pump(101.0)
    assert sent(session) == []
    session.expire(101.69)
    assert sent(session) == []
    session.expire(101.71)
    assert sent(session) == [wire.session_ack(ack=3, base_ack=1, flags=3)]


@pytest.mark.rule("QB-117", "QB-280")
def test_bits_start_behind_what_was_acknowledged() -> None:
    host = Host()
    session = host.opened()
    session.receive(recoverable(1, 3), 101.0)
    host.commit()
    session.pump(101.0)
    session.receive(recoverable(4, 2), 102.0)
    host.commit()
    session.pump(102.0)
    assert sent(session) == [
        wire.session_ack(ack=3, base_ack=1, flags=7),
        wire.session_ack(ack=5, base_ack=4, flags=3),
    ]


@pytest.mark.rule("QB-236", "QB-280")
def test_a_rejected_recoverable_message_is_acknowledged_behind_those_before_it() -> None:
    host = Host()
    session = host.opened()
    session.receive(recoverable(1) + recoverable(2, queue="OS:host\\private$\\none") + recoverable(3), 101.0)
    host.writer.submit()
    session.pump(101.0)
    assert sent(session) == []  # 2 needs no disk, but 1 is not durable
    host.writer.complete_all()
    session.pump(101.0)
    assert sent(session) == [wire.session_ack(ack=3, base_ack=1, flags=7)]
    assert host.messages() == [1, 3]
    assert [reason for reason, _ in host.refusals] == ["unknown queue"]


@pytest.mark.rule("QB-117")
def test_a_failed_commit_acknowledges_nothing_and_closes() -> None:
    host = Host()
    session = host.opened()
    session.receive(recoverable(1, 2), 101.0)
    host.writer.submit()
    host.writer.complete_all(28)
    session.pump(101.0)
    assert sent(session) == []
    assert session.reason is CloseReason.STORE_FAILED
    again = host.opened()
    try:
        again.receive(recoverable(1, 2), 102.0)
    except StoreError:
        return  # the store takes nothing more
    host.commit()
    assert host.messages() == [1, 2]


# ------------------------------------------------------------------------------------------- counts


@pytest.mark.rule("QB-061", "QB-202", "QB-262")
@pytest.mark.parametrize("inside", [False, True])
def test_a_piggybacked_header_is_checked_with_the_message_that_carries_it(inside: bool) -> None:
    host = Host()
    session = host.opened()
    first = wire.message(1, session=wire.header(sent=1), header_inside=inside)
    session.receive(first + express(2), 101.0)
    assert session.state is SessionState.OPEN
    assert host.messages() == [1, 2]
    wrong = wire.message(3, session=wire.header(sent=2), header_inside=inside)
    session.receive(wrong + express(4), 102.0)
    assert session.reason is CloseReason.COUNT_MISMATCH
    assert host.messages() == [1, 2, 3]  # delivered before the session ends


@pytest.mark.rule("QB-011")
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_a_stream_with_piggybacked_headers_may_arrive_in_any_pieces(inside: bool, step: int) -> None:
    host = Host()
    session = host.opened()
    stream = wire.message(1, session=wire.header(sent=1), header_inside=inside) + express(2) + recoverable(3)
    for start in range(0, len(stream), step):
        session.receive(stream[start : start + step], 101.0)
    host.commit()
    assert host.messages() == [1, 2, 3]


@pytest.mark.rule("QB-202")
@pytest.mark.parametrize("claim", [{"sent": 3}, {"sent": 1}, {"sent": 2, "recoverable": 2}, {"sent": 2}])
def test_a_session_ack_with_other_counts_closes(claim: dict[str, int]) -> None:
    host = Host()
    session = host.opened()
    session.receive(express(1) + recoverable(2), 101.0)
    session.receive(wire.session_ack(**claim), 102.0)
    assert session.reason is CloseReason.COUNT_MISMATCH
    host.commit()
    assert host.messages() == [1, 2]


@pytest.mark.rule("QB-202", "QB-108")
def test_true_counts_keep_the_session() -> None:
    host = Host()
    session = host.opened()
    session.receive(express(1) + recoverable(2) + wire.session_ack(sent=2, recoverable=1), 101.0)
    assert session.state is SessionState.OPEN


# ---------------------------------------------------------------------------------------------- sender


def packets(first: int, count: int, **fields: object) -> list[bytes]:
    return [wire.message(first + i, source=OWN, **fields) for i in range(count)]  # type: ignore[arg-type]


@pytest.mark.rule("QB-104", "QB-191", "QB-195", "QB-323", "QB-334", "QB-336")
def test_the_window_holds_messages_back_until_they_are_acknowledged() -> None:
    host = Host()
    session = host.opened(window=4)
    session.attach(host.outgoing(packets(1, 10)))
    session.pump(101.0)
    assert [wire.ordinal(p) for p in sent(session)] == [1, 2, 3, 4]
    session.pump(101.0)
    assert sent(session) == []
    session.receive(wire.session_ack(ack=2, window=4), 102.0)
    assert [wire.ordinal(p) for p in sent(session)] == [5, 6]
    assert session.sent.unacknowledged == 4


@pytest.mark.rule("QB-104", "QB-323")
def test_the_window_of_each_header_counts_at_once_and_our_own_limits_too() -> None:
    host = Host(window=8)
    session = host.opened(window=64)
    session.attach(host.outgoing(packets(1, 40)))
    session.pump(101.0)
    assert len(sent(session)) == 8
    session.receive(wire.session_ack(ack=8, window=1), 102.0)
    assert len(sent(session)) == 1
    session.receive(wire.session_ack(ack=9, window=3), 103.0)
    assert len(sent(session)) == 3


@pytest.mark.rule("QB-116", "QB-195", "QB-197", "QB-334")
def test_express_messages_leave_by_the_ack_number_and_unsent_ones_stay() -> None:
    host = Host()
    session = host.opened(window=3)
    source = host.outgoing(packets(1, 5))
    session.attach(source)
    session.pump(101.0)
    session.receive(wire.session_ack(ack=2, window=1), 102.0)
    assert source.core.messages == 3  # 3 is in flight, 4 and 5 were never sent


@pytest.mark.rule("QB-118", "QB-196", "QB-198", "QB-199", "QB-194")
def test_recoverable_messages_leave_by_base_and_bits() -> None:
    host = Host()
    session = host.opened()
    source = host.outgoing(packets(1, 6, recoverable=True))
    session.attach(source)
    session.pump(101.0)
    assert len(sent(session)) == 6
    session.receive(wire.session_ack(ack=6, base_ack=3, flags=0b101), 102.0)
    host.commit()
    session.pump(102.0)
    assert sent(session) == []  # nothing in flight is sent twice
    assert source.core.messages == 2
    session.close(CloseReason.DISCONNECTED, 103.0)
    again = host.opened()
    again.attach(source)
    again.pump(104.0)
    assert [wire.ordinal(p) for p in sent(again)] == [4, 6]


@pytest.mark.rule("QB-118", "QB-196")
def test_what_was_acknowledged_when_the_session_broke_is_not_sent_again() -> None:
    """The acknowledgment and what ends the session come in one read; what is left keeps its order."""
    host = Host()
    session = host.opened()
    source = host.outgoing(packets(1, 6, recoverable=True))
    session.attach(source)
    session.pump(101.0)
    wrong = wire.session_ack(ack=99)
    session.receive(wire.session_ack(ack=6, base_ack=1, flags=0b10101) + wrong, 102.0)
    assert session.reason is CloseReason.ACK_UNSENT
    host.commit()
    assert source.core.messages == 3
    again = host.opened()
    again.attach(source)
    again.pump(104.0)
    assert [wire.ordinal(p) for p in sent(again)] == [2, 4, 6]


@pytest.mark.rule("QB-118", "QB-119")
def test_an_ack_number_alone_removes_no_recoverable_message() -> None:
    host = Host()
    session = host.opened()
    source = host.outgoing([*packets(1, 2), *packets(3, 2, recoverable=True)])
    session.attach(source)
    session.pump(101.0)
    session.receive(wire.session_ack(ack=4), 102.0)
    host.commit()
    assert source.core.messages == 2
    assert session.sent.unacknowledged == 0


@pytest.mark.rule("QB-195", "QB-198", "QB-199")
@pytest.mark.parametrize(
    "ack", [{"ack": 4}, {"ack": 3, "base_ack": 2, "flags": 1}, {"ack": 3, "base_ack": 1, "flags": 3}]
)
def test_an_acknowledgment_of_what_was_never_sent_closes(ack: dict[str, int]) -> None:
    host = Host()
    session = host.opened()
    source = host.outgoing([*packets(1, 2), *packets(3, 1, recoverable=True)])
    session.attach(source)
    session.pump(101.0)
    session.receive(wire.session_ack(**ack), 102.0)
    assert session.reason is CloseReason.ACK_UNSENT
    assert source.core.messages == 3


@pytest.mark.rule("QB-327")
def test_a_private_message_is_encrypted_each_time_it_is_sent() -> None:
    host = Host()
    message = Message.from_packet(wire.message(1, source=OWN, recoverable=True))
    message.privacy_level = 1
    source = host.outgoing([message.to_packet()])
    times: list[int] = []

    def protect(lookup_id: int, packet: bytes) -> bytes:
        times.append(lookup_id)
        return packet.replace(b"body", b"%04d" % len(times))

    source.protect = protect
    for expected in (b"0001", b"0002"):
        session = host.opened()
        session.attach(source)
        session.pump(101.0)
        (packet,) = sent(session)
        assert expected in packet
        session.close(CloseReason.DISCONNECTED, 102.0)


@pytest.mark.rule("QB-107", "QB-109", "QB-327", "QB-136", "QB-297", "QB-334", "QB-335")
def test_numbers_start_again_with_each_session() -> None:
    host = Host()
    source = host.outgoing(packets(1, 3, recoverable=True))
    first = host.opened()
    first.attach(source)
    first.pump(101.0)
    first.receive(express(50), 101.0)
    first.close(CloseReason.DISCONNECTED, 102.0)
    assert (first.state, first.next_deadline()) == (SessionState.CLOSED, None)
    second = host.opened()
    window = second.window
    assert (window.received, window.recoverable) == (0, 0)
    assert (window.unacknowledged, window.acknowledgeable) == (0, 0)
    second.attach(source)
    second.pump(103.0)
    assert [wire.ordinal(p) for p in sent(second)] == [1, 2, 3]
    assert (second.sent.sent, second.sent.recoverable) == (3, 3)
    second.receive(wire.session_ack(ack=3, base_ack=1, flags=7), 104.0)
    host.commit()
    assert source.core.messages == 0
    second.receive(express(51), 105.0)
    second.expire(106.0)
    assert sent(second) == [wire.session_ack(ack=1, sent=3, recoverable=3)]  # also of what is acknowledged


@pytest.mark.rule("QB-335")
def test_recoverable_messages_are_counted_apart() -> None:
    host = Host()
    session = host.opened()
    source = host.outgoing([packets(n, 1, recoverable=n % 2 == 0)[0] for n in range(1, 5)])
    session.attach(source)
    session.pump(101.0)
    assert [wire.ordinal(p) for p in sent(session)] == [1, 2, 3, 4]
    session.receive(recoverable(50), 101.0)
    host.commit()
    session.pump(101.0)
    assert sent(session) == [wire.session_ack(ack=1, base_ack=1, flags=1, sent=4, recoverable=2)]
    for base, left in ((1, 1), (2, 0)):
        session.receive(wire.session_ack(ack=4, base_ack=base, flags=1, sent=1, recoverable=1), 102.0)
        host.commit()
        assert source.core.messages == left


@pytest.mark.rule("QB-337", "QB-374", "QB-061", "DM-193")
def test_a_header_rides_on_a_message_late_in_the_ack_timer() -> None:
    host = Host(switches=Switches(amb19_count_ack=False))
    session = host.opened(now=100.0)  # the ack timer runs 10 s
    source = host.outgoing(packets(1, 1))
    session.attach(source)
    session.receive(express(60), 101.0)
    (plain,) = sent(session)
    assert plain == packets(1, 1)[0]
    host.put(source, packets(2, 1))
    session.pump(108.0)
    (early,) = sent(session)
    assert early == packets(2, 1)[0]
    host.put(source, packets(3, 2))
    session.pump(109.0)
    first, carrier = sent(session)
    assert first == packets(3, 1)[0]
    assert carrier == wire.message(4, source=OWN, session=wire.header(ack=1, sent=4))
    session.receive(express(61), 110.0)  # the timer starts anew
    session.expire(119.9)
    assert sent(session) == []  # said once
    session.expire(120.0)
    assert sent(session) == [wire.session_ack(ack=2, sent=4)]


@pytest.mark.rule("QB-393", "QB-328")
def test_messages_whose_time_to_reach_queue_passed_are_removed_and_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = Host()
    session = host.opened()
    source = host.outgoing([*packets(1, 2, reach=5, sent_time=2_000), *packets(3, 1)])
    late = list(source.core.positions.keys())[:2]
    host.ledger.tick(2_006 * 1_000_000)
    removed: list[int] = []
    remove = source.expired

    def expired(owner: int, keys: array[int]) -> None:
        removed.extend(keys)
        remove(owner, keys)

    monkeypatch.setattr(source, "expired", expired)
    session.attach(source)
    session.pump(101.0)
    assert [wire.ordinal(p) for p in sent(session)] == [3]
    assert removed == late
    assert source.core.messages == 1


@pytest.mark.rule("QB-154", "QB-203", "QB-307", "QB-308", "QB-338")
def test_silence_after_a_message_closes_but_any_packet_gives_another_period() -> None:
    host = Host()
    session = host.opened(now=100.0, ack=20_000)
    source = host.outgoing(packets(1, 1))
    session.attach(source)
    session.receive(wire.session_ack(), 100.0)  # heard once
    session.pump(101.0)
    session.expire(141.0)  # 2 × 20 s for a direct name
    assert session.state is SessionState.OPEN
    session.expire(180.9)
    assert session.state is SessionState.OPEN
    session.expire(181.0)
    assert session.reason is CloseReason.ACK_TIMEOUT
    indirect = host.opened(now=100.0)
    source.direct = False
    indirect.attach(source)
    indirect.pump(101.0)
    indirect.expire(121.0)
    indirect.expire(141.0)
    assert indirect.reason is CloseReason.ACK_TIMEOUT


@pytest.mark.rule("QB-137", "QB-230", "QB-303", "QB-304", "QB-143")
def test_an_idle_session_is_closed_and_acknowledgments_are_no_activity() -> None:
    host = Host()
    session = host.opened(now=100.0)
    session.receive(express(1), 300.0)
    session.expire(400.0)
    assert session.state is SessionState.OPEN
    session.receive(wire.session_ack(sent=1), 600.0)
    session.expire(700.0)
    assert session.reason is CloseReason.IDLE


@pytest.mark.rule("QB-203")
def test_the_ack_wait_timer_starts_anew_with_each_header_while_something_is_in_flight() -> None:
    host = Host()
    session = host.opened(now=100.0)
    session.attach(host.outgoing(packets(1, 2)))
    session.pump(101.0)
    assert session.next_deadline() == 141.0
    session.receive(wire.session_ack(ack=1), 130.0)
    assert session.next_deadline() == 170.0
    session.receive(wire.session_ack(ack=2), 131.0)
    assert session.next_deadline() == 400.0  # only the idle timer


@pytest.mark.rule("QB-137", "QB-143")
def test_a_new_session_is_idle_and_has_no_acknowledgment_timer() -> None:
    session = Host().opened(now=100.0)
    assert session.next_deadline() == 400.0
    session.expire(400.0)
    assert session.reason is CloseReason.IDLE


@pytest.mark.rule("QB-304", "QB-338")
def test_a_message_that_was_sent_is_activity() -> None:
    host = Host()
    session = host.opened(now=100.0)
    session.attach(host.outgoing(packets(1, 1)))
    session.pump(399.0)
    session.receive(wire.session_ack(ack=1), 399.5)
    session.expire(400.0)
    assert session.state is SessionState.OPEN
    session.expire(700.0)
    assert session.reason is CloseReason.IDLE


@pytest.mark.rule("QB-188", "QB-191")
def test_the_acceptor_takes_window_and_ack_timeout_from_the_initiator() -> None:
    host = Host(switches=Switches(amb19_count_ack=False))
    session = host.opened(now=100.0, ack=60_000, window=3)
    session.receive(express(1), 101.0)
    session.expire(130.9)
    assert sent(session) == []
    session.expire(131.0)
    assert sent(session) == [wire.session_ack(ack=1)]
    session.attach(host.outgoing(packets(1, 5)))
    session.pump(131.0)
    assert len(sent(session)) == 3
    assert session.next_deadline() == 131.0 + 2 * 60.0


@pytest.mark.rule("QB-008", "QB-337")
def test_both_directions_work_on_one_connection() -> None:
    host = Host()
    session = host.opened()
    source = host.outgoing(packets(1, 2, recoverable=True))
    session.attach(source)
    session.receive(recoverable(70, 2), 101.0)
    assert [wire.kind(p) for p in sent(session)] == ["MSG", "MSG"]
    host.commit()
    session.receive(wire.session_ack(ack=2, base_ack=1, flags=3, sent=2, recoverable=2), 101.5)
    assert sent(session) == [wire.session_ack(ack=2, base_ack=1, flags=3, sent=2, recoverable=2)]


@pytest.mark.rule("DM-241")
def test_priority_and_fairness_between_queues_of_one_session() -> None:
    host = Host()
    session = host.opened(window=64)
    low = host.outgoing(packets(1, 40, priority=1))
    one = host.outgoing(packets(101, 20, priority=5))
    two = host.outgoing(packets(201, 20, priority=5))
    for source in (low, one, two):
        session.attach(source)
    session.pump(101.0)
    order = [wire.ordinal(p) for p in sent(session)]
    assert order[:40] == [*range(101, 117), *range(201, 217), *range(117, 121), *range(217, 221)]
    assert order[40:] == list(range(1, 25))


@pytest.mark.rule("QB-179")
def test_peer_guid_is_known() -> None:
    assert Host().opened().peer_guid == UUID("557358d1-9150-9595-4997-b6e611ea26c6")


@pytest.mark.rule("QB-091", "QB-141")
def test_a_long_backlog_drains_on_several_sessions_that_do_not_disturb_one_another() -> None:
    host = Host()
    pairs = [(host.opened(), host.outgoing(packets(1000 * i, 200))) for i in (1, 2)]
    for session, source in pairs:
        session.attach(source)
        session.pump(101.0)
    for session, source in pairs:
        number = 0
        while source.core.messages and session.alive:
            number += len(sent(session))
            session.receive(wire.session_ack(ack=number), 102.0)
        assert number == 200
    first, second = (session for session, _ in pairs)
    first.receive(express(50), 103.0)
    second.receive(wire.session_ack(ack=200), 103.0)
    assert second.alive
    assert (first.window.received, second.window.received) == (1, 0)
