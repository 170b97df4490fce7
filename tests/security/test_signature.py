"""Signatures of MSMQ 1.0, 2.0 and 3.0: lists of fields, algorithms, the open choices, flipped bits."""

from __future__ import annotations

import hashlib
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from msmq_fast._native.crypto import md2, md4
from msmq_fast._native.framing import ParsedMessage
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.packet.protect import protected, with_multi_signature
from msmq_fast.protocol.properties import HashAlgorithm
from msmq_fast.security.algorithms import SignatureType
from msmq_fast.security.signature import multi_signature, sign, signed_parts, verify
from msmq_fast.security.switches import NameForm, SecuritySwitches
from tests.security.packets import SOURCE, TARGET, header, message, parsed

KEY = rsa.generate_private_key(65537, 1024)
DEFAULT = SecuritySwitches()
ONE, TWO, THREE = SignatureType.MSMQ_1, SignatureType.MSMQ_2, SignatureType.MSMQ_3
LISTS = (parse_format_name("DIRECT=OS:a\\private$\\x"), parse_format_name(f"PUBLIC={TARGET}"))


def signed(
    kind: SignatureType,
    algorithm: HashAlgorithm = HashAlgorithm.SHA512,
    switches: SecuritySwitches = DEFAULT,
    **properties: Any,
) -> ParsedMessage:
    """A message with the signature that its sender puts on it."""
    if kind is THREE:
        properties = {"destinations": LISTS, "response_queues": LISTS[:1]} | properties
    clear = parsed(protected(parsed(message(**properties)), header(), hash_algorithm=algorithm))
    signature = sign(clear, kind, algorithm, KEY, switches)
    if kind is THREE:
        return parsed(with_multi_signature(clear, signature))
    return parsed(protected(clear, header(signature=signature, certificate=b"not looked at")))


def check(
    packet: ParsedMessage, algorithm: HashAlgorithm, switches: SecuritySwitches = DEFAULT
) -> SignatureType:
    return verify(packet, algorithm, KEY.public_key(), switches)


@pytest.mark.rule("QB-238", "QB-239", "QB-240", "QB-339", "QB-340")
@pytest.mark.parametrize("kind", [ONE, TWO, THREE])
@pytest.mark.parametrize("algorithm", list(HashAlgorithm))
def test_round_trip(kind: SignatureType, algorithm: HashAlgorithm) -> None:
    packet = signed(kind, algorithm)
    assert check(packet, algorithm) is kind
    other = next(each for each in HashAlgorithm if each is not algorithm)
    assert check(packet, other) is SignatureType.NONE


def field(text: str) -> bytes:
    """A direct name as the UserHeader holds it, written by hand."""
    name = (text + "\0").encode("utf-16-le")
    whole = struct.pack("<H", len(name)) + name
    return whole + bytes(-len(whole) % 4)


@pytest.mark.rule("QB-238", "QB-239", "QB-240")
def test_what_is_hashed() -> None:
    """The three lists written by hand from MS-MQMQ 2.5."""
    head = [
        bytes(range(20)),
        struct.pack("<I", 0x01020304),
        b"the body of the message",
        "a label\0".encode("utf-16-le"),
        SOURCE.bytes_le,
        field("OS:here\\private$\\acks"),
    ]
    tail = [SOURCE.bytes_le, bytes((1, 5, 1, 6)), bytes(2), struct.pack("<I", 8), bytes(UUID_99)]
    simple = parsed(message())
    assert b"".join(signed_parts(simple, ONE, DEFAULT)) == b"".join(head)
    assert b"".join(signed_parts(simple, TWO, DEFAULT)) == b"".join([*head, *tail, struct.pack("<I", 7)])
    names = struct.pack("<H", 3) + "OS:a\\private$\\x\0".encode("utf-16-le") + struct.pack("<H", 1)
    names += bytes(-(12 + len(names)) % 4) + TARGET.bytes_le
    several = parsed(message(destinations=LISTS))
    assert b"".join(signed_parts(several, THREE, DEFAULT)) == b"".join([*head, b"extension", names, *tail])


UUID_99 = message().connector_type.bytes_le  # type: ignore[union-attr]


@pytest.mark.parametrize("algorithm", [HashAlgorithm.MD5, HashAlgorithm.SHA1, HashAlgorithm.SHA256])
def test_other_implementation_verifies(algorithm: HashAlgorithm) -> None:
    """PKCS #1 v1.5 over the fields, byte-reversed: `cryptography` computes hash and padding."""
    packet = signed(TWO, algorithm)
    start = packet.signature_offset
    signature = packet.packet[start : start + packet.signature_length][::-1]
    content = b"".join(signed_parts(packet, TWO, DEFAULT))
    named = {
        HashAlgorithm.MD5: hashes.MD5(),
        HashAlgorithm.SHA1: hashes.SHA1(),
        HashAlgorithm.SHA256: hashes.SHA256(),
    }[algorithm]
    KEY.public_key().verify(signature, content, padding.PKCS1v15(), named)
    theirs = KEY.sign(content, padding.PKCS1v15(), named)
    assert theirs == signature


@pytest.mark.needs("openssl")
def test_the_openssl_command_verifies(tmp_path: Path) -> None:
    packet = signed(ONE)
    start = packet.signature_offset
    (tmp_path / "signature").write_bytes(packet.packet[start : start + packet.signature_length][::-1])
    (tmp_path / "content").write_bytes(b"".join(signed_parts(packet, ONE, DEFAULT)))
    (tmp_path / "key").write_bytes(
        KEY.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    program = shutil.which("openssl") or "openssl"
    command = [program, "dgst", "-sha512", "-verify", "key", "-signature", "signature", "content"]
    assert subprocess.run(command, cwd=tmp_path, check=False, capture_output=True).returncode == 0


def test_digest_info_of_every_algorithm() -> None:
    """What is inside the signature, taken out with bare numbers."""
    public = KEY.public_key().public_numbers()
    for algorithm, compute in {
        HashAlgorithm.MD2: md2,
        HashAlgorithm.MD4: md4,
        HashAlgorithm.SHA512: lambda data: hashlib.sha512(data).digest(),
    }.items():
        packet = signed(TWO, algorithm)
        start = packet.signature_offset
        number = int.from_bytes(packet.packet[start : start + 128], "little")
        block = pow(number, public.e, public.n).to_bytes(128)
        assert block.startswith(b"\0\1\xff\xff")
        assert block.endswith(compute(b"".join(signed_parts(packet, TWO, DEFAULT))))


# What each list covers, as changes of the message after it was signed.
CHANGES: dict[str, dict[str, Any]] = {
    "correlation": {"correlation_id": bytes(20)},
    "application": {"app_specific": 1},
    "body": {"body": b"the body of the massage"},
    "label": {"label": "another"},
    "response": {"response_queue": parse_format_name(f"PUBLIC={TARGET}")},
    "admin": {"admin_queue": parse_format_name("DIRECT=OS:there\\private$\\acks")},
}
IN_TWO: dict[str, dict[str, Any]] = {
    "source": {"source_machine": TARGET},
    "delivery": {"delivery": 0},
    "priority": {"priority": 6},
    "journal": {"journal": 3},
    "acknowledge": {"acknowledge": 4},
    "class": {"message_class": 1},
    "body type": {"body_type": 9},
    "connector": {"connector_type": TARGET},
}
DESTINATION = {"destination": parse_format_name(f"PRIVATE={TARGET}\\00000008")}
IN_THREE: dict[str, dict[str, Any]] = {
    "extension": {"extension": b"extensiom"},
    "names": {"destinations": LISTS[:1]},
}
CASES = [
    *[(ONE, name, change) for name, change in CHANGES.items()],
    *[(TWO, name, change) for name, change in (CHANGES | IN_TWO | {"destination": DESTINATION}).items()],
    *[(THREE, name, change) for name, change in (CHANGES | IN_TWO | IN_THREE).items()],
]


@pytest.mark.parametrize(("kind", "name", "change"), CASES)
def test_a_change_is_noticed(kind: SignatureType, name: str, change: dict[str, Any]) -> None:
    original = signed(kind)
    if kind is THREE:
        change = {"destinations": LISTS, "response_queues": LISTS[:1]} | change
        forged = with_multi_signature(
            parsed(protected(parsed(message(**change)), header())), multi_signature(original)
        )
    else:
        start = original.signature_offset
        signature = original.packet[start : start + original.signature_length]
        forged = protected(parsed(message(**change)), header(signature=signature))
    assert check(parsed(forged), HashAlgorithm.SHA512) is SignatureType.NONE


@pytest.mark.parametrize("bit", [0, 7, 100, 512, 1023])
def test_a_bit_of_the_signature(bit: int) -> None:
    packet = signed(TWO)
    broken = bytearray(packet.packet)
    broken[packet.signature_offset + bit // 8] ^= 1 << bit % 8
    assert check(parsed(bytes(broken)), HashAlgorithm.SHA512) is SignatureType.NONE


SWITCHES = [
    replace(DEFAULT, amb82_names=NameForm.CONTENT),
    replace(DEFAULT, amb82_names=NameForm.TEXT),
    replace(DEFAULT, amb82_names=NameForm.TEXT_NUL),
    replace(DEFAULT, amb82_label_nul=False),
    replace(DEFAULT, amb82_reversed=False),
]


@pytest.mark.parametrize("switches", SWITCHES)
def test_each_open_choice_makes_another_signature(switches: SecuritySwitches) -> None:
    for kind in (ONE, TWO, THREE):
        packet = signed(kind, switches=switches)
        assert check(packet, HashAlgorithm.SHA512, switches) is kind
        assert check(packet, HashAlgorithm.SHA512) is SignatureType.NONE


def test_choices_that_concern_some_messages() -> None:
    zeros = replace(DEFAULT, amb82_absent_connector=True)
    packet = signed(TWO, switches=zeros, connector_type=None)
    assert check(packet, HashAlgorithm.SHA512, zeros) is TWO
    assert check(packet, HashAlgorithm.SHA512) is SignatureType.NONE
    lists = replace(DEFAULT, amb82_all_lists=True)
    packet = signed(THREE, switches=lists)
    assert check(packet, HashAlgorithm.SHA512, lists) is THREE
    assert check(packet, HashAlgorithm.SHA512) is SignatureType.NONE


def test_a_key_too_short_for_the_hash() -> None:
    numbers = short_key()
    with pytest.raises(ValueError):
        sign(parsed(message()), TWO, HashAlgorithm.SHA512, numbers, DEFAULT)
    assert len(sign(parsed(message()), TWO, HashAlgorithm.SHA1, numbers, DEFAULT)) == 64


def short_key() -> rsa.RSAPrivateKey:
    """512 bits, as the base provider has them."""
    from msmq_fast.security.rsakeys import generate

    return generate(512)


def test_messages_without_a_signature() -> None:
    for properties in ({}, {"destinations": LISTS}):
        plain: Message = message(**properties)
        assert check(parsed(plain), HashAlgorithm.SHA512) is SignatureType.NONE
