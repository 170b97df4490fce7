"""Messages just under the limit of a packet, 4 MiB, over RemoteRead with impacket as the reader: at every
authentication level, in NDR and NDR64, in fragments of every size, they come as they were sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from impacket.dcerpc.v5 import rpcrt
from impacket.dcerpc.v5.transport import TCPTransport

from msmq_fast.packet import Message
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from tests.rpc.interop.impacketclient import ANY_LEVEL, LEVELS, USER, ImpacketClient, directory_of_user
from tests.support.processes.servers import Server
from tests.support.rpc.remotereader import opening, receiving
from tests.support.rpc.socketreader import readable

FRAGMENTS = (2048, 4280, 5840, 65_528)
PACKET = 0x400000
BODY = PACKET - 1024  # the headers have the rest
RECEIVE = 0x00000000
NACK = 1
RESPONSE = b"\x05\x00\x02"
MINE = r"DIRECT=OS:.\private$\large"


def body() -> bytes:
    """Every part of it is different from every other."""
    blocks = (hashlib.sha512(number.to_bytes(4, "little")).digest() for number in range(BODY // 64))
    return b"".join(blocks)


@pytest.fixture(scope="module", params=FRAGMENTS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with one large message, whose fragments have at most this size."""
    file = tmp_path_factory.mktemp("large") / "body"
    file.write_bytes(body())
    with directory_of_user() as data:
        settings = {**ANY_LEVEL, "MSMQ_FAST_RPC__FRAGMENT": str(request.param)}
        running = Server(data, environment=settings)
        try:
            running.start()
            readable(running, "large")
            running.ok("acl", "grant", "large", "--user", USER, "--right", "receive", "--right", "peek")
            running.ok("send", "large", "--file", str(file), "--recoverable")
            running.largest_fragment = request.param  # type: ignore[attr-defined]
            yield running
        finally:
            running.kill()


@pytest.fixture
def arrived(server: Server, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the fragments of responses; impacket offers to take those of the server's size."""
    size = server.largest_fragment  # type: ignore[attr-defined]
    sizes: list[int] = []

    class Bind(rpcrt.MSRPCBind):  # type: ignore[misc]
        def __init__(self, data: Any = None, alignment: int = 0) -> None:
            super().__init__(data, alignment)
            self["max_tfrag"] = self["max_rfrag"] = size

    receive = TCPTransport.recv

    def recv(transport: Any, *arguments: Any, **options: Any) -> Any:
        data = receive(transport, *arguments, **options)
        if data[:3] == RESPONSE and len(data) < 32:
            sizes.append(int.from_bytes(data[8:10], "little"))
        return data

    monkeypatch.setattr(rpcrt, "MSRPCBind", Bind)
    monkeypatch.setattr(TCPTransport, "recv", recv)
    return sizes


@pytest.mark.long(seconds=80)
@pytest.mark.timeout(600)
@pytest.mark.rule("RR-042", "RP-11")
@pytest.mark.parametrize("level", LEVELS)
def test_a_large_message_comes_as_it_was_sent(server: Server, arrived: list[int], level: int) -> None:
    size = server.largest_fragment  # type: ignore[attr-defined]
    # Every level and every size of fragments has both.
    ndr64 = bool((FRAGMENTS.index(size) + LEVELS.index(level)) % 2)
    client = ImpacketClient(server, "rpc", REMOTE_READ, level, ndr64=ndr64, fragment=size)
    context = client.call("open_queue", **opening(MINE)).pphContext

    found = client.ok("start_receive", **receiving(context, RECEIVE))
    packet = b"".join(bytes(section.pSectionBuffer) for section in found.ppPacketSections)
    length = int.from_bytes(packet[8:12], "little")
    assert BODY < length <= PACKET
    assert size - 16 <= max(arrived) <= size
    assert len(arrived) > PACKET // size
    assert Message.from_packet(packet[:length]).body == body()
    client.ok("end_receive", phContext=context, dwAck=NACK, dwRequestId=1)
    client.close()
