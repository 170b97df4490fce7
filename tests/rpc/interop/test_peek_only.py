"""Callers who may peek but not receive, over the wire with impacket: what each interface answers them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from impacket.dcerpc.v5.rpcrt import DCERPCException

from msmq_fast.packet.names import parse_format_name
from msmq_fast.rpc.idl.qm2qm import QM2QM, REMOTEREADDESC, REMOTEREADDESC2
from msmq_fast.rpc.idl.qmcomm import QMCOMM
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from msmq_fast.rpc.ndr.operations import InterfaceTable
from msmq_fast.rpc.services.queueformat import queue_format
from tests.rpc.interop.impacketclient import PRIVACY, USER, ImpacketClient, directory_of_user
from tests.support.processes.servers import Server
from tests.support.rpc.dependents import wanted
from tests.support.rpc.peers import CLIENT
from tests.support.rpc.qmcomm import Stub, body, opened
from tests.support.rpc.remotereader import opening, receiving

NAME = r"DIRECT=OS:.\private$\orders"
MAY_RECEIVE, MAY_PEEK = 1, 0x20
RECEIVE, PEEK, LOOKUP_RECEIVE = 0, 0x80000000, 0x40000020
ACCESS_DENIED, STATUS_ACCESS_DENIED = 0xC00E0025, 0xC0000022


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server with a message, and a user who may peek at it and no more."""
    with directory_of_user() as data:
        running = Server(data)
        try:
            running.start()
            running.ok("queue", "create", "orders")
            running.ok("acl", "set", "orders", "--sddl", "O:BAG:BAD:(A;;GA;;;BA)")
            running.ok("acl", "grant", "orders", "--user", USER, "--right", "peek")
            running.ok("send", "orders", "--body", "hello", "--recoverable")
            yield running
            assert len(running.messages("orders")) == 1, "nobody took it"
        finally:
            running.kill()


def client(server: Server, listener: str, table: InterfaceTable) -> closing[ImpacketClient]:
    return closing(ImpacketClient(server, listener, table, PRIVACY))


def raises(caller: Any, name: str, **values: Any) -> None:
    """A call ends with an exception instead of results, which is the status of a fault."""
    with pytest.raises(DCERPCException, match=f"{ACCESS_DENIED:08x}"):
        caller.call(name, **values)


def packet(sections: Any) -> bytes:
    return b"".join(bytes(section.pSectionBuffer) for section in sections)


@pytest.mark.rule("RR-006", "RR-023", "RR-033")
def test_remote_read(server: Server) -> None:
    with client(server, "rpc", REMOTE_READ) as caller:
        raises(caller, "open_queue", **opening(NAME, MAY_RECEIVE))
        context = caller.call("open_queue", **opening(NAME, MAY_PEEK)).pphContext

        def read(action: int, lookup_id: int = 0) -> Any:
            return caller.call("start_receive", **receiving(context, action, lookup_id))

        seen = read(PEEK)
        assert seen.result == 0
        assert b"hello" in packet(seen.ppPacketSections)
        assert read(RECEIVE).result == ACCESS_DENIED
        assert read(LOOKUP_RECEIVE, seen.pSequenceId).result == ACCESS_DENIED
        assert caller.call("purge_queue", phContext=context).result == STATUS_ACCESS_DENIED


@pytest.mark.rule("MP-006", "QP-078")
def test_qm2qm(server: Server) -> None:
    with client(server, "rpc", QMCOMM) as opener, client(server, "qm2qm", QM2QM) as caller:

        def told(access: int) -> Any:
            return opener.call(
                "open_remote_queue",
                pQueueFormat=queue_format(parse_format_name(NAME)),
                dwCallingProcessID=0,
                dwDesiredAccess=access,
                dwShareMode=0,
                pLicGuid=CLIENT,
                dwMQS=0,
            )

        refused = told(MAY_RECEIVE)
        assert (refused.result, refused.phQueue, refused.pphContext) == (ACCESS_DENIED, 0, None)
        handle = told(MAY_PEEK).phQueue
        caller.ok("open_queue", pLicGuid=CLIENT, dwMQS=0, hQueue=handle, pQueue=handle, dwpContext=handle)

        def desc(action: int) -> Any:
            inner: Any = REMOTEREADDESC(hRemoteQueue=handle, dwQueue=handle, ulAction=action, dwRequestID=1)
            return REMOTEREADDESC2(inner, 0)

        seen = caller.ok("start_receive2", lpRemoteReadDesc2=desc(PEEK))
        assert b"hello" in bytes(seen.lpRemoteReadDesc2.pRemoteReadDesc.lpBuffer)
        found = seen.lpRemoteReadDesc2.SequentialId
        older = caller.call("start_receive", lpRemoteReadDesc=desc(RECEIVE).pRemoteReadDesc)
        newer = caller.call("start_receive2", lpRemoteReadDesc2=desc(RECEIVE))
        looked_up = caller.call(
            "start_receive_by_lookup_id", LookupId=found, lpRemoteReadDesc2=desc(LOOKUP_RECEIVE)
        )
        for answer in (older, newer, looked_up):
            assert (answer.result, answer.pphContext) == (ACCESS_DENIED, None)
        raises(caller, "purge_queue", hQueue=handle)


@pytest.mark.rule("MP-006", "MP-111")
def test_qmcomm(server: Server) -> None:
    with closing(Stub(server, PRIVACY, ndr64=False)) as caller:
        with pytest.raises(AssertionError, match=f"{ACCESS_DENIED:#x}"):
            opened(caller, NAME, MAY_RECEIVE)
        queue = opened(caller, NAME, MAY_PEEK)
        assert body(caller, queue, PEEK) == b"hello"
        refused = caller.call("receive_message_ex", hQMContext=queue.pdwQMContext, ptb=wanted(RECEIVE))
        assert refused.result == ACCESS_DENIED
        assert caller.call("purge_queue", hQueue=queue.phQueue).result == ACCESS_DENIED
