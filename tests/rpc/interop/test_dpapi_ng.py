"""dpapi-ng's RPC client (pyspnego inside): bind-time features, both syntaxes, verification trailers,
SPNEGO and NTLM with privacy."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from msmq_fast.rpc.auth.acceptors import AcceptorPolicy, Acceptors
from msmq_fast.rpc.protocol import RpcProtocol, on_threads
from msmq_fast.security.principals import Principals
from msmq_fast.security.users import Users
from tests.support.rpc.world import ECHO, IFACE, WHO, World

pytestmark = pytest.mark.needs(modules=["dpapi_ng"])

_PASSWORD = "Pässword 1"  # noqa: S105


def _world() -> World:
    users = Users.new(os.urandom)
    users.add("alice", uid=None, groups=[])
    users.set_password("alice", _PASSWORD, os.urandom)
    world = World()
    world.server.acceptors = Acceptors(
        AcceptorPolicy(), Principals(lambda: users, own_uid=0), "localhost", time.time, os.urandom
    )
    return world


def _with_server(world: World, talk: Callable[[int], Any]) -> Any:
    """What the client says, on a thread of its own, to a server in this one."""

    async def main() -> Any:
        loop = asyncio.get_running_loop()
        world.server.offload = on_threads(loop)
        server = await loop.create_server(
            lambda: RpcProtocol(world.server, loop, loop.time, lambda: None), "127.0.0.1", 0
        )
        try:
            return await asyncio.to_thread(talk, server.sockets[0].getsockname()[1])
        finally:
            server.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def _talk(
    port: int, *, protocol: str | None, password: str, ndr64: bool, lies: bool
) -> tuple[list[int], list[bytes]]:
    from dpapi_ng import _rpc as rpc

    interface = rpc.SyntaxId(uuid.UUID(IFACE[0]), *IFACE[1:])
    transfer = rpc.NDR64 if ndr64 else rpc.NDR
    contexts = [
        rpc.ContextElement(0, interface, [transfer]),
        rpc.ContextElement(1, interface, [rpc.bind_time_feature_negotiation()]),
    ]
    named = rpc.SyntaxId(uuid.UUID(int=1), 1, 0) if lies else interface
    trailer = rpc.VerificationTrailer(
        [
            rpc.CommandPContext(rpc.CommandFlags.NONE, named, transfer),
            rpc.CommandBitmask(rpc.CommandFlags.SEC_VT_COMMAND_END, bits=1 if protocol else 0),
        ]
    )
    user = "alice" if protocol else None
    with rpc.create_rpc_connection(
        "127.0.0.1", port, username=user, password=password if protocol else None, auth_protocol=protocol
    ) as connection:
        ack = connection.bind(contexts)
        said = [
            connection.request(0, opnum, b"data", verification_trailer=trailer).stub_data[:40]
            for opnum in (ECHO, WHO)
        ]
        return [int(result.result) for result in ack.results], said


@pytest.mark.rule("RP-03", "RP-04", "RP-18", "RP-19", "RP-20", "RP-21", "RP-23", "RP-24")
@pytest.mark.parametrize("ndr64", [False, True])
@pytest.mark.parametrize("protocol", [None, "ntlm", "negotiate"])
def test_dpapi_ng_calls(protocol: str | None, ndr64: bool) -> None:
    results, (echo, who) = _with_server(
        _world(),
        lambda port: _talk(port, protocol=protocol, password=_PASSWORD, ndr64=ndr64, lies=False),
    )
    assert results == [0, 3]
    assert echo[:4] == b"data"
    name, auth_type, level = {
        None: (b"", 0, 1),
        "ntlm": (b"alice", 10, 6),
        "negotiate": (b"alice", 9, 6),
    }[protocol]
    assert who.startswith(b"%s|%d|%d|127.0.0.1|%d" % (name, auth_type, level, ndr64))


@pytest.mark.rule("RP-20", "RP-24")
@pytest.mark.parametrize(("password", "lies"), [("wrong", False), (_PASSWORD, True)])
def test_dpapi_ng_is_refused(password: str, lies: bool) -> None:
    world = _world()
    with pytest.raises(ValueError, match=r"0x0000000[59]"):
        _with_server(
            world,
            lambda port: _talk(port, protocol="negotiate", password=password, ndr64=False, lies=lies),
        )
    assert world.service.calls == []
