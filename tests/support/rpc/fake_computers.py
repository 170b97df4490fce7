"""Fake computers with one queue: one that serves RemoteRead, and ones that serve qmcomm and qm2qm."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msmq_fast._native.packetbuild import build_user_message
from msmq_fast.packet.fields import direct_wire
from msmq_fast.packet.names import FormatName, parse_format_name
from msmq_fast.qm.access import Access, Share
from msmq_fast.qm.reading.remote import RemoteQueue
from msmq_fast.rpc.client.opening import ReaderSettings, RemoteQueues
from msmq_fast.rpc.idl.qm2qm import QM2QM, REMOTEREADDESC, REMOTEREADDESC2
from msmq_fast.rpc.idl.qmcomm import QMCOMM
from msmq_fast.rpc.idl.remoteread import REMOTE_READ, SECTION_BUFFER
from msmq_fast.security.token import Token
from tests.support.rpc.fakes import FakeServer, Fault, Later, Network, mapper

HOST = "10.0.0.7"
NAME = parse_format_name(rf"DIRECT=TCP:{HOST}\private$\orders")
CLIENT = UUID("11111111-2222-3333-4444-555555555555")
CONTEXT = b"\0\0\0\0" + bytes(range(1, 17))
READ = b"\0\0\0\0" + bytes(range(101, 117))
IO_TIMEOUT, NOT_FOUND, CANCELLED = 0xC00E001B, 0xC00E0088, 0xC00E0008
INFINITE = 0xFFFFFFFF
RECEIVE, PEEK_CURRENT, PEEK_NEXT = 0, 0x80000000, 0x80000001
LOOKUP_PEEK_CURRENT = 0x40000010


def packet(
    body: bytes = b"hello", *, priority: int = 3, sent: int = 1_700_000_000, ttrq: int = INFINITE
) -> bytes:
    """A UserMessage packet."""
    return build_user_message(
        direct_wire(NAME.text),
        7,
        body=body,
        priority=priority,
        sent_time=sent,
        time_to_reach_queue=ttrq,
        source=bytes(16),
    )


class Queue:
    """Messages by lookup identifier (7 bytes), one reader's view; what is locked is locked for that one."""

    def __init__(self, *bodies: bytes) -> None:
        self.messages: dict[int, bytes] = {number: packet(body) for number, body in enumerate(bodies, 1)}
        self.locked: dict[int, int] = {}  # request id -> lookup id
        self.waiting: dict[int, tuple[Any, Later]] = {}  # reads, by request id
        self.removed: list[int] = []

    def first(self) -> int | None:
        free = [number for number in sorted(self.messages) if number not in self.locked.values()]
        return free[0] if free else None

    def find(self, action: int, lookup_id: int) -> int | None:
        number = lookup_id & 0xFFFFFFFFFFFFFF
        free = [n for n in sorted(self.messages) if n not in self.locked.values()]
        match action & 0xF:
            case 0:
                return number if number in free else None
            case 1:
                return next((n for n in free if n > number), None)
            case _:
                return next((n for n in reversed(free) if n < number), None)


class RemoteReadComputer:
    """Serves RemoteRead only."""

    def __init__(self, network: Network, *bodies: bytes, host: str = HOST, ndr64: bool = False) -> None:
        self.queue = Queue(*bodies)
        self.server = FakeServer(
            REMOTE_READ,
            {
                "open_queue": self.open,
                "start_receive": self.start,
                "end_receive": self.end,
                "cancel_receive": self.cancel,
                "create_cursor": lambda args: REMOTE_READ.op("create_cursor").results(args, phCursor=77),
                "get_server_port": lambda args: REMOTE_READ.op("get_server_port").results(args, result=2103),
                "close_queue": self.close,
            },
            ndr64=ndr64,
        )
        self.mapper = mapper({REMOTE_READ.uuid: 2103})
        self.ends: list[tuple[int, int]] = []  # request id, ack
        self.refuses_open = 0
        self.tail = b""
        self.extra: dict[str, Any] = {}
        network.servers[host, 135] = self.mapper
        network.servers[host, 2103] = self.server

    def open(self, args: Any) -> Any:
        if self.refuses_open:
            raise Fault(self.refuses_open)
        return REMOTE_READ.op("open_queue").results(args, pphContext=CONTEXT)

    def start(self, args: Any) -> Any:
        assert args.phContext == CONTEXT
        by_id = args.ulAction & 0x40000000
        number = self.queue.find(args.ulAction, args.LookupId) if by_id else self.queue.first()
        if number is not None:
            return self.found(args, number)
        if by_id:
            return self.failed(args, NOT_FOUND)
        if not args.ulTimeout:
            return self.failed(args, IO_TIMEOUT)
        later = Later()
        self.queue.waiting[args.dwRequestId] = (args, later)
        return later

    def found(self, args: Any, number: int) -> Any:
        if args.ulAction == RECEIVE or args.ulAction & 0x40000020 == 0x40000020:
            self.queue.locked[args.dwRequestId] = number
        return self.message(args, self.queue.messages[number] + self.tail, number)

    def message(self, args: Any, data: bytes, number: int) -> Any:
        section = SECTION_BUFFER(0, len(data), len(data), data)
        return REMOTE_READ.op("start_receive").results(
            args,
            pdwArriveTime=1_700_000_100,
            pSequenceId=number,
            pdwNumberOfSections=1,
            ppPacketSections=[section],
        )

    def failed(self, args: Any, status: int) -> Any:
        return REMOTE_READ.op("start_receive").results(
            args, pdwNumberOfSections=0, ppPacketSections=None, result=status
        )

    def end(self, args: Any) -> Any:
        self.ends.append((args.dwRequestId, args.dwAck))
        number = self.queue.locked.pop(args.dwRequestId, None)
        if number is not None and args.dwAck == 2:
            del self.queue.messages[number]
            self.queue.removed.append(number)
        return REMOTE_READ.op("end_receive").results(args, result=0 if number is not None else 0xC00E0007)

    def cancel(self, args: Any) -> Any:
        found = self.queue.waiting.pop(args.dwRequestId, None)
        if found is not None:
            found[1].answer(self.failed(found[0], CANCELLED))
        return REMOTE_READ.op("cancel_receive").results(args, result=0 if found else 0xC0000225)

    def close(self, args: Any) -> Any:
        return REMOTE_READ.op("close_queue").results(args, pphContext=None)

    def arrive(self, body: bytes) -> None:
        """A message comes; the first waiting read gets it."""
        number = max([*self.queue.messages, *self.queue.removed, 0]) + 1
        self.queue.messages[number] = packet(body)
        if self.queue.waiting:
            request_id = next(iter(self.queue.waiting))
            args, later = self.queue.waiting.pop(request_id)
            later.answer(self.found(args, number))

    def drop(self) -> None:
        """Every connection breaks, and what was locked is available again."""
        self.queue.locked.clear()
        self.queue.waiting.clear()
        for connection in list(self.server.connections):
            if connection.open:
                connection.drop()


class OldComputer:
    """Serves qmcomm and qm2qm of one version; RemoteRead is not registered."""

    HANDLE, QUEUE, DESCRIPTOR = 7, 17, 27
    """phQueue, dwpQueue, pdwContext: servers may give one number, here each parameter is told by its own."""

    def __init__(
        self, network: Network, version: tuple[int, int, int] | None, *bodies: bytes, ndr64: bool = False
    ) -> None:
        """Without a version: no operation above 7, as NT and 2000."""
        self.queue = Queue(*bodies)
        self.version = version
        self.ends: list[int] = []
        self.qmcomm = FakeServer(
            QMCOMM,
            {
                "open_remote_queue": self.open_remote,
                "create_remote_cursor": lambda a: QMCOMM.op("create_remote_cursor").results(a, phCursor=78),
                "get_rtqm_server_port": lambda a: QMCOMM.op("get_rtqm_server_port").results(a, result=2103),
            },
            ndr64=ndr64,
        )
        self.qm2qm = FakeServer(
            QM2QM,
            {
                "open_queue": lambda args: QM2QM.op("open_queue").results(args, phContext=CONTEXT),
                "get_version": self.get_version,
                "get_port": lambda args: QM2QM.op("get_port").results(args, result=2105),
                "start_receive": self.start,
                "start_receive2": self.start2,
                "start_receive_by_lookup_id": self.look_up,
                "end_receive": self.end,
                "cancel_receive": self.cancel,
                "close_queue": lambda args: QM2QM.op("close_queue").results(args, pphContext=None),
            },
            ndr64=ndr64,
        )
        if version is None:
            self.qm2qm.most = 7
        self.mapper = mapper({QMCOMM.uuid: 2103, QM2QM.uuid: 2105})
        network.servers[HOST, 135] = self.mapper
        network.servers[HOST, 2103] = self.qmcomm
        network.servers[HOST, 2105] = self.qm2qm

    def open_remote(self, args: Any) -> Any:
        return QMCOMM.op("open_remote_queue").results(
            args, pphContext=CONTEXT, pdwContext=self.DESCRIPTOR, dwpQueue=self.QUEUE, phQueue=self.HANDLE
        )

    def get_version(self, args: Any) -> Any:
        assert self.version is not None
        major, minor, build = self.version
        return QM2QM.op("get_version").results(args, pMajor=major, pMinor=minor, pBuildNumber=build)

    def start(self, args: Any) -> Any:
        return self.read(args, args.lpRemoteReadDesc, "start_receive", 0)

    def start2(self, args: Any) -> Any:
        return self.read(args, args.lpRemoteReadDesc2.pRemoteReadDesc, "start_receive2", 0)

    def look_up(self, args: Any) -> Any:
        desc = args.lpRemoteReadDesc2.pRemoteReadDesc
        return self.read(args, desc, "start_receive_by_lookup_id", args.LookupId)

    def read(self, args: Any, desc: Any, name: str, lookup_id: int) -> Any:
        by_id = desc.ulAction & 0x40000000
        number = self.queue.find(desc.ulAction, lookup_id) if by_id else self.queue.first()
        if number is not None:
            return self.found(args, desc, name, number)
        if by_id or not desc.ulTimeout:
            return self.failed(args, desc, name, NOT_FOUND if by_id else IO_TIMEOUT)
        later = Later()
        self.queue.waiting[desc.dwRequestID] = ((args, desc, name), later)
        return later

    def found(self, args: Any, desc: Any, name: str, number: int) -> Any:
        takes = desc.ulAction == RECEIVE or desc.ulAction & 0x40000020 == 0x40000020
        if takes:
            self.queue.locked[0] = number
        return self.answer(args, desc, name, 0, self.queue.messages[number], number, READ if takes else None)

    def failed(self, args: Any, desc: Any, name: str, status: int) -> Any:
        return self.answer(args, desc, name, status, None, 0, None)

    def answer(
        self,
        args: Any,
        desc: Any,
        name: str,
        status: int,
        data: bytes | None,
        number: int,
        handle: bytes | None,
    ) -> Any:
        filled = REMOTEREADDESC(
            hRemoteQueue=desc.hRemoteQueue,
            dwQueue=desc.dwQueue,
            dwRequestID=desc.dwRequestID,
            Reserved=1,
            dwArriveTime=1_700_000_100 if data else 0,
            dwSize=len(data or b""),
            lpBuffer=data,
        )
        if name == "start_receive":
            outs: dict[str, Any] = {"lpRemoteReadDesc": filled}
        else:
            outs = {"lpRemoteReadDesc2": REMOTEREADDESC2(filled, number)}
        return QM2QM.op(name).results(args, pphContext=handle, result=status, **outs)

    def end(self, args: Any) -> Any:
        assert args.pphContext == READ
        self.ends.append(args.dwAck)
        number = self.queue.locked.pop(0)
        if args.dwAck == 2:
            del self.queue.messages[number]
            self.queue.removed.append(number)
        return QM2QM.op("end_receive").results(args, pphContext=None)

    def cancel(self, args: Any) -> Any:
        found = self.queue.waiting.pop(args.dwRequestID, None)
        if found is not None:
            (asked, desc, name), later = found
            later.answer(self.failed(asked, desc, name, 0x400E03E9))
        return QM2QM.op("cancel_receive").results(args, result=0 if found else 0xC00E0001)


class Reader:
    """The client side on a network."""

    def __init__(self, network: Network, **settings: Any) -> None:
        self.network = network
        self.numbers = 0
        self.allowed = True
        self.queues = RemoteQueues(
            network.environment,
            ReaderSettings(CLIENT, **settings),
            locate=lambda name: name.direct.address if name.direct is not None else "",
            allow=self._allow,
            cursor_number=self._number,
        )

    def _allow(self, token: Token | None, name: FormatName) -> None:
        if not self.allowed:
            from msmq_fast.protocol.errors import AccessDenied

            raise AccessDenied("not you")

    def _number(self) -> int:
        self.numbers += 1
        return self.numbers

    def open(
        self, access: Access = Access.RECEIVE, share: Share = Share.DENY_NONE, name: FormatName = NAME
    ) -> RemoteQueue:
        """An open queue; raises what the open fails with."""
        done = self.queues.open(name, access, share, None)
        self.network.run()
        return done.result()
