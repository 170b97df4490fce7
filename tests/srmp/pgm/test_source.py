"""A PGM source: rate, SPMs, repairs, the transmit window, the end of a session. Virtual time."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast.config.sections import PgmConfig
from msmq_fast.srmp.pgm.model import Tsi
from msmq_fast.srmp.pgm.packets import Data, Nak, Spm, encode_nak
from msmq_fast.srmp.pgm.repairs import repair_delay
from msmq_fast.srmp.pgm.settings import PgmSettings
from msmq_fast.srmp.pgm.source import ApduTooLarge
from tests.srmp.pgm.stage import (
    GROUP,
    SOURCE_IP,
    TSI,
    Sending,
    Sent,
    nak,
    naks,
    ncf,
    odata,
    rdata,
    spms,
)

MESSAGE = b"x" * 1300


@pytest.mark.rule("SR-010")
def test_the_constants_are_those_of_the_document() -> None:
    pgm = PgmSettings()
    assert (pgm.max_rate, pgm.window_seconds, pgm.advance_seconds) == (70_000, 300, pytest.approx(45))
    assert (pgm.bucket_seconds, pgm.heartbeat_first, pgm.heartbeat_last) == (0.040, 1, 15)
    assert (pgm.ambient_packets, pgm.ambient_seconds, pgm.repair_spread) == (50, 0.5, 0.060)
    assert (pgm.nak_backoff_least, pgm.nak_backoff_most, pgm.nak_repeat, pgm.nak_data) == (
        0.01,
        0.05,
        0.75,
        2,
    )
    assert (pgm.nak_ncf_retries, pgm.nak_data_retries) == (10, 10)
    assert pgm.window_bytes == 21_000_000
    assert pgm.bucket_bytes == 2800
    assert PgmConfig().settings() == pgm, "unless the configuration says otherwise"


def heaviest_excess(sent: list[Sent], rate: float) -> float:
    """The most octets that any interval has beyond rate times its length."""
    level, most, before = 0.0, 0.0, 0.0
    for one in sent:
        level = max(0.0, level - (one.at - before) * rate) + one.size
        before = one.at
        most = max(most, level)
    return most


@pytest.mark.rule("SR-012")
def test_no_interval_carries_more_than_the_rate_and_the_bucket() -> None:
    sending = Sending()
    sending.run(5)
    sending.send(*[MESSAGE] * 770)  # 1 MB
    sending.step()
    begin = sending.now
    while sending.source.backlog:
        sending.run(0.3)
        lead = odata(sending.log)[-1].sequence
        sending.hear(nak(*range(max(1, lead - 30), lead, 3)))
        sending.step()
    assert heaviest_excess(sending.log, 70_000) <= 2800 + 1
    assert sending.now - begin > 14
    assert len(rdata(sending.log)) > 100
    # and it is used: nothing but the rate holds the data back
    assert sum(one.size for one in sending.log if one.at >= begin) > 0.95 * 70_000 * (sending.now - begin)


@pytest.mark.rule("SR-011")
def test_rate_and_window_are_what_the_administrator_says() -> None:
    sending = Sending(PgmSettings(max_rate=1e6, window_seconds=10))
    assert sending.settings.window_bytes == 10_000_000
    assert sending.settings.bucket_bytes == 40_000
    sending.send(*[MESSAGE] * 2000)  # 2.6 MB
    sent = sending.run(2)
    assert heaviest_excess(sent, 1e6) <= 40_001
    assert sum(one.size for one in sent) > 1.95e6
    sending.run(10)
    assert spms(sending.log)[-1].trail > 1  # the window advances each 1.5 s, down to 8.5 s
    configured = PgmConfig(rate=1_000_000, window=10.0).settings()
    assert (configured.max_rate, configured.window_seconds) == (1e6, 10)
    with pytest.raises(ValueError, match="rate"):
        PgmSettings(max_rate=10)
    with pytest.raises(ValueError, match="window"):
        PgmSettings(window_seconds=0)
    with pytest.raises(ValueError, match="MTU"):
        PgmSettings(mtu=100)


def test_the_packets_of_a_burst_keep_their_distance() -> None:
    sending = Sending()
    sending.run(5)
    sending.send(MESSAGE, MESSAGE)
    first, second = [one for one in sending.run(1) if isinstance(one.message, Data)]
    assert second.at - first.at >= (len(MESSAGE) + 44) / (8 * 70_000) * 0.8


@pytest.mark.rule("SR-014", "SR-009")
def test_ambient_spms_after_50_packets_or_half_a_second() -> None:
    sending = Sending(PgmSettings(max_rate=1e6))
    sending.run(3)
    sending.send(*[MESSAGE] * 1000)
    sent = sending.run(1.2)
    begin = next(at for at, one in enumerate(sent) if isinstance(one.message, Data))
    between = 0
    counts = []
    for one in sent[begin:]:
        if isinstance(one.message, Spm):
            counts.append(between)
            between = 0
        else:
            between += 1
    assert counts[1:-1] == [50] * len(counts[1:-1])
    assert max(counts) == 50

    slow = Sending()
    for _ in range(60):  # one small packet each 0.2 s
        slow.send(b"x")
        slow.run(0.2)
    times = [one.at for one in slow.log if isinstance(one.message, Spm)][3:]
    assert len(times) > 20
    assert [after - before for before, after in pairwise(times)] == pytest.approx(
        [0.5] * (len(times) - 1), abs=0.01
    )


@pytest.mark.rule("SR-014")
def test_repairs_count_for_ambient_spms() -> None:
    sending = Sending(PgmSettings(max_rate=1e6))
    sending.send(*[MESSAGE] * 40)
    sending.run(0.3)
    before = len(spms(sending.log))
    sending.hear(nak(*range(1, 41)))
    sent = sending.run(0.15)
    assert len(rdata(sent)) == 40
    assert len(spms(sending.log)) == before + 1  # within less than 0.5 s


@pytest.mark.rule("SR-015", "SR-009")
def test_heartbeats_while_idle() -> None:
    sending = Sending()
    sending.send(b"data")
    sent = sending.run(100)
    data_at = next(one.at for one in sent if isinstance(one.message, Data))
    times = [one.at - data_at for one in sent if isinstance(one.message, Spm) and one.at > data_at]
    ambient = times[0]
    assert ambient <= 0.5
    distances = [after - before for before, after in pairwise(times)]
    assert distances == pytest.approx([1, 2, 4, 8, 15, 15, 15, 15, 15])
    sending.send(b"more")
    sent = sending.run(5)
    times = [one.at for one in sent if isinstance(one.message, Spm)]
    assert [after - before for before, after in pairwise(times)] == pytest.approx([1, 2])


@pytest.mark.rule("SR-009")
def test_spms_open_the_session_before_any_data() -> None:
    sending = Sending()
    sending.send(MESSAGE)
    first = sending.run(1)[0]
    assert first.message == Spm(TSI, GROUP.port, 0, 1, 0, SOURCE_IP)
    assert (first.datagram.destination, first.datagram.ttl, first.datagram.router_alert) == (
        GROUP.address,
        None,
        True,
    )
    assert [spm.sequence for spm in spms(sending.log)] == list(range(len(spms(sending.log))))


@pytest.mark.rule("SR-017")
def test_the_delay_of_repairs() -> None:
    table = {(0, 0, 0): 0, (10, 10, 19): 0, (19, 10, 19): 0.054, (15, 10, 19): 0.030, (1, 0, 1): 0.030}
    for (sequence, trail, lead), delay in table.items():
        assert repair_delay(sequence, trail, lead, 0.060) == pytest.approx(delay)

    sending = Sending(PgmSettings(max_rate=1e6))
    sending.send(*[b"x"] * 10)  # 1 to 10
    sending.run(0.2)
    sending.hear(nak(10))
    sending.hear(nak(6))
    sending.hear(nak(1))
    asked = sending.now
    sent = sending.run(0.2)
    repairs = [(one.message.sequence, one.at - asked) for one in sent if isinstance(one.message, Data)]
    assert [sequence for sequence, _ in repairs] == [1, 6, 10]
    assert [delay for _, delay in repairs] == pytest.approx([0, 0.030, 0.054], abs=0.003)


@pytest.mark.rule("SR-018", "SR-021")
def test_the_window_advances_each_45_seconds_whether_or_not_naks_come() -> None:
    def trails(*, asked: bool) -> list[tuple[float, int]]:
        sending = Sending()
        changes: list[tuple[float, int]] = []
        for second in range(500):
            sending.send(b"%d" % second)
            sending.run(1)
            if asked and second % 5 == 0:
                oldest = odata(sending.log)[-1].trail
                sending.hear(nak(oldest + 2))
                sending.run(0)
        for one in sending.log:
            if isinstance(one.message, Data | Spm) and (not changes or changes[-1][1] != one.message.trail):
                changes.append((one.at, one.message.trail))
        return changes

    quiet = trails(asked=False)
    assert quiet[0][1] == 1
    times = [at for at, _ in quiet[1:]]
    assert times[0] == pytest.approx(270, abs=1)  # what is 255 s old goes; then the window is full at 300 s
    assert [after - before for before, after in pairwise(times)] == pytest.approx(
        [45] * (len(times) - 1), abs=1.1
    )
    steps = [after - before for (_, before), (_, after) in pairwise(quiet[1:])]
    assert steps == [45] * len(steps)
    assert trails(asked=True) == quiet


@pytest.mark.rule("SR-018")
def test_the_window_advances_while_nothing_is_sent() -> None:
    sending = Sending()
    sending.send(*[b"%d" % number for number in range(1, 11)])
    sending.run(100)
    sending.send(b"11")
    sending.run(190)
    assert spms(sending.log)[-1].trail == 11  # the first ten were 255 s old when 270 s had passed
    sending.run(100)
    assert spms(sending.log)[-1].trail == 12


@pytest.mark.rule("SR-019")
def test_the_window_advances_only_to_the_first_packet_that_was_asked_for() -> None:
    sending = Sending()
    sending.send(*[b"%d" % number for number in range(1, 11)])
    sending.run(269.9)  # the timer fires 270 s after the first packet; all ten are 255 s old by then
    assert sending.source.next_deadline() is not None
    begin = next(one.at for one in sending.log if isinstance(one.message, Data))
    sending.now = begin + 270 - 0.001
    sending.hear(nak(3))  # delayed by 12 ms: pending when the timer fires
    sending.run(1)
    (repair,) = rdata(sending.log)
    assert (repair.sequence, repair.trail) == (3, 3)
    sending.send(b"x")
    assert odata(sending.run(1))[-1].trail == 3
    sending.run(46)
    assert spms(sending.log)[-1].trail == 11


@pytest.mark.rule("SR-020", "SR-224")
def test_an_apdu_has_at_most_64_kilobytes() -> None:
    sending = Sending(PgmSettings(max_rate=1e6))
    with pytest.raises(ApduTooLarge, match="65537"):
        sending.source.send(bytes(65_537))
    assert sending.source.backlog == 0
    sending.send(bytes(65_536))
    assert sum(len(data.data) for data in odata(sending.run(1))) == 65_536
    with pytest.raises(ValueError, match="empty"):
        sending.source.send(b"")


@given(st.integers(1, 65_536), st.integers(576, 9000), st.integers(0, 0xFFFF_FFFF))
@settings(max_examples=40, deadline=None)
@pytest.mark.rule("SR-009")
def test_fragments_make_up_the_apdu_and_fit_into_the_mtu(size: int, mtu: int, first: int) -> None:
    sending = Sending(PgmSettings(max_rate=1e9, mtu=mtu), first=first)
    apdu = bytes(number % 251 for number in range(size))
    sending.send(apdu)
    sent = sending.run(0.4)
    assert all(one.size <= mtu for one in sent)
    packets = odata(sent)
    assert b"".join(packet.data for packet in packets) == apdu
    if len(packets) == 1:
        assert packets[0].fragment is None
    offset = 0
    for number, packet in enumerate(packets):
        assert packet.sequence == (first + number) % (1 << 32)
        if packet.fragment is not None:
            assert packet.fragment == (first, offset, size)
        offset += len(packet.data)
    sending.hear(nak(packets[-1].sequence))
    (repair,) = rdata(sending.run(0.2))
    assert repair == packets[-1]._replace(repair=True)
    assert all(one.size <= mtu for one in sending.log)
    assert sending.finished == [1]


def test_who_gave_an_apdu_is_told_when_its_last_fragment_is_sent() -> None:
    sending = Sending()
    sending.send(b"a", bytes(4000), b"b")
    sending.step()
    assert sending.finished == [1]
    sending.run(0.02)
    assert sending.finished == [1]
    sending.run(0.2)
    assert sending.finished == [1, 2, 3]
    assert sending.source.backlog == 0


@pytest.mark.rule("SR-022", "SR-009")
def test_every_nak_in_the_window_is_confirmed_and_then_repaired() -> None:
    sending = Sending()
    sending.send(*[b"%d" % number for number in range(1, 11)])
    sending.run(3)
    before = len(sending.log)
    for _ in range(5):
        sending.hear(nak(7))
    sent = [one.message for one in sending.run(0.2) if not isinstance(one.message, Spm)]
    assert sent[:5] == [Nak(TSI, GROUP.port, (7,), SOURCE_IP, GROUP.address, confirmed=True)] * 5
    (repair,) = sent[5:]
    assert isinstance(repair, Data)
    assert (repair.sequence, repair.repair, repair.data) == (7, True, b"7")
    assert all(
        one.datagram.router_alert and one.datagram.destination == GROUP.address
        for one in sending.log[before:]
    )
    for outside in (0, 11, 0x8000_0000):
        sending.hear(nak(outside))
    assert sending.run(0.2) == []
    assert sending.source.statistics.naks_outside_window == 3
    sending.hear(nak(7))
    assert [repair.sequence for repair in rdata(sending.run(0.2))] == [7], "as often as it is asked for"


@pytest.mark.rule("SR-022", "SR-009")
def test_a_nak_list_is_confirmed_as_it_is_and_repaired_in_full() -> None:
    sending = Sending()
    sending.send(*[b"%d" % number for number in range(1, 101)])
    sending.run(3)
    wanted = tuple(range(10, 73))
    assert len(wanted) == 63
    sending.hear(nak(*wanted))
    sent = sending.run(0.3)
    assert [one.sequences for one in naks(sent)] == [wanted]
    assert [one.sequence for one in rdata(sent)] == list(wanted)


@pytest.mark.rule("SR-009")
def test_naks_that_are_not_for_this_source_are_ignored() -> None:
    sending = Sending()
    sending.send(b"1")
    sending.run(3)
    sending.hear(nak(1, tsi=Tsi(TSI.gsi, 7)))
    sending.hear(nak(1, tsi=Tsi(b"other.", TSI.port)))
    sending.hear(encode_nak(Nak(TSI, 8002, (1,), SOURCE_IP, GROUP.address)))
    sending.hear(encode_nak(Nak(TSI, GROUP.port, (1,), SOURCE_IP, "234.1.1.2")))
    sending.hear(nak(1), multicast=True)
    sending.hear(ncf(1))
    sending.hear(b"\0" * 40)
    sending.hear(nak(1)[:-1])
    assert sending.run(0.2) == []
    assert sending.source.statistics.malformed == 2


def test_naks_in_masses_leave_most_of_the_rate_to_data() -> None:
    sending = Sending()
    sending.send(*[MESSAGE] * 300)
    sending.run(1)
    before = len(sending.log)
    for _ in range(2000):
        for _ in range(10):
            sending.hear(nak(1, 2, 3))
        sending.run(0.001)
    sent = sending.log[before:]
    confirmations = sum(one.size for one in sent if isinstance(one.message, Nak))
    assert confirmations <= 0.25 * 70_000 * 2 + 2800
    assert len(odata(sent)) >= 30
    assert len(rdata(sent)) >= 30
    assert heaviest_excess(sending.log, 70_000) <= 2801
    assert sending.source.statistics.naks_dropped > 10_000


@pytest.mark.rule("SR-025")
def test_no_join_and_no_syn_option_is_sent() -> None:
    sending = Sending()
    sending.send(b"1", bytes(5000))
    sending.run(2)
    sending.hear(nak(1, 2))
    sending.run(2)
    sending.source.close(sending.now)
    sending.run(5)
    kinds = set()
    for one in sending.log:
        packet = one.datagram.payload
        if packet[5] & 1:
            at = {Spm: 36, Data: 24, Nak: 36}[type(one.message)]
            end = at + int.from_bytes(packet[at + 2 : at + 4], "big")
            while at < end:
                kinds.add(packet[at] & 0x7F)
                at += packet[at + 1]
    assert kinds == {0x00, 0x01, 0x02, 0x0E}


@pytest.mark.rule("SR-028")
def test_a_graceful_end_is_announced_for_txw_secs() -> None:
    sending = Sending()
    sending.send(b"1", bytes(50_000), b"3")
    sending.run(0.1)
    sending.source.close(sending.now)
    with pytest.raises(RuntimeError):
        sending.source.send(b"x")
    sending.run(10)
    assert sending.finished == [1, 2, 3]
    last = max(at for at, one in enumerate(sending.log) if isinstance(one.message, Data))
    assert not any(spm.fin for spm in spms(sending.log[:last]))
    after = sending.log[last + 1 :]
    assert after[0].at - sending.log[last].at < 0.1  # at once, not with the next heartbeat
    assert all(spm.fin and spm.rst is None for spm in spms(after))
    assert spms(after)[0].lead == odata(sending.log)[-1].sequence
    sending.hear(nak(1))
    assert [repair.data for repair in rdata(sending.run(0.2))] == [b"1"]
    sending.run(280)
    assert not sending.source.closed
    sending.run(20)
    assert sending.source.closed
    assert sending.source.next_deadline() is None
    assert sending.run(100) == []
    assert 300 - (sending.log[-1].at - after[0].at) <= 15


@pytest.mark.rule("SR-028")
def test_cancelled_sends_reset_the_session() -> None:
    sending = Sending()
    sending.send(*[b"%d" % number for number in range(1, 5)], bytes(60_000))
    sending.run(0.2)
    lead = odata(sending.log)[-1].sequence
    sending.hear(nak(1))
    sending.source.close(sending.now, rst=True)
    sent = sending.run(1)
    sending.hear(nak(1))
    sending.hear(nak(2))
    sent += sending.run(298)
    assert sending.source.backlog == 0
    assert all(isinstance(one.message, Spm) for one in sent)
    assert all(spm.rst == 0x40 and not spm.fin and spm.lead == lead for spm in spms(sent))
    assert sent[0].at - sending.log[0].at < 0.3
    sending.run(2)
    assert sending.source.closed
    assert 5 not in sending.finished


@pytest.mark.rule("SR-029")
def test_statistics() -> None:
    sending = Sending()
    sending.send(*[MESSAGE] * 200)
    sending.run(2)
    sending.hear(nak(1, 2))
    sending.run(0.5)
    counted = sending.source.statistics
    assert counted.odata == len(odata(sending.log))
    assert counted.rdata == len(rdata(sending.log)) == 2
    assert counted.spm == len(spms(sending.log))
    assert counted.ncf == counted.naks == 1
    assert counted.bytes_sent == sum(one.size for one in sending.log)
    assert counted.apdus == len(sending.finished)
    assert sending.source.rate(sending.now) == pytest.approx(70_000, rel=0.1)
    sending.run(30)
    assert sending.source.rate(sending.now) < 100


def test_a_full_window_lets_the_oldest_go() -> None:
    sending = Sending(PgmSettings(max_rate=1e6, window_memory=50_000))
    sending.send(*[MESSAGE] * 500)
    for _ in range(200):
        sending.run(0.005)
        latest = odata(sending.log)[-1]
        assert latest.sequence - latest.trail <= 50_000 / 1300
        sending.hear(nak(latest.trail))  # asked for again and again: delays, but stops nothing
    assert sending.source.backlog == 0


@pytest.mark.rule("SR-019")
def test_a_full_window_keeps_what_was_asked_for() -> None:
    sending = Sending(PgmSettings(max_rate=1e6, window_memory=5_000))
    sending.send(*[b"x"] * 110)
    sending.run(0.5)
    sending.hear(nak(1, 2, 3, 4))
    sending.send(MESSAGE)  # for which thirty of the others have to go
    sent = sending.run(1)
    assert [packet.sequence for packet in rdata(sent)] == [1, 2, 3, 4]
    last = [one.message for one in sent if isinstance(one.message, Data)][-1]
    assert (last.sequence, last.repair, last.trail > 4) == (111, False, True)


@pytest.mark.rule("SR-009")
def test_sequence_numbers_wrap() -> None:
    sending = Sending(PgmSettings(max_rate=1e6), first=0xFFFF_FFFC)
    sending.send(*[b"%d" % number for number in range(8)])
    sent = sending.run(0.2)
    assert [packet.sequence for packet in odata(sent)] == [
        0xFFFF_FFFC + number & 0xFFFF_FFFF for number in range(8)
    ]
    sending.hear(nak(0xFFFF_FFFD, 2))
    assert [packet.data for packet in rdata(sending.run(0.2))] == [b"1", b"6"]
