"""The server that Samba's raw tests of DCE/RPC are run against: endpoint mapper and management interface on
port 135, and a netlogon that knows one operation.

    python -m tests.rpc.interop.samba_server [PORT]     prints "ready" when it listens
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import uvloop

from msmq_fast.rpc.auth.acceptors import AcceptorPolicy, Acceptors
from msmq_fast.rpc.call import Call
from msmq_fast.rpc.faults import OP_RANGE, RpcFault
from msmq_fast.rpc.interface import InterfacePolicy
from msmq_fast.rpc.limits import Limits
from msmq_fast.rpc.protocol import RpcProtocol, on_threads
from msmq_fast.rpc.server import RpcServer
from msmq_fast.rpc.services.epm import EndpointMapper, RegisteredEndpoint
from msmq_fast.rpc.services.mgmt import Management
from msmq_fast.rpc.syntaxes import SyntaxId
from msmq_fast.security.principals import Principals
from msmq_fast.security.users import Users

NETLOGON = SyntaxId(UUID("12345678-1234-abcd-ef00-01234567cffb"), 1)


class ServerReqChallenge:
    """NetrServerReqChallenge as far as the tests look at it: eight bytes and a status come back."""

    opnum = 4
    name = "server_req_challenge"
    obsolete = False

    def decode_request(self, stub: Any, *, ndr64: bool, big_endian: bool) -> Any:
        return stub

    def encode_response(self, values: Any, *, ndr64: bool, big_endian: bool = False) -> bytes:
        return bytes(12)

    def results(self, args: Any, **outs: Any) -> Any:
        return outs


class Netlogon:
    """The only operation that the tests call."""

    class table:
        name = "netlogon"
        uuid = NETLOGON.uuid
        version = NETLOGON[1:]
        ops = (ServerReqChallenge(),)

    policy = InterfacePolicy()

    def server_req_challenge(self, call: Call, args: Any) -> Any:
        return args

    def failed(self, call: Call, args: Any, hresult: int) -> Any:
        raise RpcFault(OP_RANGE)


async def serve(port: int, user: str, password: str, keytab: Path | None) -> None:
    """Until the process is ended."""
    loop = asyncio.get_running_loop()
    users = Users.new(os.urandom)
    users.add(user, uid=None, groups=[])
    users.set_password(user, password, os.urandom)
    server = RpcServer(
        str(port),
        acceptors=Acceptors(
            AcceptorPolicy(anonymous=True, keytab=keytab),
            Principals(lambda: users, own_uid=0),
            "queues.example.net",
            time.time,
            os.urandom,
        ),
        random=os.urandom,
        limits=Limits(),
        refuse=lambda what, reason, detail, peer="": print(what, reason, detail, file=sys.stderr),
        offload=on_threads(loop),
    )
    server.register(EndpointMapper([RegisteredEndpoint(NETLOGON, port, "netlogon")]))
    server.register(Netlogon())
    counters = server.counters
    server.register(
        Management(
            [interface.syntax for interface in server.interfaces],
            lambda: (counters.calls_in, counters.calls_out, counters.pdus_in, counters.pdus_out),
            {9: user, 10: user},
        )
    )
    await loop.create_server(lambda: RpcProtocol(server, loop, loop.time, lambda: None), "127.0.0.1", port)
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    keytab = os.environ.get("SERVER_KEYTAB")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(
            serve(
                int(sys.argv[1]) if sys.argv[1:] else 135,
                os.environ["USERNAME"],
                os.environ["PASSWORD"],
                Path(keytab) if keytab else None,
            )
        )
