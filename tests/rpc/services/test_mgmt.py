"""The management interface behind the engine of an endpoint: stubs octet by octet."""

from __future__ import annotations

import random
import struct
from uuid import UUID

import pytest

from msmq_fast.rpc.server import RpcServer
from msmq_fast.rpc.services.mgmt import Management
from msmq_fast.rpc.syntaxes import SyntaxId
from tests.support.rpc import wire
from tests.support.rpc.world import Acceptors, Client, World

MGMT: wire.Syntax = ("afa8bd80-7d8a-11c9-bef4-08002b102989", 1, 0)
SERVED = [SyntaxId(UUID(int=1), 1, 2), SyntaxId(UUID(int=3), 4, 5)]
STATISTICS = (1, 2, (1 << 32) + 3, 4)
IDS, STATS, LISTENING, STOP, NAME = range(5)


class Endpoint(World):
    """Serves the management interface alone."""

    def __post_init__(self) -> None:
        self.refused = []
        self.server = RpcServer("135", acceptors=Acceptors(), random=random.Random(17).randbytes)
        self.server.register(Management(SERVED, lambda: STATISTICS, {10: "host/orders01"}))


@pytest.fixture
def client() -> Client:
    made = Endpoint().connect()
    made.bind([(0, MGMT, [wire.NDR])])
    return made


@pytest.mark.rule("RP-30")
def test_the_interfaces(client: Client) -> None:
    answer = client.call(IDS)
    referent, maximum, count, *referents = struct.unpack_from("<5I", answer)
    assert referent
    assert all(referents)
    assert (maximum, count) == (2, 2)
    assert answer[20:] == SERVED[0].encode() + SERVED[1].encode() + bytes(4)


@pytest.mark.rule("RP-30")
@pytest.mark.parametrize("room", [0, 2, 4, 50])
def test_as_many_figures_as_there_is_room_for(client: Client, room: int) -> None:
    answer = client.call(STATS, struct.pack("<I", room))
    figures = (1, 2, 3, 4)[:room]  # the third has outgrown 32 bits
    assert answer == struct.pack(f"<{len(figures) + 3}I", len(figures), len(figures), *figures, 0)


@pytest.mark.rule("RP-30")
def test_room_for_more_than_50_figures_is_bad_stub_data(client: Client) -> None:
    assert client.fault(wire.request(1, STATS, struct.pack("<I", 51))).status == 0x6F7


@pytest.mark.rule("RP-30")
def test_it_listens_and_is_not_stopped(client: Client) -> None:
    assert client.call(LISTENING) == struct.pack("<II", 0, 1)
    assert client.call(STOP) == struct.pack("<I", 5)  # ERROR_ACCESS_DENIED
    assert client.call(LISTENING) == struct.pack("<II", 0, 1)


@pytest.mark.rule("RP-30")
@pytest.mark.parametrize(
    ("kind", "room", "name", "status"),
    [
        (10, 14, b"host/orders01\0", 0),
        (10, 13, b"\0", 0x6CF),  # RPC_S_STRING_TOO_LONG
        (16, 100, b"\0", 0x6D3),  # RPC_S_UNKNOWN_AUTHN_SERVICE
    ],
)
def test_the_name_to_authenticate_the_server_by(
    client: Client, kind: int, room: int, name: bytes, status: int
) -> None:
    answer = client.call(NAME, struct.pack("<II", kind, room))
    text = struct.pack("<III", room, 0, len(name)) + name
    assert answer == text + bytes(-len(text) % 4) + struct.pack("<I", status)


@pytest.mark.rule("RP-30")
@pytest.mark.parametrize(("room", "status"), [(0, 0x6CF), (4097, 0x6F7)])
def test_names_for_which_there_is_no_room_at_all(client: Client, room: int, status: int) -> None:
    assert client.fault(wire.request(1, NAME, struct.pack("<II", 10, room))).status == status


def test_there_are_five_methods(client: Client) -> None:
    assert client.fault(wire.request(1, 5)).status == 0x1C010002
