"""What becomes of a message that arrives: destinations, duplicates, expiry, refusals; plain and
general path alike."""

from __future__ import annotations

import struct
from errno import ENOSPC
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast._native.history import DuplicateHistory
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.sessionstate import SessionState
from tests.mqqb.securities import security
from tests.support.mqqb import wire
from tests.support.worlds.hosts import OWN, Host, sent

OTHER = UUID("11111111-2222-3333-4444-555555555555")
THIRD = UUID("33333333-2222-3333-4444-555555555555")
TRANSACTION = struct.pack("<IIIII", 0b1100, 1, 7, 1, 0)


@pytest.mark.rule("QB-235", "QB-263")
@pytest.mark.parametrize("address", [wire.NULL, OWN])
@pytest.mark.parametrize(
    "name", ["OS:alias\\private$\\q", "TCP:10.1.2.3\\PRIVATE$\\Q", "OS:a.b.c\\private$\\q"]
)
def test_a_queue_is_found_whatever_the_host_part_says(address: UUID, name: str) -> None:
    host = Host()
    session = host.opened()
    session.receive(wire.message(1, queue=name, address=address), 101.0)
    session.receive(wire.message(2, queue=name, address=address), 101.0)
    assert host.messages() == [1, 2]


@pytest.mark.rule("QB-247", "QB-383")
def test_an_unsigned_sender_id_and_wishes_without_a_queue_are_no_reason_to_refuse() -> None:
    host = Host()
    session = host.opened()
    session.receive(wire.message(1, security=security(), ack_flags=0x0F), 101.0)
    session.receive(wire.message(2, security=security(), ack_flags=0x0F), 101.0)
    assert host.messages() == [1, 2]
    assert host.refusals == []


@pytest.mark.rule("QB-300", "QB-160")
@pytest.mark.parametrize("message_class", [0x0000, 0x0001, 0x0002, 0x8000, 0x4000])
def test_messages_of_every_class_are_delivered(message_class: int) -> None:
    host = Host()
    session = host.opened()
    session.receive(wire.message(1, message_class=message_class), 101.0)
    assert host.messages() == [1]


def test_nobody_can_claim_that_a_message_is_authenticated() -> None:
    host = Host()
    session = host.opened()
    for number in (1, 2):
        session.receive(wire.message(number, security=security(flags=0x0301)), 101.0)
    for message in host["q"].take(9, 1 << 20, host.ledger.new_owner()):
        offset = message.packet.index(security(flags=0x0001))
        assert message.packet[offset : offset + 2] == b"\x01\x00"


@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.parametrize("plain", [False, True])
def test_a_stranger_who_uses_identifiers_first_drops_nothing(recoverable: bool, plain: bool) -> None:
    host = Host()
    host.add("junk")
    stranger = host.opened(peer=OTHER, address="10.0.0.66")
    owner = host.opened()
    for session in (stranger, owner):
        session.receiver.plain = plain
    for number in range(1, 21):
        claim = wire.message(number, queue="OS:host\\private$\\junk", body=b"", recoverable=recoverable)
        stranger.receive(claim, 101.0)
    host.commit()
    packets = [wire.message(number, recoverable=recoverable) for number in range(1, 21)]
    for packet in packets:
        owner.receive(packet, 102.0)
    host.commit()
    assert host.messages() == list(range(1, 21))
    # By whatever way the very same message comes again, it is a duplicate: of a peer that moved, by a router.
    moved = host.opened(address="10.0.0.9")
    for session in (owner, moved, host.opened(peer=THIRD, address="10.0.0.1")):
        session.receiver.plain = plain
        for packet in packets:
            session.receive(packet, 103.0)
    assert host.messages() == list(range(1, 21))
    assert host.refusals == [("duplicate", f"{{{wire.PEER}}}\\{n}") for n in range(1, 21)] * 3


def test_who_brings_much_pushes_nothing_of_others_out_of_the_history() -> None:
    host = Host(history=DuplicateHistory(100))
    owner, stranger = host.opened(), host.opened(peer=OTHER, address="10.0.0.66")
    packets = [wire.message(number) for number in range(1, 21)]
    for packet in packets:
        owner.receive(packet, 101.0)
    for number in range(1, 1_001):
        stranger.receive(wire.message(number, source=OTHER), 102.0)
    taken = len(host.messages())
    for packet in packets:
        owner.receive(packet, 103.0)
    assert taken == len(host.messages()) == 1_020


@pytest.mark.rule("QB-226", "QB-224")
@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.parametrize("plain", [False, True])
def test_a_repeated_message_is_counted_and_acknowledged_but_not_enqueued(
    recoverable: bool, plain: bool
) -> None:
    host = Host()
    session = host.opened()
    session.receiver.plain = plain
    packet = wire.message(7, recoverable=recoverable)
    session.receive(packet, 101.0)
    host.commit()
    session.receive(packet + wire.session_ack(sent=2, recoverable=2 * recoverable), 102.0)
    assert session.state is SessionState.OPEN
    session.expire(120.0)
    last = sent(session)[-1]
    assert wire.read_header(last)[0] == 2
    assert host.messages() == [7]


@pytest.mark.rule("QB-224", "QB-080")
def test_the_whole_identifier_makes_a_duplicate() -> None:
    host = Host()
    session = host.opened()
    session.receive(wire.message(7) + wire.message(7, source=OTHER) + wire.message(8), 101.0)
    assert host.messages() == [7, 7, 8]


@pytest.mark.rule("QB-224")
def test_duplicates_are_known_across_sessions() -> None:
    host = Host()
    host.opened().receive(wire.message(7), 101.0)
    host.opened().receive(wire.message(7), 102.0)
    assert host.messages() == [7]


@pytest.mark.rule("QB-224")
def test_a_repetition_refreshes_the_entry_of_its_message() -> None:
    host = Host()
    session = host.opened()
    for second in (2_000, 3_200, 4_400):
        host.ledger.tick(second * 1_000_000)
        host.session_context.history.expire(host.ledger.now_s)
        session.receive(wire.message(7), 101.0)
    assert host.messages() == [7]


@pytest.mark.rule("QB-106", "QB-117", "QB-224")
def test_a_repetition_is_not_acknowledged_before_the_first_copy_is_durable() -> None:
    host = Host()
    first, second = host.opened(), host.opened()
    first.receive(wire.message(7, recoverable=True), 101.0)
    host.writer.submit()
    first.close(CloseReason.DISCONNECTED, 101.0)
    second.receive(wire.message(7, recoverable=True), 101.5)
    second.pump(101.5)
    assert sent(second) == []
    host.commit()
    second.pump(102.0)
    assert sent(second) == [wire.session_ack(ack=1, base_ack=1, flags=1)]
    assert host.messages() == [7]


@pytest.mark.rule("QB-224")
def test_what_a_full_disk_did_not_keep_is_accepted_again() -> None:
    """A large message fills its batch; the next batch, which has hardly anything to write, succeeds."""
    host = Host()
    first, second = host.opened(), host.opened()
    host.writer.fail_commit(1, ENOSPC)
    first.receive(wire.message(7, recoverable=True, body=bytes(2 << 20)), 101.0)
    second.receive(wire.message(7, recoverable=True, body=bytes(2 << 20)), 101.5)
    second.receive(wire.message(8, recoverable=True), 101.5)
    host.commit()
    for session in (first, second):
        session.pump(102.0)
        assert session.state is SessionState.CLOSED
        assert not [packet for packet in sent(session) if packet[2] & 0x10]
    third = host.opened()
    third.receive(wire.message(7, recoverable=True, body=bytes(2 << 20)), 103.0)
    host.commit()
    assert sorted(host.messages()) == [7, 8]


@pytest.mark.rule("QB-228")
def test_a_refused_message_is_not_remembered() -> None:
    host = Host()
    session = host.opened()
    session.receive(wire.message(7, queue="OS:h\\private$\\late", recoverable=True), 101.0)
    assert [reason for reason, _ in host.refusals] == ["unknown queue"]
    host.add("late")
    session.receive(wire.message(7, queue="OS:h\\private$\\late", recoverable=True), 102.0)
    host.commit()
    assert host.messages("late") == [7]


@pytest.mark.rule("QB-265", "QB-285")
@pytest.mark.parametrize("known", [False, True])
def test_an_expired_message_is_dropped_and_one_from_the_future_is_not(known: bool) -> None:
    host = Host()
    session = host.opened()
    if known:
        session.receive(wire.message(1), 101.0)
    session.receive(wire.message(2, reach=10, sent_time=1_989), 101.0)
    session.receive(
        wire.message(3, reach=10, sent_time=1_990) + wire.message(4, reach=0, sent_time=3_000), 101.0
    )
    assert host.messages()[-2:] == [3, 4]
    assert 2 not in host.messages()
    assert host.refusals == [("time to reach queue passed", f"{{{wire.PEER}}}\\2")]


@pytest.mark.rule("QB-233", "QB-231")
def test_wrong_queues_drop_the_message_and_keep_the_session() -> None:
    host = Host()
    host.add("tx", transactional=True)
    session = host.opened()
    session.receive(
        wire.message(1, queue="OS:h\\private$\\tx")
        + wire.message(2, queue="OS:h\\private$\\none", ack_flags=4, admin="OS:h\\private$\\admin")
        + wire.message(3),
        101.0,
    )
    assert session.state is SessionState.OPEN
    assert host.messages("tx") == []
    assert host.messages() == [3]
    assert [reason for reason, _ in host.refusals] == ["not transactional", "unknown queue"]


@pytest.mark.rule("QB-284", "QB-283")
def test_queue_quota_drops_and_machine_quota_closes() -> None:
    host = Host()
    host["q"].quota_bytes = 300
    session = host.opened()
    session.receive(wire.message(1) + wire.message(2, recoverable=True) + wire.message(3), 101.0)
    assert session.state is SessionState.OPEN
    assert host.messages() == [1]
    assert [reason for reason, _ in host.refusals] == ["queue quota"] * 2
    host.ledger.quota_bytes = 0
    session.receive(wire.message(4) + wire.message(5), 102.0)
    assert session.reason is CloseReason.QUOTA
    host.ledger.quota_bytes = 1 << 30
    host["q"].quota_bytes = 1 << 30
    host.opened().receive(wire.message(4), 103.0)
    assert host.messages() == [1, 4]


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (wire.message(1, address=OTHER), CloseReason.NOT_LOCAL),
    ],
)
def test_what_cannot_be_processed_closes_the_session_and_stores_nothing(
    packet: bytes, reason: CloseReason
) -> None:
    host = Host()
    session = host.opened()
    session.receive(wire.message(9) + packet + wire.message(10), 101.0)
    assert session.reason is reason
    assert host.messages() == [9]
    assert str(wire.PEER) in session.detail


@pytest.mark.parametrize(
    ("demands", "header"),
    [
        ({}, security(flags=0x21, key=bytes(12))),
        ({"encrypted_only": True}, b""),
        ({"authenticated": True}, b""),
    ],
)
def test_demands_that_need_keys_refuse_the_message(demands: dict[str, bool], header: bytes) -> None:
    host = Host()
    host.add("s", **demands)
    session = host.opened()
    session.receive(wire.message(1, queue="OS:h\\private$\\s", security=header) + wire.message(2), 101.0)
    assert host.messages("s") == []
    assert host.messages() == [2]


def test_a_changed_queue_is_looked_up_anew() -> None:
    host = Host()
    session = host.opened()
    session.receive(wire.message(1), 101.0)
    old = host["q"]
    new = host.add("q")
    host.session_context.forget_routes()
    session.receive(wire.message(2), 102.0)
    assert (old.messages, new.messages) == (1, 1)


# ------------------------------------------------------------------------------- plain path == general path

QUEUES = [
    "OS:h\\private$\\q",
    "TCP:1.2.3.4\\PRIVATE$\\q",
    "OS:h\\private$\\tx",
    "OS:h\\private$\\none",
    "OS:h\\q",
]

messages = st.builds(
    lambda number, **fields: wire.message(number, **fields),
    st.integers(1, 6),
    queue=st.sampled_from(QUEUES),
    recoverable=st.booleans(),
    body=st.binary(max_size=9),
    priority=st.integers(0, 7),
    source=st.sampled_from([wire.PEER, OTHER]),
    address=st.sampled_from([wire.NULL, wire.NULL, wire.NULL, OWN, OTHER]),
    reach=st.sampled_from([wire.NEVER, 10, 1_000]),
    received=st.sampled_from([wire.NEVER, 5]),
    sent_time=st.sampled_from([1_000, 1_995, 5_000]),
    security=st.sampled_from(
        [b"", security(), security(flags=0x0301), security(flags=0x21), security(signature=b"x")]
    ),
    ack_flags=st.sampled_from([0, 0x0F]),
    admin=st.sampled_from([None, None, "OS:h\\private$\\admin"]),
)


def _outcome(session: Session, host: Host) -> object:
    queues = {name: [m.packet for m in q.core.take(99, 1 << 20, 77)] for name, q in host.queues.items()}
    window = session.window
    counts = (window.received, window.recoverable, window.pending, window.acknowledgeable)
    return (
        queues,
        counts,
        session.state,
        session.reason,
        host.refusals,
        host.session_context.history.identifiers(),
    )


@given(st.lists(st.lists(messages, max_size=8), max_size=4), st.sampled_from([1 << 20, 700]))
@settings(max_examples=150, deadline=None)
def test_the_native_path_decides_as_the_general_one(runs: list[list[bytes]], quota: int) -> None:
    outcomes = []
    for plain in (True, False):
        host = Host()
        host.add("tx", transactional=True)
        host["q"].quota_bytes = quota
        session = host.opened()
        session.receiver.plain = plain
        outputs = []
        for run in runs:
            session.receive(b"".join(run), 101.0)
            if len(run) % 2:
                host.commit()
            session.pump(101.0)
            outputs.append(session.data_to_send())
        host.commit()
        outcomes.append((_outcome(session, host), outputs))
    assert outcomes[0] == outcomes[1]
