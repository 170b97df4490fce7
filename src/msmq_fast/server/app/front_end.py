"""The application protocol: the Unix socket, where the kernel identifies the peer, and the TCP port, where a
token does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from msmq_fast.app.service import Configuration, Counters, Service
from msmq_fast.config.sections import Config
from msmq_fast.protocol.resources import ReaderInfo
from msmq_fast.release import release
from msmq_fast.security.lastlogons import LastLogons
from msmq_fast.security.token import Token
from msmq_fast.server.app.listener import AppListener
from msmq_fast.server.front_end import Bound, FrontEnd, Runtime
from msmq_fast.server.sessions import Sessions

__all__ = ["SOCKET", "TCP", "AppFrontEnd"]

SOCKET, TCP = "app", "app-tcp"


class AppFrontEnd(FrontEnd):
    """Serves programs. `counters` counts the operations of all their connections."""

    def __init__(
        self,
        runtime: Runtime,
        counters: Counters,
        statistics: Callable[[], Mapping[str, Any]],
        reload: Callable[[Token], Mapping[str, Any]] | None,
        readers: Callable[[], Iterable[ReaderInfo]],
        configuration: Configuration | None,
    ) -> None:
        """`reload` reloads the configuration for the given caller; None if that is not possible. `readers`
        returns the queues that remote readers have open; `configuration` shows and checks the
        configuration, None if there is none.
        """
        last_logons = LastLogons(runtime.clock.wall_s)
        runtime.access.logons.attempted.connect(last_logons.note)
        security = runtime.security
        self._runtime = runtime
        self._service = Service(
            runtime.manager,
            f"msmq-fast {release()}",
            statistics=statistics,
            counters=counters,
            principals=runtime.access.principals,
            certificates=security.certificates,
            keyring=security.keyring,
            signing=security.signing,
            snapshots=runtime.snapshots,
            reload=reload,
            configuration=configuration,
            last_logons=last_logons.of,
            sessions=Sessions(
                runtime.acceptors.table,
                runtime.loop,
                runtime.clock.monotonic,
                runtime.clock.wall_s,
                runtime.commit_loop.touch,
            ),
            readers=readers,
        )
        self._listener = AppListener(
            runtime.acceptors,
            runtime.config.limits.handshake_timeout,
            runtime.commit_loop.touch,
            runtime.refusals.refuse,
        )

    @property
    def service(self) -> Service:
        """The state that connections share whose transport identifies the user."""
        return self._service

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return self._listener.connections

    async def listen(self, bound: Bound) -> None:
        for listener in bound.get(SOCKET, ()):
            self._listener.listen(listener, self._service)
        if TCP in bound:
            settings = self._runtime.config.listen.app
            tls = self._runtime.tls.context(
                settings.tls_certificate, settings.tls_key, "listen.app.tls_certificate"
            )
            with_tokens = replace(self._service, tokens=self._runtime.tokens)
            for listener in bound[TCP]:
                self._listener.listen(listener, with_tokens, tls)

    def set_limits(self, config: Config) -> None:
        self._listener.set_limits(config.limits.handshake_timeout)

    async def stop(self) -> None:
        self._listener.stop_accepting()

    async def close(self) -> None:
        self._listener.close()
