"""RPC on sockets: an endpoint for each port, with the interfaces that the port serves."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Address, ip_address
from typing import Final

from msmq_fast.admin.view import Labelled
from msmq_fast.config.sections import Config
from msmq_fast.protocol.resources import ReaderInfo
from msmq_fast.rpc.interface import Service
from msmq_fast.rpc.limits import RpcCounters
from msmq_fast.rpc.protocol import RpcProtocol, on_threads
from msmq_fast.rpc.requests import IncompleteBytes
from msmq_fast.rpc.server import RpcServer
from msmq_fast.rpc.services.epm import EndpointMapper, RegisteredEndpoint
from msmq_fast.rpc.services.mgmt import Management
from msmq_fast.rpc.services.ports import RpcPorts
from msmq_fast.rpc.syntaxes import SyntaxId
from msmq_fast.server.front_end import Bound, FrontEnd, Runtime
from msmq_fast.server.net.connections import Slot, Standing
from msmq_fast.server.rpc.ports import EPM, QM2QM, RPC
from msmq_fast.server.rpc.services import ANNOTATIONS, RpcServices, acceptors, limits, principal_names

__all__ = ["RpcListener"]

_WHAT: Final = "rpc connection"
_PATIENCE: Final = 60.0  # seconds of silence after which a bound connection makes room for another one
_FAREWELL: Final = 2.0  # seconds that clients have at a stop to read the last frames
_PROBES: Final = 5  # of a silent host, each a tenth of rpc.keep_alive after the one before


class RpcListener(FrontEnd):
    """The RPC front end of one server: an endpoint for each port in `bound`."""

    def __init__(self, runtime: Runtime, bound: Bound) -> None:
        config, manager, clock, loop = runtime.config, runtime.manager, runtime.clock, runtime.loop
        commit_loop, refused, ports = runtime.commit_loop, runtime.refusals, runtime.acceptors
        access, signing = runtime.access, runtime.security.signing
        mechanisms = acceptors(config, manager, access.principals, clock.wall_s, access.logons)
        self._loop = loop
        self._accepting = ports
        self._stop_accepting: list[Callable[[], None]] = []
        listen = config.listen.rpc
        self._shares = {
            name: ports.table.network.share(_WHAT, listen.max_connections, listen.max_connections_per_address)
            for name in (RPC, QM2QM, EPM)
            if name in bound
        }
        self._monotonic = clock.monotonic
        self._touch = commit_loop.touch
        self._acceptors = mechanisms
        self.socket_options = tuple(_keep_alive(config.rpc.keep_alive, config.limits.slow_reader_timeout))
        self._bound = {name: bound[name] for name in (RPC, QM2QM, EPM) if name in bound}
        self._endpoints: dict[str, RpcServer] = {}
        self._open: set[_Connection] = set()
        self._all_gone = asyncio.Event()
        self._services = RpcServices(config, manager, self._ports(config), signing)
        for timed in self._services.timed:
            commit_loop.add(timed)
        served: dict[str, list[Service]] = {
            RPC: self._services.at_rpc_port,
            QM2QM: self._services.at_qm2qm_port,
        }
        served[EPM] = [EndpointMapper([*self._registered(served)])]
        names = principal_names(config, manager.settings.qualified_name)
        incomplete = IncompleteBytes(limits(config).incomplete)
        for name, listeners in self._bound.items():
            endpoint = self._endpoints[name] = RpcServer(
                str(_port(listeners)),
                acceptors=mechanisms,
                random=manager.random_bytes,
                limits=limits(config),
                refuse=refused.refuse,
                offload=on_threads(loop),
                incomplete=incomplete,
            )
            for service in served[name]:
                endpoint.register(service)
            interfaces = [interface.syntax for interface in endpoint.interfaces]
            endpoint.register(Management(interfaces, partial(_statistics, endpoint.counters), names))

    def _ports(self, config: Config) -> RpcPorts:
        """Return the ports that the port methods of the interfaces return to clients."""
        rpc = _port(self._bound[RPC]) if RPC in self._bound else 0
        return RpcPorts(
            qmcomm=rpc if config.rpc.qmcomm else 0,
            qm2qm=_port(self._bound[QM2QM]) if QM2QM in self._bound else 0,
            remote_read=rpc if config.rpc.remote_read else 0,
        )

    def _registered(self, served: Mapping[str, list[Service]]) -> Iterator[RegisteredEndpoint]:
        for name, services in served.items():
            if name not in self._bound:
                continue
            port, address = _port(self._bound[name]), _address(self._bound[name])
            for service in services:
                table = service.table
                syntax = SyntaxId(table.uuid, *table.version)
                yield RegisteredEndpoint(syntax, port, ANNOTATIONS[table.uuid], address)

    # -------------------------------------------------------------------------------- figures

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self._open)

    def readers(self) -> Iterator[ReaderInfo]:
        """Yield the queues that remote readers have open."""
        return self._services.readers()

    def labelled(self) -> Iterator[Labelled]:
        """Yield the metrics of RPC with their labels."""
        calls: Counter[tuple[str, ...]] = Counter()
        faults: Counter[tuple[str, ...]] = Counter()
        abandoned = failures = associations = 0
        for endpoint in self._endpoints.values():
            calls.update({(interface.name,): interface.calls for interface in endpoint.interfaces})
            faults.update({(f"0x{status:08X}",): n for status, n in endpoint.counters.faults.items()})
            abandoned += endpoint.counters.abandoned
            failures += endpoint.counters.failures
            associations += len(endpoint.associations)
        logons: dict[tuple[str, ...], float] = {
            (kind.name.lower(),): count for kind, count in self._acceptors.counters.completed.items()
        }
        yield Labelled("rpc_calls", "Calls of remote readers", ("interface",), calls)
        yield Labelled("rpc_faults", "Calls answered with a fault", ("status",), faults)
        yield Labelled("rpc_logons", "Authenticated callers", ("type",), logons)
        for name, about, total in (
            ("rpc_abandoned", "Calls that were cancelled or whose caller disconnected", abandoned),
            ("rpc_failures", "Calls that failed with an unexpected exception", failures),
        ):
            yield Labelled(name, about, (), {(): total})
        for name, about, now in (
            ("rpc_associations", "Clients that have connections", associations),
            ("rpc_open_queues", "Queues that remote readers have open", self._services.open_queues),
        ):
            yield Labelled(name, about, (), {(): now}, grows=False)

    # -------------------------------------------------------------------------------- connections

    def set_limits(self, config: Config) -> None:
        """Apply the connection limits of a configuration."""
        listen = config.listen.rpc
        for share in self._shares.values():
            share.resize(listen.max_connections, listen.max_connections_per_address)

    async def listen(self, bound: Bound) -> None:
        for name, listeners in self._bound.items():
            endpoint = self._endpoints[name]
            factory = partial(_Connection, self, endpoint, self._loop, self._monotonic, self._touch)
            for listener in listeners:
                self._stop_accepting.append(self._accepting.accept(listener, self._shares[name], factory))

    def opened(self, connection: _Connection) -> None:
        """Record an open connection."""
        self._open.add(connection)

    def closed(self, connection: _Connection) -> None:
        """Record that a connection has ended."""
        self._open.discard(connection)
        if not self._open:
            self._all_gone.set()

    async def stop(self) -> None:
        for stop in self._stop_accepting:
            stop()
        self._stop_accepting.clear()

    async def close(self) -> None:
        """Close all connections once pending answers are sent; then close the context handles that clients
        have open (rundown).
        """
        for connection in tuple(self._open):
            connection.close()
        self._all_gone.clear()
        if self._open:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._all_gone.wait(), _FAREWELL)
        for connection in tuple(self._open):
            connection.abort()
        await asyncio.sleep(0)


class _Connection(RpcProtocol):
    """An RpcProtocol that the listener counts; keep-alive probes check that the host of the client is
    reachable (QP-184).
    """

    def __init__(
        self,
        owner: RpcListener,
        server: RpcServer,
        loop: asyncio.AbstractEventLoop,
        monotonic: Callable[[], float],
        touch: Callable[[], None],
        slot: Slot,
    ) -> None:
        super().__init__(server, loop, monotonic, touch)
        self._owner = owner
        self._slot = slot

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio: the connection is open."""
        connected = transport.get_extra_info("socket")
        for level, option, value in self._owner.socket_options:
            connected.setsockopt(level, option, value)
        self._owner.opened(self)
        super().connection_made(transport)
        self._slot.follow(self._standing, self.evict, lambda: {"user": self.user})

    def _standing(self) -> Standing:
        if self.silent:
            return Standing.SILENT
        return Standing.IDLE if self.spare(_PATIENCE) else Standing.BUSY

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio: the connection is closed."""
        super().connection_lost(exc)
        self._slot.leave()
        self._owner.closed(self)

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()


def _keep_alive(silence: float, slow_reader: float) -> Iterator[tuple[int, int, int]]:
    """Yield the socket options that detect an unreachable host. A host that has sent nothing for `silence`
    seconds is probed, and must answer within half of that time. Sent data may stay unacknowledged for the two
    times together, but at least for `slow_reader` seconds.
    """
    most = round(max(silence * (1 + _PROBES / 10), slow_reader) * 1000)
    yield socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1
    yield socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, min(max(1, round(silence)), 32767)
    yield socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, min(max(1, round(silence / 10)), 32767)
    yield socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES
    yield socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, most


def _port(listeners: list[socket.socket]) -> int:
    port: int = listeners[0].getsockname()[1]
    return port


def _address(listeners: list[socket.socket]) -> bytes:
    """Return the IPv4 address, 4 bytes, for the towers of the endpoint mapper; zeros mean all addresses of
    this host.
    """
    for listener in listeners:
        address = ip_address(listener.getsockname()[0])
        if isinstance(address, IPv4Address):
            return address.packed
    return bytes(4)


def _statistics(counters: RpcCounters) -> tuple[int, int, int, int]:
    return counters.calls_in, counters.calls_out, counters.pdus_in, counters.pdus_out
