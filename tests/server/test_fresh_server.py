"""A server without any configuration: what callers with and without a name can do from outside.

The expectations are those of docs/how-to/security.md, "What new queues grant".
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import UUID

import pytest

from msmq_fast.packet.names import parse_format_name
from msmq_fast.packet.user import SecurityHeader
from msmq_fast.rpc.idl.mqmq import OBJECTID, PROPVARIANT
from msmq_fast.rpc.services.queueformat import queue_format
from msmq_fast.security.sid import sid
from tests.support.mqqb import wire
from tests.support.processes.servers import Server, command, data_directory, until
from tests.support.rpc.dependents import CLIENT, queue_object, sent
from tests.support.rpc.qmcomm import INTEGRITY, NONE, PASSWORD, USER, Stub

OK, ACCESS_DENIED = 0, 0xC00E0025
RECEIVE, SEND, PEEK = 1, 2, 0x20
OUTSIDE = ("mqqb", "ping", "rpc", "qm2qm", "epm")


@pytest.fixture(scope="module")
def fresh() -> Iterator[Server]:
    """A server with a data directory, free ports and nothing else;
    one user can log on, who is in no group."""
    with data_directory() as data:
        data.mkdir(mode=0o700)
        added = command("user", "add", USER, "--data", str(data), stdin=f"{PASSWORD}\n".encode())
        assert added.returncode == 0, added
        server = Server(data)
        server.defaults = {"MSMQ_FAST_PROTECTION__RSA_BITS": "1024"}  # they take no time; HTTP is not named
        try:
            server.start()
            server.ok("queue", "create", "orders")
            yield server
        finally:
            server.kill()


def result_of_opening(client: Stub, name: str, access: int) -> Any:
    """rpc_QMOpenQueueInternal."""
    return client.call(
        "open_queue_internal",
        pQueueFormat=queue_format(parse_format_name(name)),
        dwDesiredAccess=access,
        dwShareMode=0,
        hRemoteQueue=0,
        lplpRemoteQueueName=None,
        dwpQueue=0,
        pLicGuid=CLIENT,
        lpClientName="DEPENDENT",
        dwRemoteProtocol=0,
        dwpRemoteContext=0,
    )


def result_of_creating(client: Stub, name: str) -> Any:
    """rpc_QMCreateObjectInternal."""
    return client.call(
        "create_object_internal",
        dwObjectType=1,
        lpwcsPathName=rf".\private$\{name}",
        SDSize=0,
        pSecurityDescriptor=None,
        cp=1,
        aProp=[108],
        apVar=[PROPVARIANT(31, 0, 0, 0, "a label")],
    ).result


def count(server: Server, queue: str = "orders") -> int:
    found: int = server.ok("queue", "show", queue)[0]["messages"]
    return found


def test_what_it_listens_to(fresh: Server) -> None:
    assert set(fresh.ready) == {"name", "guid", "app", "admin", *OUTSIDE}
    assert "security: windows profile" in fresh.log.read_text()


@pytest.mark.parametrize("user", ["", USER], ids=["without a name", "with a name"])
def test_callers_over_rpc_send_and_do_nothing_else(fresh: Server, user: str) -> None:
    orders = r"DIRECT=OS:localhost\private$\orders"
    before = count(fresh)
    with closing(Stub(fresh, INTEGRITY if user else NONE, ndr64=False)) as client:
        assert result_of_creating(client, "mine") == ACCESS_DENIED
        for access in (RECEIVE, PEEK):
            assert result_of_opening(client, orders, access).result == ACCESS_DENIED
        for name in (r"DIRECT=OS:localhost\system$;DEADLETTER", orders + ";JOURNAL"):
            assert result_of_opening(client, name, RECEIVE).result == ACCESS_DENIED
        assert client.call("delete_object", pObjectFormat=queue_object(orders)).result == ACCESS_DENIED
        queue = result_of_opening(client, orders, SEND)
        assert queue.result == OK
        done = client.call(
            "send_message_ex", hQueue=queue.phQueue, ptb=sent(b"hello"), pMessageID=OBJECTID(CLIENT, 0)
        )
        assert done.result == OK
        elsewhere = result_of_opening(client, r"DIRECT=TCP:127.0.0.77\private$\far", SEND)
        assert (elsewhere.result == OK) == bool(user)
    assert count(fresh) == before + 1
    assert len(fresh.ok("queue", "list")) == 1


def test_an_anonymous_message_of_a_workgroup_peer_arrives_in_a_new_queue(fresh: Server) -> None:
    before = count(fresh)
    deliver(fresh, "orders")
    until(lambda: count(fresh) == before + 1, what="the message")


def test_a_claimed_sender_opens_no_queue_that_is_closed_to_anonymous_senders(fresh: Server) -> None:
    fresh.ok("queue", "create", "payments")
    fresh.ok("acl", "revoke", "payments", "--user", "everyone")
    fresh.ok("acl", "revoke", "payments", "--user", "anonymous")
    refused = fresh.ok("stats")[0]["access_denied"]
    for number, claimed in enumerate(("S-1-5-32-544", "S-1-5-18", "S-1-22-1-0"), start=1):
        header = SecurityHeader(sender_id_type=1, sender_id=sid(claimed).data).encode()
        deliver(fresh, "payments", number=100 + number, security=header)
        until(lambda wanted=refused + number: fresh.ok("stats")[0]["access_denied"] == wanted)
    assert count(fresh, "payments") == 0


def deliver(server: Server, queue: str, number: int = 1, **fields: Any) -> None:
    """Send one recoverable message over MS-MQQB, as a queue manager that nobody knows."""
    with socket.create_connection((server.host, server.port("mqqb")), 10) as peer:
        peer.sendall(wire.establish(UUID(int=0xF00D)) + wire.parameters())
        answer = b""
        while len(answer) < 604:
            answer += peer.recv(4096)
        name = rf"OS:localhost\private$\{queue}"
        peer.sendall(wire.message(number, queue=name, recoverable=True, source=UUID(int=0xF00D), **fields))
        assert peer.recv(4096)


AS_ANOTHER_USER = """
import os, socket, sys
os.setgroups([]); os.setgid(54321); os.setuid(54321)
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
except PermissionError:
    print("refused")
"""


@pytest.mark.needs(rights=["root"])
def test_another_user_of_the_computer_does_not_reach_the_socket_of_programs(fresh: Server) -> None:
    arguments = [sys.executable, "-c", AS_ANOTHER_USER, str(fresh.data / "app.sock")]
    done = subprocess.run(arguments, capture_output=True, text=True, cwd="/", check=True)
    assert done.stdout == "refused\n"
