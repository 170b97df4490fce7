"""Encrypted messages there and back: sizes, flipped bits, providers without keys, weak keys."""

from __future__ import annotations

import random

import pytest

from msmq_fast.mqqb.protection import SentProtection
from msmq_fast.mqqb.reasons import Refusal
from msmq_fast.packet.message import Message
from msmq_fast.packet.protect import security_of
from msmq_fast.packet.user import TransactionHeader
from msmq_fast.packet.user_message import UserMessagePacket
from msmq_fast.protocol.properties import EncryptionAlgorithm
from msmq_fast.security.algorithms import ENHANCED, ENHANCED_AES, PROVIDERS, Provider
from msmq_fast.security.encryption import EncryptionPolicy
from msmq_fast.security.switches import SecuritySwitches
from tests.security.packets import SOURCE, TARGET, parsed
from tests.security.protection import DESTINATION, KEYS, Side, encrypted, private, sent_keys, signed


@pytest.mark.rule("QB-350", "QB-351", "QB-254", "DM-181", "DM-195")
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 4096])
def test_there_and_back(provider: Provider, size: int) -> None:
    body = random.Random(size).randbytes(size)
    packet = encrypted(private(1, body=body), provider)
    travelling, _ = UserMessagePacket.decode(packet)
    assert travelling.security is not None
    assert travelling.security.encrypted
    assert (travelling.security.authentication_level, travelling.security.authenticated) == (0, False)
    assert travelling.security.provider_info == b""
    assert travelling.security.encryption_key[:4] == bytes((1, 2, 0, 0))
    properties = travelling.properties
    assert properties.privacy_level == provider.level
    assert properties.encryption_algorithm == {1: 0x6801, 3: 0x6801, 5: 0x6610}[int(provider.level)]
    assert properties.allocation_size == len(properties.body)
    assert not size > 8 or properties.body != body
    assert travelling.encode() == packet
    kept = Side().opened(packet)
    assert bytes(kept.body) == body
    arrived = Message.from_packet(kept.packet)
    assert (arrived.security, arrived.privacy_level) == (None, provider.level)
    sent = Message.from_packet(private(1, body=body))
    for name in ("label", "extension", "correlation_id", "admin_queue", "priority", "message_id"):
        assert getattr(arrived, name) == getattr(sent, name)


@pytest.mark.parametrize("plain", [True, False])
def test_both_readings_of_message_size(plain: bool) -> None:
    switches = SecuritySwitches(amb29_plain_size=plain)
    packet = encrypted(private(body=b"seventeen letters"), switches=switches)
    travelling, _ = UserMessagePacket.decode(packet)
    assert travelling.properties.message_size == (17 if plain else None)
    assert bytes(Side().opened(packet).body) == b"seventeen letters"
    start = parsed(packet).properties_offset + 32
    if plain:
        broken = packet[:start] + (16).to_bytes(4, "little") + packet[start + 4 :]
        assert Side().open(broken) is Refusal.UNDECIPHERED


@pytest.mark.rule("QB-255")
def test_signed_and_encrypted() -> None:
    packet = encrypted(signed(privacy_level=5))
    kept = Side().opened(packet)
    found = security_of(kept)
    assert found is not None
    assert (found.encrypted, found.encryption_key, found.authentication_level) == (False, b"", 3)
    assert bytes(kept.body) == b"the body of the message"


def test_a_transactional_message() -> None:
    header_ = TransactionHeader(1, 2, 3, 2, 77, first=True, last=True)
    packet = encrypted(private(transaction=header_))
    kept = Message.from_packet(Side().opened(packet).packet)
    assert kept.transaction == header_
    assert kept.body == b"the body of the message"


@pytest.mark.rule("QB-254")
@pytest.mark.parametrize("field", ["body", "key", "level", "algorithm"])
def test_bits_of_an_encrypted_message(field: str) -> None:
    side, chance = Side(), random.Random(11)
    packet = encrypted(private(body=b"a body that fills three blocks of AES, as is"))
    whole = parsed(packet)
    start = whole.properties_offset
    offset, length = {
        "body": (whole.body_offset + whole.body_length - 17, 1),  # the padding is behind it
        "key": (whole.encryption_key_offset + 4, 136),
        "level": (start + 40, 1),
        "algorithm": (start + 48, 2),
    }[field]
    for _ in range(20):
        broken = bytearray(packet)
        bit = chance.randrange(8 * length)
        broken[offset + bit // 8] ^= 1 << bit % 8
        opened = side.open(bytes(broken))
        wrong = {"body": (Refusal.UNDECIPHERED,), "key": (Refusal.ENCRYPTED, Refusal.UNDECIPHERED)}
        assert opened in wrong.get(field, (Refusal.ENCRYPTED,)), (field, bit)


@pytest.mark.parametrize("provider", [ENHANCED, ENHANCED_AES])
def test_a_provider_without_keys(provider: Provider) -> None:
    packet = encrypted(private(3), provider)
    others = {each: key for each, key in KEYS.items() if each is not provider}
    assert Side(own=others).open(packet) is Refusal.UNSUPPORTED_PROVIDER


@pytest.mark.rule("QB-249", "QB-253")
def test_refused_levels_and_weak_keys() -> None:
    packet = encrypted(private(3), ENHANCED)
    start = parsed(packet).properties_offset + 40
    for level in (0, 2, 4, 6):
        broken = packet[:start] + level.to_bytes(4, "little") + packet[start + 4 :]
        assert Side().open(broken) is Refusal.ENCRYPTED
    policy = EncryptionPolicy(reject_enhanced_rc2_40=True)
    weak = SentProtection(
        SOURCE,
        sent_keys(ENHANCED, preferred={ENHANCED: EncryptionAlgorithm.RC2}, send_enhanced_rc2_40=True),
        lambda: 0.0,
    )
    short = weak.protect(private(3), DESTINATION, TARGET)
    Side().opened(short)
    assert Side(policy=policy).open(short) is Refusal.ENCRYPTED
