"""Sizes, lifetimes and algorithms of 3.1.3.1: those of the document, in the engines and by configuration."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from msmq_fast._native.framing import parse
from msmq_fast._native.queue import QueueCore
from msmq_fast.config.sections import Config, ProtectionConfig
from msmq_fast.mqqb.destination import Destination
from msmq_fast.mqqb.protection import DEFAULT_ACCEPTED
from msmq_fast.mqqb.reasons import Refusal
from msmq_fast.packet.message import Message
from msmq_fast.protocol.properties import EncryptionAlgorithm, HashAlgorithm
from msmq_fast.security.algorithms import BASE, ENHANCED, ENHANCED_AES, PROVIDERS, Provider
from msmq_fast.security.blobs import PublicKeyEntry, write_key_list
from msmq_fast.security.certificates import self_signed
from msmq_fast.security.encryption import EncryptionError, EncryptionPolicy, ReceivedKeys, SentKeys
from msmq_fast.security.rsakeys import generate, public_part
from msmq_fast.server.message_security import MessageSecurity, _policy
from tests.security.packets import SENDER, message
from tests.support.worlds.queue_manager import World

KEYS = {provider: generate(provider.rsa_bits) for provider in PROVIDERS}
SIGNER = rsa.generate_private_key(65537, 1024)
LEVELS = {BASE: 1, ENHANCED: 3, ENHANCED_AES: 5}
LONG_LIFETIME = 43_200.0  # of XP and 2003


class Directory:
    """Published keys, and who asked for them."""

    def __init__(self, *providers: Provider) -> None:
        self.providers = providers
        self.asked: list[UUID] = []

    def __call__(self, manager: UUID) -> bytes | None:
        self.asked.append(manager)
        entries = (PublicKeyEntry(p.name, p.type, public_part(KEYS[p])) for p in self.providers)
        return write_key_list(entries) if self.providers else None

    def sender(self, policy: EncryptionPolicy | None = None) -> SentKeys:
        return SentKeys(self, random.Random(1).randbytes, policy)


def manager(number: int) -> UUID:
    return UUID(int=number + 1)


@pytest.mark.rule("QB-132", "QB-133", "QB-077")
def test_keys_for_53_queue_managers_are_kept_for_ten_minutes() -> None:
    sender = Directory(BASE).sender()
    assert (len(sender.cache), sender.next_deadline()) == (0, None)
    for number in range(53):
        sender.key_for(manager(number), 1, 0.0)
    assert len(sender.cache) == 53
    sender.key_for(manager(53), 1, 0.0)
    assert len(sender.cache) == 53 - 26 + 1
    assert sender.next_deadline() == 600.0


@pytest.mark.rule("QB-131", "QB-133", "QB-252")
def test_127_keys_of_others_are_kept_for_ten_minutes() -> None:
    blob = Directory(BASE).sender().key_for(manager(0), 1, 0.0).blob
    receiver = ReceivedKeys(KEYS)
    assert (len(receiver.cache), receiver.next_deadline()) == (0, None)
    for number in range(127):
        receiver.key_of(1, EncryptionAlgorithm.RC4, manager(number).bytes_le, blob, 0.0)
    assert len(receiver.cache) == 127
    receiver.key_of(1, EncryptionAlgorithm.RC4, manager(127).bytes_le, blob, 0.0)
    assert len(receiver.cache) == 127 - 63 + 1
    assert receiver.next_deadline() == 600.0


@pytest.mark.rule("QB-133", "QB-319")
def test_the_long_lifetime_of_older_hosts_can_be_had() -> None:
    sender = Directory(BASE).sender(EncryptionPolicy(key_lifetime=LONG_LIFETIME))
    first = sender.key_for(manager(0), 1, 0.0)
    sender.expire(LONG_LIFETIME - 1)
    assert sender.key_for(manager(0), 1, LONG_LIFETIME - 1) is first
    sender.expire(LONG_LIFETIME)
    assert sender.key_for(manager(0), 1, LONG_LIFETIME) is not first


@pytest.mark.rule("QB-134")
@pytest.mark.parametrize(
    ("provider", "preferred"),
    [
        (BASE, EncryptionAlgorithm.RC4),
        (ENHANCED, EncryptionAlgorithm.RC4),
        (ENHANCED_AES, EncryptionAlgorithm.AES_256),
    ],
)
def test_the_preferred_algorithms(provider: Provider, preferred: EncryptionAlgorithm) -> None:
    key = Directory(provider).sender().key_for(manager(0), LEVELS[provider], 0.0)
    assert (key.provider, key.algorithm) == (provider, preferred)


@pytest.mark.rule("QB-135", "QB-348")
def test_keys_of_forty_bits_are_neither_made_nor_refused() -> None:
    sender = Directory(ENHANCED).sender()
    assert not sender.key_for(manager(0), 3, 0.0, EncryptionAlgorithm.RC2).weak
    weak = Directory(ENHANCED).sender(EncryptionPolicy(send_enhanced_rc2_40=True))
    blob = weak.key_for(manager(0), 3, 0.0, EncryptionAlgorithm.RC2).blob
    found = ReceivedKeys(KEYS).key_of(3, EncryptionAlgorithm.RC2, manager(1).bytes_le, blob, 0.0)
    assert found.weak


@pytest.mark.rule("QB-149")
def test_nothing_is_known_of_a_queue_manager_before_the_first_message_to_it() -> None:
    directory = Directory(BASE)
    sender = directory.sender()
    assert directory.asked == []
    sender.key_for(manager(0), 1, 0.0)
    sender.key_for(manager(0), 1, 1.0, EncryptionAlgorithm.RC2)
    assert directory.asked == [manager(0)]
    nobody = Directory()
    with pytest.raises(EncryptionError):
        nobody.sender().key_for(manager(0), 1, 0.0)


@pytest.mark.rule("QB-089", "QB-090", "QB-131", "QB-132", "QB-133", "QB-134", "QB-135")
def test_the_configuration_says_how_messages_are_encrypted() -> None:
    algorithms = {"base_algorithm": "rc2", "enhanced_algorithm": "rc2", "advanced_algorithm": "aes128"}
    settings = ProtectionConfig(
        send_enhanced_rc2_40=True,
        reject_enhanced_rc2_40=True,
        send_cache=7,
        receive_cache=9,
        key_lifetime=60.0,
        **algorithms,
    )
    preferred = {
        BASE: EncryptionAlgorithm.RC2,
        ENHANCED: EncryptionAlgorithm.RC2,
        ENHANCED_AES: EncryptionAlgorithm.AES_128,
    }
    assert _policy(settings) == EncryptionPolicy(preferred, True, True, 7, 9, 60.0)
    assert _policy(ProtectionConfig()) == EncryptionPolicy()


@pytest.mark.rule("QB-130", "QB-131", "QB-132", "QB-133", "QB-134", "QB-135")
def test_the_configuration_has_the_values_of_the_document() -> None:
    settings = Config().protection
    assert (settings.send_cache, settings.receive_cache, settings.key_lifetime) == (53, 127, 600)
    assert (settings.certificate_cache, settings.certificate_lifetime) == (53, 1200)
    algorithms = (settings.base_algorithm, settings.enhanced_algorithm, settings.advanced_algorithm)
    assert algorithms == ("rc4", "rc4", "aes256")
    assert (settings.send_enhanced_rc2_40, settings.reject_enhanced_rc2_40) == (False, False)


@pytest.mark.rule("QB-242")
def test_signatures_of_sha_512_alone_are_believed_by_default() -> None:
    assert {HashAlgorithm.SHA512} == DEFAULT_ACCEPTED
    assert Config().protection.accept_hashes == ("sha512",)


@pytest.mark.rule("QB-242")
@pytest.mark.parametrize(
    ("settings", "algorithm", "believed"),
    [
        ({}, HashAlgorithm.SHA512, True),
        ({"hash": "sha256"}, HashAlgorithm.SHA256, False),
        ({"hash": "sha256", "accept_hashes": ("sha256",)}, HashAlgorithm.SHA256, True),
        ({"accept_hashes": ("sha256",)}, HashAlgorithm.SHA512, False),
    ],
)
def test_signatures_are_made_and_believed_with_sha_512_by_default(
    settings: dict[str, Any], algorithm: HashAlgorithm, believed: bool
) -> None:
    world = World()
    config = Config(protection=ProtectionConfig(key="5a" * 32, **settings))
    security = MessageSecurity(config, world.manager, world.clock.monotonic, lambda: None)
    certificate = self_signed("somebody", "ELSEWHERE", SIGNER, 1_700_000_000, 1)
    world.finish(security.certificates.add(SENDER, certificate, SIGNER))
    signed = security.signing.sign(message(hash_algorithm=0).to_packet(), SENDER, level=2)
    assert Message.from_packet(signed).hash_algorithm == algorithm
    target = Destination(QueueCore(world.manager.ledger, 999), authenticated=True)
    opened = security.received.open(parse(signed), target)
    assert isinstance(opened, bytes) if believed else opened is Refusal.SIGNED
