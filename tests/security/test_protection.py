"""Signed and encrypted messages in the receive pipeline: what queues demand, what is refused and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.mqqb.reasons import Refusal
from msmq_fast.mqqb.receive import _REASONS
from msmq_fast.packet.names import FormatName, parse_format_name
from msmq_fast.packet.protect import protected
from msmq_fast.packet.user import SecurityHeader, TransactionHeader
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.security.principals import UnsignedSid
from tests.security.guarded import Guarded
from tests.security.packets import SENDER, header, message, parsed
from tests.security.protection import FOREIGN, STRANGER, Side, encrypted, private, signed
from tests.support.worlds.hosts import Host


@pytest.mark.rule("QB-261")
def test_what_queues_demand() -> None:
    side = Side()
    clear, secret = message().to_packet(), encrypted(private())
    assert side.open(clear, authenticated=True) is Refusal.SIGNED
    assert side.open(secret, authenticated=True) is Refusal.SIGNED
    side.opened(signed(), authenticated=True)
    assert side.open(clear, encrypted_only=True) is Refusal.ENCRYPTED
    assert side.open(signed(), encrypted_only=True) is Refusal.ENCRYPTED
    side.opened(secret, encrypted_only=True)
    assert side.open(secret, clear_only=True) is Refusal.ENCRYPTED
    side.opened(signed(), clear_only=True)
    both = encrypted(signed(privacy_level=3))
    side.opened(both, authenticated=True, encrypted_only=True)


def test_the_classes_of_refusals() -> None:
    assert {reason: _REASONS[reason] for reason in (Refusal.SIGNED, Refusal.ENCRYPTED)} == {
        Refusal.SIGNED: MessageClass.NACK_BAD_SIGNATURE,
        Refusal.ENCRYPTED: MessageClass.NACK_BAD_ENCRYPTION,
    }
    unsupported = _REASONS[Refusal.UNSUPPORTED_PROVIDER]
    assert unsupported is MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER


def named(queue: str) -> FormatName:
    return parse_format_name(f"DIRECT=OS:any\\private$\\{queue}")


TO_Q: dict[str, Any] = {"destination": named("q"), "destination_manager": UUID(int=0)}


@pytest.mark.parametrize("unsigned", list(UnsignedSid))
def test_no_key_is_opened_for_a_sender_who_may_not_send(unsigned: UnsignedSid) -> None:
    side = Side()
    hooks = Hooks(protection=side.protection)
    host = Guarded("D:(D;;LC;;;WD)(D;;LC;;;AN)", unsigned=unsigned, hooks=hooks)
    for packet in (private(message_id=1, **TO_Q), signed(message_id=2, privacy_level=5, **TO_Q)):
        host.session.receive(encrypted(packet), 101.0)
    assert [reason for reason, _ in host.refusals] == [Refusal.ACCESS_DENIED] * 2
    assert (side.protection.opened, host.asked) == (0, 2)


def test_no_key_is_opened_for_a_queue_that_has_no_room() -> None:
    side = Side()
    host = Host(hooks=Hooks(protection=side.protection))
    host["q"].quota_bytes = 300
    host.opened().receive(encrypted(private(message_id=1, **TO_Q)), 101.0)
    assert ([reason for reason, _ in host.refusals], side.protection.opened) == ([Refusal.QUEUE_QUOTA], 0)


def changed(packet: bytes, *, padding: bool) -> bytes:
    """A copy with another padding, or with another content and the padding as it was: AES, CBC."""
    whole = parsed(packet)
    assert whole.body_length >= 48
    start = whole.body_offset + whole.body_length - (17 if padding else 33)
    return packet[:start] + bytes((packet[start] ^ 1,)) + packet[start + 1 :]


@pytest.mark.rule("QB-254")
@pytest.mark.parametrize("tell", [False, True])
def test_a_sender_does_not_learn_what_only_a_key_tells(tell: bool) -> None:
    """Neither by a FinalAck nor by its class: wrong padding, a wrong body, and a session key of somebody else
    are one, unless that is to be told (SendInsecureNacks).
    """
    told: list[str] = []
    hooks = Hooks(protection=Side(tell=tell).protection)
    host = Host(nack=lambda packet, reason: bool(told.append(MessageClass(reason).name)), hooks=hooks)
    host.queues["private$\\q"] = replace(host.queues["private$\\q"], transactional=True)
    session = host.opened()
    previous = 0

    def place() -> dict[str, Any]:
        nonlocal previous
        previous += 1
        header_ = TransactionHeader(1, 2, previous, previous - 1, 77, first=True, last=True)
        return {"transaction": header_, "message_id": previous, **TO_Q}

    body = b"three blocks of AES and some more, for padding"
    wrong = [
        changed(encrypted(private(body=body, **place())), padding=True),
        changed(encrypted(signed(privacy_level=5, body=body, **place())), padding=True),
        changed(encrypted(signed(privacy_level=5, body=body, **place())), padding=False),
    ]
    whole = parsed(encrypted(private(body=body, **place())))
    key = whole.encryption_key_offset + 12
    wrong.append(whole.packet[:key] + bytes((whole.packet[key] ^ 1,)) + whole.packet[key + 1 :])
    for packet in wrong:
        session.receive(packet, 101.0)
        host.commit()
    assert told == ["NACK_BAD_ENCRYPTION"] * 4 * tell
    reason = Refusal.ENCRYPTED if tell else Refusal.UNDECIPHERED
    assert [refusal for refusal, _ in host.refusals] == [reason] * 4
    assert host.messages() == []
    (stream,) = host.order_acks.streams
    assert stream.number == 4  # as if they had been taken


def test_what_takes_no_key_is_told_before_one_is_used() -> None:
    side = Side()
    unsigned = encrypted(private())
    assert side.open(unsigned, authenticated=True) is Refusal.SIGNED
    foreign = header(certificate=FOREIGN, default_provider=True)
    stranger = signed(privacy_level=5, key=STRANGER, sender=foreign)
    assert side.open(encrypted(stranger)) is Refusal.SIGNED
    assert side.protection.opened == 0


@pytest.mark.rule("QB-241", "QB-249", "QB-261")
def test_refusals_in_the_pipeline() -> None:
    reasons: list[str] = []
    hooks = Hooks(protection=Side().protection)
    host = Host(nack=lambda packet, reason: bool(reasons.append(MessageClass(reason).name)), hooks=hooks)
    session = host.opened()
    host.queues["private$\\q"] = replace(host.queues["private$\\q"], authenticated=True)
    host.add("any")
    asking = {"acknowledge": 4, "admin_queue": parse_format_name("DIRECT=OS:x\\private$\\a")}
    packets = [
        message(message_id=1, **asking, **TO_Q).to_packet(),
        signed(message_id=2, **asking, **TO_Q),
        encrypted(
            private(message_id=3, **asking, **{**TO_Q, "destination": named("any")}),
        ),
    ]
    broken = bytearray(signed(message_id=4, **asking, **TO_Q))
    broken[parsed(bytes(broken)).body_offset] ^= 1
    start = parsed(packets[2]).properties_offset + 40
    level = packets[2][:start] + b"\2" + packets[2][start + 1 :]
    for packet in (packets[0], packets[1], bytes(broken), level):
        session.receive(packet, 101.0)
        host.commit()
    assert reasons == ["NACK_BAD_SIGNATURE", "NACK_BAD_SIGNATURE", "NACK_BAD_ENCRYPTION"]
    assert host.messages() == [2]


@pytest.mark.rule("QB-256", "QB-247")
@pytest.mark.parametrize("unsigned", list(UnsignedSid))
def test_a_proven_sender_is_let_in_and_nobody_behind_it(unsigned: UnsignedSid) -> None:
    """What a signature decided is no route for unsigned messages that name the same sender."""
    hooks = Hooks(protection=Side().protection)
    host = Guarded(f"D:(A;;LC;;;{SENDER})", unsigned=unsigned, hooks=hooks)
    address = {
        "destination": parse_format_name("DIRECT=OS:any\\private$\\q"),
        "destination_manager": UUID(int=0),
    }
    proven = signed(message_id=1, **address)
    plain = {"acknowledge": 0, "admin_queue": None}  # or the native path would not look at it
    claimed = protected(parsed(message(message_id=2, **plain, **address)), header())
    stranger = signed(message_id=3, key=STRANGER, sender=SecurityHeader(certificate=FOREIGN), **address)
    for packet in (proven, claimed, stranger):
        host.session.receive(packet, 101.0)
        host.commit()
    assert host.messages() == ([1, 2] if unsigned is UnsignedSid.USE else [1])
