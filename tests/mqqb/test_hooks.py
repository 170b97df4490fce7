"""What the receive pipeline hands to routing, security and tracing, and what it does with the answers."""

from __future__ import annotations

import struct
from collections.abc import Callable
from uuid import UUID

import pytest

from msmq_fast._native.framing import ParsedMessage, parse
from msmq_fast._native.receive import STORED, Receiver
from msmq_fast.mqqb.destination import Destination
from msmq_fast.mqqb.hooks import Hooks, Refuse
from msmq_fast.mqqb.reasons import CloseReason, Refusal
from tests.support.mqqb import wire
from tests.support.worlds.hosts import Host, sent

ELSEWHERE = UUID("99999999-2222-3333-4444-555555555555")


def with_hops(packet: bytes, hops: int) -> bytes:
    """A copy of a UserMessage packet with another hop count (the low five bits of UserHeader.Flags)."""
    return packet[:60] + bytes([packet[60] & 0xE0 | hops]) + packet[61:]


def encrypted() -> bytes:
    return struct.pack("<HHHHII", 0x20, 0, 0, 0, 0, 0)


class Vault:
    """Protection that answers what the test wants."""

    opened = 0

    def __init__(self, answer: bytes | Refusal) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def open(self, message: ParsedMessage, target: Destination) -> bytes | Refusal:
        self.asked.append(bytes(message.body).decode())
        return self.answer


class Onward:
    """Passes on every message."""

    active = True

    def __init__(self, pass_on: Callable[[Receiver, ParsedMessage], CloseReason | None]) -> None:
        self.pass_on = pass_on

    def __call__(self, receiver: Receiver, message: ParsedMessage, refuse: Refuse) -> CloseReason | None:
        return self.pass_on(receiver, message)


@pytest.mark.parametrize("recoverable", [False, True])
def test_the_packet_that_protection_opened_is_kept_and_the_message_counted_once(recoverable: bool) -> None:
    clear = wire.message(7, recoverable=recoverable, body=b"clear")
    vault = Vault(clear)
    host = Host(hooks=Hooks(protection=vault))
    session = host.opened()
    packet = wire.message(7, recoverable=recoverable, body=b"secret", security=encrypted())
    session.receive(packet + packet, 101.0)
    host.commit()
    (message,) = host["q"].take(9, 1 << 20, host.ledger.new_owner())
    assert message.packet == clear
    assert vault.asked == ["secret"] * 2, "whether it came before is known of what it says in clear"
    session.pump(102.0)
    session.expire(130.0)
    assert wire.read_header(sent(session)[-1])[0] == 2


@pytest.mark.rule("QB-078", "QB-228", "QB-282")
def test_another_body_that_was_encrypted_for_the_same_queue_drops_nothing() -> None:
    # A stranger has the public key, too, and may know the identifier and the label of a message.
    vault = Vault(b"")
    host = Host(hooks=Hooks(protection=vault))
    session = host.opened()
    for body in (b"wrong", b"right", b"right"):
        vault.answer = wire.message(7, recoverable=True, body=body)
        session.receive(wire.message(7, recoverable=True, body=body[::-1], security=encrypted()), 101.0)
    host.commit()
    found = host["q"].take(9, 1 << 20, host.ledger.new_owner())
    assert [bytes(parse(each.packet).body) for each in found] == [b"wrong", b"right"]
    assert [reason for reason, _ in host.refusals] == ["duplicate"]


def test_what_protection_refuses_is_refused_for_its_reason() -> None:
    host = Host(hooks=Hooks(protection=Vault(Refusal.SIGNED)))
    session = host.opened()
    session.receive(wire.message(7, security=encrypted()), 101.0)
    assert [reason for reason, _ in host.refusals] == ["signed"]
    assert host.messages() == []


def test_a_message_for_another_queue_manager_is_stored_as_routing_says() -> None:
    def forward(receiver: Receiver, message: ParsedMessage) -> CloseReason | None:
        assert receiver.deliver(onward, packet=with_hops(message.packet, 5)) == STORED
        return None

    host = Host(hooks=Hooks(forward=Onward(forward)))
    onward = host.add("onward")
    session = host.opened()
    packet = wire.message(7, recoverable=True, address=ELSEWHERE)
    session.receive(packet + packet, 101.0)
    host.commit()
    (message,) = onward.take(9, 1 << 20, host.ledger.new_owner())
    assert message.packet[60] & 0x1F == 5
    assert message.packet[:60] == packet[:60]
    session.pump(102.0)
    assert sent(session) == [wire.session_ack(ack=2, base_ack=1, flags=3)]


def test_a_message_that_cannot_be_passed_on_ends_the_session_undecided() -> None:
    host = Host(hooks=Hooks(forward=Onward(lambda receiver, message: CloseReason.QUOTA)))
    session = host.opened()
    session.receive(wire.message(7, recoverable=True, address=ELSEWHERE), 101.0)
    assert session.reason is CloseReason.QUOTA
    assert sent(session) == []


@pytest.mark.rule("QB-288")
def test_only_messages_that_ask_for_it_and_were_stored_are_traced() -> None:
    traced: list[int] = []
    host = Host(hooks=Hooks(trace=lambda message, target: traced.append(message.message_id)))
    session = host.opened()
    for number, flags in ((2, 0), (1, 0x100), (3, 0), (1, 0x100)):
        packet = bytearray(wire.message(number))
        packet[2:4] = struct.pack("<H", struct.unpack_from("<H", packet, 2)[0] | flags)
        session.receive(bytes(packet), 101.0)
    assert traced == [1]
    assert host.messages() == [2, 1, 3]
