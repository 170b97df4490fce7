"""Session keys: choice of the provider, blobs, caches and their timers, every algorithm there and back."""

from __future__ import annotations

import random
import struct
from typing import Any
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.protocol.properties import EncryptionAlgorithm
from msmq_fast.security.agingcache import AgingCache
from msmq_fast.security.algorithms import BASE, ENHANCED, ENHANCED_AES, PROVIDERS, Provider
from msmq_fast.security.blobs import (
    PublicKeyEntry,
    RsaPublicKey,
    UserCertificate,
    read_key_list,
    read_simple_blob,
    read_user_certificates,
    simple_blob,
    write_key_list,
    write_user_certificates,
)
from msmq_fast.security.encryption import (
    EncryptionError,
    EncryptionPolicy,
    Failure,
    ReceivedKeys,
    SentKeys,
    SessionKey,
)
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.rsakeys import from_der, from_pem, generate, public_part, to_der
from msmq_fast.security.switches import SecuritySwitches
from tests.security.packets import SOURCE, TARGET

KEYS = {provider: generate(provider.rsa_bits) for provider in PROVIDERS}
BODY = b"a body of some length, odd at the end"


def listed(*providers: Provider) -> bytes:
    """MQDSPUBLICKEYS with keys of these providers."""
    return write_key_list(PublicKeyEntry(p.name, p.type, public_part(KEYS[p])) for p in providers)


def sender(*providers: Provider, **policy: Any) -> SentKeys:
    switches = policy.pop("switches", None)
    return SentKeys(
        lambda _: listed(*providers) if providers else None,
        random.Random(1).randbytes,
        EncryptionPolicy(**policy),
        switches,
    )


def failure(call: Any, *arguments: Any) -> Failure:
    with pytest.raises(EncryptionError) as caught:
        call(*arguments)
    return caught.value.failure


# ---- every provider and algorithm


ALL = [(provider, algorithm) for provider in PROVIDERS for algorithm in provider.session_bits]


@pytest.mark.rule("QB-248", "QB-251", "QB-254", "QB-348", "QB-074")
@pytest.mark.parametrize(("provider", "algorithm"), ALL)
def test_there_and_back(provider: Provider, algorithm: EncryptionAlgorithm) -> None:
    keys = sender(provider, preferred={provider: algorithm})
    sent = keys.key_for(TARGET, provider.level, 0.0)
    assert (sent.provider, sent.algorithm) == (provider, algorithm)
    assert sent.blob[:4] == bytes((1, 2, 0, 0))
    assert struct.unpack_from("<II", sent.blob, 4) == (algorithm, 0xA400)
    # The key itself, taken out by another implementation: RSA of the library, bytes reversed.
    key = KEYS[provider].decrypt(sent.blob[12:][::-1], padding.PKCS1v15())
    assert len(key) * 8 == provider.session_bits[algorithm]
    encrypted = sent.cipher.encrypt(BODY)
    received = ReceivedKeys(KEYS).key_of(provider.level, algorithm, SOURCE.bytes_le, sent.blob, 0.0)
    assert received.cipher.decrypt(encrypted) == BODY
    other = next(each for each in EncryptionAlgorithm if each is not algorithm)
    if other in provider.session_bits:
        refused = failure(ReceivedKeys(KEYS).key_of, provider.level, other, SOURCE.bytes_le, sent.blob, 0.0)
        assert refused is Failure.BAD_KEY


@pytest.mark.rule("QB-075")
@pytest.mark.parametrize("bits", [512, 1024, 2048])
def test_the_blob_is_as_long_as_the_modulus(bits: int) -> None:
    key = generate(bits)
    blob = simple_blob(0x6801, key.public_key().encrypt(b"0123456789abcdef", padding.PKCS1v15()))
    assert len(blob) == 12 + bits // 8
    received = ReceivedKeys({ENHANCED: key}).key_of(3, 0x6801, SOURCE.bytes_le, blob, 0.0)
    assert received.cipher.decrypt(received.cipher.encrypt(BODY)) == BODY
    for wrong in (blob[:-1], blob + b"\0"):
        refused = failure(ReceivedKeys({ENHANCED: key}).key_of, 3, 0x6801, SOURCE.bytes_le, wrong, 0.0)
        assert refused is Failure.BAD_KEY


@pytest.mark.rule("QB-249")
@pytest.mark.parametrize("level", [0, 2, 4, 6, 0xFFFFFFFF])
def test_other_levels(level: int) -> None:
    blob = sender(ENHANCED).key_for(TARGET, 3, 0.0).blob
    assert failure(ReceivedKeys(KEYS).key_of, level, 0x6801, SOURCE.bytes_le, blob, 0.0) is Failure.BAD_LEVEL
    assert failure(sender(*PROVIDERS).key_for, TARGET, level, 0.0) is Failure.BAD_LEVEL


@pytest.mark.rule("QB-251", "QB-248")
def test_what_does_not_fit_a_level() -> None:
    blob = sender(ENHANCED).key_for(TARGET, 3, 0.0).blob
    keys = ReceivedKeys(KEYS)
    assert failure(keys.key_of, 3, 0x6610, SOURCE.bytes_le, blob, 0.0) is Failure.BAD_ALGORITHM
    assert failure(keys.key_of, 3, 0x6602, SOURCE.bytes_le, blob, 0.0) is Failure.BAD_KEY
    assert failure(keys.key_of, 5, 0x6801, SOURCE.bytes_le, blob, 0.0) is Failure.BAD_ALGORITHM
    for broken in (b"", blob[:20], bytes(len(blob)), blob[:1] + b"\3" + blob[2:]):
        assert failure(keys.key_of, 3, 0x6801, SOURCE.bytes_le, broken, 0.0) is Failure.BAD_KEY
    assert (
        failure(ReceivedKeys({}).key_of, 3, 0x6801, SOURCE.bytes_le, blob, 0.0)
        is Failure.UNSUPPORTED_PROVIDER
    )


# ---- the choice of the provider


@pytest.mark.rule("QB-344", "QB-345", "QB-346", "QB-401")
@pytest.mark.parametrize(
    ("has", "level", "chosen"),
    [
        (PROVIDERS, 1, ENHANCED_AES),
        (PROVIDERS, 3, ENHANCED_AES),
        (PROVIDERS, 5, ENHANCED_AES),
        ((BASE, ENHANCED), 1, ENHANCED),
        ((BASE, ENHANCED), 3, ENHANCED),
        ((BASE, ENHANCED), 5, None),
        ((BASE,), 1, BASE),
        ((BASE,), 3, None),
        ((BASE,), 5, None),
    ],
)
def test_the_best_provider(has: tuple[Provider, ...], level: int, chosen: Provider | None) -> None:
    keys = sender(*has)
    if chosen is None:
        assert failure(keys.key_for, TARGET, level, 0.0) is Failure.NO_PROVIDER
    else:
        found = keys.key_for(TARGET, level, 0.0)
        assert found.provider is chosen
        wanted = {BASE: 0x6801, ENHANCED: 0x6801, ENHANCED_AES: 0x6610}
        assert found.algorithm == wanted[chosen]


@pytest.mark.rule("QB-344", "QB-345", "QB-346")
@pytest.mark.parametrize(
    ("provider", "algorithm", "bits"),
    [
        (BASE, EncryptionAlgorithm.RC2, 40),
        (BASE, EncryptionAlgorithm.RC4, 40),
        (ENHANCED, EncryptionAlgorithm.RC2, 128),
        (ENHANCED, EncryptionAlgorithm.RC4, 128),
        (ENHANCED_AES, EncryptionAlgorithm.AES_128, 128),
        (ENHANCED_AES, EncryptionAlgorithm.AES_192, 192),
        (ENHANCED_AES, EncryptionAlgorithm.AES_256, 256),
    ],
)
def test_the_preferred_algorithm_and_the_length_of_its_keys(
    provider: Provider, algorithm: EncryptionAlgorithm, bits: int
) -> None:
    found = sender(provider, preferred={provider: algorithm}).key_for(TARGET, 1, 0.0)
    assert found.algorithm == algorithm
    assert 8 * len(KEYS[provider].decrypt(found.blob[12:][::-1], padding.PKCS1v15())) == bits


@pytest.mark.rule("QB-346", "QB-347")
def test_strictly_by_level() -> None:
    strict = SecuritySwitches(amb27_strict_level=True)
    keys = sender(*PROVIDERS, switches=strict)
    found = [keys.key_for(TARGET, level, 0.0) for level in (3, 1, 5, 3)]  # two have the same algorithm
    assert [key.provider for key in found] == [ENHANCED, BASE, ENHANCED_AES, ENHANCED]
    for level, provider in ((1, BASE), (3, ENHANCED), (5, ENHANCED_AES)):
        assert sender(*PROVIDERS, switches=strict).key_for(TARGET, level, 0.0).provider is provider
    assert failure(sender(ENHANCED_AES, switches=strict).key_for, TARGET, 3, 0.0) is Failure.NO_PROVIDER


@pytest.mark.rule("QB-074")
@pytest.mark.parametrize(
    ("level", "algorithm", "number"),
    [
        (1, EncryptionAlgorithm.RC2, 0x6602),
        (1, EncryptionAlgorithm.RC4, 0x6801),
        (5, EncryptionAlgorithm.AES_128, 0x660E),
        (5, EncryptionAlgorithm.AES_192, 0x660F),
        (5, EncryptionAlgorithm.AES_256, 0x6610),
    ],
)
def test_the_numbers_of_the_algorithms(level: int, algorithm: EncryptionAlgorithm, number: int) -> None:
    key = sender(BASE if level == 1 else ENHANCED_AES).key_for(TARGET, level, 0.0, algorithm)
    assert (key.algorithm, int.from_bytes(key.blob[4:8], "little")) == (number, number)


def test_an_algorithm_that_the_sender_wants() -> None:
    keys = sender(*PROVIDERS)
    assert keys.key_for(TARGET, 5, 0.0, EncryptionAlgorithm.AES_128).algorithm == 0x660E
    assert keys.key_for(TARGET, 5, 0.0, EncryptionAlgorithm.RC2).algorithm == 0x6610


@pytest.mark.rule("QB-342")
def test_unknown_keys() -> None:
    asked: list[UUID] = []

    def published(manager: UUID) -> bytes | None:
        asked.append(manager)
        return None if manager == SOURCE else listed(ENHANCED)

    keys = SentKeys(published, random.Random(1).randbytes)
    assert failure(keys.key_for, SOURCE, 1, 0.0) is Failure.NO_KEYS
    keys.key_for(TARGET, 1, 0.0)
    keys.key_for(TARGET, 1, 0.0)
    assert asked == [SOURCE, TARGET]
    keys.forget()  # its keys have changed
    keys.key_for(TARGET, 1, 0.0)
    assert asked == [SOURCE, TARGET, TARGET]
    damaged = SentKeys(lambda _: b"damaged", random.Random(1).randbytes)
    assert failure(damaged.key_for, TARGET, 1, 0.0) is Failure.NO_KEYS


@pytest.mark.rule("QB-089", "QB-090", "QB-253")
def test_rc2_of_forty_bits() -> None:
    rc2 = {ENHANCED: EncryptionAlgorithm.RC2}
    weak = sender(ENHANCED, preferred=rc2, send_enhanced_rc2_40=True).key_for(TARGET, 3, 0.0)
    strong = sender(ENHANCED, preferred=rc2).key_for(TARGET, 3, 0.0)
    key = KEYS[ENHANCED].decrypt(weak.blob[12:][::-1], padding.PKCS1v15())
    assert (len(key), key[5:]) == (16, bytes(11))
    assert (weak.weak, strong.weak) == (True, False)
    rc4 = {ENHANCED: EncryptionAlgorithm.RC4}
    assert not sender(ENHANCED, preferred=rc4, send_enhanced_rc2_40=True).key_for(TARGET, 3, 0.0).weak
    tolerant = ReceivedKeys(KEYS)
    found = tolerant.key_of(3, 0x6602, SOURCE.bytes_le, weak.blob, 0.0)
    assert found.cipher.decrypt(weak.cipher.encrypt(BODY)) == BODY
    strict = ReceivedKeys(KEYS, EncryptionPolicy(reject_enhanced_rc2_40=True))
    assert failure(strict.key_of, 3, 0x6602, SOURCE.bytes_le, weak.blob, 0.0) is Failure.WEAK_KEY
    assert failure(strict.key_of, 3, 0x6602, SOURCE.bytes_le, weak.blob, 0.0) is Failure.WEAK_KEY  # cached
    strict.key_of(3, 0x6602, SOURCE.bytes_le, strong.blob, 0.0)
    zeros = SentKeys(lambda _: listed(ENHANCED), bytes).key_for(TARGET, 3, 0.0)
    assert strict.key_of(3, 0x6801, SOURCE.bytes_le, zeros.blob, 0.0).weak  # as it may be for RC4


def test_the_salt_of_forty_bit_keys() -> None:
    bare = SecuritySwitches(amb83_salt=False)
    for algorithm in (EncryptionAlgorithm.RC2, EncryptionAlgorithm.RC4):
        sent = sender(BASE, preferred={BASE: algorithm}, switches=bare).key_for(TARGET, 1, 0.0)
        encrypted = sent.cipher.encrypt(BODY)
        found = ReceivedKeys(KEYS, switches=bare).key_of(1, algorithm, SOURCE.bytes_le, sent.blob, 0.0)
        assert found.cipher.decrypt(encrypted) == BODY
        salted = ReceivedKeys(KEYS).key_of(1, algorithm, SOURCE.bytes_le, sent.blob, 0.0)
        assert salted.cipher.encrypt(BODY) != encrypted


# ---- caches


@pytest.mark.rule("QB-347", "QB-349", "QB-077")
def test_keys_are_sent_again() -> None:
    keys = sender(*PROVIDERS)
    first = keys.key_for(TARGET, 5, 0.0)
    assert keys.key_for(TARGET, 5, 599.0) is first
    for provider in (BASE, ENHANCED):
        only = sender(provider)
        assert only.key_for(TARGET, provider.level, 599.0) is only.key_for(TARGET, provider.level, 0.0)
    assert keys.key_for(SOURCE, 5, 0.0) is not first
    assert keys.key_for(TARGET, 5, 0.0, EncryptionAlgorithm.AES_128) is not first
    assert keys.next_deadline() == 600.0
    keys.expire(600.0)
    assert keys.key_for(TARGET, 5, 600.0) is not first
    again = keys.key_for(TARGET, 5, 600.0)
    keys.forget()
    assert keys.key_for(TARGET, 5, 600.0) is not again
    for number in range(53):
        keys.key_for(UUID(int=number + 1), 5, 700.0)
    kept = [n for n in range(1, 54) if (ENHANCED_AES.name, 0x6610, UUID(int=n)) in keys.cache]
    assert kept == list(range(26, 54))  # the oldest half is gone
    assert len(keys.cache) == 28


class Counting(dict[Provider, rsa.RSAPrivateKey]):
    """Counts how often a private key is used."""

    used = 0

    def get(self, key: Any, default: Any = None) -> Any:
        self.used += 1
        return super().get(key, default)


@pytest.mark.rule("QB-250", "QB-252", "QB-076")
def test_keys_that_come_again_are_known() -> None:
    own = Counting(KEYS)
    keys = ReceivedKeys(own)
    blob = sender(ENHANCED).key_for(TARGET, 3, 0.0).blob
    first = keys.key_of(3, 0x6801, SOURCE.bytes_le, blob, 0.0)
    assert keys.key_of(3, 0x6801, SOURCE.bytes_le, blob, 500.0) is first
    assert own.used == 1
    keys.key_of(3, 0x6801, TARGET.bytes_le, blob, 0.0)
    assert own.used == 2
    assert keys.next_deadline() == 600.0
    for number in range(126):
        keys.key_of(3, 0x6801, UUID(int=number).bytes_le, blob, 1.0)
    assert len(keys.cache) == 128 - 63


@pytest.mark.rule("QB-250")
def test_a_key_is_found_by_its_provider_algorithm_sender_and_blob() -> None:
    key = KEYS[ENHANCED]
    own = Counting({BASE: key, ENHANCED: key})
    keys = ReceivedKeys(own, switches=SecuritySwitches(amb83_salt=False))
    secret = sender(ENHANCED).key_for(TARGET, 3, 0.0)
    found = keys.key_of(3, 0x6801, SOURCE.bytes_le, secret.blob, 0.0)
    another = SentKeys(lambda _: listed(ENHANCED), random.Random(2).randbytes).key_for(TARGET, 3, 0.0)
    assert another.blob != secret.blob
    assert keys.key_of(3, 0x6801, SOURCE.bytes_le, another.blob, 0.0) is not found
    assert failure(keys.key_of, 3, 0x6602, SOURCE.bytes_le, secret.blob, 0.0) is Failure.BAD_KEY
    # The key of 128 bits is none of the base provider, whose keys have 40.
    assert failure(keys.key_of, 1, 0x6801, SOURCE.bytes_le, secret.blob, 0.0) is Failure.BAD_BODY
    assert keys.key_of(3, 0x6801, SOURCE.bytes_le, secret.blob, 0.0) is found


@pytest.mark.rule("QB-318", "QB-319", "QB-320", "QB-252")
@pytest.mark.parametrize(("provider", "level"), [(BASE, 1), (ENHANCED, 3), (ENHANCED_AES, 5)])
def test_keys_that_are_too_old_are_made_and_opened_anew(provider: Provider, level: int) -> None:
    sent, own = sender(provider), Counting(KEYS)
    received = ReceivedKeys(own)

    def pair(manager: UUID, now: float) -> tuple[SessionKey, SessionKey]:
        made = sent.key_for(manager, level, now)
        return made, received.key_of(level, made.algorithm, manager.bytes_le, made.blob, now)

    old, young = pair(SOURCE, 0.0), pair(TARGET, 400.0)
    assert sent.next_deadline() == received.next_deadline() == 600.0
    for keys in (sent, received):
        keys.expire(599.9)
    assert (pair(SOURCE, 599.9), own.used) == (old, 2)
    for keys in (sent, received):
        keys.expire(600.0)
    assert sent.next_deadline() == received.next_deadline() == 600.0 + 600.0 + 60.0 - 200.0
    assert (pair(TARGET, 600.0), own.used) == (young, 2)
    received.key_of(level, old[0].algorithm, SOURCE.bytes_le, old[0].blob, 600.0)
    assert own.used == 3
    assert sent.key_for(SOURCE, level, 600.0) is not old[0]


@pytest.mark.rule("QB-321")
def test_the_clean_up_timer() -> None:
    cache: AgingCache[str, int] = AgingCache(10, 600.0)
    assert cache.next_deadline() is None
    cache.put("a", 1, 100.0)
    cache.put("b", 2, 400.0)
    assert cache.next_deadline() == 700.0
    cache.expire(699.9)
    assert len(cache) == 2
    cache.expire(700.0)
    assert (cache.get("a"), cache.get("b")) == (None, 2)
    assert cache.next_deadline() == 700.0 + 600.0 + 60.0 - 300.0
    cache.expire(1060.0)
    assert len(cache) == 0
    assert cache.next_deadline() is None
    cache.put("c", 3, 2000.0)
    assert cache.next_deadline() == 2600.0


@given(st.integers(2, 9), st.lists(st.tuples(st.integers(0, 12), st.integers(0, 50)), max_size=60))
def test_a_cache_against_a_list(size: int, steps: list[tuple[int, int]]) -> None:
    cache: AgingCache[int, int] = AgingCache(size, 100.0)
    model: list[tuple[int, int]] = []  # key, time; oldest first
    now = 0
    for key, later in steps:
        now += later
        model = [entry for entry in model if entry[0] != key]
        if len(model) >= size:
            del model[: size // 2]
        model.append((key, now))
        cache.put(key, now, now)
        assert {k: cache.get(k) for k in range(13)} == {k: dict(model).get(k) for k in range(13)}
        due = cache.next_deadline()
        assert due is not None
        if due <= now:
            cache.expire(now)
            model = [entry for entry in model if now - entry[1] < 100]


# ---- blobs


@pytest.mark.rule("QB-071", "QB-353")
def test_public_key_blob() -> None:
    numbers = KEYS[ENHANCED].public_key().public_numbers()
    blob = RsaPublicKey(numbers.n, numbers.e).blob()
    assert blob[:8] == bytes.fromhex("0602000000a40000")
    assert blob[8:12] == b"RSA1"
    assert struct.unpack_from("<II", blob, 12) == (1024, 65537)
    assert int.from_bytes(blob[20:], "little") == numbers.n
    theirs = rsa.RSAPublicNumbers(65537, int.from_bytes(blob[20:], "little")).public_key()
    secret = theirs.encrypt(b"secret", padding.PKCS1v15())
    assert KEYS[ENHANCED].decrypt(secret, padding.PKCS1v15()) == b"secret"
    (entry,) = read_key_list(listed(ENHANCED))
    assert entry.key.blob() == blob
    for start, byte in enumerate(blob[:12]):
        if start not in (2, 3):  # reserved
            with pytest.raises(SecurityDataError):
                RsaPublicKey.from_blob(blob[:start] + bytes((byte ^ 1,)) + blob[start + 1 :])


@pytest.mark.rule("QB-072")
def test_lengths_that_do_not_fit() -> None:
    blob = public_part(KEYS[ENHANCED]).blob()
    assert RsaPublicKey.from_blob(blob).blob() == blob
    wrong = [
        blob[:12] + struct.pack("<I", 1016) + blob[16:-2] + b"\x7f",
        blob[:12] + struct.pack("<I", 1032) + blob[16:] + b"\0",
        blob[:-1],
        blob + b"\0",
        blob[:19],
        blob[:8] + b"RSA2" + blob[12:],
        b"\7" + blob[1:],
        blob[:12] + struct.pack("<I", 0xFFFFFFFF) + blob[16:],
    ]
    for each in wrong:
        with pytest.raises(SecurityDataError):
            RsaPublicKey.from_blob(each)


@pytest.mark.rule("QB-073")
def test_simple_blob() -> None:
    encrypted = bytes(range(128))
    blob = simple_blob(0x6610, encrypted)
    assert blob.hex() == "01020000" + "10660000" + "00a40000" + encrypted[::-1].hex()
    assert read_simple_blob(blob) == (0x6610, encrypted)
    for wrong in (blob[:20], b"\6" + blob[1:], blob[:8] + bytes(4) + blob[12:], bytes(20_000)):
        with pytest.raises(SecurityDataError):
            read_simple_blob(wrong)


@pytest.mark.rule("QB-248")
def test_key_lists() -> None:
    data = listed(*PROVIDERS)
    entries = read_key_list(data)
    assert [(entry.provider, entry.provider_type, entry.key.bits) for entry in entries] == [
        ("Microsoft Base Cryptographic Provider v1.0", 1, 512),
        ("Microsoft Enhanced Cryptographic Provider v1.0", 1, 1024),
        ("Microsoft Enhanced RSA and AES Cryptographic Provider", 24, 1024),
    ]
    assert read_key_list(b"") == ()
    for cut in range(1, len(data), 7):
        with pytest.raises(SecurityDataError):
            read_key_list(data[:cut])
    with pytest.raises(SecurityDataError):
        read_key_list(data + b"\0")


@given(st.binary(max_size=200))
def test_damaged_lists_are_refused(data: bytes) -> None:
    for read in (read_key_list, read_user_certificates, RsaPublicKey.from_blob, read_simple_blob):
        try:
            read(data)
        except SecurityDataError:
            continue


def test_certificate_lists() -> None:
    certificates = (UserCertificate(b"one", UUID(int=1)), UserCertificate(b"another", UUID(int=2)))
    data = write_user_certificates(certificates)
    assert data[:4] == b"\2\0\0\0"
    assert data[4:20] == certificates[0].digest
    assert read_user_certificates(data) == certificates
    for wrong in (data[:-1], data + b"\0", b"\xff" * 4, b"\1"):
        with pytest.raises(SecurityDataError):
            read_user_certificates(wrong)


def test_keys_at_rest() -> None:
    for key in KEYS.values():
        assert public_part(from_der(to_der(key))) == public_part(key)
    for wrong in (b"", b"-----BEGIN PRIVATE KEY-----", to_der(KEYS[ENHANCED])[:-5]):
        with pytest.raises(SecurityDataError):
            from_der(wrong)
        with pytest.raises(SecurityDataError):
            from_pem(wrong)
    with pytest.raises(ValueError):
        generate(768)
