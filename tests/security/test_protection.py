"""Signed and encrypted messages as they arrive: what is kept, what is refused and for which reason."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from msmq_fast._native.framing import ParsedMessage
from msmq_fast.config.sections import Config, ProtectionConfig
from msmq_fast.directory.filters import equals
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.mqqb.protection import ReceivedProtection, SentProtection
from msmq_fast.mqqb.reasons import Refusal
from msmq_fast.mqqb.receive import _REASONS
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName, parse_format_name
from msmq_fast.packet.protect import protected, security_of, with_multi_signature
from msmq_fast.packet.user import SecurityHeader, TransactionHeader
from msmq_fast.packet.user_message import UserMessagePacket
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.properties import EncryptionAlgorithm, HashAlgorithm
from msmq_fast.qm.faults import Faults
from msmq_fast.qm.identity.keyring import KeyUse
from msmq_fast.qm.settings import DirectoryMode
from msmq_fast.security.algorithms import ENHANCED, ENHANCED_AES, PROVIDERS, Provider, SignatureType
from msmq_fast.security.blobs import PublicKeyEntry, write_key_list
from msmq_fast.security.certificates import self_signed
from msmq_fast.security.encryption import EncryptionError, EncryptionPolicy, Failure, ReceivedKeys, SentKeys
from msmq_fast.security.principals import UnsignedSid
from msmq_fast.security.rsakeys import generate, public_part
from msmq_fast.security.senders import SenderCertificates
from msmq_fast.security.sid import Sid
from msmq_fast.security.signature import sign, signed_parts
from msmq_fast.security.switches import SecuritySwitches
from msmq_fast.server.message_security import MessageSecurity
from tests.security.guarded import Guarded
from tests.security.packets import SENDER, SOURCE, TARGET, header, message, parsed
from tests.support.worlds.hosts import Host
from tests.support.worlds.queue_manager import World

KEYS = {provider: generate(provider.rsa_bits) for provider in PROVIDERS}
LIST = write_key_list(PublicKeyEntry(p.name, p.type, public_part(KEYS[p])) for p in PROVIDERS)
USER = rsa.generate_private_key(65537, 1024)
CERTIFICATE = self_signed("alice", "HERE", USER, 1_700_000_000, 7)
STRANGER = rsa.generate_private_key(65537, 1024)
FOREIGN = self_signed("mallory", "THERE", STRANGER, 1_700_000_000, 8)
SWITCHES = SecuritySwitches()
DESTINATION = parse_format_name(f"PRIVATE={TARGET}\\00000007")


class Side:
    """The receiving side: keys, registered certificates, a clock."""

    def __init__(self, **settings: Any) -> None:
        self.registered: dict[Sid, list[bytes]] = {SENDER: [CERTIFICATE]}
        self.machines: dict[UUID, list[PublicKeyEntry]] = {}
        self.asked: list[Sid] = []
        self.now = 0.0
        self.own = settings.pop("own", KEYS)
        self.senders = SenderCertificates(self._certificates, lambda guid: self.machines.get(guid, []))
        accepted = settings.pop("accepted", frozenset((HashAlgorithm.SHA512,)))
        self.keys = ReceivedKeys(self.own, settings.pop("policy", None))
        tell = settings.pop("tell", False)
        self.protection = ReceivedProtection(self.keys, self.senders, lambda: self.now, accepted, tell=tell)
        self.host = Host()

    def _certificates(self, user: Sid) -> list[bytes]:
        self.asked.append(user)
        return self.registered.get(user, [])

    def open(self, packet: bytes | ParsedMessage, **demands: Any) -> bytes | Refusal:
        given = parsed(packet) if isinstance(packet, bytes) else packet
        return self.protection.open(given, replace(self.host.queues["private$\\q"], **demands))

    def opened(self, packet: bytes | ParsedMessage, **demands: Any) -> ParsedMessage:
        kept = self.open(packet, **demands)
        assert isinstance(kept, bytes), kept
        return parsed(kept)


def signed(
    kind: SignatureType = SignatureType.MSMQ_2,
    algorithm: HashAlgorithm = HashAlgorithm.SHA512,
    key: rsa.RSAPrivateKey = USER,
    sender: SecurityHeader | None = None,
    **properties: Any,
) -> bytes:
    """A packet with the signature of a user."""
    base = sender or header(certificate=CERTIFICATE, default_provider=True)
    clear = parsed(protected(parsed(message(**properties)), base, hash_algorithm=algorithm))
    signature = sign(clear, kind, algorithm, key, SWITCHES)
    if kind is SignatureType.MSMQ_3:
        return with_multi_signature(clear, signature)
    return protected(clear, replace(base, signature=signature))


def sent_keys(*providers: Provider, **policy: Any) -> SentKeys:
    blob = write_key_list(PublicKeyEntry(p.name, p.type, public_part(KEYS[p])) for p in providers)
    return SentKeys(lambda _: blob, random.Random(5).randbytes, EncryptionPolicy(**policy))


def encrypted(packet: bytes, *providers: Provider, switches: SecuritySwitches | None = None) -> bytes:
    """As its sender's queue manager transmits it."""
    sealing = SentProtection(SOURCE, sent_keys(*(providers or PROVIDERS)), lambda: 0.0, switches)
    return sealing.protect(packet, DESTINATION, TARGET)


def private(level: int = 5, **properties: Any) -> bytes:
    return message(privacy_level=level, **properties).to_packet()


# ---- signatures


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


# ---- what queues demand


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


# ---- encryption


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


# ---- leaving


@pytest.mark.rule("QB-341", "QB-402")
@pytest.mark.parametrize(
    ("name", "manager"), [("DIRECT=OS:there\\private$\\q", TARGET), (str(DESTINATION), None)]
)
def test_only_public_and_private_names(name: str, manager: UUID | None) -> None:
    sealing = SentProtection(SOURCE, sent_keys(*PROVIDERS), lambda: 0.0)
    for level in (1, 3, 5):
        with pytest.raises(EncryptionError, match=Failure.NOT_ADDRESSED.value):
            sealing.protect(private(level), parse_format_name(name), manager)


def test_what_is_clear_or_encrypted_already_is_left_alone() -> None:
    sealing = SentProtection(SOURCE, sent_keys(*PROVIDERS), lambda: 0.0)
    clear = message().to_packet()
    assert sealing.protect(clear, DESTINATION, TARGET) == clear
    once = sealing.protect(private(), DESTINATION, TARGET)
    assert sealing.protect(once, DESTINATION, TARGET) == once
    others = private(source_machine=TARGET)  # on their way through this queue manager
    assert sealing.protect(others, DESTINATION, TARGET) == others


def test_too_large_when_encrypted() -> None:
    room = 0x400000 - len(private(body=b""))
    with pytest.raises(EncryptionError) as caught:
        encrypted(private(body=bytes(room)))
    assert caught.value.failure is Failure.TOO_LARGE


# ---- in the pipeline


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


@pytest.mark.rule("QB-318", "QB-319", "QB-320", "QB-321")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_server_drops_what_its_caches_held_for_too_long(provider: Provider) -> None:
    world = World()
    own = world.manager.guid
    config = Config(protection=ProtectionConfig(key="5a" * 32))
    security = MessageSecurity(config, world.manager, world.clock.monotonic, lambda: None)
    world.finish(security.keyring.keep({(KeyUse.EXCHANGE, provider): KEYS[provider]}))
    world.finish(security.certificates.add(SENDER, CERTIFICATE, None))
    began = world.clock.seconds
    assert security.next_deadline() is None
    target = Host().queues["private$\\q"]

    def transmitted() -> ParsedMessage:
        packet = private(int(provider.level), source_machine=own)
        return parsed(security.sent.protect(packet, DESTINATION, own))

    def key_of(sent: ParsedMessage) -> bytes:
        found = security_of(sent)
        assert found is not None
        return found.encryption_key

    first = transmitted()
    assert security.next_deadline() == began + 600
    assert isinstance(security.turns.at_once(lambda: security.received.open(first, target)), bytes)
    assert isinstance(security.received.open(parsed(signed()), target), bytes)
    pairs = dict(security.keyring.exchange)
    security.keyring.exchange.clear()
    assert isinstance(security.received.open(first, target), bytes)  # the session key is still known
    world.clock.advance(599)
    security.expire(world.clock.monotonic())
    assert key_of(transmitted()) == key_of(first)
    assert isinstance(security.received.open(first, target), bytes)
    world.clock.advance(1)
    security.expire(world.clock.monotonic())
    assert security.received.open(first, target) is Refusal.UNSUPPORTED_PROVIDER
    security.keyring.exchange.update(pairs)
    assert key_of(transmitted()) != key_of(first)
    world.clock.advance(600)
    security.expire(world.clock.monotonic())
    assert security.next_deadline() is None


# ---- what comes to a queue of this computer without a session


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


def test_a_cache_that_cannot_be_cleaned_holds_up_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(faults=Faults)
    config = Config(protection=ProtectionConfig(key="5a" * 32))
    security = MessageSecurity(config, world.manager, world.clock.monotonic, lambda: None)
    turns: list[float] = []
    monkeypatch.setattr(security._received, "expire", lambda now: 1 / 0)
    monkeypatch.setattr(security.turns, "expire", turns.append)
    security.expire(5.0)
    assert turns == [5.0]
    assert world.manager.faults.total == 1


def test_a_certificate_that_the_directory_loses_is_not_believed_any_more() -> None:
    world = World(directory=DirectoryMode.EMBEDDED)
    security = MessageSecurity(
        Config(protection=ProtectionConfig(key="5a" * 32)),
        world.manager,
        world.clock.monotonic,
        lambda: None,
    )
    world.finish(security.certificates.add(SENDER, CERTIFICATE, None))
    target = Host().queues["private$\\q"]
    assert isinstance(security.received.open(parsed(signed()), target), bytes)
    events = world.manager.directory.events
    user = world.finish(events.read(ObjectType.USER, (equals("SecurityIdentifier", str(SENDER)),)))
    world.finish(events.delete(user))
    assert security.received.open(parsed(signed()), target) is Refusal.SIGNED


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


def test_a_server_is_told_which_signatures_it_believes() -> None:
    world = World()
    config = Config(protection=ProtectionConfig(key="5a" * 32, accept_msmq1=False))
    security = MessageSecurity(config, world.manager, world.clock.monotonic, lambda: None)
    world.finish(security.certificates.add(SENDER, CERTIFICATE, None))
    target = Host().queues["private$\\q"]
    assert isinstance(security.received.open(parsed(signed()), target), bytes)
    assert security.received.open(parsed(signed(SignatureType.MSMQ_1)), target) is Refusal.SIGNED
