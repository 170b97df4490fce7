"""Signed messages that arrive: verified or not, whose certificate, which hashes, flipped bits."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.mqqb.protection import ReceivedProtection
from msmq_fast.mqqb.reasons import Refusal
from msmq_fast.packet.names import parse_format_name
from msmq_fast.packet.protect import protected, security_of
from msmq_fast.packet.user import SecurityHeader
from msmq_fast.protocol.properties import HashAlgorithm
from msmq_fast.security.algorithms import ENHANCED_AES, SignatureType
from msmq_fast.security.blobs import PublicKeyEntry
from msmq_fast.security.rsakeys import public_part
from msmq_fast.security.sid import Sid
from msmq_fast.security.signature import signed_parts
from tests.security.packets import SENDER, SOURCE, TARGET, header, message, parsed
from tests.security.protection import (
    CERTIFICATE,
    DESTINATION,
    FOREIGN,
    STRANGER,
    SWITCHES,
    USER,
    Side,
    signed,
)
from tests.support.worlds.hosts import Host


@pytest.mark.rule("QB-238", "QB-239", "QB-240", "DM-185")
@pytest.mark.parametrize("kind", [SignatureType.MSMQ_1, SignatureType.MSMQ_2, SignatureType.MSMQ_3])
def test_a_verified_message_says_how(kind: SignatureType) -> None:
    several = {"destinations": (DESTINATION,)} if kind is SignatureType.MSMQ_3 else {}
    kept = Side().opened(signed(kind, **several))
    found = security_of(kept)
    assert found is not None
    assert found.authentication_level == {1: 1, 3: 3, 5: 5}[int(kind)]
    assert not found.authenticated
    assert bytes(kept.body) == b"the body of the message"


def test_nobody_says_for_us_that_a_message_is_authenticated() -> None:
    claimed = header(authentication_level=3, authenticated=True)
    packet = protected(parsed(message(destinations=(DESTINATION,))), claimed)
    found = security_of(Side().opened(packet))
    assert found is not None
    assert (found.authentication_level, found.authenticated) == (0, False)


@pytest.mark.rule("QB-242", "DM-186", "QB-238")
@pytest.mark.parametrize("algorithm", list(HashAlgorithm))
def test_only_hashes_that_are_allowed_are_believed(algorithm: HashAlgorithm) -> None:
    packet = signed(algorithm=algorithm)
    usual = Side().open(packet)
    assert (usual is Refusal.SIGNED) == (algorithm is not HashAlgorithm.SHA512)
    found = security_of(Side(accepted=frozenset((algorithm,))).opened(packet))
    assert found is not None
    assert found.authentication_level == 3
    assert Side(accepted=frozenset()).open(packet) is Refusal.SIGNED


def test_an_unknown_hash() -> None:
    packet = protected(parsed(signed()), security_of(parsed(signed())), hash_algorithm=0x8005)
    assert Side(accepted=frozenset(HashAlgorithm)).open(packet) is Refusal.SIGNED


@pytest.mark.rule("QB-243", "QB-244", "QB-245")
def test_who_signed_is_looked_up_once() -> None:
    side = Side()
    side.opened(signed())
    side.opened(signed(body=b"another"))
    assert side.asked == [SENDER]
    assert side.senders.next_deadline() == 1200.0
    side.registered.clear()
    side.opened(signed())
    side.senders.expire(1200.0)
    assert side.open(signed()) is Refusal.SIGNED
    side.registered[SENDER] = [FOREIGN, CERTIFICATE]
    side.opened(signed())
    side.senders.forget()
    side.registered[SENDER] = [FOREIGN]
    assert side.open(signed()) is Refusal.SIGNED


@pytest.mark.rule("QB-130", "QB-245")
def test_the_cache_of_certificates_drops_its_older_half() -> None:
    side = Side()
    users = [Sid.build(5, 21, 1, 2, 3, 2000 + number) for number in range(54)]
    side.registered = {user: [CERTIFICATE] for user in users}
    for user in users:
        side.opened(signed(sender=header(sender_id=user.data, certificate=CERTIFICATE)))
    assert len(side.senders.cache) == 28


@pytest.mark.rule("QB-246")
@pytest.mark.parametrize("registered", [{}, {SENDER: []}, {SENDER: [FOREIGN]}])
def test_a_certificate_of_nobody_or_somebody_else(registered: dict[Sid, list[bytes]]) -> None:
    side = Side()
    side.registered = registered
    assert side.open(signed()) is Refusal.SIGNED


@pytest.mark.rule("QB-246")
def test_the_certificate_of_another_user() -> None:
    other = Sid.build(5, 21, 1, 2, 3, 1001)
    assert Side().open(signed(sender=header(sender_id=other.data, certificate=CERTIFICATE))) is Refusal.SIGNED
    assert Side().open(signed(key=STRANGER, sender=header(certificate=FOREIGN))) is Refusal.SIGNED
    assert Side().open(signed(key=STRANGER)) is Refusal.SIGNED
    malformed = header(sender_id=other.data[:-1], certificate=CERTIFICATE)
    assert Side().open(signed(sender=malformed)) is Refusal.SIGNED


@pytest.mark.rule("QB-243", "QB-247")
def test_a_signature_without_a_sender_id() -> None:
    """An external certificate proves that the message is whole, not who sent it."""
    side = Side()
    packet = signed(key=STRANGER, sender=SecurityHeader(certificate=FOREIGN))
    found = security_of(side.opened(packet))
    assert found is not None
    assert (found.authentication_level, found.certificate) == (0, FOREIGN)
    assert side.asked == []
    assert side.open(packet, authenticated=True) is Refusal.SIGNED


def test_a_queue_manager_signs() -> None:
    side = Side()
    packet = signed(sender=header(sender_id_type=2, sender_id=SOURCE.bytes_le, certificate=CERTIFICATE))
    assert side.open(packet) is Refusal.SIGNED
    side.machines[SOURCE] = [PublicKeyEntry(ENHANCED_AES.name, 24, public_part(USER))]
    side.opened(packet)
    side.machines[SOURCE] = [PublicKeyEntry(ENHANCED_AES.name, 24, public_part(STRANGER))]
    assert side.open(packet) is Refusal.SIGNED
    unknown = signed(sender=header(sender_id_type=3, certificate=CERTIFICATE))
    assert side.open(unknown) is Refusal.SIGNED


NO_VERSION = CERTIFICATE.replace(bytes.fromhex("a003020102"), bytes.fromhex("a003020107"), 1)


@pytest.mark.parametrize("certificate", [b"", b"nonsense", CERTIFICATE[:-9], FOREIGN, NO_VERSION])
def test_certificates_that_cannot_be_the_one(certificate: bytes) -> None:
    assert Side().open(signed(sender=header(certificate=certificate))) is Refusal.SIGNED


@pytest.mark.rule("QB-247")
def test_frame_seven() -> None:
    """An unsigned message with a SID goes on as it is."""
    packet = protected(parsed(message(destinations=(DESTINATION,))), header())
    found = security_of(Side().opened(packet))
    assert found is not None
    assert found.sender_id == SENDER.data


@pytest.mark.rule("QB-241")
@pytest.mark.parametrize("kind", [SignatureType.MSMQ_1, SignatureType.MSMQ_2, SignatureType.MSMQ_3])
def test_every_bit_of_what_is_signed_counts(kind: SignatureType) -> None:
    several = {"destinations": (DESTINATION,)} if kind is SignatureType.MSMQ_3 else {}
    packet = signed(kind, **several)
    whole = parsed(packet)
    start = whole.properties_offset
    spans = {
        "correlation": (start + 4, 20),
        "application": (start + 28, 4),
        "hash": (start + 44, 2),
        "label": (whole.label_offset, 2 * whole.label_chars),
        "body": (whole.body_offset, whole.body_length),
        "response": (whole.response_offset, whole.response_length),
        "admin": (whole.admin_offset + 2, whole.admin_length - 4),
        "certificate": (whole.certificate_offset, whole.certificate_length),
    }
    if kind is not SignatureType.MSMQ_3:
        spans["signature"] = (whole.signature_offset, whole.signature_length)
    if kind is not SignatureType.MSMQ_1:
        spans |= {"source": (16, 16), "class": (start + 2, 2), "body type": (start + 24, 4)}
        spans["connector"] = (whole.connector_offset, 16)
    if kind is SignatureType.MSMQ_2:
        spans["destination"] = (whole.dest_offset, 4)
    if kind is SignatureType.MSMQ_3:
        spans["extension"] = (whole.extension_offset, whole.extension_length)
    side, chance = Side(), random.Random(3)
    for name, (offset, length) in spans.items():
        bit = chance.randrange(8 * length)
        broken = bytearray(packet)
        broken[offset + bit // 8] ^= 1 << bit % 8
        assert side.open(bytes(broken)) is Refusal.SIGNED, name


def test_a_signature_of_several_queues_is_looked_at_whatever_came_before() -> None:
    """The plain path knows the way after the first message; it must not take what is signed."""
    host = Host(hooks=Hooks(protection=Side().protection))
    session = host.opened()
    name = parse_format_name("DIRECT=OS:host\\private$\\q")
    given: dict[str, Any] = {
        "destination": name,
        "destination_manager": host.session_context.guid,
        "admin_queue": None,
        "acknowledge": 0,
        "journal": 0,
        "sent_time": 0,
    }
    session.receive(message(message_id=1, **given).to_packet(), 100.0)
    good = signed(SignatureType.MSMQ_3, message_id=2, destinations=(name,), **given)
    session.receive(good, 100.0)
    bad = signed(SignatureType.MSMQ_3, message_id=3, destinations=(name,), **given)
    session.receive(bad.replace(b"the body", b"The body"), 100.0)
    host.commit()
    assert host.messages() == [1, 2]
    assert [refusal for refusal, _ in host.refusals] == [Refusal.SIGNED]


@pytest.mark.parametrize("believed", [True, False])
def test_signatures_that_do_not_cover_the_destination_need_not_be_believed(believed: bool) -> None:
    """What was signed for one queue as MSMQ 2.0 does can be shown to another one as MSMQ 1.0 signs."""
    caught = parsed(signed())
    rest = b"".join(signed_parts(caught, SignatureType.MSMQ_2, SWITCHES)[2:])
    elsewhere = parse_format_name(f"PRIVATE={TARGET}\\00000099")
    fields: dict[str, Any] = {"label": "", "response_queue": None, "admin_queue": None, "acknowledge": 0}
    forged = message(body=rest, destination=elsewhere, **fields)
    packet = protected(parsed(forged), security_of(caught), hash_algorithm=0x800E)
    side = Side()
    protection = ReceivedProtection(side.keys, side.senders, lambda: 0.0, msmq_1=believed)
    target = replace(side.host.queues["private$\\q"], authenticated=True)
    assert isinstance(protection.open(parsed(packet), target), bytes) == believed
    assert isinstance(protection.open(caught, target), bytes)
