"""Who may call over RPC, as the configuration says: levels of authentication, NTLM, users, passwords."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from impacket.dcerpc.v5 import mgmt, transport
from impacket.dcerpc.v5.rpcrt import DCERPCException
from impacket.uuid import uuidtup_to_bin

from msmq_fast.rpc.idl.qm2qm import QM2QM
from msmq_fast.rpc.idl.qmcomm import QMCOMM
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from msmq_fast.rpc.ndr.operations import InterfaceTable
from tests.server.processes import Server, command, data_directory, until
from tests.server.test_limits import refusals

NONE, CONNECT, PACKET, INTEGRITY, PRIVACY = 1, 2, 4, 5, 6
LEVELS = (NONE, CONNECT, INTEGRITY, PRIVACY)  # impacket signs nothing at level 4
PASSWORD = "correct horse"  # noqa: S105 - of a user of the test
INVALID_HANDLE, ACCESS_DENIED = 0xC00E0007, 0xC00E0025


@pytest.fixture
def users() -> Iterator[Server]:
    """A server, not started yet, that knows alice."""
    with data_directory() as data:
        data.mkdir(mode=0o700)
        added = command("user", "add", "alice", "--data", str(data), stdin=f"{PASSWORD}\n".encode())
        assert added.returncode == 0, added
        server = Server(data)
        try:
            yield server
        finally:
            server.kill()


def call(
    server: Server,
    table: InterfaceTable,
    name: str,
    level: int,
    *,
    user: str = "alice",
    password: str = PASSWORD,
    **values: Any,
) -> Any:
    """One call on a connection of its own; the results. Raises DCERPCException."""
    listener = "qm2qm" if table is QM2QM else "rpc"
    channel = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{server.port(listener)}]")
    if level > NONE:
        channel.set_credentials(user, password, "")
    client = channel.get_dce_rpc()
    client.set_auth_level(level)
    client.connect()
    try:
        client.bind(uuidtup_to_bin((str(table.uuid), "{}.{}".format(*table.version))))
        op = table.op(name)
        args = op.Args(**values)
        client.call(op.opnum, op.encode_request(args, ndr64=False))
        return op.decode_response(client.recv(), args, ndr64=False)
    finally:
        client.disconnect()


def closed(server: Server, level: int) -> int:
    """What RemoteRead answers to somebody who closes what is not open; 0 for a refusal."""
    try:
        result: int = call(server, REMOTE_READ, "close_queue", level, pphContext=None).result
    except DCERPCException as error:
        if "access_denied" not in str(error):
            raise
        return 0
    return result


@pytest.mark.parametrize(
    ("settings", "least"),
    [
        ({}, PRIVACY),
        ({"REMOTE_READ_LEVEL": "integrity"}, INTEGRITY),
        ({"REMOTE_READ_LEVEL": "packet"}, PACKET),
        ({"REMOTE_READ_LEVEL": "connect"}, CONNECT),
        ({"REMOTE_READ_LEVEL": "none"}, NONE),
        ({"ALLOW_UNAUTHENTICATED": "on"}, NONE),
    ],
)
def test_remote_read_wants_a_level(users: Server, settings: dict[str, str], least: int) -> None:
    users.environment |= {f"MSMQ_FAST_RPC__{name}": value for name, value in settings.items()}
    users.start()
    let_in = [level for level in LEVELS if closed(users, level)]
    assert let_in == [level for level in LEVELS if level >= least]
    port = call(users, REMOTE_READ, "get_server_port", NONE).result
    assert port == users.port("rpc")


@pytest.mark.rule("QP-010")
def test_the_older_interfaces_can_want_one_too(users: Server) -> None:
    users.environment |= {"MSMQ_FAST_RPC__QM2QM_LEVEL": "integrity", "MSMQ_FAST_RPC__QMCOMM_LEVEL": "privacy"}
    users.start()
    told = [call(users, QM2QM, "close_cursor", level, hQueue=1, hCursor=1).result for level in LEVELS]
    assert told == [ACCESS_DENIED] * 2 + [INVALID_HANDLE] * 2
    for level in LEVELS:
        if level < PRIVACY:
            with pytest.raises(DCERPCException, match="access_denied"):
                call(users, QMCOMM, "close_remote_queue_context", level, pphContext=None)
        else:
            call(users, QMCOMM, "close_remote_queue_context", level, pphContext=None)


@pytest.mark.parametrize("level", [CONNECT, INTEGRITY, PRIVACY])
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("mallory", PASSWORD)])
def test_a_wrong_password_executes_nothing(users: Server, level: int, user: str, password: str) -> None:
    users.start()
    with pytest.raises(DCERPCException, match="access_denied"):
        call(users, QM2QM, "get_version", level, user=user, password=password)
    assert refusals(users)["rpc authentication: logon"] == 1
    assert call(users, QM2QM, "get_version", level).pMajor == 6


def test_a_password_that_changes_counts_at_once(users: Server) -> None:
    users.start()
    done = command("user", "passwd", "alice", "--data", str(users.data), stdin=b"another\n")
    assert done.returncode == 0
    until(lambda: _answers(users, "another"), what="the new password")
    assert not _answers(users, PASSWORD)


def _answers(server: Server, password: str) -> bool:
    try:
        call(server, QM2QM, "get_version", PRIVACY, password=password)
    except DCERPCException:
        return False
    return True


def test_without_ntlm_nobody_authenticates_by_it(users: Server) -> None:
    users.environment["MSMQ_FAST_RPC__NTLM"] = "off"
    users.start()
    with pytest.raises(DCERPCException, match="Authentication type not recognized"):
        call(users, QM2QM, "get_version", PRIVACY)
    assert call(users, QM2QM, "get_version", NONE).pMajor == 6


def test_mgmt_tells_the_name_of_the_server_by_type_of_authentication(users: Server) -> None:
    users.environment |= {"MSMQ_FAST_SERVER__NAME": "ORDERS01", "MSMQ_FAST_SERVER__DOMAIN": "example.net"}
    users.start()
    client = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{users.port('rpc')}]").get_dce_rpc()
    client.connect()
    client.bind(mgmt.MSRPC_UUID_MGMT)
    for kind, name in (
        (10, b"host/ORDERS01.example.net\0"),
        (9, b"host/ORDERS01.example.net\0"),
        (16, b"\0"),
    ):
        answer = mgmt.hinq_princ_name(client, kind, 100)
        assert b"".join(answer["princ_name"]) == name
        assert answer["status"] == (0 if len(name) > 1 else 0x6D3)
    client.disconnect()
