"""Signatures and encryption of messages that come to a local queue without a session."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.packet.protect import protected, security_of
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.security.principals import UnsignedSid
from tests.security.guarded import Guarded
from tests.security.packets import header, message, parsed
from tests.security.protection import Side, encrypted, private, signed
from tests.support.worlds.hosts import Host


def judged(packet: bytes, **demands: Any) -> bytes | MessageClass:
    side = Side()
    hooks = Hooks(protection=side.protection)
    host = Guarded("D:(A;;LC;;;S-1-5-21-1-2-3-1000)", unsigned=UnsignedSid.ANONYMOUS, hooks=hooks)
    return host.session_context.pipeline.judge(packet, replace(host.queues["private$\\q"], **demands))


def test_by_another_name_too_a_signature_says_who_sent_a_message() -> None:
    kept = judged(signed(), authenticated=True)
    assert isinstance(kept, bytes)
    found = security_of(parsed(kept))
    assert found is not None
    assert found.authentication_level == 3


def test_by_another_name_too_a_claim_is_no_signature() -> None:
    claim = protected(parsed(message()), header(authentication_level=3))
    assert judged(claim, authenticated=True) is MessageClass.NACK_BAD_SIGNATURE
    assert judged(claim) is MessageClass.NACK_ACCESS_DENIED
    kept = judged(claim, everybody=True)
    assert isinstance(kept, bytes)
    found = security_of(parsed(kept))
    assert found is not None
    assert found.authentication_level == 0


def test_by_another_name_the_wish_of_a_local_sender_for_privacy_counts() -> None:
    own = Host().session_context.guid
    demands = {"everybody": True, "encrypted_only": True}
    assert judged(private(), **demands) is MessageClass.NACK_BAD_ENCRYPTION
    assert judged(message(source_machine=own).to_packet(), **demands) is MessageClass.NACK_BAD_ENCRYPTION
    kept = private(source_machine=own)
    assert judged(kept, **demands) == kept
    assert judged(kept, everybody=True, clear_only=True) is MessageClass.NACK_BAD_ENCRYPTION


def test_a_header_of_which_nothing_is_left_says_nothing() -> None:
    """What stands in its place are other bytes."""
    asked: list[bool] = []
    hooks = Hooks(protection=Side().protection)
    host = Host(gate=lambda *_, verified=False: bool(asked.append(verified)), hooks=hooks)
    target = replace(host.queues["private$\\q"], everybody=False)
    host.session_context.pipeline.judge(encrypted(private(label="abc")), target)
    assert asked == [False]
