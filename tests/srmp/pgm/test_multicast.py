"""Multicast seen from outside: servers on one machine, PGM inside UDP, and a peer made of two sockets."""

from __future__ import annotations

import os
import random
import re
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from msmq_fast.client import sync
from msmq_fast.srmp.pgm import packets
from msmq_fast.srmp.pgm.model import Group, make_tsi
from msmq_fast.srmp.pgm.settings import PgmSettings
from msmq_fast.srmp.pgm.source import Source
from tests.support.http.admin import http
from tests.support.processes.servers import Server, command, without_capability
from tests.support.srmp.station import compound, envelope

ADDRESS = "234.1.1.1"
GROUP = f"{ADDRESS}:8001"
NAME = f"MULTICAST={GROUP}"


def pgm(address: str, port: int, **more: str) -> dict[str, str]:
    keys = {"enabled": "on", "interfaces": address, "udp_port": str(port), "rate": "2 MB", **more}
    return {f"MSMQ_FAST_PGM__{key.upper()}": value for key, value in keys.items()}


@pytest.fixture(scope="module")
def udp_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, udp_port: int) -> Iterator[tuple[Server, Server]]:
    base = tmp_path_factory.mktemp("multicast")
    made = [
        Server(base / name, host=host, environment=pgm(host, udp_port))
        for name, host in (("a", "127.0.0.1"), ("b", "127.0.0.2"))
    ]
    try:
        for server in made:
            server.start()
        yield made[0], made[1]
    finally:
        for server in made:
            server.kill()


def until(what: Callable[[], Any], seconds: float = 15.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def waiting(server: Server, queue: str) -> int:
    """How many messages are in a queue."""
    with sync.connect(server.endpoint) as connection:
        return int(connection.admin.queues.get(queue).messages)


def system(server: Server, name: str) -> int:
    """How many messages are in the system queue whose name ends so."""
    with sync.connect(server.endpoint) as connection:
        return sum(
            int(queue["messages"])
            for queue in [one.as_map() for one in connection.admin.queues.all("system")]
            if str(queue["name"]).lower().rstrip("$").endswith(name)
        )


def taken(server: Server, name: str) -> list[bytes]:
    """The bodies of all messages of a queue, which are removed."""
    with sync.connect(server.endpoint) as connection:
        count = int(connection.admin.queues.get(name).messages)
        with connection.open(name, sync.Access.RECEIVE) as queue:
            return [queue.receive(timeout=5).body for _ in range(count)]


def metric(server: Server, pattern: str) -> float:
    """What the admin port shows."""
    (value,) = re.findall(rf"{pattern} (\S+)$", http(server, "/metrics")[1], re.MULTILINE)
    return float(value)


class Sender:
    """A host that multicasts APDUs of its own making."""

    def __init__(self, udp_port: int) -> None:
        self._port = udp_port
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        self._numbers = random.Random(os.urandom(8)).randrange(1, 1 << 30)

    def send(self, *apdus: bytes, port: int = 8001) -> None:
        """One session with these APDUs, nothing of which is lost."""
        chance = random.Random(os.urandom(8))
        settings = PgmSettings(max_rate=1e9)
        source = Source(
            settings, make_tsi("peer", chance), Group(ADDRESS, port), "127.0.0.9", chance, lambda _: None
        )
        for apdu in apdus:
            source.send(apdu)
        now = 0.0
        while source.backlog or not now:
            for datagram in source.packets(now):
                self._socket.sendto(datagram.payload, (datagram.destination, self._port))
            now += 0.05
            source.expire(now)

    def text(self, body: bytes, *, group: str = GROUP, head: str | None = None, **more: Any) -> bytes:
        """A message, with a usual head unless another is given."""
        self._numbers += 1
        kind, content = compound(
            envelope(f"MSMQ:MULTICAST={group}", ordinal=self._numbers, now=int(time.time()), **more), body
        )
        if head is None:
            head = f"POST {group} HTTP/1.1\r\nHost: {group}\r\nContent-Type: {kind}\r\n"
            head += f"Content-Length: {len(content)}\r\n\r\n"
        return head.encode() + content


@pytest.mark.rule("SR-221", "SR-228", "SR-006", "SR-219")
def test_messages_reach_every_queue_with_the_address(pair: tuple[Server, Server]) -> None:
    a, b = pair
    assert "pgm" in a.ready
    assert a.ok("stats")[0]["srmp_pgm_support"] is True
    b.ok("queue", "create", "one", "--multicast", GROUP)
    b.ok("queue", "create", "two")
    b.ok("queue", "set", "two", "--multicast", GROUP)
    a.ok("queue", "create", "mine", "--multicast", GROUP)
    a.ok("queue", "create", "elsewhere", "--multicast", "234.1.1.1:8002")
    done = a.run("send", NAME, "--body", "hello", "--label", "x", "--count", "50", "--journal")
    assert done.returncode == 0, done.stderr
    for server, queue in ((b, "one"), (b, "two"), (a, "mine")):
        until(lambda s=server, q=queue: waiting(s, q) == 50)  # type: ignore[misc]
    assert waiting(a, "elsewhere") == 0
    assert taken(b, "one") == [b"hello"] * 50
    (outgoing,) = a.ok("outgoing", "show", NAME)
    assert (outgoing["state"], outgoing["messages"]) == ("connected", 0)
    assert [event["status"] for event in outgoing["history"]] == ["in_process", "established"]
    assert outgoing["history"][1]["addresses"] == [GROUP]
    # A message leaves when it was sent once, for the journal if it asks for that.
    until(lambda: system(a, "journal") == 50)


@pytest.mark.rule("SR-029")
def test_rate_and_loss_are_shown_at_the_admin_port(pair: tuple[Server, Server]) -> None:
    a, b = pair
    b.ok("queue", "create", "counted", "--multicast", "234.1.1.1:8003")
    assert a.run("send", "MULTICAST=234.1.1.1:8003", "--body", "x").returncode == 0
    until(lambda: waiting(b, "counted") == 1)
    assert metric(a, r'pgm_sent\w*{what="apdus"}') >= 1
    assert metric(a, 'pgm_rate{group="234.1.1.1:8003"}') > 0
    assert metric(b, r'pgm_received\w*{what="apdus"}') >= 1
    assert metric(b, r'pgm_received\w*{what="lost"}') == 0


@pytest.mark.rule("SR-006", "SR-144")
def test_what_no_queue_has_as_its_address_is_not_heard(pair: tuple[Server, Server], udp_port: int) -> None:
    _, b = pair
    b.ok("queue", "create", "gone", "--multicast", "234.1.1.1:8007")
    b.ok("queue", "create", "stays", "--multicast", "234.1.1.1:8008")
    sender = Sender(udp_port)
    seven, eight = "234.1.1.1:8007", "234.1.1.1:8008"
    until(lambda: (sender.send(sender.text(b"x", group=seven), port=8007), waiting(b, "gone"))[1])
    b.ok("queue", "set", "gone", "--multicast", "")
    before = waiting(b, "gone")
    sender.send(sender.text(b"x", group=seven), port=8007)
    sender.send(sender.text(b"x", group=seven), port=8008)  # the address of another group in a group
    sender.send(sender.text(b"end", group=eight), port=8008)
    until(lambda: waiting(b, "stays"))
    assert waiting(b, "gone") == before
    assert taken(b, "stays") == [b"end"]


@pytest.mark.rule("SR-007")
def test_the_head_of_a_request_means_nothing(pair: tuple[Server, Server], udp_port: int) -> None:
    _, b = pair
    group = "234.1.1.1:8010"
    b.ok("queue", "create", "heads", "--multicast", group)
    sender = Sender(udp_port)
    heads = [
        "whatever this is\r\n\r\n",
        "GET / HTTP/9.9\r\nContent-Length: 999999\r\n\r\n",
        'POST / HTTP/1.1\r\nContent-Type: multipart/related; boundary="another"\r\n\r\n',
        "POST / HTTP/1.1\r\nContent-Type: image/png\r\nno header field at all\r\n\r\n",
        None,
    ]
    texts = [sender.text(b"%d" % index, group=group, head=head) for index, head in enumerate(heads)]
    # Several messages in one APDU, one message over two.
    texts.append(sender.text(b"5", group=group) + sender.text(b"6", group=group))
    spread = sender.text(b"7", group=group)
    texts += [spread[:200], spread[200:], sender.text(b"8", group=group)]
    until(lambda: (sender.send(sender.text(b"first", group=group), port=8010), waiting(b, "heads"))[1])
    sender.send(*texts, port=8010)
    found: list[bytes] = []
    until(lambda: found.extend(taken(b, "heads")) or b"8" in found)
    assert [body for body in found if body != b"first"] == [b"%d" % number for number in range(9)]


@pytest.mark.rule("SR-020", "SR-224")
def test_messages_too_large_for_an_apdu_become_dead_letters(
    pair: tuple[Server, Server], tmp_path: Path
) -> None:
    a, _ = pair
    file = tmp_path / "large"
    file.write_bytes(bytes(70_000))
    done = a.run("send", NAME, "--file", str(file), "--deadletter")
    assert done.returncode == 0, done.stderr
    until(lambda: system(a, "deadletter") == 1)


@pytest.mark.rule("SR-012")
def test_the_rate_is_kept_on_the_wire(udp_port: int, tmp_path: Path) -> None:
    """Sizes of IP packets, repairs and SPMs included, over any interval between two of them."""
    rate, port = 200_000, udp_port + 1 if udp_port < 65_000 else udp_port - 1
    listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    listening.bind((ADDRESS, port))
    request = struct.pack("=4s4si", socket.inet_aton(ADDRESS), socket.inet_aton("127.0.0.1"), 0)
    listening.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
    listening.settimeout(10.0)
    server = Server(tmp_path / "a", environment=pgm("127.0.0.1", port, rate=str(rate))).start()
    seen: list[tuple[float, int]] = []
    try:
        done = server.run("send", NAME, "--body", "b" * 900, "--count", "250")
        assert done.returncode == 0, done.stderr
        while sum(size for _, size in seen) < 400_000:
            payload = listening.recv(65_535)
            seen.append((time.monotonic(), len(payload) + 20))
    finally:
        server.kill()
        listening.close()
    total = sum(size for _, size in seen)
    # What the receiver measures comes late at times, never early: 5 ms of the machine's own jitter.
    bucket = max(0.04 * rate, 1500) + 0.005 * rate + 3000
    elapsed = seen[-1][0] - seen[0][0]
    assert total <= rate * elapsed + bucket
    assert elapsed > 1.5


@pytest.mark.rule("SR-013")
def test_what_is_missing_is_asked_for_after_a_random_while(
    pair: tuple[Server, Server], udp_port: int
) -> None:
    _, b = pair
    group = Group(ADDRESS, 8013)
    b.ok("queue", "create", "gaps", "--multicast", f"{ADDRESS}:{group.port}")
    tsi = make_tsi("gaps", random.Random(os.urandom(8)))
    delays: list[float] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        peer.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        peer.bind(("127.0.0.9", udp_port))
        peer.settimeout(10)

        def say(packet: bytes) -> None:
            peer.sendto(packet, (ADDRESS, udp_port))

        def data(sequence: int, *, repair: bool = False) -> None:
            say(packets.encode_data(packets.Data(tsi, group.port, sequence, 1, b"x", repair=repair)))

        time.sleep(0.2)  # the group is joined
        say(packets.encode_spm(packets.Spm(tsi, group.port, 1, 1, 0, "127.0.0.9")))
        for missing in range(2, 42, 2):
            data(missing - 1)
            begin = time.monotonic()
            data(missing + 1)
            while True:
                nak = packets.decode(peer.recv(2048))
                if isinstance(nak, packets.Nak) and missing in nak.sequences:
                    break
            delays.append(time.monotonic() - begin)
            assert (nak.tsi, nak.port, nak.source, nak.group) == (tsi, group.port, "127.0.0.9", ADDRESS)
            data(missing, repair=True)
    assert min(delays) >= 0.0095  # 0.01, and the clocks of two processes
    assert sorted(delays)[10] < 0.3  # 0.05 on a machine that does nothing else
    assert max(delays) - min(delays) > 0.01


@pytest.mark.rule("SR-228")
def test_it_is_off_by_default_and_refused_then(tmp_path: Path) -> None:
    server = Server(tmp_path / "a").start()
    try:
        assert "pgm" not in server.ready
        assert server.ok("stats")[0]["srmp_pgm_support"] is False
        done = server.run("send", NAME, "--body", "x")
        assert done.returncode != 0
        assert b"sending by multicast is disabled on this server (pgm.enabled)" in done.stderr
        assert server.ok("stats")[0]["srmp_http_support"] is False
        done = server.run("send", "DIRECT=HTTP://127.0.0.1/msmq/private$/x", "--body", "x")
        assert b"sending by HTTP is disabled on this server (srmp.sending)" in done.stderr
    finally:
        server.kill()


def test_mistakes_are_explained_in_one_line(tmp_path: Path) -> None:
    for key, value, line in (
        (
            "interfaces",
            "eth99",
            'pgm.interfaces: "eth99" is neither the name nor the IPv4 address of an interface',
        ),
        ("ttl", "0", "expected a whole number from 1 to 255"),
    ):
        done = command(
            *(
                "serve",
                "--data",
                str(tmp_path / "x"),
                "--port",
                "0",
                "--ping-port",
                "0",
                "--admin-port",
                "off",
            ),
            *("--rpc-port", "off", "--qm2qm-port", "off", "--epm-port", "off"),
            environment=pgm("127.0.0.1", 0, **{key: value}),
        )
        assert done.returncode != 0
        (only,) = done.stderr.decode().splitlines()
        assert line in only


@pytest.mark.needs("setpriv")
def test_without_the_capability_one_line_says_so(tmp_path: Path) -> None:
    server = Server(tmp_path / "a", environment={"MSMQ_FAST_PGM__ENABLED": "on"})
    server.program = without_capability("net_raw")
    server.start()
    try:
        assert "pgm" not in server.ready
        assert server.run("send", NAME, "--body", "x").returncode != 0
    finally:
        server.kill()
    (line,) = [each for each in server.log.read_text().splitlines() if "CAP_NET_RAW" in each]
    assert "AmbientCapabilities=CAP_NET_RAW" in line
