"""The listening sockets of RPC: ports that are replaced by the next free ones if they are in use, and the
optional port of the endpoint mapper.
"""

from __future__ import annotations

import errno
import logging
import socket
from typing import Final

from msmq_fast.config.sections import Config
from msmq_fast.server.net.sockets import DENIED, ListenError, tcp_sockets

__all__ = ["EPM", "QM2QM", "RPC", "bind_rpc"]

_log = logging.getLogger("msmq_fast.server")

RPC: Final = "rpc"
"""The name, in the ready line, of the port that serves RemoteRead, qmcomm, qmcomm2 and qmmgmt."""
QM2QM: Final = "qm2qm"
EPM: Final = "epm"

_STEP: Final = 11  # MS-MQQP 3.1.4.8
_MOST_STEPS: Final = 100


def bind_rpc(config: Config) -> dict[str, list[socket.socket]]:
    """Return the sockets of each configured RPC listener by its name.

    If the port of the endpoint mapper cannot be opened, logs a warning and leaves it out. Raises ListenError
    for any other port.
    """
    listen, rpc = config.listen, config.rpc
    hosts = listen.hosts(listen.rpc)
    bound: dict[str, list[socket.socket]] = {}
    if listen.rpc.port is None or config.queue_manager.hardened:
        return bound
    moves = rpc.epm != "external"
    try:
        if rpc.remote_read or rpc.qmcomm or rpc.qmmgmt:
            bound[RPC] = _fixed(hosts, listen.rpc.port, "remote read", moves=moves)
        if rpc.qm2qm and listen.rpc.qm2qm_port is not None:
            bound[QM2QM] = _fixed(hosts, listen.rpc.qm2qm_port, "remote read (qm2qm)", moves=moves)
        if bound and rpc.epm == "own" and listen.rpc.epm_port is not None:
            mapper = _mapper(hosts, listen.rpc.epm_port)
            if mapper:
                bound[EPM] = mapper
    except ListenError:
        for listener in [listener for group in bound.values() for listener in group]:
            listener.close()
        raise
    return bound


def _fixed(hosts: tuple[str, ...], port: int, what: str, *, moves: bool) -> list[socket.socket]:
    """Return sockets at `port`. If that port is in use and `moves` is true, use the first free port of those
    11, 22, 33, … higher (QP-006).
    """
    first: ListenError | None = None
    for candidate in range(port, min(port + _STEP * _MOST_STEPS, 1 << 16), _STEP):
        try:
            listeners = tcp_sockets(hosts, candidate, what)
        except ListenError as error:
            first = first or error
            if error.errno != errno.EADDRINUSE or not moves or not port:
                raise
        else:
            if first is not None:
                _log.warning("%s; it is at port %d", first, candidate)
            return listeners
    assert first is not None  # noqa: S101 - every attempt raised
    raise first


def _mapper(hosts: tuple[str, ...], port: int) -> list[socket.socket]:
    try:
        return tcp_sockets(hosts, port, "RPC endpoint mapper")
    except ListenError as error:
        if error.errno not in DENIED:
            raise
        _log.warning("%s; without it, Windows hosts cannot read queues here", error)
        return []
