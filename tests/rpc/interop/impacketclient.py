"""A client of one interface over a socket, with impacket's runtime, NDR and NTLM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from impacket.dcerpc.v5 import transport
from impacket.uuid import uuidtup_to_bin

from msmq_fast.rpc.ndr.operations import InterfaceTable
from tests.support.processes.servers import Server, command, data_directory
from tests.support.rpc import impacketbridge
from tests.support.rpc.impacketstubs import CALLS

NDR = ("8a885d04-1ceb-11c9-9fe8-08002b104860", "2.0")
NDR64 = ("71710533-beba-4937-8319-b5dbef9ccc36", "1.0")
NONE, CONNECT, INTEGRITY, PRIVACY = 1, 2, 5, 6
LEVELS = (NONE, CONNECT, INTEGRITY, PRIVACY)
ANY_LEVEL = {"MSMQ_FAST_RPC__REMOTE_READ_LEVEL": "none", "MSMQ_FAST_RPC__NAMED_LEVEL": "none"}
"""Settings of a server that admits callers of each of the levels, with a name or without."""
USER, PASSWORD = "alice", "correct horse"  # of a user of the test


@contextmanager
def directory_of_user() -> Iterator[Path]:
    """A data directory whose server knows the user."""
    with data_directory() as data:
        data.mkdir(mode=0o700)
        words = ("user", "add", USER, "--data", str(data))
        assert command(*words, stdin=f"{PASSWORD}\n".encode()).returncode == 0
        yield data


class ImpacketClient:
    """One connection, bound to one interface."""

    def __init__(
        self,
        server: Server,
        listener: str,
        table: InterfaceTable,
        level: int = NONE,
        *,
        ndr64: bool = False,
        user: str = USER,
        secret: str = PASSWORD,
        fragment: int = 0,
        address: str = "127.0.0.1",
    ) -> None:
        self._table = table
        self._ndr64 = ndr64
        self._channel = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:{address}[{server.port(listener)}]")
        self._dce = self._channel.get_dce_rpc()
        if level > NONE:
            self._dce.set_credentials(user, secret, "")
            self._dce.set_auth_level(level)
        if fragment:
            self._dce.set_max_tfrag(fragment)
        self._dce.connect()
        self._dce.bind(uuidtup_to_bin((str(table.uuid), "1.0")), transfer_syntax=NDR64 if ndr64 else NDR)
        self.called: set[int] = set()

    def call(self, name: str, **values: Any) -> Any:
        """Make a call; its results. Raises DCERPCException for a fault."""
        op = self._table.op(name)
        request, response = CALLS[self._table.name][op.opnum]
        stub = impacketbridge.encode(request, op.inputs, op.Args(**values), ndr64=self._ndr64)
        self._dce.call(op.opnum, stub)
        answer = self._dce.recv()
        self.called.add(op.opnum)
        return op.Results(**impacketbridge.decode(response, op.outputs, answer, ndr64=self._ndr64))

    def ok(self, name: str, **values: Any) -> Any:
        """As `call`, with the result MQ_OK."""
        results = self.call(name, **values)
        assert results.result == 0, (name, hex(results.result))
        return results

    def close(self) -> None:
        """Close the connection."""
        self._channel.disconnect()
