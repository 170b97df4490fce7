"""The endpoint mapper and mgmt of a running server, as impacket sees them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from impacket.dcerpc.v5 import epm, mgmt, transport
from impacket.dcerpc.v5.dtypes import NULL
from impacket.dcerpc.v5.rpcrt import DCERPCException
from impacket.uuid import bin_to_uuidtup, uuidtup_to_bin

from tests.support.processes.servers import Server, data_directory

EPM = ("e1af8308-5d1f-11c9-91a4-08002b14a0fa", "3.0")
MGMT = ("afa8bd80-7d8a-11c9-bef4-08002b102989", "1.0")
REMOTE_READ = ("1a9134dd-7b39-45ba-ad88-44d01ca47f28", "1.0")
QMCOMM = ("fdb3a030-065f-11d1-bb9b-00a024ea5525", "1.0")
QMCOMM2 = ("76d12b80-3467-11d3-91ff-0090272f9ea3", "1.0")
QMMGMT = ("41208ee0-e970-11d1-9b9e-00e02c064c39", "1.0")
QM2QM = ("1088a980-eae5-11d0-8d9b-00a02453c337", "1.0")
NDR = ("8a885d04-1ceb-11c9-9fe8-08002b104860", "2.0")
NDR64 = ("71710533-beba-4937-8319-b5dbef9ccc36", "1.0")
NOT_REGISTERED = 0x16C9A0D6


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with data_directory() as data:
        server = Server(data)
        try:
            yield server.start()
        finally:
            server.kill()


def connect(server: Server, listener: str) -> Any:
    channel = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{server.port(listener)}]")
    connection = channel.get_dce_rpc()
    connection.connect()
    return connection


@pytest.fixture
def mapper(running: Server) -> Iterator[Any]:
    connection = connect(running, "epm")
    try:
        yield connection
    finally:
        connection.disconnect()


def where(server: Server, interface: tuple[str, str], syntax: tuple[str, str] = NDR) -> int:
    """The port that ept_map tells."""
    mapper = connect(server, "epm")
    try:
        found: str = epm.hept_map(
            "host",
            uuidtup_to_bin(interface),
            uuidtup_to_bin(syntax),
            protocol="ncacn_ip_tcp",
            dce=mapper,
        )
    finally:
        mapper.disconnect()
    assert found.startswith("ncacn_ip_tcp:host[")
    return int(found.removeprefix("ncacn_ip_tcp:host[").removesuffix("]"))


def status_of(server: Server, interface: tuple[str, str], syntax: tuple[str, str] = NDR) -> int:
    """The status of an ept_map that finds nothing."""
    with pytest.raises(DCERPCException) as caught:
        where(server, interface, syntax)
    return int(caught.value.get_error_code())


@pytest.mark.rule("MP-001", "MR-001", "MR-002", "QP-004", "QP-005", "RP-28", "RR-001")
@pytest.mark.parametrize("syntax", [NDR, NDR64])
def test_every_interface_is_found_at_its_listener(running: Server, syntax: tuple[str, str]) -> None:
    for listener, interfaces in (("rpc", (REMOTE_READ, QMCOMM, QMCOMM2, QMMGMT)), ("qm2qm", (QM2QM,))):
        for interface in interfaces:
            assert where(running, interface, syntax) == running.port(listener)
            connection = connect(running, listener)
            connection.bind(uuidtup_to_bin(interface))
            connection.disconnect()


@pytest.mark.rule("RP-28")
@pytest.mark.parametrize(
    ("interface", "syntax"),
    [
        (("12345678-1234-abcd-ef00-0123456789ab", "1.0"), NDR),
        ((QM2QM[0], "2.0"), NDR),
        ((QM2QM[0], "1.1"), NDR),
        (QM2QM, (NDR[0], "3.0")),
        (QM2QM, QM2QM),
    ],
)
def test_what_is_not_there_is_not_registered(
    running: Server, interface: tuple[str, str], syntax: tuple[str, str]
) -> None:
    assert status_of(running, interface, syntax) == NOT_REGISTERED


@pytest.mark.rule("RP-28")
def test_without_remote_read_windows_is_told_to_fall_back(server: Server) -> None:
    server.environment |= {"MSMQ_FAST_RPC__REMOTE_READ": "off", "MSMQ_FAST_RPC__QMMGMT": "off"}
    server.start()
    assert status_of(server, REMOTE_READ) == status_of(server, QMMGMT) == NOT_REGISTERED
    assert where(server, QM2QM) == server.port("qm2qm")
    assert where(server, QMCOMM) == server.port("rpc")
    refused = connect(server, "rpc")
    with pytest.raises(DCERPCException, match="abstract_syntax_not_supported"):
        refused.bind(uuidtup_to_bin(REMOTE_READ))
    refused.disconnect()


@pytest.mark.rule("RP-29")
def test_a_dump_of_all_endpoints(running: Server, mapper: Any) -> None:
    found = {}
    for entry in epm.hept_lookup("127.0.0.1", dce=mapper):
        floors = entry["tower"]["Floors"]
        binding = epm.PrintStringBinding(floors)
        found[str(floors[0]).lower()] = (binding, entry["annotation"].rstrip(b"\0").decode())
    rpc, qm2qm = running.port("rpc"), running.port("qm2qm")
    assert found == {
        f"{QMCOMM[0]} v1.0": (f"ncacn_ip_tcp:127.0.0.1[{rpc}]", "Message Queuing - QMRT V1"),
        f"{QMCOMM2[0]} v1.0": (f"ncacn_ip_tcp:127.0.0.1[{rpc}]", "Message Queuing - QMRT V2"),
        f"{QMMGMT[0]} v1.0": (f"ncacn_ip_tcp:127.0.0.1[{rpc}]", "Message Queuing - QM Management V1"),
        f"{QM2QM[0]} v1.0": (f"ncacn_ip_tcp:127.0.0.1[{qm2qm}]", "Message Queuing - QM2QM V1"),
        f"{REMOTE_READ[0]} v1.0": (f"ncacn_ip_tcp:127.0.0.1[{rpc}]", "Message Queuing - RemoteRead V1"),
    }


def lookup(mapper: Any, handle: bytes, most: int, **fields: Any) -> Any:
    request = epm.ept_lookup()
    request["inquiry_type"] = fields.get("inquiry_type", 0)
    request["object"] = fields.get("object", NULL)
    interface = fields.get("interface")
    if interface is None:
        request["Ifid"] = NULL
    else:
        identity = uuidtup_to_bin(interface)
        request["Ifid"]["Uuid"] = identity[:16]
        request["Ifid"]["VersMajor"] = int.from_bytes(identity[16:18], "little")
        request["Ifid"]["VersMinor"] = int.from_bytes(identity[18:], "little")
    request["vers_option"] = fields.get("vers_option", 1)
    request["entry_handle"]["context_handle_attributes"] = int.from_bytes(handle[:4], "little")
    request["entry_handle"]["context_handle_uuid"] = handle[4:]
    request["max_ents"] = most
    return mapper.request(request, checkError=False)


NO_HANDLE = bytes(20)


@pytest.mark.rule("RP-29")
def test_elements_come_one_at_a_time_behind_a_handle(mapper: Any) -> None:
    mapper.bind(uuidtup_to_bin(EPM))
    handle, towers = NO_HANDLE, []
    while True:
        answer = lookup(mapper, handle, 1)
        assert (answer["status"], answer["num_ents"]) == (0, 1)
        towers.append(b"".join(answer["entries"][0]["tower"]["tower_octet_string"]))
        handle = answer["entry_handle"].getData()
        if handle == NO_HANDLE:
            break
    assert len(set(towers)) == len(towers) == 5


@pytest.mark.rule("RP-29")
def test_a_handle_that_was_freed_is_of_no_more_use(mapper: Any) -> None:
    mapper.bind(uuidtup_to_bin(EPM))
    handle = lookup(mapper, NO_HANDLE, 1)["entry_handle"].getData()
    mapper.call(4, handle)
    assert mapper.recv() == NO_HANDLE + bytes(4)
    with pytest.raises(DCERPCException, match="context_mismatch"):
        lookup(mapper, handle, 1)


@pytest.mark.rule("RP-29")
@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"inquiry_type": 1, "interface": QM2QM}, 1),
        ({"inquiry_type": 1, "interface": (QM2QM[0], "9.9"), "vers_option": 1}, 1),
        ({"inquiry_type": 1, "interface": (QM2QM[0], "1.1"), "vers_option": 2}, 0),
        ({"inquiry_type": 1, "interface": (QM2QM[0], "1.1"), "vers_option": 3}, 0),
        ({"inquiry_type": 1, "interface": QM2QM, "vers_option": 3}, 1),
        ({"inquiry_type": 1, "interface": (QM2QM[0], "1.7"), "vers_option": 4}, 1),
        ({"inquiry_type": 1, "interface": (QM2QM[0], "2.0"), "vers_option": 4}, 0),
        ({"inquiry_type": 1, "interface": (QM2QM[0], "2.0"), "vers_option": 5}, 1),
        ({"inquiry_type": 1, "interface": (QM2QM[0], "0.9"), "vers_option": 5}, 0),
        ({"inquiry_type": 2, "object": b"\x01" * 16}, 0),
        ({"inquiry_type": 2, "object": bytes(16)}, 5),
        ({"inquiry_type": 3, "object": bytes(16), "interface": QM2QM}, 1),
        ({"inquiry_type": 3, "object": b"\x01" * 16, "interface": QM2QM}, 0),
        ({"inquiry_type": 77}, 5),
    ],
)
def test_inquiries_by_interface_version_and_object(mapper: Any, fields: dict[str, Any], count: int) -> None:
    mapper.bind(uuidtup_to_bin(EPM))
    answer = lookup(mapper, NO_HANDLE, 500, **fields)
    assert answer["num_ents"] == count
    assert answer["status"] == (0 if count else NOT_REGISTERED)
    assert answer["entry_handle"].getData() == NO_HANDLE


@pytest.mark.rule("RP-28")
@pytest.mark.parametrize("opnum", [0, 1, 5, 6])
def test_methods_that_no_longer_mean_anything_raise_what_windows_raises(mapper: Any, opnum: int) -> None:
    mapper.bind(uuidtup_to_bin(EPM))
    mapper.call(opnum, b"")
    with pytest.raises(DCERPCException, match="rpc_fault_cant_perform"):  # 0x6D8
        mapper.recv()


# ----------------------------------------------------------------------------------------------------- mgmt


@pytest.mark.rule("RP-30")
@pytest.mark.parametrize(
    ("listener", "interfaces"),
    [("rpc", {REMOTE_READ, QMCOMM, QMCOMM2, QMMGMT}), ("qm2qm", {QM2QM}), ("epm", {EPM})],
)
def test_every_endpoint_says_what_it_serves(
    running: Server, listener: str, interfaces: set[tuple[str, str]]
) -> None:
    connection = connect(running, listener)
    connection.bind(uuidtup_to_bin(MGMT))
    vector = mgmt.hinq_if_ids(connection)["if_id_vector"]
    served = {bin_to_uuidtup(item["Data"].getData()) for item in vector["if_id"]}
    assert {(uuid.lower(), version) for uuid, version in served} == interfaces
    assert mgmt.his_server_listening(connection)["status"] == 0
    connection.disconnect()


@pytest.mark.rule("RP-30")
def test_statistics_count_calls_and_packets(running: Server) -> None:
    connection = connect(running, "qm2qm")
    connection.bind(uuidtup_to_bin(MGMT))
    before = list(mgmt.hinq_stats(connection)["statistics"])
    after = list(mgmt.hinq_stats(connection)["statistics"])
    assert [late - early for early, late in zip(before, after, strict=True)] == [1, 0, 1, 1]
    assert mgmt.hinq_stats(connection, 2)["count"] == 2
    assert mgmt.hinq_stats(connection, 50)["count"] == 4
    connection.disconnect()


@pytest.mark.rule("RP-30")
def test_nobody_stops_a_server(running: Server) -> None:
    connection = connect(running, "rpc")
    connection.bind(uuidtup_to_bin(MGMT))
    with pytest.raises(DCERPCException, match="access_denied"):
        mgmt.hstop_server_listening(connection)
    socket.create_connection(("127.0.0.1", running.port("rpc")), timeout=5).close()
    connection.disconnect()
