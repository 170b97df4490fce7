"""Wireshark's own PGM dissector has nothing to say against a conversation of ours."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from msmq_fast.srmp.pgm.model import Datagram
from msmq_fast.srmp.pgm.packets import NAK, NCF, ODATA, RDATA, SPM
from msmq_fast.srmp.pgm.settings import PgmSettings
from tests.srmp.pgm.network import Network, Weather
from tests.support.captures import shark

RAW_IP = 101
ROUTER_ALERT = bytes.fromhex("94040000")


def ip(source: str, datagram: Datagram) -> bytes:
    """The datagram in an IPv4 packet."""
    options = ROUTER_ALERT if datagram.router_alert else b""
    header = struct.pack(
        ">BBHHHBBH4s4s", 0x45 + len(options) // 4, 0, 20 + len(options) + len(datagram.payload), 0, 0,
        datagram.ttl or 16, 113, 0,
        bytes(map(int, source.split("."))), bytes(map(int, datagram.destination.split("."))),
    )  # fmt: skip
    words = struct.unpack(f">{len(header + options) // 2}H", header + options)
    total = sum(words)
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return header[:10] + struct.pack(">H", ~total & 0xFFFF) + header[12:] + options + datagram.payload


def write(path: Path, carried: list[tuple[float, str, Datagram]]) -> Path:
    with path.open("wb") as file:
        file.write(struct.pack(">IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, RAW_IP))
        for at, source, datagram in carried:
            packet = ip(source, datagram)
            file.write(struct.pack(">IIII", int(at), int(at % 1 * 1e6), len(packet), len(packet)) + packet)
    return path


@pytest.mark.long(seconds=30)
@pytest.mark.needs("tshark")
@pytest.mark.rule("SR-009", "SR-025")
def test_a_conversation_as_wireshark_shows_it(tmp_path: Path) -> None:
    network = Network(1, Weather(lost=0.2), PgmSettings(max_rate=1e6), sources=2, receivers=2)
    one, other = network.sources.values()
    for number in range(300):
        one.send(b"%d " % number + bytes(number * 20))
        other.send(b"x" * 50)
        network.run(0.05)
    one.close(network.now)
    other.close(network.now, rst=True)
    network.run(400)
    capture = write(tmp_path / "conversation.pcap", network.carried)

    checked = ("-o", "pgm.check_checksum:TRUE")
    wrong = "_ws.malformed || _ws.expert || pgm.hdr.cksum.status != 1 || !pgm"
    fields = ["frame.number", "pgm.hdr.type", "_ws.expert.message", "pgm.hdr.cksum.status"]
    assert shark.rows(capture, fields, wrong, checked) == []
    shown = set(re.findall(r"Option: (\w+), Length", shark.tshark("-r", str(capture), "-V")))
    assert shown == {"Fragment", "NakList", "Fin", "Rst"}  # neither Join nor Syn

    rows = shark.rows(capture, ["pgm.hdr.type", "ip.opt.ra", "ip.ttl"], "pgm")
    assert len(rows) == len(network.carried) > 1000
    kinds = [int(row["pgm.hdr.type"][0], 0) for row in rows]
    assert set(kinds) == {SPM, ODATA, RDATA, NAK, NCF}
    for kind, row in zip(kinds, rows, strict=True):
        assert bool(row["ip.opt.ra"]) == (kind in (SPM, NCF, RDATA))
    assert {row["ip.ttl"][0] for kind, row in zip(kinds, rows, strict=True) if kind == NAK} == {"1", "16"}


@pytest.mark.long(seconds=10)
@pytest.mark.needs("tshark")
def test_wireshark_is_asked_in_earnest(tmp_path: Path) -> None:
    """A wrong checksum, and an option that is too long, are noticed by the filter above."""
    network = Network(1, Weather(lost=0), PgmSettings())
    network.sources["192.0.2.1"].send(bytes(3000))
    network.run(1)
    at, source, datagram = next(one for one in network.carried if len(one[2].payload) > 1000)
    broken = datagram.payload[:100] + b"?" + datagram.payload[101:]
    capture = write(tmp_path / "broken.pcap", [(at, source, datagram._replace(payload=broken))])
    wrong = "_ws.malformed || _ws.expert || pgm.hdr.cksum.status != 1 || !pgm"
    assert len(shark.rows(capture, ["frame.number"], wrong, ("-o", "pgm.check_checksum:TRUE"))) == 1
