"""Reads queues of other computers: provides sockets, threads and clocks to rpc.client on one event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final, cast

from msmq_fast.config.sections import RemoteConfig
from msmq_fast.packet.names import FormatName
from msmq_fast.protocol.errors import AccessDenied
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.settings import DirectoryMode
from msmq_fast.rpc.auth.context import AuthLevel, AuthType
from msmq_fast.rpc.auth.initiators import Credentials
from msmq_fast.rpc.client.binding import BindingEnvironment
from msmq_fast.rpc.client.connection import ClientConnection
from msmq_fast.rpc.client.credentials import Logon
from msmq_fast.rpc.client.opening import ReaderSettings, RemoteQueues
from msmq_fast.rpc.client.protocol import ClientProtocol
from msmq_fast.rpc.client.timers import Timers
from msmq_fast.rpc.protocol import on_threads
from msmq_fast.security.token import Token
from msmq_fast.security.users import UsersFileError
from msmq_fast.server.declarations import DeclarationError
from msmq_fast.server.front_end import FrontEnd, Runtime
from msmq_fast.server.net.addresses import source_address
from msmq_fast.server.net.connections import Slot

__all__ = ["RemoteReading"]

_PROBES: Final = 4
_LONGEST_IDLE: Final = 32767  # seconds that Linux takes
_LEVELS: Final = {
    "connect": AuthLevel.CONNECT,
    "packet": AuthLevel.PKT,
    "integrity": AuthLevel.INTEGRITY,
    "privacy": AuthLevel.PRIVACY,
}
_TYPES: Final = {"ntlm": AuthType.NTLM, "kerberos": AuthType.KERBEROS, "negotiate": AuthType.SPNEGO}


class RemoteReading(FrontEnd):
    """Gives a queue manager access to queues of other computers. The constructor adds the object to the
    commit loop, because it has deadlines.
    """

    def __init__(self, runtime: Runtime) -> None:
        """Raises DeclarationError if the password file cannot be read."""
        config, manager, clock, loop = runtime.config, runtime.manager, runtime.clock, runtime.loop
        touch, principals = runtime.commit_loop.touch, runtime.access.principals
        share = runtime.acceptors.table.outgoing.share("outgoing rpc connection")
        remote = config.remote
        self._loop = loop
        self._touch = touch
        self._connect_timeout = remote.connect_timeout
        self._keep_alive = remote.keep_alive
        self._source = source_address(config.listen.mqqb.host)
        self._share = share
        self._tasks: set[asyncio.Task[None]] = set()
        self._named = bool(remote.user)
        self._readers = remote.readers
        self._principals = principals
        self._manager = manager
        self._timers = Timers(clock.monotonic)
        settings = ReaderSettings(
            manager.guid,
            _logon(remote, manager, clock.wall_s),
            remote.epm_port,
            remote.port,
            remote.port_methods,
            bool(manager.directory.queue_manager().get("RoutingServer")),
            manager.settings.directory is DirectoryMode.WORKGROUP,
        )
        manager.remote = RemoteQueues(
            BindingEnvironment(self, on_threads(loop), self._timers),
            settings,
            self._locate,
            self._allow,
            manager.registry.new_cursor,
        )
        runtime.commit_loop.add(self)

    # ---- Timed

    def next_deadline(self) -> float | None:
        """Return the time at which `expire` is due; None if no deadline is set."""
        return self._timers.next_deadline()

    def expire(self, now: float) -> None:
        """Handle all deadlines that are due."""
        self._timers.expire(now)

    # ---- rpc.client.binding.Dialer

    def dial(self, host: str, port: int, connection: ClientConnection) -> None:
        """Open a TCP connection to another computer for `connection`; failures are reported with
        `connection.lost`.
        """
        task = self._loop.create_task(self._dial(host, port, connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _dial(self, host: str, port: int, connection: ClientConnection) -> None:
        slot = self._share.enter(host)
        if slot is None:
            connection.lost("too many connections are open (limits.outgoing_connections)")
            return
        source = self._source
        if source is not None and (":" in source) != (":" in host):
            source = None  # a name is looked up in the family of the source, an address has its own
        try:
            transport, _ = await asyncio.wait_for(
                self._loop.create_connection(
                    lambda: _Connection(connection, self._loop, self._touch, slot),
                    host,
                    port,
                    family=socket.AF_UNSPEC if source is None else _family(source),
                    local_addr=None if source is None else (source, 0),
                ),
                self._connect_timeout,
            )
        except BaseException as error:
            slot.leave()
            if not isinstance(error, OSError | UnicodeError | TimeoutError):
                raise
            reason = "no answer in time" if isinstance(error, TimeoutError) else _reason(error)
            connection.lost(f"port {port}: {reason}")
        else:
            self._watch(transport.get_extra_info("socket"))
        self._touch()

    def _watch(self, connected: socket.socket) -> None:
        """Turn keep-alive on: reads may wait without a time limit, so the loss of the other computer must be
        detected.
        """
        idle = min(max(1, int(self._keep_alive)), _LONGEST_IDLE)
        for option, value in (
            (socket.TCP_KEEPIDLE, idle),
            (socket.TCP_KEEPINTVL, max(1, idle // _PROBES)),
            (socket.TCP_KEEPCNT, _PROBES),
        ):
            connected.setsockopt(socket.IPPROTO_TCP, option, value)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    async def close(self) -> None:
        """Cancel connections that are being opened."""
        for task in self._tasks:
            task.cancel()

    # ---- for rpc.client.opening

    def _locate(self, name: FormatName) -> str:
        if name.direct is not None:
            return name.direct.address
        return self._manager.directory.locate(name)[0]

    def _allow(self, token: Token | None, name: FormatName) -> None:
        """Check whether the caller `token` may read the queue `name`. All reads use the account remote.user,
        so only administrators and remote.readers may use it. Raises AccessDenied.
        """
        if token is None or token.administrator or not self._named:
            return
        for reader in self._readers:
            try:
                if self._principals.sid_of(reader) in token.sids:
                    return
            except UsersFileError:
                continue
        raise AccessDenied(
            f"only administrators and remote.readers may read {name}: it is read with the account remote.user"
        )


class _Connection(ClientProtocol):
    """A ClientProtocol that occupies a slot in the table of connections."""

    def __init__(
        self,
        connection: ClientConnection,
        loop: asyncio.AbstractEventLoop,
        touch: Callable[[], None],
        slot: Slot,
    ) -> None:
        super().__init__(connection, loop, touch)
        self._slot = slot

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio: the connection is open."""
        self._slot.follow(None, cast(asyncio.Transport, transport).abort)
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio: the connection is closed."""
        super().connection_lost(exc)
        self._slot.leave()


def _logon(remote: RemoteConfig, manager: QueueManager, wall_s: Callable[[], float]) -> Logon | None:
    if remote.authentication == "none":
        return None
    password = ""
    if remote.password_file is not None:
        try:
            password = remote.password_file.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise DeclarationError(f"remote.password_file: {remote.password_file}: {error}") from None
    auth_type = _TYPES[remote.authentication]
    if not remote.user and auth_type is AuthType.SPNEGO:
        auth_type = AuthType.NTLM  # an anonymous log-on needs no negotiation
    credentials = Credentials(
        remote.user,
        remote.domain,
        password,
        keytab=remote.keytab,
        kerberos=remote.keytab is not None,
    )
    return Logon(auth_type, _LEVELS[remote.level], credentials, wall_s, manager.random_bytes, remote.service)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _family(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET
