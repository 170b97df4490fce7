"""Messages that are signed and encrypted, and the side that receives them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric import rsa

from msmq_fast._native.framing import ParsedMessage
from msmq_fast.mqqb.protection import ReceivedProtection, SentProtection
from msmq_fast.mqqb.reasons import Refusal
from msmq_fast.packet.names import parse_format_name
from msmq_fast.packet.protect import protected, with_multi_signature
from msmq_fast.packet.user import SecurityHeader
from msmq_fast.protocol.properties import HashAlgorithm
from msmq_fast.security.algorithms import PROVIDERS, Provider, SignatureType
from msmq_fast.security.blobs import PublicKeyEntry, write_key_list
from msmq_fast.security.certificates import self_signed
from msmq_fast.security.encryption import EncryptionPolicy, ReceivedKeys, SentKeys
from msmq_fast.security.rsakeys import generate, public_part
from msmq_fast.security.senders import SenderCertificates
from msmq_fast.security.sid import Sid
from msmq_fast.security.signature import sign
from msmq_fast.security.switches import SecuritySwitches
from tests.security.packets import SENDER, SOURCE, TARGET, header, message, parsed
from tests.support.worlds.hosts import Host

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
