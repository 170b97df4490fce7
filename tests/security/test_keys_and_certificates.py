"""Key pairs and certificates: kept sealed, published, registered, used by programs that sign."""

from __future__ import annotations

import datetime
import errno
import os
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from msmq_fast._native.framing import parse
from msmq_fast.client.message import Message as ClientMessage
from msmq_fast.client.message import to_wire
from msmq_fast.directory.filters import equals
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.mqqb.destination import Destination
from msmq_fast.mqqb.protection import OutgoingProtection, ReceivedProtection, SentProtection
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.packet.protect import security_of
from msmq_fast.protocol.frames import Access, Frame, InFlag, SendFlag
from msmq_fast.protocol.properties import HashAlgorithm
from msmq_fast.qm.identity.keyring import Keyring, KeyUse
from msmq_fast.qm.queues.outgoing import ConnectionStatus
from msmq_fast.security.algorithms import ENHANCED, ENHANCED_AES, PROVIDERS
from msmq_fast.security.blobs import PublicKeyEntry, read_key_list, read_user_certificates, write_key_list
from msmq_fast.security.certificates import described, from_file, key_of, self_signed
from msmq_fast.security.encryption import Failure, ReceivedKeys, SentKeys
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.principals import SenderType
from msmq_fast.security.rsakeys import generate, public_part
from msmq_fast.security.senders import SenderCertificates
from msmq_fast.security.sid import Sid, sid
from msmq_fast.security.vault import Vault, key_of_file, key_of_text
from msmq_fast.store.completion import Completion
from msmq_fast.store.schema import MetaName, Table
from tests.support.worlds.app import Client, World
from tests.support.worlds.secure import SECRET, UID, Secure

PEER = UUID("43cd8907-394c-8f11-4445-9078909ea0fc")
USER = sid(f"S-1-22-1-{UID}")
EXTERNAL = rsa.generate_private_key(65537, 1024)
EXTERNAL_CERTIFICATE = self_signed("alice", "ELSEWHERE", EXTERNAL, 1_700_000_000, 9)
FIRST = self_signed("first", "ELSEWHERE", EXTERNAL, 1_700_000_000, 10)
THIRD = self_signed("third", "ELSEWHERE", EXTERNAL, 1_700_000_000, 11)
PEM = EXTERNAL.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)


def value(answer: tuple[int, Any]) -> Any:
    assert answer[0] == Frame.REPLY, answer
    return answer[1]


def error(answer: tuple[int, Any]) -> str:
    assert answer[0] == Frame.ERROR, answer
    return str(answer[1][1])


def pairs(*uses: KeyUse) -> dict[tuple[KeyUse, Any], rsa.RSAPrivateKey]:
    return {(use, provider): generate(provider.rsa_bits) for use in uses for provider in PROVIDERS}


# ---- secrets at rest


@pytest.mark.rule("DM-008", "KV-13")
def test_key_pairs_are_kept_sealed_and_published() -> None:
    world = Secure()
    assert len(world.keyring.missing(PROVIDERS)) == 6
    made = pairs(KeyUse.EXCHANGE, KeyUse.SIGNATURE)
    world.done(world.keyring.keep(made))
    assert world.keyring.missing(PROVIDERS) == []
    own = world.manager.directory.queue_manager()
    entries = read_key_list(own["PublicEncryptionKeyList"])
    assert [(entry.provider, entry.key.bits) for entry in entries] == [
        (provider.name, provider.rsa_bits) for provider in PROVIDERS
    ]
    assert entries[0].key == public_part(made[KeyUse.EXCHANGE, PROVIDERS[0]])
    signing = read_key_list(own["PublicSigningKeyList"])
    assert signing[2].key == public_part(made[KeyUse.SIGNATURE, ENHANCED_AES])
    stored = b"".join(row for _, row in world.writer.tables.scan(Table.META, b"", None, 1000))
    for key in made.values():
        assert key.private_numbers().p.to_bytes((key.key_size + 15) // 16) not in stored
    again = Secure(world.writer.tables)
    assert again.keyring.missing(PROVIDERS) == []
    assert again.keyring.encryption_list == world.keyring.encryption_list
    assert public_part(again.keyring.exchange[ENHANCED]) == public_part(made[KeyUse.EXCHANGE, ENHANCED])


@pytest.mark.rule("QB-343")
def test_three_keys_as_windows_has_them() -> None:
    world = Secure()
    world.done(world.keyring.keep(pairs(KeyUse.EXCHANGE)))
    entries = read_key_list(world.manager.directory.queue_manager()["PublicEncryptionKeyList"])
    assert [entry.key.bits for entry in entries] == [512, 1024, 1024]


def test_another_key_opens_nothing() -> None:
    world = Secure()
    world.done(world.keyring.keep(pairs(KeyUse.EXCHANGE)))
    with pytest.raises(SecurityDataError):
        Secure(world.writer.tables, secret=bytes(32))
    vault = Vault(bytes(32), Random(3).randbytes)
    keyring = Keyring(world.manager.services, world.manager.directory, vault)
    keyring.load(discard=True)
    assert len(keyring.missing(PROVIDERS)) == 6


def test_the_vault() -> None:
    vault = Vault(SECRET, Random(1).randbytes)
    sealed = vault.seal(b"name", b"a secret")
    assert b"secret" not in sealed
    assert vault.open(b"name", sealed) == b"a secret"
    assert vault.seal(b"name", b"a secret") != sealed
    for name, data in (
        (b"other", sealed),
        (b"name", sealed[:-1]),
        (b"name", b"\2" + sealed[1:]),
        (b"name", b""),
    ):
        with pytest.raises(SecurityDataError):
            vault.open(name, data)
    with pytest.raises(SecurityDataError):
        Vault(b"short", Random(1).randbytes)


def test_the_key_file(tmp_path: Path) -> None:
    path = tmp_path / "secrets.key"
    key = key_of_file(path, os.urandom)
    assert path.stat().st_mode & 0o777 == 0o600
    assert key_of_file(path, os.urandom) == key
    assert key_of_text(path.read_text()) == key
    path.chmod(0o640)
    with pytest.raises(SecurityDataError, match="other users"):
        key_of_file(path, os.urandom)
    path.chmod(0o600)
    path.write_text("nonsense")
    with pytest.raises(SecurityDataError):
        key_of_file(path, os.urandom)
    for text in ("", "00" * 31, "zz" * 32, "A" * 43):
        with pytest.raises(SecurityDataError):
            key_of_text(text)
    assert key_of_text("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=") == SECRET


# ---- keys of others


def test_keys_that_an_operator_tells() -> None:
    world = Secure()
    root = world.client()
    blob = write_key_list([PublicKeyEntry(ENHANCED.name, 1, public_part(EXTERNAL))])
    value(root.call(Frame.TELL_KEYS, [str(PEER), blob]))
    assert world.keyring.published(PEER) == blob
    own, peer = value(root.call(Frame.SHOW_KEYS, []))
    assert (own["own"], peer["own"], peer["guid"], peer["blob"]) == (True, False, str(PEER), blob)
    assert peer["keys"] == [{"provider": ENHANCED.name, "bits": 1024}]
    assert Secure(world.writer.tables).keyring.published(PEER) == blob
    for guid, keys in (
        (str(PEER), b"damaged"),
        ("x", blob),
        (str(world.manager.guid), blob),
        (str(PEER), b""),
    ):
        assert error(root.call(Frame.TELL_KEYS, [guid, keys])) == "MQ_ERROR_INVALID_PARAMETER"
    assert error(world.user().call(Frame.TELL_KEYS, [str(PEER), blob])) == "MQ_ERROR_ACCESS_DENIED"
    value(root.call(Frame.TELL_KEYS, [str(PEER), None]))
    assert world.keyring.published(PEER) is None


@pytest.mark.rule("QB-342")
def test_keys_from_the_directory() -> None:
    world = Secure()
    blob = write_key_list([PublicKeyEntry(ENHANCED.name, 1, public_part(EXTERNAL))])
    item = DirectoryObject(
        ObjectType.QUEUE_MANAGER,
        {
            IDENTIFIER: PEER,
            "ComputerName": "PEER",
            "PublicEncryptionKeyList": blob,
            "PublicSigningKeyList": blob,
        },
    )
    assert world.keyring.published(PEER) is None
    world.done(world.manager.directory_changes.create(item))
    assert world.keyring.published(PEER) == blob
    assert [entry.key for entry in world.keyring.signing_keys(PEER)] == [public_part(EXTERNAL)]
    assert world.keyring.signing_keys(UUID(int=5)) == ()


# ---- certificates


@pytest.mark.rule("KV-13", "KV-14")
def test_an_internal_certificate() -> None:
    world = Secure()
    user = world.user()
    made = value(user.call(Frame.CREATE_CERTIFICATE, [""]))
    assert (made["internal"], made["signs"], made["registered"]) == (True, True, True)
    assert made["user"] == str(USER)
    found = x509.load_der_x509_certificate(made["certificate"])
    found.verify_directly_issued_by(found)
    assert key_of(made["certificate"]).key_size == 2048
    item = world.manager.directory.read(ObjectType.USER, (equals("SecurityIdentifier", str(USER)),)).result()
    (kept,) = read_user_certificates(item["Certificates"])
    assert (kept.certificate, item["CertificateDigestList"]) == (made["certificate"], (kept.digest,))
    again = value(user.call(Frame.CREATE_CERTIFICATE, [""]))
    assert world.certificates.registered(USER) == [again["certificate"]]
    restarted = Secure(world.writer.tables)
    signer = restarted.certificates.signer(USER)
    assert signer.certificate == again["certificate"]
    stored = b"".join(row for _, row in world.writer.tables.scan(Table.META, b"", None, 1000))
    assert signer.key.private_numbers().p.to_bytes(128) not in stored
    value(user.call(Frame.REMOVE_CERTIFICATE, ["", again["identifier"]]))
    assert world.certificates.registered(USER) == []
    assert value(user.call(Frame.LIST_CERTIFICATES, [""])) == []
    names = [name for name, _ in world.manager.records.metas(MetaName.SECRET)]
    assert names == []


def test_external_certificates() -> None:
    world = Secure()
    user = world.user()
    known = value(user.call(Frame.ADD_CERTIFICATE, ["", EXTERNAL_CERTIFICATE, None]))
    assert (known["internal"], known["signs"], known["registered"]) == (False, False, True)
    with pytest.raises(Exception, match="sign"):
        world.certificates.signer(USER)
    pem = x509.load_der_x509_certificate(EXTERNAL_CERTIFICATE).public_bytes(serialization.Encoding.PEM)
    able = value(user.call(Frame.ADD_CERTIFICATE, ["", pem, PEM]))
    assert able["signs"]
    assert len(value(user.call(Frame.LIST_CERTIFICATES, [""]))) == 1
    assert world.certificates.signer(USER, bytes.fromhex(able["digest"])).certificate == EXTERNAL_CERTIFICATE
    other = PEM.replace(b"PRIVATE", b"SECRET")
    for certificate, key in ((b"nonsense", None), (EXTERNAL_CERTIFICATE, other), (EXTERNAL_CERTIFICATE, b"")):
        refused = error(user.call(Frame.ADD_CERTIFICATE, ["", certificate, key]))
        assert refused == "MQ_ERROR_INVALID_CERTIFICATE"
    stranger = rsa.generate_private_key(65537, 1024).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    refused = error(user.call(Frame.ADD_CERTIFICATE, ["", EXTERNAL_CERTIFICATE, stranger]))
    assert refused == "MQ_ERROR_INVALID_CERTIFICATE"


def test_certificates_of_a_version_that_there_is_not() -> None:
    strange = EXTERNAL_CERTIFICATE.replace(bytes.fromhex("a003020102"), bytes.fromhex("a003020107"), 1)
    assert described(strange) == {}
    with pytest.raises(SecurityDataError):
        key_of(strange)
    with pytest.raises(SecurityDataError):
        from_file(strange)


def test_an_exponent_as_long_as_its_modulus_is_not_believed() -> None:
    """To verify with one takes 200 times as long, for whoever sends it."""
    modulus = EXTERNAL.public_key().public_numbers().n
    long = rsa.RSAPublicNumbers(modulus - 2, modulus).public_key()
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(x509.Name([]))
        .public_key(long)
        .serial_number(1)
        .not_valid_before(datetime.datetime(2020, 1, 1))
        .not_valid_after(datetime.datetime(2040, 1, 1))
        .sign(EXTERNAL, hashes.SHA256())
    )
    with pytest.raises(SecurityDataError, match="exponent"):
        key_of(made.public_bytes(serialization.Encoding.DER))


def test_certificates_of_others_are_for_administrators() -> None:
    world = Secure()
    user, root = world.user(), world.client()
    value(root.call(Frame.ADD_CERTIFICATE, [str(USER), EXTERNAL_CERTIFICATE, None]))
    assert len(value(user.call(Frame.LIST_CERTIFICATES, [""]))) == 1
    assert len(value(root.call(Frame.LIST_CERTIFICATES, [None]))) == 1
    for frame, arguments in (
        (Frame.LIST_CERTIFICATES, [None]),
        (Frame.LIST_CERTIFICATES, ["S-1-22-1-0"]),
        (Frame.CREATE_CERTIFICATE, ["S-1-22-1-0"]),
        (Frame.ADD_CERTIFICATE, ["S-1-22-1-0", EXTERNAL_CERTIFICATE, None]),
        (Frame.REMOVE_CERTIFICATE, ["S-1-22-1-0", str(UUID(int=1))]),
    ):
        assert error(user.call(frame, arguments)) == "MQ_ERROR_ACCESS_DENIED"


# ---- programs that sign


def sent(world: World, client: Client, name: str, message: ClientMessage, flags: int = 0) -> Any:
    (handle,) = value(client.call(Frame.OPEN, [name, int(Access.SEND)]))
    kind, answer = client.call(Frame.SEND, [handle, flags, [list(to_wire(message))]])
    assert kind == Frame.SENT, answer
    client.call(Frame.CLOSE, [handle])
    return answer


def refusal(answer: Any) -> str:
    ((_, _, name, _),) = answer[1]
    return str(name)


def received(client: Client, name: str) -> Any:
    (handle,) = value(client.call(Frame.OPEN, [name, int(Access.RECEIVE)]))
    kind, fields = client.call(Frame.RECEIVE, [handle, 0])
    assert kind == Frame.MESSAGE, fields
    return fields


@pytest.mark.parametrize("transactional", [False, True])
def test_local_queues_see_who_signed(transactional: bool) -> None:
    world = Secure()
    client = world.user()
    value(
        world.client().call(
            Frame.CREATE_QUEUE, ["q", {"authenticated": True, "transactional": transactional}]
        )
    )
    flags = int(SendFlag.SINGLE) if transactional else 0
    unsigned = ClientMessage(body=b"unsigned")
    assert refusal(sent(world, client, "q", unsigned, flags)) == "MQ_ERROR_MESSAGE_NOT_AUTHENTICATED"
    signed_ = replace(unsigned, body=b"signed", authentication=2)
    assert refusal(sent(world, client, "q", signed_, flags)) == "MQ_ERROR_CERTIFICATE_NOT_PROVIDED"
    value(client.call(Frame.CREATE_CERTIFICATE, [""]))
    assert sent(world, client, "q", signed_, flags) == [1, []]
    fields = received(client, "q")
    assert bytes(fields[1]) == b"signed"
    assert fields[19] & InFlag.AUTHENTICATED
    assert Sid.from_bytes(bytes(fields[20])) == USER


@pytest.mark.rule("DM-181")
def test_a_sender_id_proves_nothing() -> None:
    world = Secure()
    client = world.user()
    value(world.client().call(Frame.CREATE_QUEUE, ["q", {}]))
    assert sent(world, client, "q", ClientMessage(attach_sender=True)) == [1, []]
    fields = received(client, "q")
    assert (fields[19] & InFlag.AUTHENTICATED, Sid.from_bytes(bytes(fields[20]))) == (0, USER)


def test_local_queues_look_at_the_privacy_that_was_asked_for() -> None:
    world = Secure()
    client = world.user()
    for name, level in (("clear", 0), ("private", 2), ("any", 1)):
        value(world.client().call(Frame.CREATE_QUEUE, [name, {"privacy_level": level}]))
    clear, secret = ClientMessage(body=b"clear"), ClientMessage(body=b"secret", privacy_level=5)
    taken = {
        (name, message.body): not sent(world, client, name, message)[1]
        for name in ("clear", "private", "any")
        for message in (clear, secret)
    }
    assert taken == {
        ("clear", b"clear"): True,
        ("clear", b"secret"): False,
        ("private", b"clear"): False,
        ("private", b"secret"): True,
        ("any", b"clear"): True,
        ("any", b"secret"): True,
    }
    assert bytes(received(client, "private")[1]) == b"secret"  # nothing is encrypted that does not leave


@pytest.mark.parametrize(
    "wrong",
    [
        {"authentication": 3},
        {"authentication": 2, "hash_algorithm": 5},
        {"privacy_level": 2},
        {"privacy_level": 6},
    ],
)
def test_values_out_of_range(wrong: dict[str, Any]) -> None:
    world = Secure()
    client = world.user()
    value(world.client().call(Frame.CREATE_QUEUE, ["q", {}]))
    answer = sent(world, client, "q", ClientMessage(**wrong))
    assert refusal(answer) == "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"


@pytest.mark.rule("QB-402")
def test_direct_names_are_not_signed_where_the_document_is_followed() -> None:
    name = "DIRECT=OS:elsewhere\\private$\\q"
    for allowed in (True, False):
        world = Secure(qb402_sign_direct=allowed)
        client = world.user()
        value(client.call(Frame.CREATE_CERTIFICATE, [""]))
        answer = sent(world, client, name, ClientMessage(authentication=2))
        assert (not answer[1]) == allowed
        if not allowed:
            assert refusal(answer) == "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"


# ---- leaving


@pytest.mark.rule("QB-352", "QB-327", "QB-341")
@pytest.mark.parametrize("delivery", [0, 1])
@pytest.mark.parametrize("wanted", [0, 1])
def test_what_cannot_be_encrypted_is_a_dead_letter_if_wanted(delivery: int, wanted: int) -> None:
    world = Secure()
    client = world.user()
    name = f"PRIVATE={PEER}\\00000007"
    message = ClientMessage(body=b"secret", privacy_level=5, journal=wanted, delivery=delivery)
    assert sent(world, client, name, message) == [1, []]
    world.commit()
    queue = world.manager.outgoing_queues.to(parse_format_name(name))
    refused: list[Failure] = []
    keys = SentKeys(world.keyring.published, Random(2).randbytes)
    sealing = SentProtection(world.manager.guid, keys, world.clock.monotonic)
    protect = OutgoingProtection(queue, sealing, lambda: 5, lambda failure, _: refused.append(failure))
    (taken,) = queue.core.take(9, 1 << 20, world.manager.ledger.new_owner())
    blob = write_key_list([PublicKeyEntry(ENHANCED.name, 1, public_part(EXTERNAL))])
    assert protect(taken.lookup_id, taken.packet) is None
    world.commit()
    assert (queue.core.messages, refused) == (0, [Failure.NO_KEYS])
    (event,) = queue.history
    assert (event.status, event.error) == (ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE, 0xC00E0079)
    dead = world.manager.find("DIRECT=OS:here\\SYSTEM$;DEADLETTER")
    assert dead.messages == wanted
    if wanted:
        root = world.client()
        fields = received(root, "DIRECT=OS:here\\SYSTEM$;DEADLETTER")
        assert (bytes(fields[1]), fields[25]) == (b"secret", 0x8008)
    world.done(world.keyring.tell(PEER, blob))
    low = ClientMessage(body=b"secret", privacy_level=3)
    sent(world, client, name, low)
    (again,) = queue.core.take(9, 1 << 20, world.manager.ledger.new_owner())
    transmitted = protect(again.lookup_id, again.packet)
    assert transmitted is not None
    assert b"secret" not in transmitted
    assert b"secret" in again.packet  # what is kept stays as it is, so that a repetition starts from it
    assert protect(again.lookup_id, again.packet) == transmitted


@pytest.mark.rule("QB-339", "QB-340", "DM-195", "QB-242")
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("flags", [0, int(SendFlag.SINGLE)])
def test_what_programs_sign_is_verified_elsewhere(level: int, flags: int) -> None:
    world = Secure()
    client = world.user()
    value(client.call(Frame.CREATE_CERTIFICATE, [""]))
    names = [f"PRIVATE={PEER}\\0000000{number}" for number in (7, 8)]
    message = ClientMessage(body=b"signed", label="x", authentication=level)
    assert sent(world, client, names[0], message, flags) == [1, []]
    assert sent(world, client, ",".join(names), message, flags) == [1, []]
    world.commit()
    senders = SenderCertificates(world.certificates.registered, world.keyring.signing_keys)
    protection = ReceivedProtection(ReceivedKeys({}), senders, world.clock.monotonic)
    kinds = []
    for name in names:
        core = world.manager.outgoing_queues.to(parse_format_name(name)).core
        for taken in core.take(9, 1 << 20, world.manager.ledger.new_owner()):
            header = security_of(parse(taken.packet))
            assert header is not None
            assert header.default_provider
            assert (header.authenticated, header.authentication_level) == (False, 0)
            assert Message.from_packet(taken.packet).hash_algorithm == HashAlgorithm.SHA512
            opened = protection.open(parse(taken.packet), Destination(core, authenticated=True))
            assert isinstance(opened, bytes), opened
            kept = security_of(parse(opened))
            assert kept is not None
            kinds.append(kept.authentication_level)
    assert kinds == [{1: 1, 2: 3}[level], 5, 5]


@pytest.mark.rule("KV-14")
def test_what_is_removed_stays_removed_whatever_is_added_at_once() -> None:
    world = Secure()
    old = world.done(world.certificates.add(USER, FIRST, None))
    world.certificates.remove(USER, old.identifier)
    world.certificates.add(USER, EXTERNAL_CERTIFICATE, None)
    world.certificates.add(USER, THIRD, None)
    world.commit()
    assert world.certificates.registered(USER) == [EXTERNAL_CERTIFICATE, THIRD]
    restarted = Secure(world.writer.tables)
    assert [kept.certificate for kept in restarted.certificates.of(USER)] == [EXTERNAL_CERTIFICATE, THIRD]
    for kept in restarted.certificates.of(USER):
        restarted.done(restarted.certificates.remove(USER, kept.identifier))
    assert Secure(restarted.writer.tables).certificates.of(USER) == ()


def test_a_change_that_is_not_kept_is_as_if_it_had_not_been() -> None:
    world = Secure()
    lost = world.certificates.add(USER, FIRST, None)
    world.writer.submit()
    world.writer.complete_one(errno.ENOSPC)
    assert lost.exception() is not None
    world.clock.now += 2
    world.done(world.certificates.add(USER, THIRD, None))
    assert world.certificates.registered(USER) == [THIRD]


def test_a_change_that_cannot_be_written_is_as_if_it_had_not_been(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Secure()
    monkeypatch.setattr(world.manager.records, "set_meta", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        world.certificates.add(USER, FIRST, None)
    monkeypatch.undo()
    world.done(world.certificates.add(USER, THIRD, None))
    assert [kept.certificate for kept in world.certificates.of(USER)] == [THIRD]


def test_keys_of_certificates_are_made_where_they_disturb_nobody() -> None:
    asked: list[tuple[int, Completion[rsa.RSAPrivateKey]]] = []

    def beside(bits: int) -> Completion[rsa.RSAPrivateKey]:
        made: Completion[rsa.RSAPrivateKey] = Completion()
        asked.append((bits, made))
        return made

    world = Secure(make_key=beside)
    done = world.certificates.create(USER, "nobody")
    ((bits, made),) = asked
    assert (bits, done.done) == (2048, False)
    made.resolve(EXTERNAL)
    assert key_of(world.done(done).certificate) == EXTERNAL.public_key()


def test_requests_behind_the_making_of_a_certificate_take_effect_behind_it() -> None:
    made: Completion[rsa.RSAPrivateKey] = Completion()
    world = Secure(make_key=lambda _: made)
    user = world.user()
    user.send(Frame.CREATE_CERTIFICATE, [""], 7)
    user.send(Frame.LIST_CERTIFICATES, [""], 8)
    other = world.user()
    assert value(other.call(Frame.LIST_CERTIFICATES, [""])) == []  # another connection does not wait
    world.commit()
    assert user.read() == []
    assert not user.engine.reading
    before = user.wakes
    made.resolve(EXTERNAL)
    world.commit()
    assert user.wakes > before
    assert [(kind, number) for kind, number, _ in user.frames + user.read()][-2:] == [
        (Frame.REPLY, 7),
        (Frame.REPLY, 8),
    ]
    assert len(user.frames[-1][2]) == 1
    assert user.engine.reading


def test_a_connection_that_ends_while_its_certificate_is_made() -> None:
    made: Completion[rsa.RSAPrivateKey] = Completion()
    world = Secure(make_key=lambda _: made)
    user = world.user()
    user.send(Frame.CREATE_CERTIFICATE, [""])
    user.engine.connection_lost()
    made.resolve(EXTERNAL)
    world.commit()
    assert len(world.certificates.of(USER)) == 1


@pytest.mark.parametrize(
    ("bits", "exponent", "believed"),
    [(2048, 65537, True), (4096, 65537, True), (4104, 65537, False), (8192, 65537, False), (2048, 3, False)],
)
def test_a_certificate_that_nobody_registered_has_an_ordinary_key(
    bits: int, exponent: int, believed: bool
) -> None:
    """Each message with it costs an operation: 100 times as much with the largest key and exponent."""
    key = rsa.RSAPublicNumbers(exponent, (1 << bits - 1) | 0xF00D << 64 | 1).public_key()
    senders = SenderCertificates(lambda user: [b"registered"], lambda guid: [])
    assert senders.belongs(SenderType.NONE, b"", b"a certificate", key, 0.0) is believed
    user = sid("S-1-5-21-1-2-3-1000").data
    assert senders.belongs(SenderType.SID, user, b"registered", key, 0.0), "those that are may have others"
