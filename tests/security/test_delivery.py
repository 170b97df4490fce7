"""Messages that arrive: the sender is looked at, on the plain path as on the general one."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast.mqqb.destination import Destination
from msmq_fast.mqqb.reasons import Refusal
from msmq_fast.security.principals import UnsignedSid
from msmq_fast.security.sddl import parse_sddl
from msmq_fast.security.sid import Sid
from tests.security.guarded import BOB, EVE, WRITE, Guarded
from tests.security.oracle import Caller, Entry, Object, evaluate
from tests.support.mqqb import wire


def security(identifier: bytes = b"", kind: int = 1) -> bytes:
    """A SecurityHeader with nothing but a sender id."""
    return (
        struct.pack("<HHHHII", kind, len(identifier), 0, 0, 0, 0) + identifier + bytes(-len(identifier) % 4)
    )


BOBS = security(BOB.data)
EVES = security(EVE.data)
MANAGER = security(UUID(int=7).bytes_le, 2)

# list, header -> taken?
CASES: list[tuple[str, str, bytes, bool]] = [
    ("nothing is said, nobody may", "D:", b"", False),
    ("everybody may", "D:(A;;LC;;;WD)(A;;LC;;;AN)", b"", True),
    ("Everyone without anonymous: no header", "D:(A;;LC;;;WD)", b"", False),
    ("Everyone without anonymous: no sender in the header", "D:(A;;LC;;;WD)", security(b"", 0), False),
    ("Everyone without anonymous: a SID", "D:(A;;LC;;;WD)", EVES, True),
    ("Everyone without anonymous: a queue manager", "D:(A;;LC;;;WD)", MANAGER, True),
    ("anonymous only: a SID", "D:(A;;LC;;;AN)", EVES, False),
    ("anonymous only: no header", "D:(A;;LC;;;AN)", b"", True),
    ("one user, the right one", f"D:(A;;LC;;;{BOB})", BOBS, True),
    ("one user, another one", f"D:(A;;LC;;;{BOB})", EVES, False),
    ("one user, a queue manager", f"D:(A;;LC;;;{BOB})", MANAGER, False),
    ("a group, its member", "D:(A;;LC;;;STAFF)", BOBS, True),
    ("a group, somebody else", "D:(A;;LC;;;STAFF)", EVES, False),
    ("denied by name", f"D:(D;;LC;;;{EVE})(A;;LC;;;WD)(A;;LC;;;AN)", EVES, False),
    ("others are not", f"D:(D;;LC;;;{EVE})(A;;LC;;;WD)(A;;LC;;;AN)", BOBS, True),
    ("anonymous ones are not", f"D:(D;;LC;;;{EVE})(A;;LC;;;WD)(A;;LC;;;AN)", b"", True),
    ("to receive is not to send", "D:(A;;CCDC;;;WD)", EVES, False),
    ("a SID that is none", f"D:(D;;LC;;;{EVE})(A;;LC;;;WD)(A;;LC;;;AN)", security(BOB.data[:-4]), False),
]


@pytest.mark.rule("QB-237", "QB-256", "QB-258", "X-42")
@pytest.mark.parametrize(
    ("sddl", "header", "taken"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
@pytest.mark.parametrize("recoverable", [False, True], ids=["express", "recoverable"])
@pytest.mark.parametrize("plain", [False, True], ids=["general", "plain"])
def test_who_may_send(sddl: str, header: bytes, taken: bool, recoverable: bool, plain: bool) -> None:
    host = Guarded(sddl)
    host.session.receiver.plain = plain
    for _ in range(3):
        host.send(header, recoverable=recoverable)
    assert host.messages() == ([1, 2, 3] if taken else [])
    assert len(host.refusals) == (0 if taken else 3)
    assert host.session_context.counts.refused[Refusal.ACCESS_DENIED] == len(host.refusals)
    # Refused or not, the session goes on, and the sender hears that the message arrived.
    assert host.session.reason is None


@pytest.mark.rule("QB-256")
def test_granted_senders_are_remembered_natively() -> None:
    host = Guarded(f"D:(A;;LC;;;{BOB})")
    for _ in range(20):
        host.send(BOBS)
    assert (host.asked, len(host.messages())) == (1, 20)
    # Somebody else in between is no way in, and takes nothing from Bob.
    for header in (EVES, BOBS, b"", BOBS, MANAGER, security(BOB.data, 2), security(BOB.data, 3), BOBS):
        host.send(header)
    assert len(host.messages()) == 23
    assert host.asked == 6
    # A change of the list takes effect with the next message.
    host.queues["private$\\q"] = Destination(host["q"], everybody=False, security=parse_sddl("D:"), name="q")
    host.session_context.forget_routes()
    host.send(BOBS)
    assert len(host.messages()) == 23


def test_a_queue_for_everybody_asks_nobody() -> None:
    host = Guarded("D:(A;;LC;;;WD)(A;;LC;;;AN)")
    for header in (b"", BOBS, MANAGER, security(b"\1\2\3\4")):
        host.send(header)
    assert (host.asked, len(host.messages())) == (0, 4)


@pytest.mark.rule("QB-247")
def test_the_switch_for_unsigned_sids() -> None:
    host = Guarded(f"D:(A;;LC;;;{BOB})")
    host.send(BOBS)
    assert host.messages() == [1]
    host = Guarded(f"D:(A;;LC;;;{BOB})", unsigned=UnsignedSid.ANONYMOUS)
    host.send(BOBS)
    assert host.messages() == []
    host = Guarded("D:(A;;LC;;;AN)", unsigned=UnsignedSid.ANONYMOUS)
    host.send(BOBS)
    assert host.messages() == [1]


SENDERS = {
    "bob": (BOBS, Caller(frozenset((str(BOB), "S-1-5-21-7-8-9-1000", "S-1-1-0")))),
    "eve": (EVES, Caller(frozenset((str(EVE), "S-1-1-0")))),
    "nobody": (b"", Caller(frozenset(("S-1-5-7",)))),
    "empty": (security(b"", 0), Caller(frozenset(("S-1-5-7",)))),
    "manager": (MANAGER, Caller(frozenset(("S-1-1-0",)))),
}
WHO = [str(BOB), str(EVE), "S-1-5-21-7-8-9-1000", "S-1-1-0", "S-1-5-7"]
lists = st.builds(
    Object,
    owner=st.just(str(EVE)),
    entries=st.lists(
        st.builds(Entry, st.sampled_from("AD"), st.sampled_from((2, 4, 6, 0x40000000)), st.sampled_from(WHO)),
        max_size=4,
    ).map(tuple),
)


@pytest.mark.rule("QB-256", "QB-258")
@settings(max_examples=120, deadline=None)
@given(lists, st.lists(st.sampled_from(sorted(SENDERS)), max_size=12))
def test_any_senders_in_any_order(target: Object, senders: list[str]) -> None:
    """What one sender was granted or refused says nothing about the next."""
    host = Guarded(target.sddl())
    for name in senders:
        host.send(SENDERS[name][0])
    expected = [
        number for number, name in enumerate(senders, 1) if evaluate(SENDERS[name][1], target, WRITE)[0]
    ]
    assert host.messages() == expected
    assert len(host.refusals) == len(senders) - len(expected)


def test_refusals_are_recorded_with_sender_and_message() -> None:
    host = Guarded("D:(A;;LC;;;WD)")
    host.send()
    (record,) = host.records
    assert record.caller_sid == "S-1-5-7"  # type: ignore[attr-defined]
    assert record.target == "q"  # type: ignore[attr-defined]
    assert f"{{{wire.PEER}}}\\1" in record.detail  # type: ignore[attr-defined]
    assert host.refusals == [(Refusal.ACCESS_DENIED, f"{{{wire.PEER}}}\\1")]


def test_a_malformed_sender_is_recorded() -> None:
    host = Guarded(f"D:(D;;LC;;;{EVE})(A;;LC;;;WD)(A;;LC;;;AN)")
    host.send(security(BOB.data[:-4]))
    (record,) = host.records
    assert record.reason == "the sender id is malformed"  # type: ignore[attr-defined]


@pytest.mark.parametrize("recoverable", [False, True])
def test_quarantine(recoverable: bool) -> None:
    host = Guarded(f"D:(A;;LC;;;{BOB})", quarantine=True)
    host.send(BOBS, recoverable=recoverable)
    refused = host.send(EVES, recoverable=recoverable, label="x", body=b"evil", message_class=0)
    assert host.messages() == [1]
    assert host.messages("quarantine") == [refused]
    (message,) = host["quarantine"].take(1, 1 << 20, host.ledger.new_owner())
    # The reason stands beside the message as its class; everything else is as it came.
    came = wire.message(
        refused, security=EVES, recoverable=recoverable, label="x", body=b"evil", message_class=0x8004
    )
    assert message.packet == came
    assert host.refusals[-1][0] is Refusal.QUARANTINED
    # A second copy is a duplicate as of any other message.
    copy = wire.message(
        refused, security=EVES, recoverable=recoverable, label="x", body=b"evil", message_class=0
    )
    host.session.receive(copy, 100.0)
    host.commit()
    assert host.messages("quarantine") == []


def test_a_full_quarantine_drops_and_says_so() -> None:
    host = Guarded("D:", quarantine=True)
    host["quarantine"].quota_bytes = 10
    host.send()
    assert host.messages("quarantine") == []
    assert host.refusals[-1][0] is Refusal.ACCESS_DENIED


def test_memory_for_claimed_senders_is_bounded() -> None:
    host = Guarded(f"D:(D;;LC;;;{EVE})(A;;LC;;;WD)(A;;LC;;;AN)")
    routes, core = host.session_context.routes, host["q"]
    for number in range(70_000):
        routes.admit(7, b"q", 1, Sid.build(5, number).data, core)
    host.send(BOBS)
    assert host.messages() == [1]


def test_memory_for_names_and_identifiers_is_bounded() -> None:
    host = Guarded("D:(A;;LC;;;WD)")
    for number in range(70_000):
        host.session_context.routes.add(7, b"%d" % number, host["q"])
    assert len(host.session_context.routes) <= 65_536
    long = security(bytes(69), kind=2)
    host.send(long)
    host.send(long)
    assert host.messages() == [1, 2]
    assert host.asked == 2
