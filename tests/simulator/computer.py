"""One computer: a whole server, all that `Assembly` puts together, on a slow disk in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from msmq_fast._native.memorystore import MemoryReader, MemoryTables, MemoryWriter
from msmq_fast.config.sections import (
    Config,
    ListenAdmin,
    ListenApp,
    ListenConfig,
    ListenMqqb,
    ProtectionConfig,
    QueueManagerConfig,
    ServerConfig,
    StoreConfig,
)
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.services import State
from msmq_fast.qm.settings import UNLIMITED
from msmq_fast.server.assembly import Assembly
from msmq_fast.server.front_end import Bound, FrontEnd, Runtime
from msmq_fast.server.net.accepting import Acceptors, Factory
from msmq_fast.server.net.connections import ConnectionTable, Share
from msmq_fast.server.runtime.refusals import About, RefusalCounters
from msmq_fast.srmp.reasons import Reason
from msmq_fast.store.store import Store, StoreOptions
from msmq_fast.store.watermark import SpaceFigures

from .network import MQQB_PORT, PING_PORT, Network, Socket
from .timeline import ComputerClock, ComputerLoop, Timeline
from .web import TroubledFront, WebTrouble

WALL = 1_700_000_000
ENOSPC = 28
NOWHERE = Path("/nonexistent/msmq-fast-simulator")
PLENTY = SpaceFigures(file=0, used=0, reusable=0, available=1 << 40)


class Writer(MemoryWriter):
    """Ends a batch on the disk at one time, and tells the server at another."""

    number = 1
    _landing = False

    def fileno(self) -> int:
        return self.number

    def complete(self) -> int:
        return 0 if self._landing else super().complete()

    def land(self, status: int = 0) -> bool:
        """The batch under way is on the disk; `complete` tells about it."""
        self._landing = True
        try:
            return self.complete_one(status)
        finally:
            self._landing = False


class Reader(MemoryReader):
    number = 2

    def fileno(self) -> int:
        return self.number


@dataclass
class Disk:
    """How fast it is, in seconds, and whether it is full."""

    commit: float = 0.002
    read: float = 0.0005
    slow: float = 0.01  # chance of a commit that takes fifty times as long
    full_until: float = 0.0


class Refusals(RefusalCounters):
    """Tells of each refusal: (what, reason, detail)."""

    def __init__(self, monotonic: Callable[[], float], told: Callable[[str, str, str], None]) -> None:
        super().__init__(monotonic, 5)
        self._told = told

    def refuse(
        self,
        what: str,
        reason: str,
        detail: str = "",
        count: int = 1,
        about: About | None = None,
        *,
        peer: str = "",
    ) -> None:
        super().refuse(what, reason, detail, count, about, peer=peer)
        self._told(what, reason, detail)

    def repeat(self, detail: str) -> None:
        super().repeat(detail)
        self._told("message", "duplicate", detail)


class Listening:
    """Stands for a bound socket."""

    def __init__(self, port: int) -> None:
        self.port = port

    def getsockname(self) -> tuple[str, int]:
        return "0.0.0.0", self.port  # noqa: S104 - nothing is bound

    def close(self) -> None:
        pass


class SimulatedAcceptors(Acceptors):
    """Takes connections from the simulated network."""

    def __init__(self, loop: ComputerLoop, monotonic: Callable[[], float], table: ConnectionTable) -> None:
        super().__init__(loop, monotonic, table)
        self._spare.close()  # nothing here has a descriptor, and crashes give none back

    def accept(self, listener: Any, share: Share, factory: Factory, **_: Any) -> Callable[[], None]:
        loop = self._loop
        assert isinstance(loop, ComputerLoop)

        def accepted(address: str) -> Any:
            slot = share.enter(address)
            assert slot is not None
            return factory(slot)

        return loop.network.listen(loop, accepted, listener.port).close


class SimulatedServer(Assembly):
    """An Assembly without files and sockets."""

    def __init__(
        self,
        config: Config,
        loop: ComputerLoop,
        clock: ComputerClock,
        random: Random,
        tables: MemoryTables,
        refused: Callable[[str, str, str], None],
        web: WebTrouble,
    ) -> None:
        self.web = web
        super().__init__(config, loop, self._failed, clock=clock, randomness=random)
        self._refused = Refusals(clock.monotonic, refused)
        self._acceptors.close()
        self._acceptors = SimulatedAcceptors(loop, clock.monotonic, self._connections())
        self._tables = tables
        self._bound = []

    def _failed(self) -> None:
        raise AssertionError("the store failed")

    def _bind(self) -> dict[str, Any]:
        bound: dict[str, Any] = {"mqqb": [Listening(MQQB_PORT)], "ping": [Listening(PING_PORT)]}
        if self._config.listen.http.port is not None:
            bound["http"] = [Listening(self._config.listen.http.port)]
        return bound

    def _open_store(self) -> Store:
        store = Store(self._tables, Writer(self._tables), Reader(self._tables))
        now_s = self._clock.wall_us() // 1_000_000
        guid = UUID(self._config.server.guid).bytes_le
        store._start(now_s, self._random, StoreOptions(guid=guid), lambda _line: None)
        return store

    async def _close_store(self, store: Store, counters: dict[bytes, int]) -> None:
        store.close(counters)

    def _front_ends_of(self, runtime: Runtime, bound: Bound) -> list[FrontEnd]:
        found = super()._front_ends_of(runtime, bound)
        self._mqqb._network._socket = lambda address: Socket()  # type: ignore[method-assign]
        if self._srmp.sending is not None:
            self._srmp.sending.pool._socket = lambda address: Socket()  # type: ignore[method-assign]
        loop, shared = self._loop, self._srmp.listener.shared
        assert isinstance(loop, ComputerLoop)
        shared.handler = TroubledFront(shared.handler, self.web, loop, loop.random)
        return found

    def _space(self) -> SpaceFigures:
        return PLENTY

    @property
    def manager(self) -> QueueManager:
        return self._manager


class Computer:
    """A computer that can crash and start again. `on_start` is called when its server runs."""

    def __init__(
        self,
        name: str,
        address: str,
        timeline: Timeline,
        network: Network,
        seed: str,
    ) -> None:
        self.name = name
        self.address = address
        self.timeline = timeline
        self.network = network
        self.random = Random(seed + name)
        self.guid = UUID(bytes=self.random.randbytes(16), version=4)
        self._disk_random = Random(seed + name + "disk")
        self.disk = Disk(commit=self.random.choice([0.0002, 0.002, 0.02]))
        self.clock = ComputerClock(
            timeline,
            boot=self.random.uniform(10.0, 1e6),
            rate=self.random.uniform(0.9995, 1.0005),
            wall=WALL + self.random.uniform(-30.0, 30.0),
        )
        self.tables = MemoryTables()
        self.config = Config(
            server=ServerConfig(
                name=name,
                guid=str(self.guid),
                data=NOWHERE,
            ),
            listen=ListenConfig(
                mqqb=ListenMqqb(host=(address,)), app=ListenApp(socket="off"), admin=ListenAdmin(port=None)
            ),
            store=StoreConfig(feed=False, disk_check_interval=30.0),
            queue_manager=QueueManagerConfig(quota=UNLIMITED),
            protection=ProtectionConfig(key="00" * 32, providers=()),
        )
        self.web = WebTrouble()
        self.up = False
        self.starts = 0
        self.crashes: list[float] = []
        self.on_start: list[Callable[[], None]] = []
        self.on_crash: list[Callable[[], None]] = []
        self.loop: ComputerLoop
        self.server: SimulatedServer
        self.on_refusal: Callable[[str, str, str], None] = lambda what, reason, detail: None
        self._committing = self._reading = False
        network.names[name.casefold()] = address
        network.names[address] = address

    # -- life

    def start(self) -> None:
        """The server starts; its programs follow."""
        assert not self.up
        self.up = True
        self.starts += 1
        self._committing = self._reading = False
        loop = self.loop = ComputerLoop(self.timeline, self.clock, self.network, self.address, self.random)
        self.server = SimulatedServer(
            self.config, loop, self.clock, self.random, self.tables, self.on_refusal, self.web
        )
        loop.on_turn = self._turned
        loop.create_task(self._run())

    async def _run(self) -> None:
        await self.server.start()
        for started in self.on_start:
            started()

    @property
    def ready(self) -> bool:
        """Whether programs can be served."""
        return self.up and self.manager_or_none is not None

    @property
    def manager_or_none(self) -> QueueManager | None:
        manager: QueueManager | None = getattr(self.server, "_manager", None) if self.up else None
        return manager if manager is not None and manager.state is State.READY else None

    @property
    def manager(self) -> QueueManager:
        return self.server.manager

    @property
    def store(self) -> Store:
        return self.server._store_of()

    def touch(self) -> None:
        """A program did something."""
        commit_loop = self.server._commit_loop
        if commit_loop is not None:
            commit_loop.touch()

    def crash(self, *, silent: bool = False, landed: bool = False) -> None:
        """The process is gone, with what was not synced; `landed`: just after a commit that nobody heard of.

        `silent`: the power is gone, so that peers are not told.
        """
        assert self.up
        store = self.server._store
        for crashed in self.on_crash:
            crashed()
        self.up = False
        self.loop.dead = True
        self.crashes.append(self.timeline.now)
        if store is not None:
            writer = store.writer
            assert isinstance(writer, Writer)
            if landed and self.disk.full_until <= self.timeline.now:
                writer.land()
            writer.crash()
        self.network.gone(self.loop, silent=silent)

    def stop(self) -> None:
        """A clean stop; the computer is down when it is over."""
        for crashed in self.on_crash:
            crashed()
        self.loop.create_task(self._stop())

    async def _stop(self) -> None:
        await self.server.stop()
        self.up = False
        self.crashes.append(self.timeline.now)
        self.loop.dead = True
        self.network.gone(self.loop, silent=False)

    @property
    def relayed(self) -> int:
        """Messages for others that the sessions which are open have brought."""
        listener = getattr(self.server, "_mqqb", None)
        sessions = [] if listener is None else listener.endpoint.sessions
        return sum(session.receiver.relayed for session in sessions)

    @property
    def repeated(self) -> int:
        """Messages over HTTP that this run of the server knew for duplicates."""
        srmp = getattr(self.server, "_srmp", None)
        return 0 if srmp is None else int(srmp.receiving.pipeline.counters.not_taken[Reason.DUPLICATE])

    # -- the disk

    def _turned(self) -> None:
        """After each event: what was handed to the disk takes its time there."""
        store = self.server._store
        if store is None:
            return
        if not self._committing and store.writer.busy:
            self._committing = True
            delay = self.disk.commit * self._disk_random.uniform(0.5, 1.5)
            if self._disk_random.random() < self.disk.slow:
                delay *= 50
            self.timeline.after(delay, self._committed, loop=self.loop)
        reader = store.reader
        assert isinstance(reader, Reader)
        if not self._reading and reader.waiting:
            self._reading = True
            self.timeline.after(self.disk.read, self._read, loop=self.loop)

    def _committed(self) -> None:
        self._committing = False
        writer = self.store.writer
        assert isinstance(writer, Writer)
        writer.land(ENOSPC if self.disk.full_until > self.timeline.now else 0)
        told = self.loop.readers.get(writer.number)
        if told is not None:
            told()
        else:
            writer.complete()

    def _read(self) -> None:
        self._reading = False
        told = self.loop.readers.get(Reader.number)
        if told is not None:
            told()
        else:
            self.store.reader.complete()
