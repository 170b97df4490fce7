"""Who may call over RPC, as the configuration says: levels of authentication, NTLM, users, passwords."""

from __future__ import annotations

import os
import re
import socket
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from impacket.dcerpc.v5 import mgmt, transport
from impacket.dcerpc.v5.rpcrt import DCERPCException
from impacket.uuid import uuidtup_to_bin

from msmq_fast.rpc.auth.context import AuthLevel
from msmq_fast.rpc.auth.ntlm import NtlmInitiator, NtlmUser
from msmq_fast.rpc.idl.qm2qm import QM2QM
from msmq_fast.rpc.idl.qmcomm import QMCOMM
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from msmq_fast.rpc.ndr.operations import InterfaceTable
from tests.support.http.admin import refusals
from tests.support.processes.servers import Server, command, data_directory, until
from tests.support.rpc import wire

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
        ({"REMOTE_READ_LEVEL": "connect"}, INTEGRITY),
        ({"REMOTE_READ_LEVEL": "packet", "NAMED_LEVEL": "none"}, PACKET),
        ({"REMOTE_READ_LEVEL": "connect", "NAMED_LEVEL": "connect"}, CONNECT),
        ({"REMOTE_READ_LEVEL": "none", "NAMED_LEVEL": "none"}, NONE),
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
    assert call(users, QM2QM, "get_version", max(level, INTEGRITY)).pMajor == 6


@pytest.mark.parametrize("table", [QM2QM, QMCOMM])
def test_callers_with_a_name_must_sign_and_those_without_need_not(
    users: Server, table: InterfaceTable
) -> None:
    """Nothing is signed at the level connect, so that a log-on of another place can be passed on to us."""

    def let_in(level: int) -> bool:
        try:
            if table is QM2QM:
                answer = call(users, QM2QM, "close_cursor", level, hQueue=1, hCursor=1)
                return bool(answer.result == INVALID_HANDLE)
            call(users, QMCOMM, "close_remote_queue_context", level, pphContext=None)
        except DCERPCException:
            return False
        return True

    users.start()
    assert [level for level in LEVELS if let_in(level)] == [NONE, INTEGRITY, PRIVACY]
    users.stop()
    users.environment["MSMQ_FAST_RPC__NAMED_LEVEL"] = "none"
    users.start()
    assert [level for level in LEVELS if let_in(level)] == [*LEVELS]


@pytest.mark.parametrize(
    ("target", "let_in"),
    [
        ("cifs/fileserver.corp.example", False),  # a log-on that another server passes on
        ("host/orders01.evil.example", False),
        ("host/10.255.255.1", False),
        ("host/ORDERS01", True),
        ("HOST/orders01.example.net:2105", True),
        ("host/127.0.0.1", True),
        ("MSMQ/queues.example.org", True),  # rpc.target_names
        ("", True),
    ],
)
def test_a_log_on_must_be_meant_for_this_server(users: Server, target: str, let_in: bool) -> None:
    users.environment |= {
        "MSMQ_FAST_SERVER__NAME": "ORDERS01",
        "MSMQ_FAST_SERVER__DOMAIN": "example.net",
        "MSMQ_FAST_RPC__TARGET_NAMES": "queues.example.org",
    }
    users.start()
    mine = NtlmInitiator(NtlmUser("alice", "", PASSWORD), AuthLevel.INTEGRITY, target, time.time, os.urandom)
    with socket.create_connection((users.host, users.port("qm2qm")), 10) as connection:
        body = wire.bind_body([(0, (str(QM2QM.uuid), *QM2QM.version), [wire.NDR])])
        connection.sendall(wire.pdu(wire.BIND, 1, body, auth=wire.Auth(10, 5, 0, mine.step(b""))))
        ack = connection.recv(4096)
        size = int.from_bytes(ack[10:12], "little")
        auth = wire.Auth(10, 5, 0, mine.step(ack[-size:]))
        connection.sendall(wire.pdu(wire.AUTH3, 1, bytes(4), auth=auth))
        until(lambda: logons(users) != (0, 0), what="the end of the log-on")
    assert logons(users) == ((1, 0) if let_in else (0, 1))
    if not let_in:
        assert target in users.log.read_text()


def logons(server: Server) -> tuple[int, int]:
    """Those that succeeded, and those that failed."""
    stats = server.ok("stats")[0]
    url = f"http://{server.host}:{server.port('admin')}/metrics"
    with urllib.request.urlopen(url, timeout=10) as answer:
        found = re.search(r'rpc_logons\S*{type="ntlm"} (\d+)', answer.read().decode())
    return int(found[1]) if found else 0, stats["refusals"].get("rpc authentication: logon", 0)


def test_who_guesses_passwords_is_locked_out_for_a_while(users: Server) -> None:
    users.environment["MSMQ_FAST_LOG__REFUSALS_PER_SECOND"] = "1000"
    users.start()
    for number in range(5):
        assert not _answers(users, f"guess {number}")
    assert not _answers(users, PASSWORD)  # even the right one, for a second
    assert "locked for 1 s after 5 failures" in users.log.read_text()
    until(lambda: _answers(users, PASSWORD), what="the end of the lock")


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
