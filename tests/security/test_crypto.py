"""RC2, RC4, MD2, MD4 and the AES of message bodies: published vectors, other implementations, round trips."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from cryptography.hazmat.decrepit.ciphers import algorithms as decrepit
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast._native.crypto import RC2, RC4, md2, md4
from msmq_fast.protocol.properties import EncryptionAlgorithm
from msmq_fast.security.ciphers import body_cipher

unhex = bytes.fromhex
BODIES = st.binary(max_size=600)

# RFC 2268 section 5: key, effective bits, plain text, cipher text.
RC2_VECTORS = [
    ("0000000000000000", 63, "0000000000000000", "ebb773f993278eff"),
    ("ffffffffffffffff", 64, "ffffffffffffffff", "278b27e42e2f0d49"),
    ("3000000000000000", 64, "1000000000000001", "30649edf9be7d2c2"),
    ("88", 64, "0000000000000000", "61a8a244adacccf0"),
    ("88bca90e90875a", 64, "0000000000000000", "6ccf4308974c267f"),
    ("88bca90e90875a7f0f79c384627bafb2", 64, "0000000000000000", "1a807d272bbe5db1"),
    ("88bca90e90875a7f0f79c384627bafb2", 128, "0000000000000000", "2269552ab0f85ca6"),
    (
        "88bca90e90875a7f0f79c384627bafb216f80a6f85920584c42fceb0be255daf1e",
        129,
        "0000000000000000",
        "5b78d3a43dfff1f1",
    ),
]


@pytest.mark.rule("QB-254")
@pytest.mark.parametrize(("key", "bits", "plain", "encrypted"), RC2_VECTORS)
def test_rc2_vectors(key: str, bits: int, plain: str, encrypted: str) -> None:
    # The first block of CBC with a zero vector is that of ECB, which the vectors are for.
    assert RC2(unhex(key), bits).encrypt(unhex(plain))[:8].hex() == encrypted


# RFC 6229: key, offset, 16 bytes of the key stream there.
RC4_VECTORS = [
    ("0102030405", 0, "b2396305f03dc027ccc3524a0a1118a8"),
    ("0102030405", 16, "6982944f18fc82d589c403a47a0d0919"),
    ("0102030405", 240, "28cb1132c96ce286421dcaadb8b69eae"),
    ("0102030405060708090a0b0c0d0e0f10", 0, "9ac7cc9a609d1ef7b2932899cde41b97"),
    ("0102030405060708090a0b0c0d0e0f10", 240, "065902e4b620f6cc36c8589f66432f2b"),
]


@pytest.mark.parametrize(("key", "offset", "stream"), RC4_VECTORS)
def test_rc4_vectors(key: str, offset: int, stream: str) -> None:
    assert RC4(unhex(key)).apply(bytes(offset + 16))[offset:].hex() == stream


# FIPS 197 appendix C and SP 800-38A F.2 with a zero vector: the first block of CBC is that of ECB.
AES_VECTORS = [
    (EncryptionAlgorithm.AES_128, 16, "69c4e0d86a7b0430d8cdb78070b4c55a"),
    (EncryptionAlgorithm.AES_192, 24, "dda97ca4864cdfe06eaf70a0ec0d7191"),
    (EncryptionAlgorithm.AES_256, 32, "8ea2b7ca516745bfeafc49904b496089"),
]


@pytest.mark.rule("QB-254")
@pytest.mark.parametrize(("algorithm", "size", "encrypted"), AES_VECTORS)
def test_aes_vectors(algorithm: EncryptionAlgorithm, size: int, encrypted: str) -> None:
    cipher = body_cipher(algorithm, bytes(range(size)), 8 * size)
    assert cipher.encrypt(unhex("00112233445566778899aabbccddeeff"))[:16].hex() == encrypted


# RFC 1319 A.5, RFC 1320 A.5.
@pytest.mark.parametrize(
    ("text", "two", "four"),
    [
        (b"", "8350e5a3e24c153df2275c9f80692773", "31d6cfe0d16ae931b73c59d7e0c089c0"),
        (b"a", "32ec01ec4a6dac72c0ab96fb34c0b5d1", "bde52cb31de33e46245e05fbdbd6fb24"),
        (b"abc", "da853b0d3f88d99b30283a69e6ded6bb", "a448017aaf21d8525fc10ae87aa6729d"),
        (b"message digest", "ab4f496bfb2a530b219ff33031fe06b0", "d9130a8164549fe818874806e1c7014b"),
        (b"1234567890" * 8, "d5976f79d83d3a0dc9806c3c66f3efd8", "e33b4ddc9c38f2199c3e7b164fcc0536"),
    ],
)
def test_old_digests(text: bytes, two: str, four: str) -> None:
    assert (md2(text).hex(), md4(text).hex()) == (two, four)


def pi() -> Iterator[int]:
    """The digits of pi (Gibbons)."""
    q, r, t, k, n, x = 1, 0, 1, 1, 3, 3
    while True:
        if 4 * q + r - t < n * t:
            yield n
            q, r, n = 10 * q, 10 * (r - n * t), 10 * (3 * q + r) // t - 10 * n
        else:
            q, r, t, k, n, x = q * k, (2 * q + r) * x, t * x, k + 1, (q * 7 * k + 2 + r * x) // (t * x), x + 2


def md2_model(data: bytes) -> bytes:
    """RFC 1319 from its text, with the substitution drawn from pi."""
    digits, table = pi(), list(range(256))

    def below(limit: int) -> int:
        while True:
            count = len(str(limit - 1)) if limit > 10 else 1
            value = int("".join(str(next(digits)) for _ in range(count)))
            if value < limit * (10**count // limit):
                return value % limit

    for index in range(2, 257):
        other = below(index)
        table[other], table[index - 1] = table[index - 1], table[other]
    data += bytes((16 - len(data) % 16,)) * (16 - len(data) % 16)
    sums, last = [0] * 16, 0
    for start in range(0, len(data), 16):
        for index in range(16):
            sums[index] ^= table[data[start + index] ^ last]
            last = sums[index]
    data += bytes(sums)
    state = [0] * 48
    for start in range(0, len(data), 16):
        block = data[start : start + 16]
        state = state[:16] + list(block) + [a ^ b for a, b in zip(state, block, strict=False)]
        t = 0
        for turn in range(18):
            for index in range(48):
                t = state[index] = state[index] ^ table[t]
            t = (t + turn) % 256
    return bytes(state[:16])


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 63, 64])
def test_md2_against_a_model(size: int) -> None:
    data = bytes(range(size))
    assert md2(data) == md2_model(data)


@pytest.mark.rule("QB-254")
@given(st.binary(min_size=16, max_size=16), BODIES)
@settings(max_examples=200)
def test_against_the_library(key: bytes, body: bytes) -> None:
    pad = 8 - len(body) % 8
    oracle = Cipher(decrepit.RC2(key), modes.CBC(bytes(8))).encryptor()
    encrypted = oracle.update(body + bytes((pad,)) * pad)
    assert RC2(key, 128).encrypt(body) == encrypted
    assert RC2(key, 128).decrypt(encrypted) == body
    assert RC4(key).apply(body) == Cipher(decrepit.ARC4(key), None).encryptor().update(body)


@given(
    st.sampled_from([EncryptionAlgorithm.AES_128, EncryptionAlgorithm.AES_192, EncryptionAlgorithm.AES_256]),
    st.lists(BODIES, min_size=1, max_size=6),
    st.data(),
)
@settings(max_examples=100)
def test_aes_of_many_bodies(algorithm: EncryptionAlgorithm, bodies: list[bytes], data: st.DataObject) -> None:
    size = {EncryptionAlgorithm.AES_128: 16, EncryptionAlgorithm.AES_192: 24}.get(algorithm, 32)
    key = data.draw(st.binary(min_size=size, max_size=size))
    ours = body_cipher(algorithm, key, 8 * size)
    for body in bodies:
        pad = 16 - len(body) % 16
        whole = body + bytes((pad,)) * pad
        expected = Cipher(algorithms.AES(key), modes.CBC(bytes(16))).encryptor().update(whole)
        assert ours.encrypt(body) == expected
        assert ours.decrypt(expected) == body
        with pytest.raises(ValueError):
            ours.decrypt(expected[:-1])
        broken = expected[:-1] + bytes((expected[-1] ^ 1,))
        oracle = Cipher(algorithms.AES(key), modes.CBC(bytes(16))).decryptor().update(broken)
        if oracle[-oracle[-1] :] != bytes((oracle[-1],)) * oracle[-1] or not 1 <= oracle[-1] <= 16:
            with pytest.raises(ValueError):
                ours.decrypt(broken)


@given(st.binary(min_size=1, max_size=128), st.integers(1, 1024), BODIES)
def test_rc2_round_trip(key: bytes, bits: int, body: bytes) -> None:
    cipher = RC2(key, bits)
    encrypted = cipher.encrypt(body)
    assert len(encrypted) % 8 == 0
    assert len(body) < len(encrypted) <= len(body) + 8
    assert RC2(key, bits).decrypt(encrypted) == body


@pytest.mark.needs("openssl", rights=["legacy openssl"])
@pytest.mark.parametrize("name", ["rc2-40-cbc", "rc2-64-cbc", "rc2-cbc", "rc4", "rc4-40", "aes-256-cbc"])
def test_against_the_openssl_command(name: str) -> None:
    size = {"rc2-40-cbc": 5, "rc2-64-cbc": 8, "rc4-40": 5, "aes-256-cbc": 32}.get(name, 16)
    key, body = bytes(range(100, 100 + size)), bytes(range(256)) * 5 + b"end"
    command = ["openssl", "enc", f"-{name}", "-provider", "legacy", "-provider", "default", "-K", key.hex()]
    if "cbc" in name:
        command += ["-iv", "00" * (16 if "aes" in name else 8)]
    done = subprocess.run(command, input=body, capture_output=True, check=True)
    if name.startswith("rc4"):
        assert RC4(key).apply(body) == done.stdout
    elif name.startswith("rc2"):
        assert RC2(key, 8 * size).encrypt(body) == done.stdout
    else:
        assert body_cipher(EncryptionAlgorithm.AES_256, key, 256).encrypt(body) == done.stdout


def test_refused_keys_and_bodies() -> None:
    for key, bits in ((b"", 40), (bytes(129), 40), (b"12345", 0), (b"12345", 1025)):
        with pytest.raises(ValueError):
            RC2(key, bits)
    for key in (b"", bytes(257)):
        with pytest.raises(ValueError):
            RC4(key)
    for body in (b"", bytes(7), bytes(9)):
        with pytest.raises(ValueError):
            RC2(b"12345", 40).decrypt(body)
    for padding in (b"\0" * 8, b"\1" * 7 + b"\2", b"\x08" * 7 + b"\x07", b"\x09" * 8):
        forged = RC2(b"12345", 40).encrypt(padding)[:8]
        with pytest.raises(ValueError):
            RC2(b"12345", 40).decrypt(forged)
    with pytest.raises(ValueError):
        body_cipher(EncryptionAlgorithm.AES_256, bytes(16), 256)
