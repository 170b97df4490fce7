"""The duplicate history against an ordered dict."""

from __future__ import annotations

import struct
from collections import OrderedDict
from errno import ENOSPC
from hashlib import shake_256
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from msmq_fast._native.history import DURABLE, NEW, PENDING, DuplicateHistory
from msmq_fast._native.memorystore import MemoryTables, MemoryWriter
from tests.support.mqqb import wire
from tests.support.timing import processor_time


def identifier(number: int) -> bytes:
    return struct.pack("<QQI", number % 3, 7, number)


operations = st.lists(
    st.tuples(
        st.sampled_from(["check", "add", "add pending", "submit", "commit", "fail", "expire", "wait"]),
        st.integers(0, 30),
    ),
    max_size=200,
)


@pytest.mark.rule("QB-078", "QB-080", "QB-224", "QB-228", "QB-316")
@given(operations, st.sampled_from([1, 3, 16]))
@example([("add", 9), ("check", 18)], 3)  # messages of one sender, side by side in the table
@settings(max_examples=250, deadline=None)
def test_history(steps: list[tuple[str, int]], capacity: int) -> None:
    history = DuplicateHistory(capacity, 100)
    writer = MemoryWriter(MemoryTables(), max_units=2)
    model: OrderedDict[bytes, list[int]] = OrderedDict()  # identifier -> [seen, batch or 0]
    gathering, units, now = 1, 0, 1_000
    under_way: list[int] = []
    settled = 0

    def leave() -> None:
        nonlocal gathering, units
        under_way.append(gathering)
        gathering, units = gathering + 1, 0

    for step, value in steps:
        key = identifier(value)
        if step == "check":
            expected = NEW
            if key in model:
                expected = PENDING if model[key][1] > settled else DURABLE
                model[key][0] = now
                model.move_to_end(key)
            assert history.check(key, now) == expected
        elif step.startswith("add"):
            pending = step == "add pending"
            if pending and units == 2:  # a full batch leaves, though others are under way
                leave()
            units += pending
            if key not in model and len(model) == capacity:
                model.popitem(last=False)
            model[key] = [now, gathering if pending else 0]
            model.move_to_end(key)
            if pending:
                writer.begin_unit()
                history.add(key, now, writer)
                writer.keep_unit()
            else:
                history.add(key, now)
        elif step == "submit":
            writer.submit()
            if units and not under_way:
                leave()
        elif step in ("commit", "fail") and under_way:
            settled = under_way.pop(0)
            writer.complete_one(ENOSPC if step == "fail" else 0)
            if units and not under_way:
                leave()
            if step == "fail":
                model = OrderedDict((k, v) for k, v in model.items() if v[1] != settled)
        elif step == "expire":
            gone = [k for k, v in model.items() if now - v[0] > 100]
            for k in gone:
                del model[k]
            assert history.expire(now) == len(gone)
        elif step == "wait":
            now += value
        assert len(history) == len(model)
    assert history.identifiers() == [(k, v[0]) for k, v in model.items()]


@pytest.mark.rule("QB-078", "QB-228", "SR-110")
def test_the_10001st_identifier_evicts_the_earliest() -> None:
    history = DuplicateHistory()
    for number in range(10_000):
        history.add(identifier(number), 1)
    assert history.check(identifier(0), 2) == DURABLE  # refreshed: now 1 is the earliest
    history.add(identifier(10_000), 3)
    assert history.check(identifier(1), 3) == NEW
    assert history.check(identifier(0), 3) == DURABLE
    assert len(history) == 10_000


@pytest.mark.rule("QB-316")
def test_an_entry_is_kept_for_its_whole_lifetime() -> None:
    history = DuplicateHistory(3, 100)
    history.add(identifier(1), 1_000)
    assert history.expire(1_100) == 0
    assert history.expire(1_101) == 1


@pytest.mark.rule("SR-110")
def test_an_entry_is_kept_for_half_an_hour_unless_told_otherwise() -> None:
    history = DuplicateHistory()
    history.add(identifier(1), 1_000)
    assert history.expire(2_800) == 0
    assert history.expire(2_801) == 1


@pytest.mark.rule("QB-106", "QB-224")
def test_a_failed_commit_makes_no_false_duplicate() -> None:
    history = DuplicateHistory()
    writer = MemoryWriter(MemoryTables())
    history.add(identifier(1), 1, writer)
    assert history.check(identifier(1), 1) == PENDING
    writer.submit()
    writer.complete_all(5)
    assert history.check(identifier(1), 1) == NEW


@pytest.mark.parametrize("size", [0, 19, 21])
def test_an_identifier_has_twenty_bytes(size: int) -> None:
    history = DuplicateHistory()
    with pytest.raises(ValueError):
        history.check(bytes(size), 1)
    with pytest.raises(ValueError):
        history.add(bytes(size), 1)


def known(history: DuplicateHistory, number: int, fingerprint: int) -> bool:
    return history.check(identifier(number), 1, fingerprint) != NEW


def test_other_content_under_one_identifier_is_another_message() -> None:
    history = DuplicateHistory()
    history.add(identifier(1), 1, fingerprint=7)
    assert known(history, 1, 7)
    assert not known(history, 1, 8)
    assert not known(history, 2, 7)
    history.add(identifier(1), 1, fingerprint=8)
    assert known(history, 1, 7)
    assert known(history, 1, 8)
    assert len(history) == 2


def test_an_entry_of_an_earlier_version_stands_for_any_content() -> None:
    history = DuplicateHistory(4)
    history.add(identifier(1), 1)
    assert known(history, 1, 7)
    assert history.expire(10_000) == 1
    assert not known(history, 1, 7)


def test_an_origin_that_brings_much_pushes_out_only_its_own() -> None:
    history = DuplicateHistory(100)
    for number in range(20):
        history.add(identifier(number), 1, fingerprint=1, origin=1)
    for number in range(1_000):
        history.add(identifier(number), 2, fingerprint=2, origin=2)
    assert all(known(history, number, 1) for number in range(20))
    assert sum(known(history, number, 2) for number in range(1_000)) == 80
    # What the others bring takes from the one with the most, down to equal shares.
    for number in range(500):
        history.add(identifier(number), 3, fingerprint=3, origin=1)
    assert sum(known(history, number, 2) for number in range(1_000)) == 50
    assert sum(known(history, number, 3) for number in range(500)) == 50
    # A third origin finds its share as well, whoever has the most now.
    for number in range(40):
        history.add(identifier(number), 4, fingerprint=4, origin=1023)
    assert sum(known(history, number, 4) for number in range(40)) == 34
    assert len(history) == 100


shared = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40), st.booleans()), max_size=300)


@given(shared)
@settings(max_examples=100, deadline=None)
def test_no_origin_below_its_share_loses_an_entry_to_another(steps: list[tuple[int, int, bool]]) -> None:
    capacity = 12
    history = DuplicateHistory(capacity, 100)
    held: dict[int, list[int]] = {origin: [] for origin in range(4)}
    for now, (origin, number, add) in enumerate(steps, 1):
        key, there = identifier(number), held[origin]
        if not add:
            assert (history.check(key, now, origin + 1) != NEW) == (number in there)
            if number in there:
                there.remove(number)
                there.append(number)
            continue
        history.add(key, now, fingerprint=origin + 1, origin=origin)
        if number in there:
            there.remove(number)
        there.append(number)
        active = [each for each in held if held[each]]
        if sum(map(len, held.values())) > capacity:
            entries = {(entry, held_by) for held_by in active for entry in held[held_by]}
            kept = {e for e in entries if _held(history, *e)}
            ((lost, loser),) = entries - kept
            assert held[loser][0] == lost, "the oldest of its origin goes"
            assert len(held[loser]) * len(active) >= capacity, "who has less than its share loses nothing"
            held[loser].remove(lost)
        assert len(history) == sum(map(len, held.values()))


def _held(history: DuplicateHistory, number: int, origin: int) -> bool:
    """Without a look that would refresh the entry."""
    return identifier(number) in [each for each, _ in history.identifiers_of(origin)]


SEED = bytes(range(100, 116))


def test_an_origin_is_a_number_below_1024() -> None:
    history = DuplicateHistory(seed=SEED)
    assert history.origin(b"10.0.0.1") == DuplicateHistory(seed=SEED).origin(b"10.0.0.1")
    assert len({history.origin(b"10.0.0.%d" % host) for host in range(200)}) > 150
    with pytest.raises(ValueError, match="below 1024"):
        history.add(identifier(1), 1, origin=1024)
    with pytest.raises(ValueError, match="16 bytes"):
        DuplicateHistory(seed=b"short")


def packet(**changes: object) -> bytes:
    return wire.message(5, **{"queue": "OS:host\\private$\\q", "body": b"x" * 3000, **changes})  # type: ignore[arg-type]


def test_a_fingerprint_is_of_what_every_transmission_has_in_common() -> None:
    history = DuplicateHistory()
    usual = history.fingerprint(packet())
    assert usual == history.fingerprint(packet())
    assert usual != DuplicateHistory().fingerprint(packet()), "nobody else can calculate it"
    same = [packet(reach=5), packet(received=7), packet(priority=0, address=wire.PEER)]
    hops = bytearray(packet())
    hops[60] |= 9
    assert {history.fingerprint(each) for each in (*same, bytes(hops))} == {usual}
    other = [
        packet(sent_time=1_001),
        packet(queue="OS:host\\private$\\r"),
        packet(label="x"),
        packet(body=b"x" * 2999 + b"y"),
        packet(body=b"y" + b"x" * 2999),
        packet(body=b"x" * 2999),
        packet(body=b"x" * 3001),
        packet(message_class=2),
        packet(body=b""),
        packet(body=bytes(8)),
        packet(body=bytes(16)),
        packet(recoverable=True),
        packet(admin="OS:host\\private$\\acks"),
        packet(response="OS:host\\private$\\answers"),
    ]
    assert len({history.fingerprint(each) for each in other} | {usual}) == len(other) + 1
    with pytest.raises(ValueError, match="not a UserMessage"):
        history.fingerprint(packet()[:-4])


_WORD = (1 << 64) - 1
_FIRST, _SECOND, _THIRD = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def _unshifted(value: int, bits: int) -> int:
    """The number whose exclusive or with itself, `bits` lower, is `value`."""
    found = value
    for _ in range(64 // bits + 1):
        found = value ^ found >> bits
    return found


def colliding(number: int) -> bytes:
    """An identifier with the same hash as all others of this function, by a hash without a key that earlier
    versions had.
    """
    high = number * 0xD1342543DE82EF95 & _WORD
    value = _unshifted(0x1234 << 40 | 0x55, 32) * pow(_THIRD, -1, 1 << 64) & _WORD
    value = _unshifted(value, 29) * pow(_SECOND, -1, 1 << 64) & _WORD
    return struct.pack("<QQI", value ^ high * _FIRST & _WORD ^ 1, high, 1)


def test_identifiers_that_were_made_to_collide_cost_no_more_than_others() -> None:
    def cost(identifiers: list[bytes]) -> float:
        best = float("inf")
        for _ in range(3):
            history = DuplicateHistory()
            with processor_time() as spent:
                for each in identifiers:
                    history.add(each, 1)  # without a fingerprint, which has a key, too
            best = min(best, spent.seconds)
        return best

    usual = cost([struct.pack("<QQI", number * 0xD1342543DE82EF95 & _WORD, 7, 1) for number in range(9_900)])
    assert cost([colliding(number) for number in range(9_900)]) < 5 * usual


def test_every_byte_of_a_long_body_counts() -> None:
    history = DuplicateHistory(seed=SEED)
    size = 3_000
    usual = packet()
    start = usual.index(b"x" * size)
    found = {history.fingerprint(usual)}
    for at in range(size):
        changed = bytearray(usual)
        changed[start + at] ^= 1
        found.add(history.fingerprint(bytes(changed)))
    assert len(found) == size + 1


@pytest.mark.parametrize("size", [0, 1, 31, 32, 127, 128, 159, 160, 1_024, 1_992, 2_048, 2_200, 70_001])
@pytest.mark.parametrize("portable", [False, True])
def test_the_fingerprint_is_the_same_on_every_machine(size: int, portable: bool) -> None:
    # Against the definition: NH over blocks of 2 KiB, 128-bit products in between.
    history = DuplicateHistory(seed=SEED, portable=portable)
    text = Random(size).randbytes(size)
    sent = wire.message(5, body=text)
    assert history.fingerprint(sent) == Fingerprints(SEED).of(sent, wire.message(5, body=b""), text)


class Fingerprints:
    """The definition in history.pyx, word by word, for a plain message."""

    def __init__(self, seed: bytes) -> None:
        self.seed = struct.unpack("<2Q", seed)
        self.key = struct.unpack("<512I", shake_256(seed).digest(2048))

    def of(self, sent: bytes, empty: bytes, body: bytes) -> int:
        properties = len(empty) - 56  # the last header before the body, which begins behind it
        sent_time, _, flags = struct.unpack_from("<3I", sent, 52)
        found = self.mix(self.seed[0] ^ sent_time, self.seed[1] ^ flags & ~0x1F)
        found = self.absorb_all(found, sent[64 : properties + 56] + body)
        low, high = struct.unpack_from("<2Q", sent, 16)  # the identifier
        (ordinal,) = struct.unpack_from("<I", sent, 56)
        return self.mix(found ^ low, self.seed[1] ^ high ^ ordinal)

    @staticmethod
    def mix(first: int, second: int) -> int:
        product = (first & _WORD) * (second & _WORD)
        return (product ^ product >> 64) & _WORD

    def absorb_all(self, found: int, data: bytes) -> int:
        if len(data) < 128:
            return self.absorb(found, data)
        found ^= len(data)
        for begin in range(0, len(data), 2_048):
            end = min(begin + 2_048, len(data))
            sums = [0] * 4
            for at in range(begin, end, 32):
                words = struct.unpack_from("<8I", data, min(at, end - 32))
                for lane in range(4):
                    key = self.key[(at - begin) // 4 + 2 * lane :]
                    low, high = words[2 * lane] + key[0], words[2 * lane + 1] + key[1]
                    sums[lane] += (low & 0xFFFFFFFF) * (high & 0xFFFFFFFF)
            sums = [each & _WORD for each in sums]
            found = self.mix(found ^ sums[0], self.seed[1] ^ sums[1])
            found = self.mix(found ^ sums[2], self.seed[0] ^ sums[3])
        return found

    def absorb(self, found: int, data: bytes) -> int:
        key, size = self.seed[1], len(data)
        while len(data) > 16:
            first, second = struct.unpack_from("<2Q", data)
            found = self.mix(found ^ first, key ^ second)
            data = data[16:] if len(data) >= 32 else data[-16:]
        if size < 8:
            first, second = int.from_bytes(data, "little"), 0
        else:
            first, second = struct.unpack("<2Q", data[:8] + data[-8:])
        return self.mix(found ^ first ^ size, key ^ second ^ self.seed[0])


def test_a_copy_that_lived_shorter_is_another_message() -> None:
    # A stranger who knows all of a message could bring a copy that expires before it is received.
    history = DuplicateHistory()
    history.add(identifier(1), 1, fingerprint=7, origin=1, lifetime=10)
    assert history.check(identifier(1), 1, 7, lifetime=10) == DURABLE
    assert history.check(identifier(1), 1, 7, lifetime=9) == DURABLE, "routers and senders shorten it"
    assert history.check(identifier(1), 1, 7, lifetime=11) == NEW
    history.add(identifier(1), 1, fingerprint=7, origin=2, lifetime=11)
    assert history.check(identifier(1), 1, 7, lifetime=11) == DURABLE
    assert len(history) == 1
    assert history.identifiers_of(2), "it belongs to the sender of the longer one"
