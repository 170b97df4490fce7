"""qmmgmt over a socket: impacket's runtime, NDR and NTLM as the client, with right and wrong callers, and
stubs that lie.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from impacket.dcerpc.v5 import epm, transport
from impacket.dcerpc.v5.rpcrt import DCERPCException
from impacket.uuid import uuidtup_to_bin

from msmq_fast.rpc.idl.mqmq import PROPVARIANT
from msmq_fast.rpc.idl.qmmgmt import MGMT_MACHINE, MGMT_OBJECT, MGMT_SESSION, QMMGMT
from tests.rpc.interop.impacketclient import (
    CONNECT,
    INTEGRITY,
    NONE,
    PASSWORD,
    PRIVACY,
    USER,
    ImpacketClient,
)
from tests.support.processes.servers import Server, command, data_directory
from tests.support.rpc.managing import LPWSTR, MACHINE, NULL, UI4, asking, plain, queue_object

ACCESS_DENIED, INVALID_PARAMETER, QUEUE_NOT_ACTIVE = 0xC00E0025, 0xC00E0006, 0xC00E0004
FAR = r"DIRECT=TCP:127.0.0.77\private$\far"
SECOND = "bob"
BAD_STUB = "rpc_x_bad_stub_data"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server with an administrator and a user, two queues, and a message for another computer."""
    with data_directory() as data:
        data.mkdir(mode=0o700)
        for words in (("user", "add", USER, "--group", "administrators"), ("user", "add", SECOND)):
            assert command(*words, "--data", str(data), stdin=f"{PASSWORD}\n".encode()).returncode == 0
        running = Server(data, environment={"MSMQ_FAST_RPC__NAMED_LEVEL": "none"})
        try:
            running.start()
            running.ok("queue", "create", "orders")
            running.ok("queue", "create", "secret")
            running.ok("send", "orders", "--body", "x", "--recoverable")
            running.ok("send", FAR, "--body", "x", "--recoverable")
            yield running
        finally:
            running.kill()


def look(client: ImpacketClient, target: Any, *numbers: int) -> Any:
    """R_QMMgmtGetInfo."""
    return client.call(
        "get_info", pObjectFormat=target, cp=len(numbers), aProp=list(numbers), apVar=asking(len(numbers))
    )


def act(client: ImpacketClient, target: Any, action: str) -> int:
    """R_QMMgmtAction; the HRESULT."""
    return int(client.call("action", pObjectFormat=target, lpwszAction=action).result)


def fault(client: ImpacketClient, opnum: int, stub: bytes) -> str:
    """What impacket says of the fault that answers a stub made by hand."""
    client._dce.call(opnum, stub)
    try:
        client._dce.recv()
    except DCERPCException as error:
        return str(error)
    return "no fault"


@pytest.mark.rule("MR-001", "MR-002", "MR-011")
@pytest.mark.parametrize("ndr64", [False, True], ids=["ndr", "ndr64"])
@pytest.mark.parametrize("level", [INTEGRITY, PRIVACY], ids=["integrity", "privacy"])
def test_every_method(server: Server, level: int, ndr64: bool) -> None:
    client = ImpacketClient(server, "rpc", QMMGMT, level, ndr64=ndr64)
    try:
        found = look(client, MACHINE, *range(1, 7))
        assert found.result == 0
        host = server.ok("queue", "show", "orders")[0]["name"].split("\\")[0]
        active, private, *others = [plain(each) for each in found.apVar]
        assert {rf"DIRECT=OS:{host}\private$\orders", FAR} <= set(active[1])
        assert private[1] == [rf"{host}\private$\orders", rf"{host}\private$\secret"]
        assert others[:2] == [(NULL, None), (LPWSTR, "CONNECTED")]
        orders = queue_object(rf"DIRECT=OS:{host}\private$\orders")
        found = look(client, orders, *range(1, 28))
        assert found.result == 0
        assert plain(found.apVar[6]) == (UI4, 1)
        outgoing = queue_object(FAR)
        assert look(client, outgoing, *range(1, 28)).result == 0
        assert act(client, outgoing, "PAUSE") == 0
        assert server.ok("outgoing", "show", FAR)[0]["state"] == "on_hold"
        assert act(client, outgoing, "resume") == 0
        assert server.ok("outgoing", "show", FAR)[0]["state"] != "on_hold"
        assert act(client, outgoing, "EOD_RESEND") == 0
        for action in ("DISCONNECT", "TIDY", "CONNECT"):
            assert act(client, MACHINE, action) == 0
        assert client.called == {0, 1}
        entries = server.ok("audit", "list", "--kind", "act")
        assert {"pause outgoing queue", "take offline", "tidy", "bring online"} <= {
            entry["operation"] for entry in entries if USER in entry["caller"]
        }
    finally:
        client.close()


@pytest.mark.rule("MR-002")
def test_the_endpoint_mapper_gives_the_port(server: Server) -> None:
    mapper = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{server.port('epm')}]").get_dce_rpc()
    mapper.connect()
    binding = epm.hept_map(
        "127.0.0.1",
        uuidtup_to_bin((str(QMMGMT.uuid), "1.0")),
        protocol="ncacn_ip_tcp",
        dce=mapper,
    )
    mapper.disconnect()
    assert binding.endswith(f"[{server.port('rpc')}]")


@pytest.mark.rule("MR-011", "MR-010")
@pytest.mark.parametrize("level", [NONE, CONNECT], ids=["none", "connect"])
def test_calls_without_protection_are_refused(server: Server, level: int) -> None:
    client = ImpacketClient(server, "rpc", QMMGMT, level)
    assert look(client, MACHINE, 2).result == ACCESS_DENIED
    assert act(client, MACHINE, "DISCONNECT") == ACCESS_DENIED
    client.close()
    with pytest.raises(DCERPCException):
        ImpacketClient(server, "rpc", QMMGMT, INTEGRITY, secret=PASSWORD + "!").call(
            "action", pObjectFormat=MACHINE, lpwszAction="TIDY"
        )


@pytest.mark.rule("MR-011", "MR-012", "MR-079")
def test_a_user_who_is_no_administrator(server: Server) -> None:
    client = ImpacketClient(server, "rpc", QMMGMT, PRIVACY, user=SECOND)
    server.ok("acl", "revoke", "secret", "--user", "everyone")
    names = plain(look(client, MACHINE, 2).apVar[0])[1]
    assert not any(name.endswith("secret") for name in names)
    for target, action in ((MACHINE, "DISCONNECT"), (queue_object(FAR), "PAUSE")):
        assert act(client, target, action) == ACCESS_DENIED
    client.close()
    assert server.ok("outgoing", "show", FAR)[0]["state"] != "on_hold"


@pytest.mark.rule("MR-007", "MR-008", "MR-020", "MR-021", "MR-004")
def test_stubs_that_lie(server: Server) -> None:
    machine = struct.pack("<HHI", MGMT_MACHINE, MGMT_MACHINE, 0)
    null = struct.pack("<HBBI", NULL, 0, 0, 0) + struct.pack("<H", NULL)
    one = struct.pack("<III", 1, 1, 2) + struct.pack("<I", 1) + null
    client = ImpacketClient(server, "rpc", QMMGMT, INTEGRITY)
    lies = {
        "cp is 0": machine + struct.pack("<II", 0, 0) + struct.pack("<I", 0),
        "cp is 129": machine + struct.pack("<II", 129, 129) + struct.pack("<129I", *range(129)),
        "cp is 4 billion": machine + struct.pack("<II", 0xFFFFFFFF, 0xFFFFFFFF) + one,
        "aProp is shorter than cp": machine + struct.pack("<III", 2, 1, 2) + struct.pack("<I", 1) + null,
        "apVar is longer than cp": machine + struct.pack("<III", 1, 1, 2) + struct.pack("<I", 9) + null * 9,
        "no apVar": machine + struct.pack("<III", 1, 1, 2),
        "an unknown object": struct.pack("<HHI", 4, 4, 0) + one,
        "two discriminants": struct.pack("<HHI", 1, 3, 0) + one,
        "a pointer without its target": struct.pack("<HHI", 2, 2, 0x20000) + one,
        "an unknown variant": machine
        + struct.pack("<III", 1, 1, 2)
        + struct.pack("<IHBBIH", 1, 9999, 0, 0, 0, 9999),
        "a NULL vector with a count": machine
        + struct.pack("<III", 1, 1, 2)
        + struct.pack("<IHBBIHxxII", 1, 0x101F, 0, 0, 0, 0x101F, 5, 0),
    }
    began = time.monotonic()
    before = server.resident
    for what, stub in lies.items():
        assert BAD_STUB in fault(client, 0, stub), what
    huge = machine + struct.pack("<III", 2_000_000, 0, 2_000_000) + b"x\0" * 1_999_999 + b"\0\0"
    client._dce.call(1, huge)
    assert struct.unpack("<I", client._dce.recv()) == (INVALID_PARAMETER,)
    assert BAD_STUB in fault(client, 1, machine + struct.pack("<III", 0x7FFFFFFF, 0, 0x7FFFFFFF) + bytes(4))
    assert "nca_s_op_rng_error" in fault(client, 2, b"")
    assert look(client, MACHINE, 4).result == 0
    client.close()
    assert time.monotonic() - began < 5
    assert server.resident - before < 64 << 20


@pytest.mark.rule("MR-024", "MR-071")
def test_the_session_of_a_scanner(server: Server) -> None:
    """What vulnerability scanners send to tell patched hosts from others, without a log-on."""
    client = ImpacketClient(server, "rpc", QMMGMT, INTEGRITY)
    session = MGMT_OBJECT(MGMT_SESSION, 0)
    assert act(client, session, "nessus") == INVALID_PARAMETER
    assert look(client, session, 1).result == INVALID_PARAMETER
    client.close()


@pytest.mark.rule("MR-013", "MR-027")
def test_nothing_is_opened_or_kept(server: Server) -> None:
    client = ImpacketClient(server, "rpc", QMMGMT, INTEGRITY)
    before = server.ok("outgoing", "list")
    for text in (r"DIRECT=OS:elsewhere.example\private$\x", f"PUBLIC={UUID(int=7)}"):
        assert look(client, queue_object(text), 1).result == QUEUE_NOT_ACTIVE
        assert act(client, queue_object(text), "PAUSE") == QUEUE_NOT_ACTIVE
    assert [queue["name"] for queue in server.ok("outgoing", "list")] == [queue["name"] for queue in before]
    assert server.ok("session", "readers") == []
    client.close()


@pytest.mark.rule("MR-015", "MR-022")
def test_a_variant_of_another_type(server: Server) -> None:
    client = ImpacketClient(server, "rpc", QMMGMT, INTEGRITY)
    given = [PROPVARIANT(LPWSTR, 0, 0, 0, "x" * 100_000)]
    found = client.call("get_info", pObjectFormat=MACHINE, cp=1, aProp=[6], apVar=given)
    assert (found.result, found.apVar[0]._varUnion) == (0xC00E0002, "x" * 100_000)
    client.close()
