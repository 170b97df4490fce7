"""What impacket reads over qmmgmt of a sequence on its way between two servers."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from msmq_fast.rpc.idl.qmmgmt import QMMGMT
from msmq_fast.rpc.services.management.queueproperties import QueueProperty as P
from tests.rpc.interop.impacketclient import PRIVACY, ImpacketClient, directory_of_user
from tests.support.processes.pair import free_port
from tests.support.processes.servers import Server, until
from tests.support.rpc.managing import asking, plain, queue_object

pytestmark = pytest.mark.long(seconds=6)

TARGET = r"DIRECT=TCP:127.0.0.3\private$\inbox"
VARIANTS, TEXTS, BLOB, UI4, I4, LPWSTR, NULL = 0x100C, 0x101F, 65, 19, 3, 31, 1


@pytest.fixture
def pair() -> Iterator[tuple[Server, Server]]:
    """A sender and a receiver; the user of the test may see everything."""
    port = str(free_port())
    with ExitStack() as stack:
        servers = []
        for name, host in (("ALPHA", "127.0.0.2"), ("BETA", "127.0.0.3")):
            data: Path = stack.enter_context(directory_of_user())
            server = Server(
                data,
                *("--port", port, "--name", name),
                host=host,
                environment={"MSMQ_FAST_MQQB__RETRY_INTERVAL": "0.3"},
            )
            stack.callback(server.kill)
            servers.append(server.start())
        servers[1].ok("queue", "create", "inbox", "--transactional")
        yield servers[0], servers[1]


def values(server: Server, text: str, *numbers: int) -> list[Any]:
    """Properties of a queue."""
    client = ImpacketClient(server, "rpc", QMMGMT, PRIVACY, address=server.host)
    try:
        found = client.ok(
            "get_info",
            pObjectFormat=queue_object(text),
            cp=len(numbers),
            aProp=list(numbers),
            apVar=asking(len(numbers)),
        )
        return [plain(each) for each in found.apVar]
    finally:
        client.close()


@pytest.mark.rule(
    "MR-050", "MR-051", "MR-052", "MR-053", "MR-054", "MR-055", "MR-056", "MR-057", "MR-058", "MR-059"
)
@pytest.mark.rule("MR-060", "MR-061", "MR-063", "MR-064")
def test_a_sequence_and_its_acknowledgments(pair: tuple[Server, Server]) -> None:
    sender, receiver = pair
    for body in ("one", "two"):
        sender.ok("send", TARGET, "--body", body, "--transaction", "--journal")
    until(lambda: values(sender, TARGET, P.EOD_NO_ACK_COUNT) == [(UI4, 0)], what="OrderAcks")
    state, hops, history = values(sender, TARGET, P.STATE, P.NEXTHOPS, P.CONNECTION_HISTORY)
    assert (state, hops) == ((LPWSTR, "CONNECTED"), (TEXTS, ["IP=127.0.0.3"]))
    statuses, times, errors, addresses = history[1]
    assert statuses[1][-1] == 2  # established
    assert len(times[1]) == len(errors[1]) == len(addresses[1]) == len(statuses[1])
    assert addresses[1][-1] == (TEXTS, ["127.0.0.3"])
    numbers = range(P.EOD_LAST_ACK, P.EOD_RESEND_COUNT + 1)
    found = dict(zip(numbers, values(sender, TARGET, *numbers), strict=True))
    assert found[P.EOD_LAST_ACK] == (NULL, None)  # nothing waits for one
    assert found[P.EOD_LAST_ACK_TIME][1] > 1_700_000_000
    assert found[P.EOD_LAST_ACK_COUNT][1] >= 1
    assert found[P.EOD_FIRST_NON_ACK] == found[P.EOD_LAST_NON_ACK] == (BLOB, bytes(16))
    identifier, number, previous = struct.unpack("<QII", found[P.EOD_NEXT_SEQ][1])
    assert (number, previous) == (3, 2)
    assert found[P.EOD_NO_READ_COUNT] == (UI4, 2)
    assert found[P.EOD_RESEND_TIME] == (I4, 0)
    (arriving,) = values(receiver, r"DIRECT=TCP:127.0.0.3\private$\inbox", P.EOD_SOURCE_INFO)
    names, senders, sequences, last, _, rejected = [each[1] for each in arriving[1]]
    assert (names, sequences, last, rejected) == ([TARGET], [identifier], [2], [0])
    assert senders == [UUID(sender.ok("stats")[0]["guid"])]
    receiver.kill()
    sender.ok("send", TARGET, "--body", "three", "--transaction")
    acknowledged, waiting = values(sender, TARGET, P.EOD_LAST_ACK, P.EOD_NO_ACK_COUNT)
    assert (acknowledged[0], len(acknowledged[1]), waiting) == (BLOB, 16, (UI4, 1))
