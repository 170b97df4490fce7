"""OpenPGM (libpgm), an implementation of RFC 3208 by others, in both roles, on a network that loses 5 %."""

from __future__ import annotations

import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast.client import sync
from msmq_fast.client.message import Message
from tests.srmp.pgm.figures import NAK, NCF, RDATA, complaints, drain, figures, kinds
from tests.srmp.pgm.namespaces import LOSS, Host, captured, hosts
from tests.support.processes.servers import Server
from tests.support.srmp.independent import read, read_request
from tests.support.srmp.station import compound, envelope

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.needs("cc", "ip", "nft", rights=["OpenPGM", "network namespace"]),
]

RATE = 1_200_000

ADDRESS, PORT = "234.1.1.1", 8001
GROUP = f"{ADDRESS}:{PORT}"
COUNT = 5000
SOURCE = Path(__file__).parent / "openpgm" / "peer.c"
_LENGTH = struct.Struct(">I")


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program made of OpenPGM."""
    made = tmp_path_factory.mktemp("openpgm") / "peer"
    headers = ("-I/usr/include/pgm-5.3",)
    done = subprocess.run(
        ["cc", "-O1", "-Wall", "-Werror", *headers, "-o", str(made), str(SOURCE), "-lpgm"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture
def pair() -> Iterator[tuple[Host, Host]]:
    with hosts() as found:
        for host in found:
            host.lose(LOSS)
        yield found


def apdu(number: int, body: bytes) -> bytes:
    """A message by a hand that is not ours, with the head of a request (4.5)."""
    text = envelope(f"MSMQ:MULTICAST={GROUP}", ordinal=number + 1, now=int(time.time()))
    kind, content = compound(text, body)
    head = f"POST {GROUP} HTTP/1.1\r\nHost: {GROUP}\r\nContent-Type: {kind}\r\n"
    return f'{head}Content-Length: {len(content)}\r\nSOAPAction: "MSMQMessage"\r\n\r\n'.encode() + content


def network(host: Host) -> str:
    return f"{host.address};{ADDRESS}"


def repaired(capture: Path) -> None:
    """NAKs were sent and answered, and Wireshark has nothing to say against a packet."""
    seen = kinds(capture)
    assert min(seen[kind] for kind in (NAK, NCF, RDATA)) > COUNT * LOSS // 4000, seen
    assert complaints(capture) == []


@pytest.mark.rule("SR-005", "SR-006")
def test_openpgm_sends_to_our_queue(pair: tuple[Host, Host], peer: Path, tmp_path: Path) -> None:
    ours, theirs = pair
    server = ours.server(tmp_path / "a")
    capture = tmp_path / "run.pcapng"
    try:
        server.start()
        server.ok("queue", "create", "in", "--multicast", GROUP)
        server.ok("queue", "create", "other", "--multicast", f"{ADDRESS}:{PORT + 1}")
        with (
            captured(ours, capture),
            subprocess.Popen(
                [*theirs.inside, str(peer), "send", network(theirs), str(PORT), str(RATE)],
                stdin=subprocess.PIPE,
            ) as sender,
        ):
            assert sender.stdin is not None
            for number in range(COUNT):
                # One packet each: OpenPGM 5.3.128 of Debian crashes when it cuts an APDU into fragments.
                text = apdu(number, b"%d" % number)
                sender.stdin.write(_LENGTH.pack(len(text)) + text)
            sender.stdin.close()
            assert drain(server, "in", COUNT, 120) == list(range(COUNT))
            assert sender.wait(60) == 0
        got = figures(ours, server, "pgm_received")
        assert (got["apdus"], got["lost"], got["malformed"]) == (COUNT, 0, 0)
        assert got["recovered"] > COUNT * LOSS // 4000
        assert server.ok("queue", "show", "other")[0]["messages"] == 0
    finally:
        server.kill()
    repaired(capture)


@pytest.mark.rule("SR-005", "SR-008")
def test_openpgm_hears_what_we_send(pair: tuple[Host, Host], peer: Path, tmp_path: Path) -> None:
    ours, theirs = pair
    server = ours.server(tmp_path / "a")
    capture = tmp_path / "run.pcapng"
    output = tmp_path / "heard"
    try:
        server.start()
        with (
            captured(ours, capture),
            output.open("wb") as file,
            subprocess.Popen(
                [*theirs.inside, str(peer), "receive", network(theirs), str(PORT), str(COUNT)],
                stdout=file,
                stderr=subprocess.PIPE,
            ) as receiver,
        ):
            assert receiver.stderr is not None
            assert receiver.stderr.readline() == b"ready\n"
            feed_large(server)
            assert receiver.wait(180) == 0, receiver.stderr.read()
        sent = figures(ours, server, "pgm_sent")
        assert sent["apdus"] == COUNT
        assert min(sent["naks"], sent["ncf"], sent["rdata"]) > COUNT * LOSS // 4000, sent
    finally:
        server.kill()
    data, at = output.read_bytes(), 0
    for number in range(COUNT):
        (length,) = _LENGTH.unpack_from(data, at)
        text = data[at + 4 : at + 4 + length]
        at += 4 + length
        assert text.startswith(f"POST {GROUP} HTTP/1.1\r\nHost: {GROUP}\r\n".encode())
        found = read(read_request(text))
        assert found.body is not None
        assert int(found.body) == number
    assert at == len(data)
    repaired(capture)


def feed_large(server: Server) -> None:
    """Every hundredth message needs several packets."""
    with (
        sync.connect(server.endpoint) as connection,
        connection.open(f"MULTICAST={GROUP}", sync.Access.SEND) as queue,
    ):
        queue.send_many(
            Message(body=b"%d" % number + b" " * (0 if number % 100 else 20_000)) for number in range(COUNT)
        )
