"""A remote reader on plain sockets: PDUs by hand, parameters by our tables. It does not authenticate."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from msmq_fast.packet.names import parse_format_name
from msmq_fast.rpc.idl.qm2qm import QM2QM, REMOTEREADDESC, REMOTEREADDESC2
from msmq_fast.rpc.idl.qmcomm import QMCOMM
from msmq_fast.rpc.ndr.operations import InterfaceTable
from msmq_fast.rpc.services.queueformat import queue_format
from tests.support.processes.servers import Server
from tests.support.rpc import wire

CLIENT = UUID("11111111-2222-3333-4444-555555555555")
RECEIVE, PEEK = 1, 0x20  # dwDesiredAccess
NACK, ACK = 1, 2
INFINITE = 0xFFFFFFFF
HEADER = 24  # bytes in front of the stub of a response


class Fault(Exception):
    """A call ended with a fault PDU."""

    def __init__(self, status: int) -> None:
        super().__init__(f"0x{status:08X}")
        self.status = status


class Caller:
    """One connection, bound to one interface."""

    def __init__(self, host: str, port: int, table: InterfaceTable, timeout: float = 10) -> None:
        self.table = table
        self.socket = socket.create_connection((host, port), timeout)
        self._calls: dict[int, tuple[Any, Any]] = {}
        self._next = 1
        interface = (str(table.uuid), *table.version)
        self.socket.sendall(wire.bind([(0, interface, [wire.NDR])], call_id=1, flags=wire.WHOLE | wire.MPX))
        answer = wire.read(self.pdu())
        assert answer.type == wire.BIND_ACK, answer
        assert answer.results[0][0] == 0, answer

    def pdu(self) -> bytes:
        """The next PDU. ConnectionError when there is none."""
        head = self._exactly(16)
        (length,) = struct.unpack_from("<H", head, 8)
        return head + self._exactly(length - 16)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise ConnectionError("the server closed the connection")
            data += more
        return data

    def send(self, name: str, **values: Any) -> int:
        """Call without waiting; the number of the call."""
        op = self.table.op(name)
        self._next += 1
        args = op.Args(**values)
        self._calls[self._next] = op, args
        stub = op.encode_request(args, ndr64=False)
        self.socket.sendall(wire.request(self._next, op.opnum, stub))
        return self._next

    def receive(self) -> Any:
        """The results of the call that ends next. Raises Fault."""
        stub = b""
        while True:
            answer = wire.read(self.pdu())
            op, args = self._calls[answer.call_id]
            if answer.type == wire.FAULT:
                raise Fault(answer.status)
            stub += answer.stub
            if answer.flags & wire.LAST:
                return op.decode_response(stub, args, ndr64=False)

    def call(self, name: str, **values: Any) -> Any:
        """Call and wait."""
        self.send(name, **values)
        return self.receive()

    def close(self) -> None:
        self.socket.close()


class RemoteQueue:
    """A queue that is open by qmcomm and qm2qm."""

    def __init__(self, server: Server, name: str, access: int = RECEIVE) -> None:
        self.opener = Caller(server.host, server.port("rpc"), QMCOMM)
        found = self.opener.call(
            "open_remote_queue",
            pQueueFormat=queue_format(parse_format_name(f"DIRECT=OS:.\\private$\\{name}")),
            dwCallingProcessID=1,
            dwDesiredAccess=access,
            dwShareMode=0,
            pLicGuid=CLIENT,
            dwMQS=0,
        )
        if found.result:
            raise PermissionError(f"0x{found.result:08X}")
        self.handle = found.phQueue
        self.reader = Caller(server.host, server.port("qm2qm"), QM2QM)
        opened = self.reader.call(
            "open_queue",
            pLicGuid=CLIENT,
            dwMQS=0,
            hQueue=self.handle,
            pQueue=self.handle,
            dwpContext=self.handle,
        )
        assert opened.result == 0, hex(opened.result)
        self._request = 0

    def start(self, timeout: int = 0, action: int = 0) -> None:
        """RemoteQMStartReceive2; timeout in milliseconds."""
        self._request += 1
        desc = REMOTEREADDESC(
            hRemoteQueue=self.handle,
            ulAction=action,
            ulTimeout=timeout,
            dwQueue=self.handle,
            dwRequestID=self._request,
        )
        desc2 = REMOTEREADDESC2(pRemoteReadDesc=desc, SequentialId=0)
        self.reader.send("start_receive2", lpRemoteReadDesc2=desc2)

    def end(self, read: Any, ack: int) -> int:
        """RemoteQMEndReceive."""
        ended = self.reader.call("end_receive", pphContext=read.pphContext, dwAck=ack)
        result: int = ended.result
        return result

    def close(self) -> None:
        for caller in (self.opener, self.reader):
            caller.close()


@contextmanager
def reading(server: Server, name: str) -> Iterator[RemoteQueue]:
    """A queue that anonymous callers may read, open at a reader."""
    queue = RemoteQueue(server, name)
    try:
        yield queue
    finally:
        queue.close()


def readable(server: Server, name: str, *flags: str) -> None:
    """A queue that anonymous callers may read."""
    server.ok("queue", "create", name, *flags)
    server.ok("acl", "grant", name, "--user", "anonymous", "--right", "receive", "--right", "peek")
