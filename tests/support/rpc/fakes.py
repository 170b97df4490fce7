"""A network in memory, and servers on it whose every answer a test decides.

Their PDUs are made and read here by hand (C706 12.6), not by msmq_fast.rpc.pdu.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from msmq_fast.rpc.auth.context import AuthError
from msmq_fast.rpc.client.binding import BindingEnvironment
from msmq_fast.rpc.client.connection import ClientConnection
from msmq_fast.rpc.client.timers import Timers
from msmq_fast.rpc.idl.epm import EPM, TWR
from msmq_fast.rpc.ndr.operations import InterfaceTable, Op
from msmq_fast.rpc.services.towers import TcpTower
from msmq_fast.rpc.syntaxes import NDR, SyntaxId

NDR_UUID = UUID("8a885d04-1ceb-11c9-9fe8-08002b104860")
NDR64_UUID = UUID("71710533-beba-4937-8319-b5dbef9ccc36")
NOT_REGISTERED = 0x16C9A0D6

BIND, BIND_ACK, REQUEST, RESPONSE, FAULT, CANCEL, ORPHANED = 11, 12, 0, 2, 3, 18, 19


class Fault(Exception):
    """The call is answered with a fault PDU."""

    def __init__(self, status: int) -> None:
        super().__init__(hex(status))
        self.status = status


class Later:
    """The call is answered when the test says so."""

    def __init__(self) -> None:
        self.answer: Callable[[Any], None] = lambda _: None


class Request:
    """What a server was asked."""

    def __init__(self, name: str, args: Any, stub: bytes, connection: FakeConnection, call_id: int) -> None:
        self.name = name
        self.args = args
        self.stub = stub
        self.connection = connection
        self.call_id = call_id

    def __repr__(self) -> str:
        return self.name


Handler = Callable[[Any], Any]


class FakeServer:
    """One endpoint of one interface. Handlers by the names of operations return results, `Later`, raise
    Fault, or give None: no answer, ever."""

    def __init__(self, table: InterfaceTable, handlers: dict[str, Handler], *, ndr64: bool = False) -> None:
        self.table = table
        self.handlers = handlers
        self.ndr64 = ndr64
        self.multiplexes = True
        self.max_recv = 5840
        self.seen: list[Request] = []
        self.events: list[tuple[int, int]] = []  # cancels and orphans: type and call id
        self.groups: list[int] = []  # of the binds
        self.connections: list[FakeConnection] = []
        self.fragments_in = 0
        self.fragment_out = 5840
        self.most = 0  # operations above it are out of range; 0: all are there

    def names(self) -> list[str]:
        return [request.name for request in self.seen]

    def asked(self, name: str) -> list[Request]:
        return [request for request in self.seen if request.name == name]


class FakeConnection:
    """The server's end of one connection."""

    def __init__(self, server: FakeServer, client: ClientConnection) -> None:
        self.server = server
        self.client = client
        self.input = bytearray()
        self.output = bytearray()
        self.stubs: dict[int, bytearray] = {}
        self.open = True
        server.connections.append(self)

    def feed(self, data: bytes | bytearray) -> None:
        self.input += data
        while len(self.input) >= 16:
            (length,) = struct.unpack_from("<H", self.input, 8)
            if len(self.input) < length:
                return
            pdu = bytes(self.input[:length])
            del self.input[:length]
            self.take(pdu)

    def take(self, pdu: bytes) -> None:
        kind, flags = pdu[2], pdu[3]
        (call_id,) = struct.unpack_from("<I", pdu, 12)
        if kind == BIND:
            self.bind(pdu, flags, call_id)
        elif kind == REQUEST:
            self.server.fragments_in += 1
            self.stubs.setdefault(call_id, bytearray()).extend(pdu[24:])
            if flags & 2:
                (opnum,) = struct.unpack_from("<H", pdu, 22)
                self.request(opnum, bytes(self.stubs.pop(call_id)), call_id)
        else:
            self.server.events.append((kind, call_id))

    def bind(self, pdu: bytes, flags: int, call_id: int) -> None:
        (group,) = struct.unpack_from("<I", pdu, 20)
        self.server.groups.append(group)
        count = pdu[24]
        results = b""
        at = 28
        for _ in range(count):
            abstract = UUID(bytes_le=pdu[at + 4 : at + 20])
            transfer = UUID(bytes_le=pdu[at + 24 : at + 40])
            at += 44
            wanted = NDR64_UUID if self.server.ndr64 else NDR_UUID
            if abstract != self.server.table.uuid:
                results += struct.pack("<HH20x", 2, 1)
            elif transfer == wanted:
                results += struct.pack("<HH", 0, 0) + transfer.bytes_le + struct.pack("<I", 2)
            elif str(transfer).startswith("6cb71c2c-9812-4540"):
                results += struct.pack("<HH20x", 3, 3)
            else:
                results += struct.pack("<HH20x", 2, 2)
        body = struct.pack("<HHI", 5840, self.server.max_recv, group or 0x1234)
        body += struct.pack("<H", 5) + b"2103\0" + b"\0" + struct.pack("<B3x", count) + results
        self.put(BIND_ACK, 3 | (flags & 0x10 if self.server.multiplexes else 0), call_id, body)

    def request(self, opnum: int, stub: bytes, call_id: int) -> None:
        server = self.server
        op = server.table.ops[opnum]
        if server.most and opnum > server.most:
            self.fault(call_id, 0x1C010002)
            return
        args = op.decode_request(stub, ndr64=server.ndr64)
        server.seen.append(Request(op.name, args, stub, self, call_id))
        handler = server.handlers.get(op.name)
        try:
            results = handler(args) if handler is not None else op.results(args)
        except Fault as fault:
            self.fault(call_id, fault.status)
            return
        if isinstance(results, Later):
            results.answer = lambda late: self.respond(op, late, call_id)
        elif results is not None:
            self.respond(op, results, call_id)

    def respond(self, op: Op, results: Any, call_id: int) -> None:
        if isinstance(results, Fault):
            self.fault(call_id, results.status)
            return
        stub = op.encode_response(results, ndr64=self.server.ndr64)
        room = self.server.fragment_out - 24
        for start in range(0, max(len(stub), 1), room):
            part = stub[start : start + room]
            flags = (0x01 if start == 0 else 0) | (0x02 if start + room >= len(stub) else 0)
            self.put(RESPONSE, flags, call_id, struct.pack("<IHBx", len(stub), 0, 0) + part)

    def fault(self, call_id: int, status: int) -> None:
        self.put(FAULT, 3, call_id, struct.pack("<IHBxII", 32, 0, 0, status, 0))

    def put(self, kind: int, flags: int, call_id: int, body: bytes) -> None:
        self.output += struct.pack("<BBBBIHHI", 5, 0, kind, flags, 0x10, 16 + len(body), 0, call_id) + body

    def drop(self, reason: str = "reset by peer") -> None:
        """The connection breaks; what was not delivered is gone."""
        self.open = False
        self.output.clear()
        self.client.lost(reason)


def at_once(step: Callable[[], bytes], done: Callable[[bytes | None, AuthError | None], None]) -> None:
    """Fulfils rpc.server.Offload."""
    try:
        reply = step()
    except AuthError as error:
        done(None, error)
    else:
        done(reply, None)


class Network:
    """Fulfils binding.Dialer. Bytes move when `run` is called."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.servers: dict[tuple[str, int], FakeServer] = {}
        self.timers = Timers(lambda: self.now)
        self.environment = BindingEnvironment(self, at_once, self.timers)
        self.dialled: list[tuple[str, int]] = []
        self.links: list[FakeConnection] = []
        self._refused: list[tuple[ClientConnection, str]] = []
        self._fresh: list[FakeConnection] = []

    def dial(self, host: str, port: int, connection: ClientConnection) -> None:
        self.dialled.append((host, port))
        server = self.servers.get((host, port))
        if server is None:
            self._refused.append((connection, "connection refused"))
            return
        self._fresh.append(FakeConnection(server, connection))

    def run(self) -> None:
        """Until nothing moves."""
        while self._step():
            pass

    def _step(self) -> bool:
        moved = False
        refused, self._refused = self._refused, []
        for connection, reason in refused:
            connection.lost(reason)
            moved = True
        fresh, self._fresh = self._fresh, []
        for link in fresh:
            self.links.append(link)
            link.client.connected()
            moved = True
        for link in list(self.links):
            moved |= self._pump(link)
        return moved

    def _pump(self, link: FakeConnection) -> bool:
        if not link.open:
            return False
        sent = link.client.take_output()
        for data in sent:
            link.feed(data)
        back = bytes(link.output)
        link.output.clear()
        view = memoryview(back)
        while view and not link.client.closing:
            room = link.client.buffer(len(view))
            count = min(len(room), len(view), 1460)
            room[:count] = view[:count]
            link.client.received(count)
            view = view[count:]
        if link.client.closing and not link.client.take_output():
            link.open = False
        return bool(sent) or bool(back)

    def pass_time(self, seconds: float) -> None:
        """Time passes; what is due happens, and what follows from it."""
        end = self.now + seconds
        while (due := self.timers.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.timers.expire(self.now)
            self.run()
        self.now = end
        self.run()


def mapper(ports: dict[UUID, int]) -> FakeServer:
    """An endpoint mapper that knows these interfaces."""

    def ept_map(args: Any) -> Any:
        tower = TcpTower.of_floors(tuple(floors(bytes(args.map_tower.tower_octet_string))))
        assert tower is not None
        port = ports.get(tower.interface.uuid)
        op = EPM.op("ept_map")
        if port is None:
            return op.results(args, num_towers=0, ITowers=[], status=NOT_REGISTERED)
        octets = TcpTower(tower.interface, NDR, port).encode()
        return op.results(args, num_towers=1, ITowers=[TWR(len(octets), octets)], status=0)

    return FakeServer(EPM, {"ept_map": ept_map})


def floors(octets: bytes) -> Iterator[Any]:
    from msmq_fast.rpc.services.towers import decode_floors

    yield from decode_floors(octets)


def syntax(table: InterfaceTable) -> SyntaxId:
    return SyntaxId(table.uuid, *table.version)
