"""The server does not call, or look up, a name that an RPC caller supplied.

docs/reference/interop-switches.md names the switch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from msmq_fast.packet.names import parse_format_name
from msmq_fast.rpc.auth.context import AuthLevel, AuthType
from msmq_fast.rpc.auth.initiators import Credentials, initiate
from msmq_fast.rpc.auth.mechanism import AuthCounters
from msmq_fast.rpc.idl.mqmq import PROPVARIANT, QUEUE_FORMAT
from msmq_fast.rpc.idl.qmcomm import QMCOMM
from msmq_fast.rpc.idl.qmcomm2 import QMCOMM2
from msmq_fast.rpc.idl.qmmgmt import QMMGMT
from msmq_fast.rpc.ndr.types import NdrType, StringType, Struct
from msmq_fast.rpc.services.queueformat import queue_format
from tests.faults.rpc_stubs import SERVED
from tests.support.processes.servers import Server, command, data_directory, preloaded, until
from tests.support.rpc import wire
from tests.support.rpc.dependents import CLIENT, named, sent
from tests.support.rpc.socketreader import Caller, Fault, readable
from tests.support.rpc.values import Values

PASSWORD = "correct horse"  # noqa: S105 - of a user of the test
ELSEWHERE = (
    r"DIRECT=TCP:127.0.0.9\private$\x",
    r"DIRECT=OS:dialled.example\private$\x",
    r"DIRECT=TCP:127.0.0.9\x",
    "DIRECT=HTTP://127.0.0.9/msmq/x",
    r"DIRECT=OS:dialled.example\SYSTEM$;DEADXACT",
    "MULTICAST=234.1.1.1:8001",
    "DL=11111111-2222-3333-4444-555555555555@dialled.example",
    "PUBLIC=11111111-2222-3333-4444-555555555555",
    "PRIVATE=11111111-2222-3333-4444-555555555555\\00000007",
)
PATHS = (
    r"dialled.example\private$\x",
    r"127.0.0.9\x",
    "LDAP://dialled.example/CN=x,DC=dialled,DC=example",
    "http://127.0.0.9/x",
    r"\\dialled.example\share\x",
    "dialled.example",
    r"OS:dialled.example\private$\x",
)
MANAGED = {
    "cp": (1,),
    "aProp": ([1], [2], [12], [24]),
    "apVar": ([PROPVARIANT(1, 0, 0, 0, None)],),
    "lpwszAction": ("PAUSE", "RESUME", "EOD_RESEND"),
}
"""Parameters with which a call of qmmgmt comes as far as to the name of its object."""
ROUNDS = 12


class Foreign(Values):
    """Values in which every name is one of another computer."""

    def __init__(self, random: Random, fixed: Mapping[str, Any]) -> None:
        super().__init__(random)
        self._fixed = fixed

    def value(self, kind: NdrType, scope: Mapping[str, Any]) -> Any:
        """A value; see Values."""
        if kind is QUEUE_FORMAT:
            return queue_format(parse_format_name(self._random.choice(ELSEWHERE)))
        if isinstance(kind, StringType) and kind.wide:
            return self._random.choice(PATHS)
        return super().value(kind, scope)

    def _fields(self, fields: Mapping[str, NdrType], given: Mapping[str, Any]) -> dict[str, Any]:
        values = super()._fields(fields, given)
        for name, choices in self._fixed.items():
            if name in fields and not isinstance(fields[name], Struct):
                values[name] = self._random.choice(choices)
        return values


class Named(Caller):
    """A caller who logs on by NTLM at level CONNECT: requests stay as they are."""

    def __init__(self, host: str, port: int, table: Any) -> None:
        random = Random(1).randbytes
        who = Credentials("reader", "", PASSWORD)
        context = initiate(AuthType.NTLM, AuthLevel.CONNECT, "host/x", who, AuthCounters(), time.time, random)
        super().__init__(host, port, table)
        interface = (str(table.uuid), *table.version)
        first = wire.Auth(10, 2, 1, context.step(b""))
        self.socket.sendall(wire.alter([(0, interface, [wire.NDR])], 1, auth=first))
        answer = wire.read(self.pdu())
        assert answer.auth is not None, answer
        self.socket.sendall(wire.auth3(wire.Auth(10, 2, 1, context.step(answer.auth.token)), 1))


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A server whose calls of other computers are written down."""
    tmp_path = tmp_path_factory.mktemp("watched")
    dialled = tmp_path / "dialled"
    shim = preloaded(Path(__file__).with_name("dial_shim.c"), tmp_path)
    with data_directory() as data:
        environment = {
            "LD_PRELOAD": shim,
            "DIALLED": str(dialled),
            "MSMQ_FAST_RPC__ALLOW_UNAUTHENTICATED": "true",
            "MSMQ_FAST_RPC__NAMED_LEVEL": "none",
            "MSMQ_FAST_RPC__QMMGMT_LEVEL": "none",
            "MSMQ_FAST_RPC__TARGET_NAMES": "x",
        }
        server = Server(data, environment=environment).start()
        added = command("user", "add", "reader", "--data", str(data), stdin=f"{PASSWORD}\n".encode())
        assert added.returncode == 0, added
        try:
            readable(server, "orders")
            server.ok("acl", "grant", "orders", "--user", "anonymous", "--right", "write")
            dialled.write_text("")
            yield server, dialled
        finally:
            server.kill()


def _drive(server: Server, make: type[Caller], access: tuple[int, ...]) -> set[int]:
    """Every operation with names of other computers; the results."""
    random = Random(5)
    fixed: dict[str, Any] = {
        "dwDesiredAccess": access,
        "dwAccess": (1, 4, 0x20),
        "dwShareMode": (0,),
        "dwObjectType": (1,),
        "hRemoteQueue": (0, 1),
        "dwpRemoteContext": (0, 1),
        "ulTimeout": (0,),
    }
    results: set[int] = set()
    for port, tables in SERVED.items():
        for table in tables:
            caller = make(server.host, server.port(port), table)
            for op in table.ops:
                for _ in range(0 if op.obsolete else ROUNDS):
                    more = MANAGED if table is QMMGMT else {}
                    args = Foreign(random, fixed | more).arguments(op)
                    values = {name: getattr(args, name) for name in op.inputs}
                    try:
                        results.add(getattr(caller.call(op.name, **values), "result", 0))
                    except Fault as fault:
                        results.add(fault.status)
            caller.close()
    return results


@pytest.mark.parametrize(("make", "access"), [(Caller, (1, 2, 0x20)), (Named, (1, 0x20))])
def test_no_name_of_a_caller_is_called(
    watched: tuple[Server, Path], make: type[Caller], access: tuple[int, ...]
) -> None:
    """Callers with a name may send elsewhere, which is left out: that is what the server is for."""
    server, dialled = watched
    results = _drive(server, make, access)
    assert 0xC00E0069 in results  # REMOTE_MACHINE_NOT_AVAILABLE
    assert (0xC00E0025 in results) == (make is Caller)  # ACCESS_DENIED: anonymous callers send here only
    assert dialled.read_text() == ""


def test_messages_of_callers_without_a_name_stay_here(watched: tuple[Server, Path]) -> None:
    """They may name response queues, which are for programs, but no administration queues elsewhere."""
    server, dialled = watched
    caller = Caller(server.host, server.port("rpc"), QMCOMM)
    opened = caller.call(
        "open_queue_internal",
        pQueueFormat=named(r"DIRECT=OS:.\private$\orders"),
        dwDesiredAccess=2,
        dwShareMode=0,
        hRemoteQueue=0,
        lplpRemoteQueueName=None,
        dwpQueue=0,
        pLicGuid=CLIENT,
        lpClientName=PATHS[0],
        dwRemoteProtocol=0,
        dwpRemoteContext=0,
    )
    assert opened.result == 0, hex(opened.result)
    caller.socket.sendall(wire.alter([(1, (str(QMCOMM2.uuid), *QMCOMM2.version), [wire.NDR])], 2))
    caller.pdu()
    op = QMCOMM2.op("send_message_ex")
    results: list[int] = []
    for number, name in enumerate(ELSEWHERE[:3]):
        for place in ("admin", "response"):
            buffer = sent(b"x", pAcknowledge=0x0F, **{place: named(name)})
            args = op.Args(hQueue=opened.phQueue, ptb=buffer, pMessageID=None)
            stub = op.encode_request(args, ndr64=False)
            caller.socket.sendall(wire.request(10 + 2 * number + len(results) % 2, op.opnum, stub, 1))
            answer = wire.read(caller.pdu())
            results.append(op.decode_response(answer.stub, args, ndr64=False).result)
    assert results == [0xC00E0025, 0] * 3, [hex(result) for result in results]
    assert len(server.messages("orders")) == 3
    assert dialled.read_text() == ""


def test_a_call_would_be_seen(watched: tuple[Server, Path]) -> None:
    """A program of this computer sends to such names; the last test, since the server goes on to try."""
    server, dialled = watched
    for name, seen in zip(ELSEWHERE, ("connect 127.0.0.9", "getaddrinfo dialled.example"), strict=False):
        server.ok("send", name, "--body", "x")
        until(lambda seen=seen: seen in dialled.read_text(), what=seen)
