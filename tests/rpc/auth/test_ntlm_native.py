"""Signing and sealing in native code against the formulas of MS-NLMP 3.4, message by message."""

import hashlib
import hmac
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast._native.crypto import RC4
from msmq_fast._native.ntlm import MessageSecurity, hmac_md5, md5
from tests.support.rpc.parties import pdu

SEALING, SIGNING = bytes(range(16)), bytes(range(100, 116))


class Reference:
    """One direction, with a key stream that is drawn in advance."""

    def __init__(self, key_exchange: bool) -> None:
        self.stream = RC4(SEALING).apply(bytes(200_000))
        self.key_exchange = key_exchange
        self.at = self.sequence = 0

    def rc4(self, data: bytes) -> bytes:
        stream = self.stream[self.at : self.at + len(data)]
        self.at += len(data)
        return bytes(a ^ b for a, b in zip(data, stream, strict=True))

    def protect(self, header: bytes, stub: bytes, trailer: bytes, privacy: bool) -> tuple[bytes, bytes]:
        number = struct.pack("<I", self.sequence)
        self.sequence += 1
        sent = self.rc4(stub) if privacy else stub
        checksum = hmac.digest(SIGNING, number + header + stub + trailer, "md5")[:8]
        if self.key_exchange:
            checksum = self.rc4(checksum)
        return sent, b"\1\0\0\0" + checksum + number


MESSAGE = st.tuples(
    st.integers(0, 90), st.integers(0, 200) | st.integers(240, 6000), st.integers(0, 20), st.booleans()
)


@given(st.booleans(), st.lists(MESSAGE, max_size=6), st.randoms(use_true_random=False))
def test_messages_are_those_of_the_formulas(
    key_exchange: bool, messages: list[tuple[int, int, int, bool]], random: object
) -> None:
    sender = MessageSecurity(SEALING, SIGNING, key_exchange)
    receiver = MessageSecurity(SEALING, SIGNING, key_exchange)
    reference = Reference(key_exchange)
    for head, size, tail, privacy in messages:
        header, stub, trailer = (random.randbytes(n) for n in (head, size, tail))  # type: ignore[attr-defined]
        expected = reference.protect(header, stub, trailer, privacy)
        assert sender.protect(memoryview(header), bytearray(stub), trailer, privacy) == expected
        assert receiver.unprotect(header, memoryview(expected[0]), trailer, expected[1], privacy) == stub


@given(st.lists(st.tuples(st.integers(0, 700), st.booleans()), min_size=1, max_size=5), st.booleans())
def test_pdus_in_place_are_the_same_as_one_by_one(sizes: list[tuple[int, bool]], privacy: bool) -> None:
    whole = b"".join(pdu(bytes(i & 255 for i in range(n)), 16, big_endian=big) for n, big in sizes)
    one, other = (MessageSecurity(SEALING, SIGNING, True) for _ in range(2))
    expected = b""
    at = 0
    for size, _ in sizes:
        head, stub, trailer = (
            whole[at : at + 24],
            whole[at + 24 : at + 24 + size],
            whole[at + 24 + size :][:8],
        )
        sent, token = one.protect(head, stub, trailer, privacy)
        expected += head + sent + trailer + token
        at += 24 + size + 24
    buffer = bytearray(whole)
    other.protect_pdus(memoryview(buffer), 24, privacy)
    assert buffer == expected
    MessageSecurity(SEALING, SIGNING, True).unprotect_pdus(buffer, 24, privacy)
    at = 0
    for size, _ in sizes:
        end = at + 24 + size + 8
        assert buffer[at:end] == whole[at:end]
        at = end + 16


@given(st.binary(max_size=300), st.binary(max_size=150), st.integers(0, 300))
def test_digests_are_those_of_the_library(data: bytes, key: bytes, cut: int) -> None:
    assert md5(data) == hashlib.md5(data, usedforsecurity=False).digest()
    assert hmac_md5(key, data[:cut], data[cut:]) == hmac.digest(key, data, "md5")


@pytest.mark.parametrize("keys", [(b"", SIGNING), (SEALING, SIGNING[:15])])
def test_keys_have_16_bytes(keys: tuple[bytes, bytes]) -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        MessageSecurity(*keys, True)
    with pytest.raises(ValueError, match="16 bytes"):
        MessageSecurity(SEALING, SIGNING, True).restart(b"short")


def test_what_is_read_only_cannot_be_protected_in_place() -> None:
    with pytest.raises((ValueError, BufferError)):
        MessageSecurity(SEALING, SIGNING, True).protect_pdus(bytes(pdu(b"", 16)), 24, True)
