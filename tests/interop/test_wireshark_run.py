"""All other tests of this room under the eyes of Wireshark: what they put on the wire is sound."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast.packet.user_message import UserMessagePacket
from msmq_fast.protocol.errors import PacketFault
from tests.interop import dissected
from tests.support.captures import shark

HERE = Path(__file__).parent
SCRIPTED = "ip.src == 127.0.9.0/24 || ip.src == 127.0.10.0/24"  # peers that break rules on purpose
TOO_MUCH = ["test_a_backlog_is_sent_in_order_after_a_kill"]
HEURISTIC = ("-o", "tcp.try_heuristic_first:TRUE")


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of the room in a network of its own, captured."""
    path = tmp_path_factory.mktemp("shark") / "interop.pcapng"
    skipped = [f"--deselect={HERE / 'conversations' / 'test_session_life.py'}::{name}" for name in TOO_MUCH]
    ignored = [f"--ignore={file}" for file in HERE.glob("test_wireshark*.py")]
    room = os.environ.get("MSMQ_FAST_CAPTURED_TESTS", str(HERE)).split()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    isolated = [
        "unshare",
        "--net",
        "--map-root-user",
        sys.executable,
        "-m",
        "tests.support.processes.isolated",
    ]
    done = subprocess.run(
        [*isolated, str(path), "-q", "-p", "no:cacheprovider", *room, *ignored, *skipped],
        cwd=HERE.parents[1],
        env=environment,
        capture_output=True,
        check=False,
        timeout=1500,
    )
    said = (done.stdout + done.stderr).decode(errors="replace")[-4000:]
    assert done.returncode == 0, said
    return path


def streams(capture: Path) -> dict[tuple[str, ...], bytes]:
    """The bytes of each direction of each connection that carried the protocol."""
    names = ["tcp.stream", "ip.src", "ipv6.src", "tcp.srcport", "tcp.seq_raw", "tcp.payload"]
    pieces: dict[tuple[str, ...], dict[int, bytes]] = {}
    known = {row["tcp.stream"][0] for row in shark.rows(capture, ["tcp.stream"], "mqqb", HEURISTIC)}
    for row in shark.rows(capture, names, "tcp.len > 0", HEURISTIC):
        stream, *rest = (row[name][0] if row[name] else "" for name in names)
        if stream in known:
            pieces.setdefault((stream, *rest[:3]), {})[int(rest[3])] = bytes.fromhex(rest[4])
    return {side: b"".join(found[at] for at in sorted(found)) for side, found in pieces.items()}


def packets(data: bytes) -> Iterator[bytes]:
    """The whole packets of one direction."""
    while len(data) >= 16:
        size = int.from_bytes(data[8:12], "little")
        with contextlib.suppress(PacketFault):
            if not data[2] & 8:
                size = UserMessagePacket.decode(data)[1]
        if len(data) < size:
            return
        yield data[:size]
        data = data[size:]


@pytest.mark.long(seconds=400)
@pytest.mark.timeout(1800)
@pytest.mark.needs("tshark", "dumpcap", "unshare", rights=["network namespace"])
def test_every_packet_of_the_whole_room_is_what_our_decoder_says(capture: Path) -> None:
    wrong = shark.rows(
        capture, ["frame.number", "_ws.expert.message"], f"({shark.WRONG}) && !({SCRIPTED})", HEURISTIC
    )
    assert wrong == []
    names = ["tcp.stream", "ip.src", "ipv6.src", "tcp.srcport"]
    shown: dict[tuple[str, ...], list[dict[str, list[str]]]] = {}
    for row in shark.rows(capture, [*names, *dissected.FIELDS], f"mqqb && !({SCRIPTED})", HEURISTIC):
        side = tuple(row[name][0] if row[name] else "" for name in names)
        shown.setdefault(side, []).append(row)
    compared = 0
    for side, data in streams(capture).items():
        expected: dict[str, list[object]] = {}
        rows = shown.get(side, [])
        for packet in packets(data) if rows else ():
            for name, values in dissected.of_packet(packet).items():
                expected.setdefault(name, []).extend(values)
            compared += 1
        joined = {name: [value for row in rows for value in row[name]] for name in dissected.FIELDS}
        assert dissected.difference(joined, expected) == {}, side
    assert compared > 3000
    everything = shark.rows(
        capture, ["mqqb.internal.type", "mqqb.ordering", "mqqb_ping.cookie"], options=HEURISTIC
    )
    assert {"OrderAck", "FinalAck"} <= {kind for row in everything for kind in row["mqqb.ordering"]}
    assert {"1", "2", "3"} <= {kind for row in everything for kind in row["mqqb.internal.type"]}
    assert any(row["mqqb_ping.cookie"] for row in everything)
