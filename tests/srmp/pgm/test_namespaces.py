"""Two servers on two hosts, on a network that loses 5 % of all PGM packets; what crossed it, as Wireshark
reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast.client import sync
from msmq_fast.client.message import Message
from tests.srmp.pgm.figures import NAK, NCF, ODATA, RDATA, SPM, complaints, drain, figures, kinds
from tests.srmp.pgm.namespaces import LOSS, Host, captured, hosts, run
from tests.support.processes.servers import Server

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.needs("ip", "nft", "tshark", rights=["network namespace"]),
]

THERE, BACK = "234.1.1.1:8001", "234.1.1.2:8002"
MESSAGES, ANSWERS = 90_000, 10_000


@pytest.fixture
def pair() -> Iterator[tuple[Host, Host]]:
    with hosts() as found:
        yield found


def feed(server: Server, group: str, count: int) -> None:
    """Messages with numbers from 0."""
    with (
        sync.connect(server.endpoint) as connection,
        connection.open(f"MULTICAST={group}", sync.Access.SEND) as queue,
    ):
        queue.send_many(Message(body=b"%d" % number) for number in range(count))


@pytest.mark.rule("SR-005")
def test_a_hundred_thousand_messages_on_a_network_that_loses_a_twentieth(
    pair: tuple[Host, Host], tmp_path: Path
) -> None:
    ours, theirs = pair
    capture = tmp_path / "run.pcapng"
    for host in pair:
        host.lose(LOSS)
    a, b = ours.server(tmp_path / "a"), theirs.server(tmp_path / "b")
    try:
        a.start()
        b.start()
        for server, group in ((b, THERE), (a, BACK)):
            server.ok("queue", "create", "in", "--multicast", group)
        with captured(ours, capture):
            feed(b, BACK, ANSWERS)
            feed(a, THERE, MESSAGES)
            assert drain(b, "in", MESSAGES, 400) == list(range(MESSAGES))
            assert drain(a, "in", ANSWERS, 100) == list(range(ANSWERS))
        assert ours.lost > ANSWERS * LOSS // 2000
        assert theirs.lost > MESSAGES * LOSS // 2000
        for host, server, count in ((theirs, b, MESSAGES), (ours, a, ANSWERS)):
            got = figures(host, server, "pgm_received")
            assert (got["apdus"], got["lost"], got["malformed"]) == (count, 0, 0)
            assert got["recovered"] > count * LOSS // 2000
    finally:
        a.kill()
        b.kill()
    seen = kinds(capture)
    assert seen[ODATA] >= MESSAGES + ANSWERS
    assert min(seen[RDATA], seen[NAK], seen[NCF], seen[SPM]) > 1000, seen
    assert complaints(capture) == []
    others = run("tshark", "-r", str(capture), "-Y", "ip.proto != 113 || udp || tcp").splitlines()
    assert others == []
    alerted = run(
        "tshark", "-r", str(capture), "-Y",
        "(pgm.hdr.type == 0 || pgm.hdr.type == 5 || pgm.hdr.type == 10) && !ip.opt.ra", "-c", "1000",
    )  # fmt: skip
    assert alerted == ""
