"""Signed messages from a scripted sender, whose signature is made here by the document (MS-MQMQ 2.5.2)."""

from __future__ import annotations

import datetime
import hashlib
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa, utils
from cryptography.x509.oid import NameOID

from tests.support.mqqb import frames
from tests.support.mqqb.frames import DEAD_LETTER, direct
from tests.support.mqqb.peer import Peer
from tests.support.processes.servers import Server

pytestmark = pytest.mark.long(seconds=6)

SIGNER = "S-1-5-21-3181267629-1039849782-3663111779-1000"  # frames.SID
DEFAULT_PROVIDER = 0x40
QUEUE = direct(r"OS:server\private$\sealed")
BODY = b"what was signed"


class Author:
    """A key, its certificate, and messages that are signed with it."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(65537, 1024)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "author")])
        now = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(name)
        builder = builder.public_key(self.key.public_key()).serial_number(7)
        builder = builder.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=20_000))
        self.certificate = builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)

    def signature(self, peer: Peer, admin: frames.Name, acks: int, journal: int) -> bytes:
        """Over the properties of MSMQ 2.0, in order; the label with its NUL, names as the packet has them."""
        flags = struct.pack("<BBBB", 1, 3, journal, acks)
        covered = bytes(20) + struct.pack("<I", 42) + BODY + "label\0".encode("utf-16-le") + admin.content
        covered += peer.guid.bytes_le + flags + struct.pack("<HI", 0, 8) + QUEUE.content
        digest = hashlib.sha512(covered).digest()
        made = self.key.sign(digest, padding.PKCS1v15(), utils.Prehashed(hashes.SHA512()))
        return made[::-1]

    def message(self, peer: Peer, **fields: Any) -> bytes:
        """A recoverable message that asks to hear of a refusal."""
        admin, acks = peer.queue("acks"), frames.NO_REACH
        signature = self.signature(peer, admin, acks, DEAD_LETTER)
        secure = frames.security(
            flags=DEFAULT_PROVIDER,
            signature=signature,
            certificate=fields.pop("certificate", self.certificate),
        )
        given = {"body": BODY, "label": "label", "recoverable": True, "journal": DEAD_LETTER} | fields
        return peer.message(QUEUE, admin=admin, acks=acks, secure=secure, **given)


@pytest.fixture(scope="module")
def author() -> Author:
    return Author()


@pytest.fixture
def sealed(start: Callable[..., Server], author: Author, tmp_path: Path) -> Server:
    """A server that knows the author, with a queue that takes signed messages only."""
    server = start("sealed --authenticated", insecure_nacks="true")
    file = tmp_path / "author.cer"
    file.write_bytes(author.certificate)
    server.ok("certificate", "register", str(file), "--user", SIGNER)
    return server


@pytest.mark.rule("QB-238", "QB-241", "QB-243", "QB-244", "QB-261")
def test_a_signature_is_believed_and_a_changed_message_is_not(
    sealed: Server, peer: Peer, author: Author
) -> None:
    """Short cut "the SecurityHeader is ignored": one byte of the body, of the label, of what it asks for."""
    line = peer.dial(sealed.host, sealed.port("mqqb"))
    line.say(author.message(peer))
    line.acked(1)
    (found,) = sealed.messages("sealed")
    assert found["authenticated"] is True
    packet = author.message(peer)
    at = packet.index(BODY)
    changed = {
        "body": packet[:at] + b"W" + packet[at + 1 :],
        "label": author.message(peer, label="Label"),
        "priority": packet[:2] + b"\x04" + packet[3:],
        "class": author.message(peer, kind=1),
        "unsigned": peer.message(
            QUEUE, admin=peer.queue("acks"), acks=frames.NO_REACH, secure=frames.security(), recoverable=True
        ),
    }
    for what, wrong in changed.items():
        line.say(wrong)
        answer = line.message()
        assert answer.kind == 0x8006, what
        line.acknowledge()
    assert sealed.messages("sealed") == []


@pytest.mark.rule("QB-246")
def test_a_signature_of_somebody_whom_nobody_knows_is_not_believed(sealed: Server, peer: Peer) -> None:
    line = peer.dial(sealed.host, sealed.port("mqqb"))
    line.say(Author().message(peer))
    assert line.message().kind == 0x8006
    assert sealed.messages("sealed") == []
