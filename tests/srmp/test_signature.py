"""XML signatures: what a receiver believes, what a sender adds; checked with OpenSSL's own primitives."""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from lxml import etree

from msmq_fast._native.framing import parse
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.packet.protect import security_of
from msmq_fast.protocol.properties import HashAlgorithm
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.sid import Sid, sid
from msmq_fast.security.xmlsignature import certificate_key, is_valid, sign_value, signed_info
from msmq_fast.srmp import signature as signature_module
from msmq_fast.srmp.model import Nonconforming, Reference, SignaturePart
from msmq_fast.srmp.readingsignature import read_signature
from msmq_fast.srmp.signature import (
    SignaturePolicy,
    SignatureRefused,
    Signer,
    Verifier,
    authenticated,
    outgoing_signature,
)
from tests.support.srmp.signing import NS, certificate, expensive, key
from tests.support.worlds.secure import Secure

MANAGER = UUID("f6a3323c-7c7b-4a5f-b0ed-b3f63a200893")
BODY = b"<order>\r\n\x00 \xff</order>"
EXTENSION = b"more"
USER = sid("S-1-5-21-1-2-3-1000")
METHOD = f"{NS}dsa"


def reference(kind: str, content: bytes, method: str = "sha1") -> Reference:
    value = b64encode(hashlib.new(method, content).digest()).decode()
    return Reference(f"cid:{kind}@{MANAGER}", f"{NS}{method}", value)


def part(
    kind: str = "rsa-1024", *references: Reference, octets: bytes = b"", carry: bool = True
) -> SignaturePart:
    chosen = references or (reference("body", BODY),)
    octets = octets or signed_info(MANAGER, BODY, b"")
    certificates = (certificate(kind),) if carry else ()
    return SignaturePart(METHOD, chosen, sign_value(key(kind), octets), octets, certificates)


def nobody() -> list[tuple[Sid, bytes]]:
    return []


AS_PRINTED = SignaturePolicy(frozenset((HashAlgorithm.SHA1, HashAlgorithm.MD5)), unregistered=True)
"""What the document prints, and certificates of anybody."""


def refused(
    signature: SignaturePart | None, policy: SignaturePolicy = AS_PRINTED, **parts: bytes | None
) -> str:
    contents = {"body": BODY, "extension": None} | parts
    with pytest.raises(SignatureRefused) as caught:
        Verifier(nobody, policy).verify(signature, b"<x/>", contents["body"], contents["extension"])
    return str(caught.value)


def believed(
    signature: SignaturePart, policy: SignaturePolicy = AS_PRINTED, envelope: bytes = b"<x/>"
) -> Signer:
    return Verifier(nobody, policy).verify(signature, envelope, BODY, None)


# ---- believed


@pytest.mark.parametrize("kind", ["rsa-512", "rsa-1024", "rsa-2048", "dsa-1024", "dsa-2048"])
@pytest.mark.rule("SR-105")
def test_by_the_kind_of_the_key(kind: str) -> None:
    good = part(kind)
    assert believed(good) == Signer(certificate(kind))
    for at in range(0, len(good.value), 7):
        wrong = bytearray(good.value)
        wrong[at] ^= 1 << at % 8
        assert refused(replace(good, value=bytes(wrong))) == "the signature value is wrong"
    assert refused(replace(good, value=b"")) == "the signature value is wrong"
    assert refused(replace(good, value=good.value + b"\0")) == "the signature value is wrong"
    assert refused(replace(good, value=b"\0" * len(good.value))) == "the signature value is wrong"
    assert refused(replace(good, signed_info=good.signed_info.replace(b"body@", b"Body@")))


def test_the_size_that_the_document_prints() -> None:
    """2.2.7.2: 64 octets, 88 characters; only RSA with 512 bits makes these (A-64)."""
    assert len(b64encode(part("rsa-512").value)) == 88


def test_another_key_is_nobody() -> None:
    good = part("rsa-1024")
    assert refused(replace(good, certificates=(certificate("rsa-2048"),))) == "the signature value is wrong"
    assert refused(replace(good, certificates=(b"no certificate",))) == "the signature value is wrong"


def test_bytes_in_the_order_of_cryptoapi() -> None:
    good = part("rsa-1024")
    assert believed(replace(good, value=good.value[::-1]))


@pytest.mark.rule("SR-104")
def test_the_digest_is_over_the_bytes_of_the_attachment() -> None:
    good = part()
    for at in range(0, len(BODY), 3):
        flipped = BODY[:at] + bytes((BODY[at] ^ 1,)) + BODY[at + 1 :]
        assert refused(good, body=flipped) == "the digest of the body is wrong"
    both = part("rsa-1024", reference("body", BODY), reference("extension", EXTENSION, "md5"))
    assert Verifier(nobody, AS_PRINTED).verify(both, b"", BODY, EXTENSION)
    assert refused(both, extension=EXTENSION + b" ") == "the digest of the extension is wrong"
    assert len(both.references[1].digest_value or "") == 24


def test_a_digest_may_be_folded() -> None:
    folded = reference("body", BODY)
    value = f" {(folded.digest_value or '')[:10]}\r\n{(folded.digest_value or '')[10:]} "
    assert believed(part("rsa-1024", replace(folded, digest_value=value)))
    assert refused(part("rsa-1024", replace(folded, digest_value="*")))


# ---- disregarded


@pytest.mark.rule("SR-099")
def test_no_signature_where_one_is_needed() -> None:
    assert refused(None) == "the message has no signature"


@pytest.mark.rule("SR-100")
@pytest.mark.parametrize("method", ["", f"{NS}rsa-sha1", "http://www.w3.org/2000/09/xmldsig#dsa", f"{NS}DSA"])
def test_other_methods(method: str) -> None:
    assert refused(replace(part(), method=method)) == "the signature method is not #dsa"


@pytest.mark.rule("SR-101")
def test_the_number_of_references() -> None:
    body = reference("body", BODY)
    assert refused(replace(part(), references=())) == "the signature has an invalid number of references: 0"
    assert (
        refused(part("rsa-1024", body, body, body)) == "the signature has an invalid number of references: 3"
    )
    assert refused(part("rsa-1024", body, body)) == "the signature has two references to the body"


@pytest.mark.rule("SR-102")
def test_references_to_what_is_not_there() -> None:
    both = part("rsa-1024", reference("body", BODY), reference("extension", EXTENSION))
    assert refused(both) == "the signature refers to the extension, which the message does not have"
    assert refused(part(), body=None) == "the signature refers to the body, which the message does not have"
    for uri in ("", "cid:label@x", "body@x", "#body"):
        assert refused(part("rsa-1024", replace(reference("body", BODY), uri=uri)))


@pytest.mark.rule("SR-103")
def test_digests_that_are_missing_or_unknown() -> None:
    body = reference("body", BODY)
    for method in (None, "", f"{NS}sha224", "http://www.w3.org/2000/09/xmldsig#sha1"):
        assert refused(part("rsa-1024", replace(body, digest_method=method)))
    assert (
        refused(part("rsa-1024", replace(body, digest_value=None)))
        == "a reference of the signature has no digest"
    )
    assert refused(part("rsa-1024", replace(body, digest_value=""))) == "the digest of the body is wrong"


# ---- policy


def test_which_digests_are_believed() -> None:
    md5, sha256 = reference("body", BODY, "md5"), reference("body", BODY, "sha256")
    strict = SignaturePolicy(frozenset((HashAlgorithm.SHA1,)), unregistered=True)
    modern = SignaturePolicy(frozenset((HashAlgorithm.SHA1, HashAlgorithm.SHA256)), unregistered=True)
    for weak in ("sha1", "md5"):
        default = refused(part("rsa-1024", reference("body", BODY, weak)), SignaturePolicy(unregistered=True))
        assert default == "the digest method is not accepted"
    assert believed(part("rsa-1024", md5))
    assert refused(part("rsa-1024", md5), strict) == "the digest method is not accepted"
    assert refused(part("rsa-1024", sha256)) == "the digest method is not accepted"
    assert believed(part("rsa-1024", sha256), modern)
    octets = signed_info(MANAGER, BODY, b"")
    for kind in ("rsa-1024", "dsa-2048"):
        chosen = key(kind)
        if isinstance(chosen, rsa.RSAPrivateKey):
            value = chosen.sign(octets, padding.PKCS1v15(), hashes.SHA256())
        else:
            r, s = decode_dss_signature(chosen.sign(octets, hashes.SHA256()))
            value = r.to_bytes(32) + s.to_bytes(32)
        assert refused(replace(part(kind), value=value)) == "the signature value is wrong"
        assert believed(replace(part(kind), value=value), modern)


def test_registered_certificates() -> None:
    others = [(sid(f"S-1-5-21-1-2-3-{n}"), certificate("rsa-2048")) for n in range(3)]
    registered = [*others, (USER, certificate("dsa-1024")), (USER, certificate("rsa-1024"))]

    def verify(signature: SignaturePart, *, unregistered: bool = True, known: bool = True) -> Signer:
        policy = replace(AS_PRINTED, unregistered=unregistered)
        return Verifier(lambda: registered if known else [], policy).verify(signature, b"", BODY, None)

    assert verify(part("rsa-1024", carry=False)) == Signer(certificate("rsa-1024"), USER)
    assert verify(part("dsa-1024", carry=False)) == Signer(certificate("dsa-1024"), USER)
    assert verify(part("rsa-1024"), unregistered=False) == Signer(certificate("rsa-1024"), USER)
    with pytest.raises(SignatureRefused, match="no certificate is known"):
        verify(part("rsa-1024"), unregistered=False, known=False)
    with pytest.raises(SignatureRefused, match="no certificate is known"):
        verify(part("rsa-1024", carry=False), known=False)


# ---- what a stranger can make a receiver calculate


@pytest.fixture
def operations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The certificates that were read, and the keys that were used."""
    done: list[str] = []
    for name in ("certificate_key", "is_valid"):
        wrapped = getattr(signature_module, name)

        def counted(*args: object, _name: str = name, _wrapped: Any = wrapped, **more: object) -> object:
            done.append(_name)
            return _wrapped(*args, **more)

        monkeypatch.setattr(signature_module, name, counted)
    return done


def test_two_certificates_of_a_message_are_tried_at_most(operations: list[str]) -> None:
    others = tuple(certificate(f"rsa-1024-{number}") for number in range(7))
    value = part("rsa-1024").value
    assert refused(replace(part("rsa-1024"), certificates=(*others, certificate("rsa-1024")), value=value))
    assert operations.count("certificate_key") == operations.count("is_valid") == 2


def test_a_value_of_another_length_than_the_key_takes_no_operation() -> None:
    class Key:
        key_size = 2048

    assert not is_valid(Key(), [b"x"], b"\1" * 128)  # type: ignore[arg-type]


def test_other_spellings_are_made_only_for_who_has_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []
    monkeypatch.setattr(signature_module, "_canonical", lambda envelope: made.append(envelope) or ())
    good = part("rsa-1024")
    assert refused(replace(good, value=b"\1" * 128))
    assert made == []
    assert refused(replace(good, signed_info=good.signed_info + b" "))
    assert made == [b"<x/>"]


@pytest.mark.parametrize(("bits", "exponent"), [(8192, 65537), (2048, 0xFFFFFFFF), (4104, 65537), (2048, 3)])
def test_expensive_keys_are_for_registered_certificates(
    bits: int, exponent: int, operations: list[str]
) -> None:
    made = expensive(bits, exponent)
    with pytest.raises(SecurityDataError, match="not registered"):
        certificate_key(made, registered=False)
    assert certificate_key(made)
    assert refused(replace(part(), certificates=(made,), value=b"\1" * (bits // 8)))
    assert operations == ["certificate_key"]


def test_what_a_list_of_certificates_may_be() -> None:
    texts = [
        f"<X509Certificate>{b64encode(b'%d' % number).decode()}</X509Certificate>" for number in range(9)
    ]

    def read(*certificates: str) -> SignaturePart:
        info = (
            '<SignedInfo><SignatureMethod Algorithm="x"/></SignedInfo><SignatureValue>AA==</SignatureValue>'
        )
        inside = f"<KeyInfo><X509Data>{''.join(certificates)}</X509Data></KeyInfo>"
        xml = f'<Signature xmlns="{NS}">{info}{inside}</Signature>'.encode()
        return read_signature(etree.fromstring(xml), xml)

    assert read(*texts[:8]).certificates == tuple(b"%d" % number for number in range(8))
    with pytest.raises(Nonconforming, match="too many certificates: 9"):
        read(*texts)
    with pytest.raises(Nonconforming, match="twice"):
        read(texts[0], texts[1], texts[0])


# ---- canonical XML, where the octets were not signed as they are


@pytest.mark.parametrize("exclusive", [True, False])
def test_canonical_forms(exclusive: bool) -> None:
    inside = signed_info(MANAGER, BODY, b"")[len(b"<SignedInfo>") :]
    sent = b"<SignedInfo >" + inside.replace(b"></SignatureMethod>", b"/>").replace(b'"', b"'")
    envelope = (
        b'<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" xmlns="urn:x">'
        b'<Signature xmlns="http://www.w3.org/2000/02/xmldsig#">' + sent + b"</Signature></se:Envelope>"
    )
    declared = b'<SignedInfo xmlns="http://www.w3.org/2000/02/xmldsig#"'
    if not exclusive:
        declared += b' xmlns:se="http://schemas.xmlsoap.org/soap/envelope/"'
    made = replace(part(octets=declared + b">" + inside), signed_info=sent)
    assert believed(made, envelope=envelope)
    with pytest.raises(SignatureRefused):
        believed(made, envelope=envelope.replace(b"body@", b"Body@"))
    with pytest.raises(SignatureRefused):
        believed(made, envelope=b"not XML")


# ---- sending


@pytest.mark.rule("SR-106", "SR-107", "SR-097")
def test_the_literal_strings() -> None:
    body, extension = (b64encode(hashlib.sha1(each).digest()).decode() for each in (BODY, EXTENSION))  # noqa: S324
    method = f'<SignatureMethod Algorithm="{NS}dsa"></SignatureMethod>'

    def one(kind: str, value: str) -> str:
        return (
            f'<Reference URI="cid:{kind}@f6a3323c-7c7b-4a5f-b0ed-b3f63a200893">'
            f'<DigestMethod Algorithm="{NS}sha1"></DigestMethod>'
            f"<DigestValue>{value}</DigestValue></Reference>"
        )

    def text(*references: str) -> bytes:
        return f"<SignedInfo>{method}{''.join(references)}</SignedInfo>".encode()

    assert signed_info(MANAGER, BODY, b"") == text(one("body", body))
    assert signed_info(MANAGER, b"", EXTENSION) == text(one("extension", extension))
    assert signed_info(MANAGER, BODY, EXTENSION) == text(one("body", body), one("extension", extension))
    assert signed_info(MANAGER, b"", b"") == text()


@pytest.mark.rule("SR-098")
@pytest.mark.parametrize("kind", ["rsa-512", "rsa-2048", "dsa-1024"])
def test_what_is_signed_verifies_with_the_certificate(kind: str) -> None:
    """By the library alone: SHA-1, PKCS #1 v1.5 or DSA."""
    octets = signed_info(MANAGER, BODY, EXTENSION)
    value = sign_value(key(kind), octets)
    public = x509.load_der_x509_certificate(certificate(kind)).public_key()
    if isinstance(public, rsa.RSAPublicKey):
        public.verify(value, octets, padding.PKCS1v15(), hashes.SHA1())
    else:
        assert isinstance(public, dsa.DSAPublicKey)
        assert len(value) == 40
        assert is_valid(public, [octets], value)


def test_what_is_no_certificate() -> None:
    with pytest.raises(SecurityDataError):
        certificate_key(b"\x30\x03\x02\x01\x01")


# ---- packets


def _packet(**fields: object) -> bytes:
    message = Message(body=BODY, source_machine=MANAGER, **fields)  # type: ignore[arg-type]
    message.destination = parse_format_name("DIRECT=HTTP://there/msmq/private$/q")
    return message.to_packet()


def test_a_verified_message_as_it_is_kept() -> None:
    packet = _packet()
    kept = parse(authenticated(packet, Signer(certificate("rsa-1024"), USER)))
    header = security_of(kept)
    assert header is not None
    assert (header.authentication_level, header.certificate) == (9, certificate("rsa-1024"))
    assert (header.sender_id_type, header.sender_id) == (1, USER.data)
    assert bytes(kept.body) == BODY
    unknown = security_of(parse(authenticated(packet, Signer(certificate("rsa-1024")))))
    assert unknown is not None
    assert (unknown.sender_id, unknown.authentication_level) == (b"", 0), "anybody can make a certificate"
    assert unknown.certificate == certificate("rsa-1024")
    assert outgoing_signature(kept) is None, "it was signed elsewhere"


@pytest.mark.rule("SR-097", "SR-098")
@pytest.mark.parametrize(
    ("body", "extension"), [(BODY, b""), (BODY, EXTENSION), (b"", EXTENSION), (b"", b"")]
)
def test_a_program_that_wishes_for_it_signs(body: bytes, extension: bytes) -> None:
    world = Secure()
    kept = world.done(world.certificates.add(USER, certificate("rsa-2048"), key("rsa-2048")))
    packet = replace(
        Message(body=body, extension=extension), source_machine=world.manager.guid, message_id=1
    ).to_packet()
    message = parse(world.signing.sign_xml(packet, USER, digest=kept.digest))
    assert (bytes(message.body), bytes(message.extension)) == (body, extension)
    made = outgoing_signature(message)
    assert made is not None
    assert made.signed_info == signed_info(world.manager.guid, body, extension)
    assert made.certificates == ()
    public = x509.load_der_x509_certificate(certificate("rsa-2048")).public_key()
    assert isinstance(public, rsa.RSAPublicKey)
    public.verify(made.value, made.signed_info, padding.PKCS1v15(), hashes.SHA1())
    carrying = outgoing_signature(message, with_certificate=True)
    assert carrying is not None
    assert carrying.certificates == (certificate("rsa-2048"),)


def test_messages_without_a_signature_get_none() -> None:
    assert outgoing_signature(parse(_packet())) is None


def test_the_example_of_the_document() -> None:
    assert (
        len(
            b64decode(
                "ZxvFMInWLSb1+iNj5xA/OhPHE4uzIx4nXOCmoOyGSSyHWEuODsByooS00j9RsMuGN/FmpEEOgJ1NFCBEDaBAag=="
            )
        )
        == 64
    )
