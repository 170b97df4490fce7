"""Signed messages over sockets: a server that is a process, requests and checks by OpenSSL alone."""

from __future__ import annotations

import contextlib
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from msmq_fast.client import Message, sync
from tests.support.processes.servers import Server
from tests.support.srmp.independent import Sink, post
from tests.support.srmp.partner import Program, request
from tests.support.srmp.serving import serving
from tests.support.srmp.signing import NS, certificate, key, reference

BODY = b"<order>\r\n\x00 \xff</order>"
CONFIG = """
[server]

[srmp]
signature_digests = ["sha1", "md5"]
verify_signatures = true

[[queues]]
name = "signed"
authenticated = true

[[queues]]
name = "open"
"""
TO = "http://localhost/msmq/private$/signed"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(CONFIG) as running:
        yield running


@pytest.fixture(scope="module")
def program(server: Server) -> Iterator[Program]:
    with contextlib.closing(Program(server)) as made:
        for kind in ("rsa-1024", "rsa-2048"):
            made.connection.admin.certificates.add(certificate(kind)).as_map()
        yield made


def signature(
    references: str,
    kind: str = "rsa-1024",
    *,
    value: bytes | None = None,
    algorithm: hashes.HashAlgorithm = hashes.SHA1(),  # noqa: B008 - as the document has it
) -> str:
    """A Signature element with its certificate."""
    info = f'<SignedInfo><SignatureMethod Algorithm="{NS}dsa"></SignatureMethod>{references}</SignedInfo>'
    if value is None:
        signer = key(kind)
        assert isinstance(signer, rsa.RSAPrivateKey)
        value = signer.sign(info.encode(), padding.PKCS1v15(), algorithm)
    return (
        f'<Signature xmlns="{NS}">{info}<SignatureValue>{b64encode(value).decode()}</SignatureValue>'
        f"<KeyInfo><X509Data><X509Certificate>{b64encode(certificate(kind)).decode()}"
        "</X509Certificate></X509Data></KeyInfo></Signature>"
    )


DEFAULTS = """
[[queues]]
name = "signed"
authenticated = true

[[queues]]
name = "open"
"""


def modern(to: str, kind: str, **fields: bytes) -> bytes:
    """A signed request without anything that is weak."""
    sender = uuid4()
    text = signature(reference(f"body@{sender}", BODY, "sha256"), kind, algorithm=hashes.SHA256())
    return request(to, BODY, sender=sender, tail=text, **fields)  # type: ignore[arg-type]


def test_what_a_certificate_that_nobody_registered_is_worth() -> None:
    """A stranger makes a certificate of its own: by default that is as good as no signature."""
    to_open = TO.replace("signed", "open")
    with serving(DEFAULTS) as server, contextlib.closing(Program(server)) as program:
        assert status(server, modern(TO, "rsa-2048")) == 400
        assert status(server, modern(to_open, "rsa-2048")) == 200
        (message,) = program.messages("open")
        assert not message["authenticated"]
        program.connection.admin.certificates.add(certificate("rsa-2048")).as_map()
        assert status(server, modern(TO, "rsa-2048")) == 200
        (message,) = program.messages("signed")
        assert (message["authenticated"], message["signature_state"]) == (True, "verified")
        assert status(server, signed(kind="rsa-2048")) == 400, "SHA-1 is weak"
        assert status(server, signed(to_open, kind="rsa-2048")) == 200, "nothing depends on its signature"
        assert len(program.messages("open")) == 1
    lax = DEFAULTS + "\n[srmp]\nunregistered_certificates = true\n"
    with serving(lax) as server, contextlib.closing(Program(server)) as program:
        assert status(server, modern(TO, "rsa-2048")) == 200
        (message,) = program.messages("signed")
        assert not message["authenticated"], "its sender is not known"
        assert message["signature_state"] == "unknown_signer"


def signed(to: str = TO, *, kind: str = "rsa-1024", **fields: bytes) -> bytes:
    sender = uuid4()
    references = reference(f"body@{sender}", BODY)
    if "extension" in fields:
        references += reference(f"extension@{sender}", fields["extension"])
    return request(to, BODY, sender=sender, tail=signature(references, kind), **fields)  # type: ignore[arg-type]


def status(server: Server, raw: bytes) -> int:
    return post(server.port("http"), raw)[0]


@pytest.mark.rule("SR-095")
def test_what_is_believed(server: Server, program: Program) -> None:
    assert status(server, signed()) == 200
    assert status(server, signed(extension=b"more")) == 200
    assert status(server, signed(kind="rsa-2048")) == 200
    messages = program.messages("signed")
    assert [message["authenticated"] for message in messages] == [True] * 3
    assert {message["body_b64"] for message in messages} == {b64encode(BODY).decode()}
    assert status(server, request(TO.replace("signed", "open"), BODY)) == 200, "signatures are optional"
    (message,) = program.messages("open")
    assert (message["authenticated"], message["signature_state"]) == (False, "none")
    assert status(server, signed(TO.replace("signed", "open"))) == 200
    (message,) = program.messages("open")
    assert message["authenticated"]


@pytest.mark.rule("SR-099")
def test_unsigned_to_a_queue_that_wants_signatures(server: Server, program: Program) -> None:
    assert status(server, request(TO, BODY)) == 400
    assert program.messages("signed") == []


def send_signed(program: Program, sink: Sink, body: bytes, extension: bytes = b"") -> None:
    """With the internal certificate of the user."""
    queue = program.connection.open(f"DIRECT={sink.url('private$/q')}", sync.Access.SEND)
    queue.send(Message(body=body, extension=extension, authentication=2))


def _without(tag: str) -> tuple[str, str]:
    return rf"<{tag}[ >].*?(</{tag}>|/>)", ""


FAULTS = (
    _without("SignedInfo"),
    _without("SignatureMethod"),
    _without("SignatureValue"),
    _without("Reference"),
    _without("DigestMethod"),
    _without("DigestValue"),
    (r"(<SignedInfo>.*</SignedInfo>)", r"\1\1"),
    (r"(<SignatureMethod.*?</SignatureMethod>)", r"\1\1"),
    (r"(<SignatureValue>.*</SignatureValue>)", r"\1\1"),
    (r"(<Reference.*?</Reference>)", r"\1\1"),
    (r"(<Reference.*?</Reference>)", r"\1\1\1"),
    (r"#dsa", r"#rsa-sha1"),
    (r"#sha1", r"#sha256"),
    (r"cid:body@", r"cid:extension@"),
)


@pytest.mark.rule("SR-096", "SR-100", "SR-101", "SR-102", "SR-103")
@pytest.mark.parametrize(("pattern", "instead"), FAULTS)
def test_what_is_disregarded(server: Server, program: Program, pattern: str, instead: str) -> None:
    """The value is made over what then stands there, so that only the structure is wrong."""
    sender = uuid4()
    good = signature(reference(f"body@{sender}", BODY))
    text = re.sub(pattern, instead, good, flags=re.DOTALL)
    assert text != good
    info = re.search(r"<SignedInfo>.*</SignedInfo>", text, re.DOTALL)
    if info is not None and text.count("<SignatureValue>") == 1:
        signer = key("rsa-1024")
        assert isinstance(signer, rsa.RSAPrivateKey)
        value = b64encode(signer.sign(info[0].encode(), padding.PKCS1v15(), hashes.SHA1())).decode()
        text = re.sub(r"<SignatureValue>.*?<", f"<SignatureValue>{value}<", text)
    for queue in ("signed", "open"):
        to = TO.replace("signed", queue)
        assert status(server, request(to, BODY, sender=sender, tail=text)) == 400
        assert program.messages(queue) == []


@pytest.mark.rule("SR-104", "SR-105")
def test_one_bit_of_body_value_or_signed_text(server: Server, program: Program) -> None:
    sender = uuid4()
    good = signature(reference(f"body@{sender}", BODY))
    flipped = BODY[:3] + bytes((BODY[3] ^ 4,)) + BODY[4:]
    assert status(server, request(TO, flipped, sender=sender, tail=good)) == 400
    value = re.search(r"<SignatureValue>(.*)</SignatureValue>", good)
    assert value is not None
    wrong = bytearray(b64decode(value[1]))
    wrong[40] ^= 1
    text = good.replace(value[1], b64encode(wrong).decode())
    assert status(server, request(TO, BODY, sender=sender, tail=text)) == 400
    text = good.replace("></SignatureMethod>", " ></SignatureMethod>")
    assert text != good
    assert status(server, request(TO, BODY, sender=sender, tail=text)) == 400
    assert program.messages("signed") == []
    assert status(server, request(TO, BODY, sender=sender, tail=good)) == 200
    assert len(program.messages("signed")) == 1


@pytest.fixture(scope="module")
def made(program: Program) -> dict[str, Any]:
    """The internal certificate of this user."""
    return program.connection.admin.certificates.create().as_map()


@pytest.mark.usefixtures("made")
def test_a_registered_certificate_without_key_info(server: Server, program: Program) -> None:
    """What one server signs another one believes, whose user has that certificate."""
    with Sink() as sink:
        send_signed(program, sink, b"hello")
        sent = sink.sent(1)[0]
    found = re.search("<Signature .*</Signature>", sent.envelope.decode())
    assert found is not None
    sender = UUID(sent.fields["Msmq/SourceQmGuid"])
    assert "KeyInfo" not in found[0]
    assert status(server, request(TO, b"hello", sender=sender, tail=found[0])) == 200
    (message,) = program.messages("signed")
    assert message["authenticated"]
    assert message["sender_id_b64"]


@pytest.mark.rule("SR-095", "SR-097", "SR-098", "SR-106")
@pytest.mark.parametrize(
    ("body", "extension"), [(b"hello", b""), (b"hello", b"more"), (b"", b"more"), (b"", b"")]
)
def test_what_leaves_signed(
    server: Server, program: Program, made: dict[str, Any], body: bytes, extension: bytes
) -> None:
    """Byte for byte as 3.1.7.2.4 has it, and right by the certificate."""
    with Sink() as sink:
        send_signed(program, sink, body, extension)
        sent = sink.sent(1)[0]
    guid = server.ready["guid"]
    references = ""
    for name, content in (("body", body), ("extension", extension)):
        if content:
            references += reference(f"{name}@{guid}", content)
    info = f'<SignedInfo><SignatureMethod Algorithm="{NS}dsa"></SignatureMethod>{references}</SignedInfo>'
    value = sent.fields["Signature/SignatureValue"]
    element = f'<Signature xmlns="{NS}">{info}<SignatureValue>{value}</SignatureValue></Signature>'
    assert f"{element}</se:Header>" in sent.envelope.decode()
    public = x509.load_der_x509_certificate(made["certificate"]).public_key()
    assert isinstance(public, rsa.RSAPublicKey)
    public.verify(b64decode(value), info.encode(), padding.PKCS1v15(), hashes.SHA1())
    assert sent.fields["Msmq/HashAlgorithm"] == "32772"
