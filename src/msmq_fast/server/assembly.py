"""Assembles one server from store, queue manager, front ends and listeners; starts them in order, stops them
in reverse.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import Any, cast
from uuid import UUID

from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast._native.lmdbthreads import LmdbReader, LmdbWriter
from msmq_fast.admin.view import Labelled
from msmq_fast.app.service import Counters
from msmq_fast.config.sections import Config
from msmq_fast.protocol.errors import InvalidParameter
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.timed import Timed
from msmq_fast.security.token import Token
from msmq_fast.server.access import AccessControl, domain_sid
from msmq_fast.server.admin.conditions import conditions
from msmq_fast.server.admin.front_end import ADMIN, AdminFrontEnd
from msmq_fast.server.admin.view import Figures, ServerView
from msmq_fast.server.app.front_end import SOCKET, AppFrontEnd
from msmq_fast.server.auditing import audit_access, audit_reload, audit_restore
from msmq_fast.server.configuration import RunningConfiguration
from msmq_fast.server.credentials import TlsFiles, token_table, warn_of_readable_files
from msmq_fast.server.declarations import DeclarationError, declare
from msmq_fast.server.domain import domain_accounts, domain_directory
from msmq_fast.server.front_end import Bound, FrontEnd, Runtime
from msmq_fast.server.message_security import MessageSecurity, refuse_lost_key
from msmq_fast.server.mqqb.listener import MqqbListener
from msmq_fast.server.net import sockets
from msmq_fast.server.net.accepting import Acceptors
from msmq_fast.server.net.connections import ConnectionTable
from msmq_fast.server.net.sockets import ListenError
from msmq_fast.server.outgoing import Dispatcher
from msmq_fast.server.pgm.listener import PgmListener
from msmq_fast.server.pgm.sockets import PgmSockets, open_sockets
from msmq_fast.server.reloading import (
    Load,
    Part,
    Reload,
    ReloadError,
    log_settings,
    queue_declarations,
    user_tokens,
)
from msmq_fast.server.review import summary
from msmq_fast.server.rpc.listener import RpcListener
from msmq_fast.server.rpc.ports import bind_rpc
from msmq_fast.server.rpc.remote_reading import RemoteReading
from msmq_fast.server.runtime.clock import SystemClock
from msmq_fast.server.runtime.descriptors import connection_limits
from msmq_fast.server.runtime.disk import DISK_LOW, DiskGuard
from msmq_fast.server.runtime.feed_trimmer import FeedTrimmer
from msmq_fast.server.runtime.loop import CommitLoop
from msmq_fast.server.runtime.refusals import RefusalCounters
from msmq_fast.server.runtime.snapshot_schedule import SnapshotSchedule
from msmq_fast.server.runtime.stalls import LAG_BINS, StallWatch
from msmq_fast.server.settings import queue_manager_settings
from msmq_fast.server.srmp.front_end import Srmp
from msmq_fast.server.srmp.listener import bind_http
from msmq_fast.server.tracing.tracer import Tracer, tracer_of
from msmq_fast.store.errors import BackupError, status_text
from msmq_fast.store.objects.catalogue import owner_of
from msmq_fast.store.objects.storage import ObjectStorage
from msmq_fast.store.schema import MetaName
from msmq_fast.store.snapshots import Snapshots
from msmq_fast.store.store import Store, StoreOptions
from msmq_fast.store.watermark import SpaceFigures, space_figures

__all__ = ["Assembly"]

_log = logging.getLogger("msmq_fast.server")


class Assembly:
    """One server. Call `start`, then either `stop` (drain and shut down cleanly) or `abandon` (end as in a
    crash).
    """

    def __init__(
        self,
        config: Config,
        loop: asyncio.AbstractEventLoop,
        on_store_failure: Callable[[], None],
        *,
        load: Load | None = None,
        clock: SystemClock | None = None,
        randomness: random.Random | None = None,
    ) -> None:
        """`load` reads the configuration again; without it, nothing can be reloaded.
        `clock` and `randomness` default to those of the system.
        """
        self._config = config
        self._load = load
        self._reload: Reload | None = None
        self._loop = loop
        self._on_store_failure = on_store_failure
        self._clock = clock or SystemClock()
        self._random = randomness or random.SystemRandom()
        self._addresses: dict[str, list[str]] = {}
        self._tls = TlsFiles()
        self._not_ready: str | None = "starting"
        self._real_time = clock is None
        self._stalls: StallWatch | None = None
        self._store: Store | None = None
        self._commit_loop: CommitLoop | None = None
        self._front_ends: list[FrontEnd] = []
        self._pgm_sockets: PgmSockets | None = None
        self._tracer: Tracer | None = None
        self._refused = RefusalCounters(self._clock.monotonic, config.log.refusals_per_second)
        self._acceptors = Acceptors(loop, self._clock.monotonic, self._connections())

    def _connections(self) -> ConnectionTable:
        """Return the table of connections; its limits are reduced to the file descriptors that this process
        may open.
        """
        try:
            limits, scale = connection_limits(self._config)
        except ValueError as error:
            raise ListenError(str(error)) from None
        first_byte = self._config.limits.first_byte_timeout
        return ConnectionTable(limits, scale, first_byte, self._refused.refuse, self._clock.monotonic)

    # ------------------------------------------------------------------------------------------------- start

    async def start(self) -> None:
        """Open the store, recover its state, open the listeners. Raises StoreError, ListenError,
        DeclarationError.
        """
        config = self._config
        # Ports first: a taken one is the commonest mistake, and recovery may take seconds.
        bound = self._bind()
        store = self._store = self._open_store()
        accounts = self._accounts = domain_accounts(
            config.directory, map(domain_sid, config.security.domains), self._clock.monotonic, self._soon
        )
        access = self._access = AccessControl(config, self._clock.monotonic, accounts)
        self._manager = manager = QueueManager(
            store,
            queue_manager_settings(config, multicast=self._pgm_sockets is not None),
            self._clock,
            self._random,
            guard=access.guard,
            directory=domain_directory(config.directory, config.data, self._clock.monotonic, self._soon),
        )
        store.writer.on_failure.connect(self._store_failed)
        store.writer.before_seal.connect(manager.before_submit)
        self._tick()
        manager.start()
        self._note_name(store)
        declare(manager, config.queues)
        audit_access(access, manager.audit)
        audit_restore(store, manager.audit)
        tokens = token_table(config, access.logons, lambda: access.principals.users)
        if config.listen.app.port is not None and tokens.empty:
            _log.warning(
                "no user has a token yet, so that no program can log on at listen.app.port: "
                "create one with msmq-fast user token NAME"
            )
        warn_of_readable_files(config)
        commit_loop = self._commit_loop = CommitLoop(
            self._loop,
            self._clock.monotonic,
            tick=self._tick,
            submit=store.writer.submit_or_commit,
            submit_to_thread=store.writer.submit,
            faults=manager.faults,
        )
        security = MessageSecurity(config, manager, self._clock.monotonic, commit_loop.touch)
        store.commit()
        snapshots = Snapshots(
            cast(LmdbTables, store.tables),
            lambda: self._clock.wall_us() // 1_000_000,
            self._soon,
            self._object_storage(),
            store.meta(MetaName.SNAPSHOT),
            partial(self._note_snapshot, store),
        )
        commit_loop.watch(cast(LmdbWriter, store.writer))
        commit_loop.watch(cast(LmdbReader, store.reader))
        commit_loop.add(manager)
        commit_loop.add(manager.series)
        commit_loop.add(access)
        if accounts is not None:
            commit_loop.add(accounts)
        commit_loop.add(security)
        self._disk = DiskGuard(
            config.store.disk_low,
            config.store.disk_check_interval,
            self._clock.monotonic,
            self._space,
            lambda: store.writer.statistics()["failed_batches"],
            self._throttle,
        )
        self._disk.expire(self._clock.monotonic())
        commit_loop.add(self._disk)
        commit_loop.add(FeedTrimmer(self._clock.monotonic, self._trim_feed))
        if config.backup.every:
            commit_loop.add(
                SnapshotSchedule(
                    snapshots,
                    config.backup.every,
                    owner_of(store.guid),
                    self._clock.monotonic,
                    lambda: self._clock.wall_us() / 1_000_000,
                )
            )
        self._tracer = tracer_of(config.tracing, manager, self._clock.monotonic)
        if self._tracer is not None:
            commit_loop.add(self._tracer)
        self._runtime = Runtime(
            config,
            self._loop,
            self._clock,
            self._random,
            store,
            manager,
            commit_loop,
            self._refused,
            self._acceptors,
            access,
            security,
            tokens,
            self._tls,
            snapshots,
            self._tracer,
        )
        bound |= self._bind_socket()
        self._front_ends = self._front_ends_of(self._runtime, bound)
        for front_end in self._front_ends:
            await front_end.listen(bound)
        security.make_keys()
        _log.info("%s; see msmq-fast security review", summary(config))
        self._not_ready = None
        if self._real_time:  # a start takes as long as the store is large
            self._stalls = StallWatch(self._clock.monotonic)
            commit_loop.add(self._stalls)

    def _object_storage(self) -> ObjectStorage | None:
        backup = self._config.backup
        if not backup.url:
            return None
        try:
            staging = self._config.data / "snapshot.tmp"
            return ObjectStorage(backup.url, staging, keep=backup.keep, rate=backup.rate or None)
        except BackupError as error:
            raise DeclarationError(f"backup.url: {error}") from None

    def _soon(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function on the event loop, from any thread. What it writes to the store is committed."""
        self._loop.call_soon_threadsafe(self._committed, function, *arguments)

    def _committed(self, function: Callable[..., object], *arguments: object) -> None:
        self._runtime.commit_loop.touch()
        function(*arguments)

    def _bind(self) -> dict[str, list[socket.socket]]:
        listen = self._config.listen
        hardened = self._config.queue_manager.hardened
        bound: dict[str, list[socket.socket]] = {}
        try:
            if listen.mqqb.port is not None and not hardened:
                bound["mqqb"] = sockets.tcp_sockets(listen.mqqb.host, listen.mqqb.port, "MS-MQQB")
            if listen.mqqb.ping_port is not None and not hardened:
                bound["ping"] = sockets.udp_sockets(listen.mqqb.host, listen.mqqb.ping_port, "ping")
            if listen.app.port is not None:
                bound["app-tcp"] = sockets.tcp_sockets(listen.app.host, listen.app.port, "programs")
            if listen.admin.port is not None:
                bound["admin"] = sockets.tcp_sockets(listen.admin.host, listen.admin.port, "admin")
            bound |= bind_rpc(self._config)
            bound |= bind_http(self._config)
            if not hardened:
                self._pgm_sockets = open_sockets(self._config.pgm)
        except BaseException:
            for listener in [listener for group in bound.values() for listener in group]:
                listener.close()
            raise
        self._bound = [listener for group in bound.values() for listener in group]
        for name, group in bound.items():
            self._addresses[name] = [sockets.shown_address(listener) for listener in group]
        if self._pgm_sockets is not None:
            self._addresses["pgm"] = [self._pgm_sockets.shown]
        return bound

    def _bind_socket(self) -> dict[str, list[socket.socket]]:
        """Bind the Unix socket for programs. By default it is in the data directory, which the store has
        created.
        """
        path = self._config.app_socket
        if path is None:
            return {}
        listener = sockets.unix_socket(path, self._config.listen.app.socket_mode)
        self._bound.append(listener)
        self._addresses[SOCKET] = [str(path)]
        return {SOCKET: [listener]}

    def _open_store(self) -> Store:
        config = self._config
        guid = config.server.guid
        options = StoreOptions(
            map_size=config.store.map_size,
            force_place=config.store.allow_any_filesystem,
            log=config.store.log,
            log_size=config.store.log_size,
            inline_us=config.store.inline_commit_us,
            guid=UUID(guid).bytes_le if guid else None,
            examine=lambda tables: refuse_lost_key(config, tables),
        )
        store = Store.open(
            config.data,
            now_s=self._clock.wall_us() // 1_000_000,
            random=self._random,
            options=options,
            warn=_log.warning,
        )
        if guid and store.guid != UUID(guid).bytes_le:
            held = UUID(bytes_le=store.guid)
            store.close()
            raise DeclarationError(
                f"the store in {config.data} belongs to the queue manager {held}, not to {guid}"
            )
        return store

    def _note_name(self, store: Store) -> None:
        """Warn if the computer name has changed: programs and peers that use path names with the old name
        then get errors.
        """
        name, before = self._manager.name, store.meta(MetaName.COMPUTER_NAME)
        if before == name:
            return
        if before is not None and before.casefold() != name.casefold():
            _log.warning(
                "the computer name of this store was %s and is now %s: names such as %s no longer "
                "lead here; set server.name (a container: --hostname), or add the old name to server.aliases",
                before,
                name,
                rf"{before}\private$\orders",
            )
        with store.unit():
            store.put_meta(MetaName.COMPUTER_NAME, name)

    @staticmethod
    def _note_snapshot(store: Store, created_s: int) -> None:
        """Remember the time of a snapshot over a restart."""
        with store.unit():
            store.put_meta(MetaName.SNAPSHOT, created_s)

    def _front_ends_of(self, runtime: Runtime, bound: Bound) -> list[FrontEnd]:
        """Return the front ends of this server, in the order in which they stop.

        The front ends of programs and remote readers stop first, so that their requests are still answered
        while messages are delivered.
        """
        counters = Counters()
        mqqb = self._mqqb = MqqbListener(runtime)
        srmp = self._srmp = Srmp(runtime, mqqb)
        pgm = None
        if self._pgm_sockets is not None:
            receiving = srmp.receiving
            pgm = PgmListener(runtime, self._pgm_sockets, receiving.pipeline, srmp.requests, srmp.report)
        multicast = None if pgm is None else pgm.sending
        outgoing = Dispatcher(runtime.manager, mqqb, srmp.sending, multicast)
        rpc = RpcListener(runtime, bound)
        view = ServerView(
            runtime.manager,
            runtime.store,
            counters,
            self._refused,
            Figures(
                started=runtime.clock.wall_us() // 1_000_000,
                last_snapshot=lambda: runtime.snapshots.last_s,
                sessions=lambda: mqqb.connections,
                app_connections=lambda: app.connections,
                messages_in=lambda: mqqb.messages_in,
                messages_out=lambda: outgoing.messages_out,
                space=lambda: self._disk.space,
                not_ready=self.why_not_ready,
                denied=lambda: runtime.access.audit.total,
                streams=lambda: mqqb.streams,
                order_acks=lambda: mqqb.order_acks,
                final_acks=lambda: mqqb.final_acks,
                labelled=self._labelled,
                loop_lag=lambda: self._stalls.lag() if self._stalls is not None else ((0,) * LAG_BINS, 0.0),
                rpc_connections=lambda: rpc.connections,
                resends=lambda: mqqb.resends,
            ),
        )
        load = self._load
        app = AppFrontEnd(
            runtime,
            counters,
            view.stats,
            None if load is None else self._reload_for,
            rpc.readers,
            None if load is None else RunningConfiguration(self._config, load, self.reload),
        )
        found: list[FrontEnd | None] = [
            app,
            rpc,
            outgoing,
            srmp,
            pgm,
            mqqb,
            RemoteReading(runtime) if runtime.config.remote.enabled else None,
            AdminFrontEnd(runtime, view, lambda: self._not_ready, app.service) if ADMIN in bound else None,
        ]
        return [front_end for front_end in found if front_end is not None]

    def _store_of(self) -> Store:
        assert self._store is not None  # noqa: S101 - set by start() before
        return self._store

    def ready_line(self) -> str:
        """Return the text `ready name=… guid=…`, followed by `LISTENER=ADDRESS` for each listener; several
        addresses are separated by commas.
        """
        words = ["ready", f"name={self._manager.name}", f"guid={self._manager.guid}"]
        words += [f"{name}={','.join(addresses)}" for name, addresses in self._addresses.items()]
        return " ".join(words)

    def reload(self) -> Reload:
        """Return the object that applies a changed configuration; each call returns the same object."""
        if self._reload is not None:
            return self._reload
        assert self._load is not None  # noqa: S101 - the caller has given it
        parts: list[Part] = [
            log_settings,
            partial(user_tokens, self._runtime.tokens),
            self._tls.prepare,
            self._srmp.listener.certificates.prepare,
            lambda config: partial(self._mqqb.set_routes, config),
            lambda config: partial(self._mqqb.set_peers, config),
            self._prepare_limits,
            partial(queue_declarations, self._manager, self._runtime.commit_loop.touch),
        ]
        self._reload = Reload(self._config, self._load, parts)
        self._reload.signalled.connect(partial(audit_reload, self._manager.audit))
        return self._reload

    def _reload_for(self, caller: Token) -> dict[str, Any]:
        """Reload the configuration at the request of an administrator, and audit it. Returns the fields of
        Reloaded, such as the changed keys and the keys that need a restart.
        """
        try:
            reloaded = self.reload().run(f"reload by {caller.name or caller.user}")
            audit_reload(self._manager.audit, reloaded, caller)
            return asdict(reloaded)
        except ReloadError as error:
            audit_reload(self._manager.audit, error, caller)
            raise InvalidParameter("\n".join(error.lines)) from None

    def _prepare_limits(self, config: Config) -> Callable[[], None]:
        try:
            limits, scale = connection_limits(config)
        except ValueError as error:
            raise DeclarationError(str(error)) from None

        def change() -> None:
            self._acceptors.set_limits(limits, scale, config.limits.first_byte_timeout)
            for front_end in self._front_ends:
                front_end.set_limits(config)
            self._refused.set_rate(config.log.refusals_per_second)
            self._manager.message_log.limit.set_rate(config.log.refusals_per_second)

        return change

    # --------------------------------------------------------------------------------------------------- run

    def add_timed(self, timed: Timed) -> None:
        """Handle the deadlines of `timed` in the commit loop, from now on. Call it after `start`."""
        self._runtime.commit_loop.add(timed)

    def _tick(self) -> None:
        self._manager.ledger.tick(self._clock.wall_us())

    def _space(self) -> SpaceFigures:
        return space_figures(cast(LmdbTables, self._store_of().tables), self._config.data)

    def _throttle(self, low: bool) -> None:
        if low:
            self._manager.flow.begin(DISK_LOW)
        else:
            self._manager.flow.end(DISK_LOW)

    def _trim_feed(self, limit: int) -> int:
        store = self._config.store
        age = int(store.feed_max_age)
        return self._manager.events.trim(age, store.feed_max_size, limit)

    def _labelled(self) -> Iterator[Labelled]:
        yield from conditions(
            ready=self.why_not_ready() is None,
            dead_letters=self._manager.ack_policy.dead_letters,
            snapshot_s=self._runtime.snapshots.last_s,
            failed_snapshots=self._runtime.snapshots.failed,
            tls=(self._tls, self._srmp.listener.certificates),
        )
        yield from self._acceptors.labelled()
        if self._tracer is not None:
            yield from self._tracer.labelled()
        for front_end in self._front_ends:
            yield from front_end.labelled()
        if self._load is not None:
            yield from self.reload().labelled()

    def why_not_ready(self) -> str | None:
        """Return the reason that `/readyz` gives; None while the server is ready."""
        stalled = self._stalls.why_not_ready if self._stalls is not None else None
        return self._not_ready or self._manager.flow.why or self._acceptors.why_failing or stalled

    def _store_failed(self, status: int) -> None:
        _log.critical(
            "the disk failed: %s; the server stops and acknowledges nothing more", status_text(status)
        )
        self._not_ready = "the disk failed"
        self._on_store_failure()

    # -------------------------------------------------------------------------------------------------- stop

    def prepare_to_stop(self) -> None:
        """From now on, commit on the writer thread only: a disk that hangs must not hang the loop."""
        if self._commit_loop is not None:
            self._commit_loop.drain()

    async def stop(self) -> None:
        """Drain and stop: accept no more work, end sessions and waiting reads, write everything that was
        accepted.

        If a step raises an exception, the exception is counted and logged, and the next step runs: accepted
        messages are written in any case.
        """
        self._not_ready = "draining"
        runtime = self._runtime
        self.prepare_to_stop()
        self._step("flushing the audit", lambda: runtime.access.audit.flush(everything=True))
        for front_end in self._front_ends:
            await self._finish(f"stopping {type(front_end).__name__}", front_end.stop())
        if self._accounts is not None:
            self._step("leaving the accounts of the domain", self._accounts.close)
        self._step("stopping the queue manager", self._manager.stop)
        await self._finish("stopping message security", runtime.security.stop())
        # What completed is answered in the next iterations of the loop, before the connections close.
        await self._settle()
        for front_end in self._front_ends:
            await self._finish(f"closing {type(front_end).__name__}", front_end.close())
            await self._settle()
        self._step("closing the acceptors", self._acceptors.close)
        if self._tracer is not None:
            await self._finish("sending the last spans", self._tracer.stop())
        # A disk that hangs must not hang the loop.
        await self._finish("closing snapshots", asyncio.to_thread(runtime.snapshots.close))
        runtime.commit_loop.stop()
        await self._close_store(runtime.store, self._manager.counters())
        path = self._config.app_socket
        if path is not None:
            path.unlink(missing_ok=True)

    def _step(self, what: str, step: Callable[[], object]) -> None:
        try:
            step()
        except Exception as error:
            self._manager.faults.note(what, error)

    async def _finish(self, what: str, step: Awaitable[object]) -> None:
        try:
            await step
        except Exception as error:
            self._manager.faults.note(what, error)

    async def _close_store(self, store: Store, counters: dict[bytes, int]) -> None:
        # No other part uses it now. The disk may not answer: signals and the drain timeout still work.
        await asyncio.to_thread(store.close, counters)

    async def _settle(self) -> None:
        """Wait until everything that the writer holds is durable and answered."""
        store = self._store_of()
        while store.writer.busy or store.writer.pending_ops:
            self._step("a commit at the end", store.writer.submit)
            await asyncio.sleep(0.001)
        for _ in range(3):
            await asyncio.sleep(0)

    def abandon(self) -> None:
        """Release all resources without writing, as in a crash."""
        if self._commit_loop is not None:
            self._commit_loop.stop()
        self._acceptors.close()
        for listener in getattr(self, "_bound", []):
            listener.close()
