"""The endpoint mapper behind the engine of an endpoint: stubs octet by octet, in every representation."""

from __future__ import annotations

import random
import struct
from uuid import UUID

import pytest

from msmq_fast.rpc.server import RpcServer
from msmq_fast.rpc.services.epm import EndpointMapper, RegisteredEndpoint
from msmq_fast.rpc.syntaxes import SyntaxId
from tests.support.rpc import wire
from tests.support.rpc.world import Acceptors, Client, World

EPM: wire.Syntax = ("e1af8308-5d1f-11c9-91a4-08002b14a0fa", 3, 0)
QM2QM = SyntaxId(UUID("1088a980-eae5-11d0-8d9b-00a02453c337"), 1, 0)
QMCOMM = SyntaxId(UUID("fdb3a030-065f-11d1-bb9b-00a024ea5525"), 1, 0)
NOT_REGISTERED = 0x16C9A0D6
LOOKUP, MAP, FREE = 2, 3, 4


def tower(port: int, syntax: wire.Syntax = wire.NDR, interface: SyntaxId = QM2QM) -> bytes:
    """Five floors; 75 octets."""
    pieces = [
        (b"\x0d" + interface.uuid.bytes_le + struct.pack("<H", interface.major), struct.pack("<H", 0)),
        (b"\x0d" + wire.guid(syntax[0]) + struct.pack("<H", syntax[1]), struct.pack("<H", 0)),
        (b"\x0b", struct.pack("<H", 0)),
        (b"\x07", struct.pack(">H", port)),
        (b"\x09", bytes(4)),
    ]
    told = [
        struct.pack("<H", len(left)) + left + struct.pack("<H", len(right)) + right for left, right in pieces
    ]
    return struct.pack("<H", len(told)) + b"".join(told)


def twr(octets: bytes, order: str = "<") -> bytes:
    """twr_t in NDR, up to the next multiple of four."""
    return struct.pack(order + "II", len(octets), len(octets)) + octets + bytes(-len(octets) % 4)


def map_request(octets: bytes | None, most: int = 4, order: str = "<", handle: bytes = bytes(20)) -> bytes:
    """The stub of ept_map in NDR."""
    told = b"" if octets is None else twr(octets, order)
    referent = struct.pack(order + "I", 0 if octets is None else 0x20000)
    return bytes(4) + referent + told + handle + struct.pack(order + "I", most)


def map_answer(stub: bytes) -> tuple[bytes, list[bytes], int]:
    """(entry_handle, towers, status)."""
    handle = stub[:20]
    count, most, first, actual = struct.unpack_from("<4I", stub, 20)
    assert (first, actual) == (0, count)
    assert most >= count
    at, towers = 36, []
    assert all(struct.unpack_from(f"<{count}I", stub, at))
    at += 4 * count
    for _ in range(count):
        maximum, size = struct.unpack_from("<II", stub, at)
        assert maximum == size
        towers.append(stub[at + 8 : at + 8 + size])
        at = (at + 8 + size + 3) & ~3
    assert len(stub) == at + 4
    return handle, towers, struct.unpack_from("<I", stub, at)[0]


class Mapper(World):
    """An endpoint that serves a mapper which knows of two interfaces."""

    def __post_init__(self) -> None:
        self.refused = []
        self.server = RpcServer("135", acceptors=Acceptors(), random=random.Random(17).randbytes)
        self.server.register(
            EndpointMapper(
                [
                    RegisteredEndpoint(QM2QM, 2105, "Message Queuing - QM2QM V1"),
                    RegisteredEndpoint(QM2QM, 2116, "another one"),
                    RegisteredEndpoint(QMCOMM, 2103, "Message Queuing - QMRT V1"),
                ]
            )
        )


def mapper(transfer: wire.Syntax = wire.NDR) -> Client:
    """A client that is bound."""
    client = Mapper().connect()
    client.bind([(0, EPM, [transfer])])
    return client


def open_handles(client: Client) -> int:
    """Context handles that the client has open."""
    association = client.connection.association
    assert association is not None
    return len(association.handles)


@pytest.mark.rule("RP-28")
@pytest.mark.parametrize("big", [False, True])
def test_a_tower_goes_in_and_towers_come_out(big: bool) -> None:
    request = map_request(tower(0), order=">" if big else "<")
    handle, towers, status = map_answer(mapper().call(MAP, request, big=big))
    assert (handle, status) == (bytes(20), 0)
    assert towers == [tower(2105), tower(2116)]


@pytest.mark.rule("RP-28")
def test_the_tower_that_comes_out_has_the_transfer_syntax_of_the_one_that_went_in() -> None:
    _, towers, status = map_answer(mapper().call(MAP, map_request(tower(0, wire.NDR64))))
    assert (towers, status) == ([tower(2105, wire.NDR64), tower(2116, wire.NDR64)], 0)


@pytest.mark.rule("RP-28")
def test_the_same_in_ndr64() -> None:
    asked = tower(0, interface=QMCOMM)
    stub = bytes(8) + struct.pack("<QQI", 0x20000, len(asked), len(asked)) + asked
    stub += bytes(-len(stub) % 4)
    stub += bytes(20) + struct.pack("<I", 1)
    answer = mapper(wire.NDR64).call(MAP, stub)
    count, most, first, actual, referent, maximum, size = struct.unpack_from("<I5QI", answer, 20)
    assert (count, most, first, actual, maximum, size) == (1, 1, 0, 1, 75, 75)
    assert referent
    assert answer[68 : 68 + size] == tower(2103, interface=QMCOMM)
    assert answer[-4:] == bytes(4)


@pytest.mark.rule("RP-28")
@pytest.mark.parametrize(
    "asked",
    [
        tower(0, interface=SyntaxId(UUID(int=5), 1)),
        tower(0, interface=SyntaxId(QM2QM.uuid, 2)),
        tower(0, ("00000000-0000-0000-0000-000000000007", 1, 0)),
        tower(0).replace(b"\x01\x00\x07\x02", b"\x01\x00\x08\x02"),  # UDP
        tower(0)[:-1],
        tower(0) + b"\0",
        b"",
        None,
    ],
)
def test_what_is_not_registered(asked: bytes | None) -> None:
    assert map_answer(mapper().call(MAP, map_request(asked))) == (bytes(20), [], NOT_REGISTERED)


@pytest.mark.rule("RP-28")
def test_a_tower_of_more_than_2000_octets_is_no_tower() -> None:
    client = mapper()
    fault = client.fault(wire.request(1, MAP, map_request(bytes(2001))))
    assert fault.status == 0x6F7
    fault = client.fault(wire.request(2, MAP, map_request(tower(0), most=501)))
    assert fault.status == 0x6F7


@pytest.mark.rule("RP-28", "RP-29")
def test_what_does_not_fit_comes_with_the_next_call() -> None:
    client = mapper()
    handle, towers, status = map_answer(client.call(MAP, map_request(tower(0), 1)))
    assert (towers, status) == ([tower(2105)], 0)
    assert handle != bytes(20)
    again, towers, status = map_answer(client.call(MAP, map_request(None, 0, handle=handle)))
    assert (again, towers, status) == (handle, [], NOT_REGISTERED)
    ended, towers, status = map_answer(client.call(MAP, map_request(None, 9, handle=handle)))
    assert (ended, towers, status) == (bytes(20), [tower(2116)], 0)
    fault = client.fault(wire.request(9, MAP, map_request(None, 1, handle=handle)))
    assert fault.status == 0x1C00001A
    assert map_answer(client.call(MAP, map_request(tower(0), 0), 10))[1:] == ([], NOT_REGISTERED)
    assert open_handles(client) == 0


@pytest.mark.rule("RP-29")
def test_a_handle_is_freed() -> None:
    client = mapper()
    handle = map_answer(client.call(MAP, map_request(tower(0), 1)))[0]
    assert client.call(FREE, handle) == bytes(24)
    assert open_handles(client) == 0
    assert client.call(FREE, bytes(20)) == bytes(24)
    assert client.fault(wire.request(9, FREE, handle)).status == 0x1C00001A


@pytest.mark.rule("RP-29")
def test_an_element_of_a_lookup() -> None:
    # RPC_C_EP_ALL_ELTS, no object, no interface, RPC_C_VERS_ALL, no handle, one element
    stub = struct.pack("<4I", 0, 0, 0, 1) + bytes(20) + struct.pack("<I", 1)
    answer = mapper().call(LOOKUP, stub)
    assert answer[:20] != bytes(20)
    count, most, first, actual = struct.unpack_from("<4I", answer, 20)
    assert (count, most, first, actual) == (1, 1, 0, 1)
    assert answer[36:52] == bytes(16)  # the object UUID
    referent, offset, size = struct.unpack_from("<3I", answer, 52)
    assert referent
    text = b"Message Queuing - QM2QM V1\0"
    assert (offset, size, answer[64 : 64 + len(text)]) == (0, len(text), text)
    assert answer[92:] == twr(tower(2105)) + bytes(4)


@pytest.mark.rule("RP-29")
@pytest.mark.parametrize(("inquiry", "version", "interface"), [(1, 0, True), (1, 6, True), (1, 1, False)])
def test_inquiries_that_make_no_sense_raise_what_windows_raises(
    inquiry: int, version: int, interface: bool
) -> None:
    named = struct.pack("<I", 2 if interface else 0) + (QM2QM.encode() if interface else b"")
    stub = struct.pack("<II", inquiry, 0) + named + struct.pack("<I", version) + bytes(20)
    fault = mapper().fault(wire.request(1, LOOKUP, stub + struct.pack("<I", 1)))
    assert fault.status == 0x6D8
