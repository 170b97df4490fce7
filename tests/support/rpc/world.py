"""An endpoint in a test: a service whose stubs are plain bytes, security contexts that anyone can see
through, and clients that speak by hand-made PDUs."""

from __future__ import annotations

import itertools
import random
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from msmq_fast.protocol.errors import QueueNotFound
from msmq_fast.rpc.auth.context import AuthError, AuthFailure, AuthLevel, AuthType, Buffer, Caller
from msmq_fast.rpc.call import Call, Pending
from msmq_fast.rpc.connection import ServerConnection
from msmq_fast.rpc.faults import RpcFault
from msmq_fast.rpc.interface import InterfacePolicy
from msmq_fast.rpc.limits import Limits
from msmq_fast.rpc.server import RpcServer
from msmq_fast.security.sid import ANONYMOUS
from msmq_fast.security.token import Token
from tests.support.rpc import wire

IFACE: wire.Syntax = ("12345678-1234-abcd-ef00-0123456789ab", 1, 0)
OTHER: wire.Syntax = ("9a9a9a9a-0000-1111-2222-333333333333", 3, 2)

ECHO, NOTHING, DEFER, FAIL_QM, FAIL_RPC, CRASH, OPEN, USE, CLOSE, WHO, OBSOLETE = range(11)
_NAMES = (
    *("echo", "nothing", "defer", "fail_qm", "fail_rpc", "crash"),
    *("open", "use", "close", "who", "obsolete"),
)


@dataclass
class RawOp:
    """An operation whose stubs are bytes; in big-endian requests they stand in reverse."""

    opnum: int
    name: str
    obsolete: bool = False

    def decode_request(self, stub: Any, *, ndr64: bool, big_endian: bool) -> bytes:
        if bytes(stub[:3]) == b"bad" or (self.opnum in (OPEN, USE, CLOSE) and len(stub) < 2):
            raise RpcFault(0x6F7)
        return bytes(stub)[::-1] if big_endian else bytes(stub)

    def encode_response(self, values: Any, *, ndr64: bool, big_endian: bool = False) -> Any:
        if values == "unencodable":
            raise ValueError("unencodable")
        return values

    def results(self, args: Any, **outs: Any) -> bytes:
        return b"result %08X" % outs["result"]


@dataclass
class RawTable:
    name: str
    uuid: UUID
    version: tuple[int, int]
    ops: list[RawOp]


class Deferred(Pending):
    """A call that the test answers."""

    def __init__(self, service: RawService, call: Call) -> None:
        self.service = service
        self.call = call

    def abandon(self) -> None:
        if self.call in self.service.stubborn:
            raise ZeroDivisionError
        self.service.abandoned.append(self.call)


class RawService:
    """What the operations do: see the methods."""

    def __init__(self, syntax: wire.Syntax = IFACE, policy: InterfacePolicy | None = None) -> None:
        self.table = RawTable(
            "raw",
            UUID(syntax[0]),
            syntax[1:],
            [RawOp(i, name, name == "obsolete") for i, name in enumerate(_NAMES)],
        )
        self.policy = policy or InterfacePolicy()
        self.calls: list[Call] = []
        self.abandoned: list[Call] = []
        self.stubborn: list[Call] = []  # calls that fail when they are abandoned
        self.run_down: list[bytes] = []
        self.written: list[bool] = []

    def failed(self, call: Call, args: Any, hresult: int) -> Any:
        return call.operation.results(args, result=hresult)

    def echo(self, call: Call, args: bytes) -> bytes:
        self.calls.append(call)
        return args

    def nothing(self, call: Call, args: bytes) -> bytes:
        return b""

    def defer(self, call: Call, args: bytes) -> Pending:
        self.calls.append(call)
        return Deferred(self, call)

    def fail_qm(self, call: Call, args: bytes) -> bytes:
        raise QueueNotFound("gone")

    def fail_rpc(self, call: Call, args: bytes) -> bytes:
        raise RpcFault(int.from_bytes(args[:4], "little"))

    def crash(self, call: Call, args: bytes) -> bytes:
        raise ZeroDivisionError(args)

    def open(self, call: Call, args: bytes) -> bytes:
        """args: kind, one byte; order, one byte; name."""
        return call.handles.create(chr(args[0]), args[2:], self.run_down.append, args[1])

    def use(self, call: Call, args: bytes) -> bytes:
        """args: kind, one byte; handle."""
        return call.handles.get(args[1:21], chr(args[0]))

    def close(self, call: Call, args: bytes) -> bytes:
        return call.handles.close(args[1:21], chr(args[0]))

    def who(self, call: Call, args: bytes) -> bytes:
        caller = call.caller
        return b"%s|%d|%d|%s|%d" % (
            caller.name.encode(),
            caller.auth_type,
            caller.auth_level,
            caller.address.encode(),
            call.ndr64,
        )

    obsolete = None


class SeeThrough:
    """A security context of one, two or three legs: the client says "hello", the server "who?", the client
    its name. Signatures are checksums with a sequence number, encryption flips all bits."""

    overhead_bytes = 12

    def __init__(self, auth_type: int, level: int, address: str) -> None:
        self._type, self._level, self._address = auth_type, level, address
        self._name: str | None = None
        self._sent = self._received = 0
        self.blocking = auth_type == AuthType.KERBEROS
        self.complete = False

    @property
    def caller(self) -> Caller:
        assert self._name is not None
        token = Token(ANONYMOUS, frozenset(), self._name)
        return Caller(self._name, token, AuthType(self._type), AuthLevel(self._level), self._address)

    def step(self, token: bytes) -> bytes:
        if token == b"hello":
            return b"who?"
        if token == b"more":
            return b"go on"
        if not token.startswith(b"I am "):
            raise AuthError(AuthFailure.TOKEN, "what?")
        self._name = token[5:].decode()
        if self._name == "mallory":
            raise AuthError(AuthFailure.LOGON, "go away")
        self.complete = True
        return b"welcome" if self._name == "talkative" else b""

    def overhead(self) -> int:
        return self.overhead_bytes

    def _token(
        self, sequence: int, header: Buffer, stub: Buffer, trailer: Buffer, sign_header: bool
    ) -> bytes:
        data = bytes(header) + bytes(stub) + bytes(trailer) if sign_header else bytes(stub)
        return b"SIGN" + zlib.crc32(data).to_bytes(4, "big") + sequence.to_bytes(4, "big")

    def protect(
        self, header: Buffer, stub: Buffer, trailer: Buffer, *, privacy: bool, sign_header: bool
    ) -> tuple[bytes, bytes]:
        token = self._token(self._sent, header, stub, trailer, sign_header)
        self._sent += 1
        return flip(stub) if privacy else bytes(stub), token

    def unprotect(
        self,
        header: Buffer,
        stub: Buffer,
        trailer: Buffer,
        token: Buffer,
        *,
        privacy: bool,
        sign_header: bool,
    ) -> bytes:
        clear = flip(stub) if privacy else bytes(stub)
        if bytes(token) != self._token(self._received, header, clear, trailer, sign_header):
            raise AuthError(AuthFailure.SIGNATURE, "signature")
        self._received += 1
        return clear

    def protect_pdus(self, buffer: Any, header_size: int, *, privacy: bool, sign_header: bool) -> None:
        at = 0
        while at < len(buffer):
            length = int.from_bytes(buffer[at + 8 : at + 10], "little")
            end = at + length - self.overhead_bytes
            header, stub = buffer[at : at + header_size], buffer[at + header_size : end - 8]
            sealed, token = self.protect(
                header, stub, buffer[end - 8 : end], privacy=privacy, sign_header=sign_header
            )
            buffer[at + header_size : end - 8] = sealed
            buffer[end : at + length] = token
            at += length

    def unprotect_pdus(self, buffer: Any, header_size: int, *, privacy: bool, sign_header: bool) -> None:
        raise NotImplementedError


def flip(data: Buffer) -> bytes:
    """The encryption of `SeeThrough`."""
    return bytes(byte ^ 0xFF for byte in bytes(data))


class Acceptors:
    """Makes them."""

    def accept(self, auth_type: int, level: int, address: str) -> SeeThrough:
        if not AuthLevel.CONNECT <= level <= AuthLevel.PRIVACY:
            raise AuthError(AuthFailure.LEVEL, f"level {level}")
        if auth_type not in (AuthType.SPNEGO, AuthType.NTLM, AuthType.KERBEROS):
            raise AuthError(AuthFailure.TYPE, f"type {auth_type}")
        if auth_type == AuthType.SPNEGO and level == AuthLevel.CALL:
            raise AuthError(AuthFailure.TOKEN, "as Windows does")
        return SeeThrough(auth_type, level, address)


@dataclass
class World:
    """One endpoint."""

    service: RawService = field(default_factory=RawService)
    limits: Limits = field(default_factory=Limits)
    others: Iterable[RawService] = ()
    offload: Any = None
    now: float = 1000.0

    def __post_init__(self) -> None:
        self.refused: list[tuple[str, str, str]] = []
        self.server = RpcServer(
            "2105",
            acceptors=Acceptors(),
            random=random.Random(17).randbytes,
            limits=self.limits,
            refuse=lambda *why, peer="": self.refused.append(why),
            offload=self.offload,
        )
        self.server.register(self.service)
        for service in self.others:
            self.server.register(service)

    def connect(self, address: str = "10.0.0.1") -> Client:
        """A connection without a bind."""
        return Client(self, address)

    def bound(self, address: str = "10.0.0.1", flags: int = wire.WHOLE, **options: Any) -> Client:
        """A connection with one presentation context, 0, in NDR."""
        client = self.connect(address)
        client.bind([(0, IFACE, [wire.NDR])], flags=flags, **options)
        return client


class Client:
    """One connection of a client: bytes are handed to the engine, its bytes are read."""

    def __init__(self, world: World, address: str) -> None:
        self.world = world
        self.wakes = 0
        self._ids = itertools.count(1)
        connection = world.server.open_connection(address, world.now, self._woken)
        assert connection is not None
        self.connection: ServerConnection = connection

    def _woken(self) -> None:
        self.wakes += 1

    @property
    def closed(self) -> bool:
        """Whether the server has closed."""
        return self.connection.finished

    def send(self, *pdus: bytes) -> None:
        """To the server."""
        self.connection.receive(b"".join(pdus), self.world.now)

    def read(self) -> list[wire.Answer]:
        """All that the server says."""
        stream = b""
        while data := self.connection.data_to_send():
            stream += b"".join(data)
        return [wire.read(raw) for raw in wire.split(stream)]

    def ask(self, *pdus: bytes) -> wire.Answer:
        """Send, and read the one PDU that answers."""
        self.send(*pdus)
        (answer,) = self.read()
        return answer

    def bind(self, contexts: Any, **options: Any) -> wire.Answer:
        """A bind that is accepted."""
        answer = self.ask(wire.bind(contexts, **options))
        assert answer.type == wire.BIND_ACK, answer
        return answer

    def call(self, opnum: int, stub: bytes = b"", call_id: int | None = None, **options: Any) -> bytes:
        """The stub of the response."""
        number = next(self._ids) if call_id is None else call_id
        self.send(wire.request(number, opnum, stub, **options))
        answers = self.read()
        assert {answer.call_id for answer in answers} == {number}
        return wire.response(answers)

    def fault(self, *pdus: bytes) -> wire.Answer:
        """Send, and read the fault that answers."""
        answer = self.ask(*pdus)
        assert answer.type == wire.FAULT, answer
        return answer

    def close(self) -> None:
        """The transport is lost."""
        self.connection.connection_lost()


class Secured:
    """The client's side of a `SeeThrough` context."""

    def __init__(self, client: Client, auth_id: int = 1, level: int = 5, auth_type: int = 10) -> None:
        self.client, self.id, self.level, self.type = client, auth_id, level, auth_type
        self.context = SeeThrough(auth_type, level, "")
        self.header_sign = False

    def auth(self, token: bytes) -> wire.Auth:
        """The sec_trailer of a leg."""
        return wire.Auth(self.type, self.level, self.id, token)

    def establish(self, name: str = "alice", flags: int = wire.WHOLE) -> None:
        """bind, bind_ack, auth3."""
        self.header_sign = bool(flags & wire.HEADER_SIGN)
        answer = self.client.bind([(0, IFACE, [wire.NDR])], flags=flags, auth=self.auth(b"hello"))
        assert answer.auth is not None
        assert (answer.auth.type, answer.auth.level, answer.auth.id) == (self.type, self.level, self.id)
        assert answer.auth.token == b"who?"
        self.client.send(wire.auth3(self.auth(b"I am " + name.encode())))
        assert self.client.read() == []

    def pdu(
        self,
        call_id: int,
        opnum: int,
        stub: bytes,
        change: Callable[[bytes], bytes] | None = None,
        **options: Any,
    ) -> bytes:
        """A protected request."""
        padded = stub + b"\xbb" * (-len(stub) % 16)
        auth = wire.Auth(self.type, self.level, self.id, bytes(12), pad=len(padded) - len(stub))
        raw = wire.request(call_id, opnum, padded, auth=auth, **options)
        if self.level >= 3:
            end = len(raw) - 12
            sealed, token = self.context.protect(
                raw[:24],
                raw[24 : end - 8],
                raw[end - 8 : end],
                privacy=self.level == 6,
                sign_header=self.header_sign,
            )
            raw = raw[:24] + sealed + raw[end - 8 : end] + token
        return change(raw) if change else raw

    def open(self, answer: wire.Answer) -> bytes:
        """The stub of a response, once its token proves it."""
        assert answer.auth is not None
        assert answer.auth.pad is not None
        end = len(answer.raw) - 12
        clear = self.context.unprotect(
            answer.raw[:24],
            answer.raw[24 : end - 8],
            answer.raw[end - 8 : end],
            answer.raw[end:],
            privacy=self.level == 6,
            sign_header=self.header_sign,
        )
        return clear[: len(clear) - answer.auth.pad]

    def call(self, call_id: int, opnum: int, stub: bytes = b"") -> bytes:
        """The stub of the response."""
        self.client.send(self.pdu(call_id, opnum, stub))
        answers = self.client.read()
        assert {answer.type for answer in answers} == {wire.RESPONSE}, answers
        return b"".join(self.open(answer) for answer in answers)


def nobody() -> SimpleNamespace:
    """A thread pool that keeps what it is to run."""
    pool = SimpleNamespace(work=[])
    pool.offload = lambda step, done: pool.work.append((step, done))

    def run() -> None:
        step, done = pool.work.pop(0)
        try:
            reply = step()
        except AuthError as error:
            done(None, error)
        else:
            done(reply, None)

    pool.run = run
    return pool
