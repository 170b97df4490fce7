"""qmcomm as impacket speaks it: stubs, accounts and levels of protection."""

from __future__ import annotations

from typing import Any

from impacket.dcerpc.v5 import transport
from impacket.uuid import uuidtup_to_bin

from msmq_fast.packet.names import parse_format_name
from msmq_fast.rpc.idl.qmcomm import QMCOMM
from msmq_fast.rpc.idl.qmcomm2 import QMCOMM2
from msmq_fast.rpc.services.queueformat import queue_format
from tests.support.processes.servers import Server
from tests.support.rpc import impacketbridge
from tests.support.rpc.dependents import CLIENT, wanted
from tests.support.rpc.impacketstubs import CALLS

NDR = ("8a885d04-1ceb-11c9-9fe8-08002b104860", "2.0")
NDR64 = ("71710533-beba-4937-8319-b5dbef9ccc36", "1.0")
USER, PASSWORD = "alice", "correct horse"  # of a user of the test
NONE, CONNECT, INTEGRITY, PRIVACY = 1, 2, 5, 6


class Stub:
    """A client of both interfaces: two presentation contexts of one connection."""

    def __init__(self, server: Server, level: int, *, ndr64: bool, secret: str = PASSWORD) -> None:
        self.level = level
        self.ndr64 = ndr64
        channel = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{server.port('rpc')}]")
        first = channel.get_dce_rpc()
        if level > NONE:
            first.set_credentials(USER, secret, "")
            first.set_auth_level(level)
        first.connect()
        first.bind(uuidtup_to_bin((str(QMCOMM.uuid), "1.0")), transfer_syntax=NDR64 if ndr64 else NDR)
        self._channel = channel
        self._contexts = {"qmcomm": first}
        self._calls = 100
        self.called: set[tuple[str, int]] = set()

    def call(self, name: str, **values: Any) -> Any:
        """Make a call; its results. Raises DCERPCException for a fault."""
        table = QMCOMM if any(op.name == name for op in QMCOMM.ops) else QMCOMM2
        op = table.op(name)
        request, response = CALLS[table.name][op.opnum]
        stub = impacketbridge.encode(request, op.inputs, op.Args(**values), ndr64=self.ndr64)
        context = self._context(table.name)
        self._calls += 1
        context._DCERPC_v5__callid = self._calls  # impacket counts for each context by itself
        context.call(op.opnum, stub)
        answer = context.recv()
        self.called.add((table.name, op.opnum))
        return op.Results(**impacketbridge.decode(response, op.outputs, answer, ndr64=self.ndr64))

    def ok(self, name: str, **values: Any) -> Any:
        """As `call`, with the result MQ_OK."""
        results = self.call(name, **values)
        assert results.result == 0, (name, hex(results.result))
        return results

    def _context(self, interface: str) -> Any:
        if interface not in self._contexts:
            if self.level == CONNECT:
                # Requests carry nothing that would say which of two security contexts is theirs.
                self._contexts["qmcomm"].set_auth_level(NONE)
            altered = self._contexts["qmcomm"].alter_ctx(uuidtup_to_bin((str(QMCOMM2.uuid), "1.0")))
            self._contexts[interface] = altered
        return self._contexts[interface]

    def close(self) -> None:
        self._channel.disconnect()


def opened(stub: Stub, text: str, access: int) -> Any:
    """rpc_QMOpenQueueInternal."""
    return stub.ok(
        "open_queue_internal",
        pQueueFormat=queue_format(parse_format_name(text)),
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


def body(stub: Stub, queue: Any, action: int = 0, **values: Any) -> bytes:
    """rpc_ACReceiveMessageEx."""
    old = stub.ok("receive_message_ex", hQMContext=queue.pdwQMContext, ptb=wanted(action, **values)).ptb.old
    return bytes(old.ppBody[: old.pBodySize])
