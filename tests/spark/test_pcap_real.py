"""Captures of real traffic, and another program's idea of streams."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast.spark.pcap.captures import records, segments
from msmq_fast.spark.pcap.flows import Connection, Conversations
from msmq_fast.spark.pcap.layers import Segment
from msmq_fast.spark.pcap.tables import Scan, read
from tests.spark import traffic
from tests.spark.conversations import PORTS, conversation, kinds, rows
from tests.spark.traffic import Packet, Talk
from tests.support.captures import shark
from tests.support.processes.pair import collect, pair
from tests.support.processes.servers import Server, until

__all__ = ["pair"]

COUNT = 2000


@contextlib.contextmanager
def captured(path: Path, expression: str) -> Iterator[None]:
    """What goes over the loopback interface meanwhile."""
    with subprocess.Popen(
        ["tcpdump", "-i", "lo", "-U", "-B", "65536", "-s", "0", "-w", str(path), expression],
        stderr=subprocess.PIPE,
        text=True,
    ) as tcpdump:
        assert tcpdump.stderr is not None
        said = tcpdump.stderr.readline()
        if "listening" not in said:
            tcpdump.kill()
            raise AssertionError(said.strip())
        try:
            yield
        finally:
            tcpdump.send_signal(signal.SIGINT)
            said = tcpdump.stderr.read()
    dropped = re.search(r"(\d+) packets dropped by kernel", said)
    assert dropped is None or dropped[1] == "0", said


@pytest.mark.long(seconds=40)
@pytest.mark.timeout(300)
@pytest.mark.needs("tcpdump", rights=["capture"])
def test_every_message_between_two_servers_is_in_the_tables(
    pair: tuple[Server, Server],
    tmp_path: Path,
) -> None:
    a, b = (server.start() for server in pair)
    b.ok("queue", "create", "inbox")
    port = b.port("mqqb")
    target = f"DIRECT=TCP:{b.host}\\private$\\inbox"
    capture = tmp_path / "real.pcap"
    with captured(capture, f"tcp port {port}"):
        for kind in ("--recoverable", "--xact"):
            if kind == "--xact":
                b.ok("queue", "create", "exact", "--transactional")
                target = f"DIRECT=TCP:{b.host}\\private$\\exact"
            body = "x" * 3000
            a.ok("send", target, "--body", body, "--label", kind[2:], kind, "--count", str(COUNT))
        received = collect(b, "inbox", COUNT) + collect(b, "exact", COUNT)
        until(lambda: all(queue["messages"] == 0 for queue in a.ok("outgoing", "list")), 30, "all sent")
        a.stop()
        b.stop()
    scan = Scan("frames", (str(capture),), frozenset((port,)))
    found = [row for batch in read(scan) for row in batch.to_pylist()]
    assert {row["malformed"] for row in found} == {None}
    users = [row for row in found if row["packet_type"] == "user"]
    sent = [row for row in users if row["label"] in ("recoverable", "xact")]
    wanted = {str(message["message_id"]) for message in received}
    assert len(wanted) == 2 * COUNT
    assert {row["message_id"] for row in sent} == wanted
    assert {row["body_size"] for row in sent} == {3000}
    numbers = [row["xact_seq_no"] for row in sent if row["label"] == "xact"]
    assert sorted(set(numbers)) == list(range(1, COUNT + 1))
    table = read(Scan("sessions", (str(capture),), frozenset((port,))))
    sessions = [row for batch in table for row in batch.to_pylist()]
    assert (sessions[0]["established"], sessions[0]["handshake_seen"]) == (True, True)
    assert {row["missing_bytes_to_server"] for row in sessions} == {0}
    assert sum(row["messages_to_server"] for row in sessions) >= 2 * COUNT


class _Bytes:
    """A reader that keeps what it is given."""

    def __init__(self) -> None:
        self.data = b""

    def begin(self, *, whole: bool) -> None:
        assert whole

    def feed(self, data: bytes) -> list[None]:
        self.data += data
        return []

    def gap(self, missing: int) -> list[None]:
        raise AssertionError(f"{missing} bytes are missing")

    def end(self) -> list[None]:
        return []


def our_streams(capture: Path) -> dict[tuple[str, int], bytes]:
    """The bytes of each direction of each connection, by our reassembly."""
    readers: dict[tuple[str, int], _Bytes] = {}

    def reader(connection: Connection, side: int) -> _Bytes:
        return readers.setdefault((connection.name, side), _Bytes())

    talks: Conversations[None] = Conversations(reader, PORTS, flow_limit=1 << 24, total_limit=1 << 26)
    for segment in segments(records((str(capture),))):
        assert isinstance(segment, Segment)
        assert not list(talks.add(segment))
    assert not list(talks.end())
    return {key: one.data for key, one in readers.items()}


def their_streams(capture: Path, number: int) -> tuple[bytes, bytes]:
    """The same of one connection, by Wireshark's."""
    printed = shark.tshark("-q", "-r", str(capture), "-z", f"follow,tcp,raw,{number}")
    lines = re.findall(r"^(\t?)([0-9a-f]+)$", printed, re.MULTILINE)
    sides: tuple[list[bytes], list[bytes]] = ([], [])
    for tab, data in lines:
        sides[bool(tab)].append(bytes.fromhex(data))
    return b"".join(sides[0]), b"".join(sides[1])


@pytest.mark.long(seconds=30)
@pytest.mark.timeout(200)
@pytest.mark.needs("tshark")
def test_streams_and_messages_are_those_of_wireshark(tmp_path: Path) -> None:
    """Connections with segments repeated and out of order, put in order by two programs."""
    packets: list[Packet] = []
    for n in range(4):
        talk = conversation(40, Talk(("10.0.0.1", 43_000 + n), segment=400 + 333 * n))
        # Wireshark does not wait for what comes behind a FIN.
        packets += traffic.disturbed(talk.packets[:-10], n, repeated=0.02, swapped=0.05)
        packets += talk.packets[-10:]
    capture = traffic.write(tmp_path / "a.pcap", packets)
    ours = our_streams(capture)
    for n in range(4):
        name = f"10.0.0.1:{43_000 + n}->10.0.0.2:1801"
        assert (ours[name, 0], ours[name, 1]) == their_streams(capture, n)
    options = ("-o", "tcp.reassemble_out_of_order:TRUE")
    theirs = shark.rows(capture, ["mqqb.user.message_id"], "mqqb.user.message_id", options)
    ids = sorted(int(value) for row in theirs for value in row["mqqb.user.message_id"])
    mine = rows(capture)
    assert sorted(row["app_specific"] for row in mine if row["packet_type"] == "user") == ids
    assert kinds(mine).count("user") == 160
