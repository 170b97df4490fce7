"""A PGM receiver: order, repairs, fragments, the end of sessions, bounds. Virtual time, made-up sources."""

from __future__ import annotations

import struct
from collections import Counter
from itertools import pairwise

import pytest

from msmq_fast.srmp.pgm.model import Tsi
from msmq_fast.srmp.pgm.options import Fragment
from msmq_fast.srmp.pgm.packets import Data, encode_data, encode_spm
from msmq_fast.srmp.pgm.packets import Spm as SpmPacket
from msmq_fast.srmp.pgm.settings import PgmSettings
from tests.srmp.pgm.sealing import sealed
from tests.srmp.pgm.stage import GROUP, OTHER_IP, RECEIVER_IP, SOURCE_IP, TSI, Receiving, nak, naks, ncf


def fragments(first: int, apdu: bytes, size: int, *, length: int | None = None) -> list[bytes]:
    total = len(apdu) if length is None else length
    return [
        encode_data(
            Data(TSI, GROUP.port, first + number, 1, apdu[at : at + size], Fragment(first, at, total))
        )
        for number, at in enumerate(range(0, len(apdu), size))
    ]


@pytest.mark.rule("SR-023", "SR-009")
def test_packets_are_delivered_in_order_and_once() -> None:
    receiving = Receiving()
    receiving.spm(0)
    for sequence in (1, 3, 2, 2, 6, 5, 3, 4, 7, 1):
        receiving.data(sequence)
    assert receiving.delivered == [b"1", b"2", b"3", b"4", b"5", b"6", b"7"]
    receiving.run(100)
    assert receiving.delivered == [b"1", b"2", b"3", b"4", b"5", b"6", b"7"]
    assert receiving.receiver.statistics.duplicates == 3


@pytest.mark.rule("SR-013", "SR-009")
def test_the_back_off_before_a_nak() -> None:
    delays = []
    for seed in range(300):
        receiving = Receiving(seed=seed)
        receiving.spm(0)
        receiving.data(1)
        receiving.data(3)
        receiving.run(0.2)
        ((at, sequences), *_) = receiving.unicast()
        assert sequences == (2,)
        delays.append(at)
    assert 0.01 <= min(delays) < 0.013
    assert 0.047 < max(delays) <= 0.05
    assert 0.027 < sum(delays) / len(delays) < 0.033


@pytest.mark.rule("SR-024", "SR-009")
def test_a_nak_goes_to_the_path_and_to_the_group_with_ttl_1() -> None:
    receiving = Receiving()
    receiving.spm(0, path="192.0.2.99")
    receiving.data(2)
    unicast, multicast = receiving.run(0.2)
    assert unicast.message == multicast.message
    (message, _) = naks([unicast, multicast])
    assert (message.tsi, message.port, message.sequences) == (TSI, GROUP.port, (1,))
    assert (message.source, message.group) == (SOURCE_IP, GROUP.address)
    assert (unicast.datagram.destination, unicast.datagram.ttl) == ("192.0.2.99", None)
    assert (multicast.datagram.destination, multicast.datagram.ttl) == (GROUP.address, 1)
    assert unicast.datagram.payload[:4] == struct.pack(">HH", GROUP.port, TSI.port)  # swapped
    assert unicast.datagram.payload[4] == 0x08


@pytest.mark.parametrize("path", ["234.1.1.1", "0.0.0.0", "255.255.255.255"])  # noqa: S104
def test_a_path_that_is_no_host_is_not_used(path: str) -> None:
    receiving = Receiving()
    receiving.spm(0, path=path)
    receiving.data(2)
    assert [one.datagram.destination for one in receiving.run(0.2)] == [SOURCE_IP, GROUP.address]


@pytest.mark.rule("SR-016", "SR-009", "SR-010")
def test_naks_without_an_answer_are_repeated_ten_times() -> None:
    receiving = Receiving()
    receiving.spm(0)
    receiving.data(1)
    receiving.data(3)
    receiving.run(7.5)
    assert receiving.delivered == [b"1"]
    receiving.run(2)
    times = [at for at, _ in receiving.unicast()]
    assert len(times) == 11
    assert all(0.76 <= after - before <= 0.8 for before, after in pairwise(times))
    assert receiving.delivered == [b"1", b"3"]
    counted = receiving.receiver.statistics
    assert (counted.lost, counted.restarts, counted.naks) == (1, 1, 11)


@pytest.mark.rule("SR-016", "SR-009", "SR-010")
def test_confirmed_naks_without_data_are_repeated_ten_times() -> None:
    receiving = Receiving()
    receiving.spm(0)
    receiving.data(1)
    receiving.data(3)
    heard = 0
    while receiving.now < 40 and not receiving.receiver.statistics.lost:
        receiving.run(0.001)
        if len(receiving.unicast()) > heard:
            heard += 1
            receiving.hear(ncf(2))
    times = [at for at, _ in receiving.unicast()]
    assert len(times) == 11
    assert all(2.01 <= after - before <= 2.06 for before, after in pairwise(times))
    assert receiving.delivered == [b"1", b"3"]


@pytest.mark.rule("SR-009")
def test_an_ncf_before_the_nak_suppresses_it_for_2_seconds() -> None:
    receiving = Receiving()
    receiving.spm(0)
    receiving.data(2)
    receiving.hear(ncf(1))
    receiving.run(2.005)
    assert receiving.log == []
    receiving.run(0.1)
    assert [sequences for _, sequences in receiving.unicast()] == [(1,)]


@pytest.mark.rule("SR-009")
def test_the_nak_of_another_receiver_suppresses_ours_for_750_ms() -> None:
    receiving = Receiving()
    receiving.spm(0)
    receiving.data(2)
    receiving.hear(nak(1), source_ip=OTHER_IP)
    receiving.run(0.755)
    assert receiving.log == []
    receiving.run(0.1)
    assert [sequences for _, sequences in receiving.unicast()] == [(1,)]


def test_naks_of_others_do_not_silence_us_for_ever() -> None:
    receiving = Receiving()
    receiving.spm(0)
    receiving.data(2)
    for _ in range(400):
        receiving.hear(nak(1), source_ip=OTHER_IP)
        receiving.run(0.1)
    assert receiving.unicast()
    assert receiving.receiver.statistics.lost == 1


def test_another_host_cannot_confirm() -> None:
    receiving = Receiving()
    receiving.spm(0)
    receiving.data(2)
    receiving.hear(ncf(1), source_ip=OTHER_IP)
    receiving.run(0.2)
    assert len(receiving.unicast()) == 1


@pytest.mark.rule("SR-009")
def test_what_is_missing_together_is_asked_for_in_lists_of_63() -> None:
    receiving = Receiving()
    receiving.spm(0)
    receiving.data(101)
    receiving.run(0.2)
    assert [sequences for _, sequences in receiving.unicast()] == [tuple(range(1, 64)), tuple(range(64, 101))]
    receiving.hear(ncf(*range(1, 64)))
    receiving.run(0.8)
    assert [sequences for _, sequences in receiving.unicast()[2:]] == [tuple(range(64, 101))]
    for sequence in range(1, 101):
        receiving.data(sequence, repair=True)
    assert receiving.delivered == [b"%d" % number for number in range(1, 102)]
    before = len(receiving.log)
    receiving.run(50)
    assert len(receiving.log) == before
    assert receiving.receiver.statistics.recovered == 100


@pytest.mark.rule("SR-009")
def test_nothing_is_asked_for_before_the_first_spm() -> None:
    receiving = Receiving()
    receiving.data(1)
    receiving.data(3)
    assert receiving.run(20) == []
    receiving.spm(3)
    assert [sequences for _, sequences in receiving.unicast()] == []
    receiving.run(0.2)
    assert [sequences for _, sequences in receiving.unicast()] == [(2,)]


@pytest.mark.rule("SR-009")
def test_the_loss_of_the_last_packets_shows_in_the_spm() -> None:
    receiving = Receiving()
    receiving.spm(0)
    receiving.data(1)
    receiving.spm(4)
    receiving.run(0.2)
    assert [sequences for _, sequences in receiving.unicast()] == [(2, 3, 4)]


def test_a_session_is_joined_where_it_is_heard_first() -> None:
    by_data = Receiving()
    by_data.data(100, trail=3)
    by_data.spm(100, trail=3)
    by_data.data(99, trail=3, repair=True)
    by_data.data(101, trail=3)
    assert by_data.run(5) == []
    assert by_data.delivered == [b"100", b"101"]

    by_spm = Receiving()
    by_spm.spm(100, trail=3)
    by_spm.data(102, trail=3)
    by_spm.run(0.2)
    assert [sequences for _, sequences in by_spm.unicast()] == [(101,)]

    by_repair = Receiving()
    by_repair.data(50, trail=3, repair=True)
    assert by_repair.delivered == []
    assert len(by_repair.receiver) == 0


def test_opt_join_lets_a_session_begin_earlier() -> None:
    receiving = Receiving()
    packet = encode_spm(SpmPacket(TSI, GROUP.port, 1, 3, 100, SOURCE_IP))
    options = bytes.fromhex("0004000c 83080000") + struct.pack(">I", 98)
    receiving.hear(packet[:5] + b"\x01\0\0" + packet[8:] + options)  # without a checksum
    receiving.run(0.2)
    assert [sequences for _, sequences in receiving.unicast()] == [(98, 99, 100)]


def test_the_middle_of_an_apdu_is_skipped_when_joining() -> None:
    receiving = Receiving()
    for packet in fragments(10, b"a" * 30, 10)[1:]:
        receiving.hear(packet)
    for packet in fragments(13, b"b" * 30, 10):
        receiving.hear(packet)
    assert receiving.delivered == [b"b" * 30]
    assert receiving.receiver.statistics.apdus_dropped == 0


@pytest.mark.rule("SR-009")
def test_fragments_are_put_together_whatever_their_order() -> None:
    receiving = Receiving()
    receiving.spm(0)
    packets = fragments(1, bytes(range(250)), 17)
    for packet in reversed(packets):
        receiving.hear(packet)
    assert receiving.delivered == [bytes(range(250))]


@pytest.mark.rule("SR-020", "SR-224")
def test_an_apdu_of_more_than_64_kilobytes_is_dropped_and_the_session_goes_on() -> None:
    receiving = Receiving()
    receiving.spm(0)
    large = bytes(70_000)
    for packet in fragments(1, large, 7000):
        receiving.hear(packet)
    receiving.data(11)
    assert receiving.delivered == [b"11"]
    assert receiving.receiver.statistics.apdus_dropped == 1
    for packet in fragments(12, large[:65_536], 7000):
        receiving.hear(packet)
    assert [len(apdu) for apdu in receiving.delivered] == [2, 65_536]


def test_fragments_that_do_not_fit_together_are_dropped() -> None:
    def fragment(sequence: int, first: int, offset: int, length: int, data: bytes) -> bytes:
        return encode_data(Data(TSI, GROUP.port, sequence, 1, data, Fragment(first, offset, length)))

    cases = [
        [fragment(1, 1, 0, 20, b"a" * 10), fragment(2, 1, 9, 20, b"a" * 10)],  # overlaps
        [fragment(1, 1, 0, 20, b"a" * 10), fragment(2, 1, 11, 20, b"a" * 9)],  # leaves a hole
        [fragment(1, 1, 0, 20, b"a" * 10), fragment(2, 1, 10, 30, b"a" * 10)],  # another length
        [fragment(1, 1, 0, 20, b"a" * 10), fragment(2, 2, 10, 20, b"a" * 10)],  # another APDU
        [fragment(1, 9, 0, 20, b"a" * 10), fragment(2, 9, 10, 20, b"a" * 10)],  # not its own number
        [fragment(1, 1, 0, 20, b"a" * 10), fragment(2, 1, 10, 20, b"")],  # nothing
        [fragment(1, 1, 0, 0, b""), fragment(2, 2, 0, 20, b"a" * 10)],  # nothing at all
        [fragment(1, 1, 0, 20, b"a" * 10), fragment(2, 2, 0, 20, b"a" * 10)],  # begins anew
        [fragment(1, 1, 0, 20, b"a" * 10), encode_data(Data(TSI, GROUP.port, 2, 1, b""))],  # cut short
    ]
    for case in cases:
        receiving = Receiving()
        receiving.spm(0)
        for packet in case:
            receiving.hear(packet)
        receiving.data(3)
        receiving.data(4)
        assert receiving.delivered == [b"3", b"4"]
        assert receiving.receiver.statistics.apdus_dropped >= 1


@pytest.mark.rule("SR-009")
def test_what_the_source_repairs_no_more_is_lost_and_the_rest_delivered() -> None:
    receiving = Receiving()
    receiving.spm(0)
    receiving.hear(fragments(1, b"a" * 20, 10)[0])
    for sequence in (3, 4, 6, 9):
        receiving.data(sequence)
    receiving.spm(9, trail=6)
    assert receiving.delivered == [b"3", b"4", b"6"]
    receiving.run(0.3)
    assert receiving.unicast()[-1][1] == (7, 8)
    receiving.data(10, trail=20)  # nonsense: after itself
    receiving.data(12, trail=12)
    assert receiving.delivered == [b"3", b"4", b"6", b"9", b"12"]
    counted = receiving.receiver.statistics
    assert (counted.lost, counted.restarts, counted.outside_window) == (1 + 1 + 2 + 2, 4, 1)
    assert counted.apdus_dropped == 1
    assert receiving.run(50) == []


@pytest.mark.rule("SR-009")
def test_spms_out_of_sequence_are_discarded() -> None:
    receiving = Receiving()
    receiving.spm(0, path="192.0.2.99")
    late = encode_spm(SpmPacket(TSI, GROUP.port, 0, 1, 50, SOURCE_IP))
    receiving.hear(late)
    receiving.hear(encode_spm(SpmPacket(TSI, GROUP.port, 1, 1, 50, SOURCE_IP)))
    assert receiving.run(5) == []
    receiving.spm(1)
    assert receiving.run(0.2)


def test_an_spm_without_a_window_tells_the_path_only() -> None:
    receiving = Receiving()
    receiving.spm(0x8000_0000, trail=0)
    receiving.data(5)
    receiving.data(7)
    receiving.run(0.2)
    assert receiving.delivered == [b"5"]
    assert [sequences for _, sequences in receiving.unicast()] == [(6,)]


@pytest.mark.rule("SR-026", "SR-009")
def test_after_fin_what_is_missing_is_recovered_and_then_the_session_forgotten() -> None:
    receiving = Receiving()
    receiving.spm(0)
    receiving.data(1)
    receiving.spm(2, fin=True)
    assert receiving.delivered == [b"1"]
    assert len(receiving.receiver) == 1
    receiving.run(1.5)
    assert [sequences for _, sequences in receiving.unicast()] == [(2,), (2,)]
    receiving.data(2, repair=True)
    assert receiving.delivered == [b"1", b"2"]
    assert len(receiving.receiver) == 0
    before = len(receiving.log)
    receiving.spm(2, fin=True)  # repeated for TXW_SECS
    receiving.data(2, repair=True)
    receiving.data(2)
    receiving.run(200)
    receiving.spm(2, fin=True)
    assert (receiving.delivered, len(receiving.receiver)) == ([b"1", b"2"], 0)
    assert len(receiving.log) == before


@pytest.mark.rule("SR-026")
def test_fin_in_a_data_packet_ends_the_session_behind_it() -> None:
    receiving = Receiving()
    receiving.spm(0)
    receiving.data(1)
    packet = encode_data(Data(TSI, GROUP.port, 3, 1, b"3"))
    options = bytes.fromhex("00040008 8e040000")
    receiving.hear(sealed(packet[:5] + b"\x01" + packet[6:24] + options + packet[24:]))
    assert (receiving.delivered, len(receiving.receiver)) == ([b"1"], 1)
    receiving.data(2, repair=True)
    assert (receiving.delivered, len(receiving.receiver)) == ([b"1", b"2", b"3"], 0)


@pytest.mark.rule("SR-027", "SR-009")
@pytest.mark.parametrize("code", [0x00, 0x40, 0x45])
def test_rst_ends_the_session_at_once(code: int) -> None:
    receiving = Receiving()
    receiving.spm(0)
    for sequence in (1, 3, 4):
        receiving.data(sequence)
    receiving.spm(9, rst=code)
    assert receiving.run(100) == []
    receiving.data(2, repair=True)
    receiving.data(10)
    assert receiving.delivered == [b"1"]
    assert len(receiving.receiver) == 0
    assert receiving.run(1000) == []


@pytest.mark.rule("SR-029")
def test_statistics_of_losses() -> None:
    receiving = Receiving()
    receiving.spm(0)
    for sequence in (1, 4, 5):
        receiving.data(sequence)
    receiving.run(0.1)
    receiving.data(2, repair=True)
    receiving.hear(b"nonsense")
    receiving.run(20)
    counted = receiving.receiver.statistics
    assert (counted.packets, counted.malformed, counted.sessions) == (6, 1, 1)
    assert (counted.apdus, counted.apdu_bytes) == (4, 4)
    assert (counted.recovered, counted.lost, counted.duplicates) == (1, 1, 0)


def test_another_port_is_not_heard() -> None:
    receiving = Receiving()
    receiving.hear(encode_data(Data(TSI, GROUP.port + 1, 1, 1, b"other")))
    receiving.data(1)
    assert receiving.delivered == [b"1"]
    assert len(receiving.receiver) == 1


def test_sessions_are_told_apart_by_tsi_and_host() -> None:
    receiving = Receiving()
    other = Tsi(TSI.gsi, TSI.port + 1)
    receiving.data(1, b"a1")
    receiving.data(7, b"b7", tsi=other)
    receiving.data(2, b"forged", trail=2, source_ip=OTHER_IP)
    receiving.data(2, b"a2")
    receiving.data(8, b"b8", tsi=other)
    assert receiving.delivered == [b"a1", b"b7", b"forged", b"a2", b"b8"]
    assert len(receiving.receiver) == 3


@pytest.mark.rule("SR-009")
def test_sequence_numbers_wrap() -> None:
    receiving = Receiving()
    begin = 0xFFFF_FFF0
    receiving.spm(begin - 1, trail=begin)
    numbers = [begin + number & 0xFFFF_FFFF for number in range(40)]
    for number in numbers:
        if number % 5 != 1:
            receiving.data(number, trail=begin)
    receiving.run(0.2)
    asked = [sequence for _, sequences in receiving.unicast() for sequence in sequences]
    assert sorted(asked) == sorted(number for number in numbers if number % 5 == 1)
    for number in asked:
        receiving.data(number, trail=begin, repair=True)
    assert receiving.delivered == [b"%d" % number for number in numbers]


def test_a_silent_session_is_forgotten() -> None:
    receiving = Receiving()
    receiving.spm(0)
    receiving.data(1)
    receiving.run(299)
    assert len(receiving.receiver) == 1
    receiving.run(2)
    assert len(receiving.receiver) == 0
    assert receiving.receiver.next_deadline() is None


def test_a_host_displaces_its_own_sessions_only() -> None:
    receiving = Receiving(PgmSettings(max_sources=4, max_sources_of_host=2))
    receiving.data(1)
    for number in range(100):
        receiving.run(0.01)
        receiving.data(1, tsi=Tsi(b"flood.", number), source_ip=OTHER_IP)
    assert len(receiving.receiver) == 3
    receiving.data(2)
    assert receiving.delivered.count(b"2") == 1
    for number in range(10):  # from hosts that do not exist
        receiving.data(1, tsi=Tsi(b"flood.", number), source_ip=f"198.51.100.{number}")
    assert len(receiving.receiver) == 4
    assert receiving.receiver.statistics.refused_sessions == 9
    receiving.data(3)
    assert receiving.delivered.count(b"3") == 1
    receiving.run(31)
    receiving.data(4)  # who was heard stays; who keeps silent for two heartbeats makes place
    receiving.data(1, source_ip=RECEIVER_IP)
    receiving.data(5)
    assert receiving.delivered.count(b"5") == 1


def test_naks_do_not_exceed_a_quarter_of_the_rate() -> None:
    """Made-up packets make receivers send NAKs to whom the SPM names: not many."""
    receiving = Receiving()
    for number in range(8):
        tsi = Tsi(b"flood.", number)
        receiving.spm(0, tsi=tsi, path="198.51.100.1")
        receiving.data(1_000_000, tsi=tsi)
    sent = receiving.run(10)
    assert sum(one.size for one in sent) <= 0.25 * 70_000 * 10 + 5000
    asked = {one.message.tsi for one in sent if one.datagram.destination == "198.51.100.1"}
    assert len(asked) == 8  # all in their turn


@pytest.mark.parametrize("step", [1, 2, 3])
def test_memory_is_bounded_and_what_had_no_room_comes_later(step: int) -> None:
    pgm = PgmSettings(receive_memory=100_000, receive_memory_of_source=60_000, max_rate=1e6)
    receiving = Receiving(pgm)
    receiving.spm(0)
    text = b"x" * 1000
    for sequence in range(2, 200, step):
        receiving.data(sequence, text)
    receiving.spm(199)
    counted = receiving.receiver.statistics
    assert counted.no_room > 10
    first, asked = 0, Counter[int]()
    while len(receiving.delivered) < 199 and receiving.now < 60:  # a source that repairs what it is asked for
        receiving.run(0.01)
        new = receiving.unicast()[first:]
        first += len(new)
        for _, sequences in new:
            asked.update(sequences)
            for sequence in reversed(sequences):
                receiving.data(sequence, text, repair=True)
    assert receiving.delivered == [text] * 199
    assert counted.lost == 0
    assert set(asked.values()) == {1}  # there is room for whatever is asked for
