"""A queue manager over a store in memory, and clients of its application engine that speak frames."""

from __future__ import annotations

from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any

from msmq_fast._native.memorystore import MemoryReader, MemoryTables, MemoryWriter
from msmq_fast.app.auth import Identity, TokenTable
from msmq_fast.app.engine import AppEngine
from msmq_fast.app.service import Limits, Service
from msmq_fast.protocol.frames import Frame, FrameCutter, pack_frame, unpack_payload
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.settings import QueueManagerSettings
from msmq_fast.store.paging import scan_pages
from tests.support.clocks import FakeClock


class World:
    """One queue manager; `turn` is what the server does at the end of a turn of the loop."""

    def __init__(self, tables: MemoryTables | None = None, clock: Any = None, **limits: int) -> None:
        self.clock = clock or FakeClock()
        self.writer = MemoryWriter(tables or MemoryTables())
        self.reader = MemoryReader(self.writer.tables)
        store = SimpleNamespace(
            writer=self.writer,
            reader=self.reader,
            tables=self.writer.tables,
            commit=self.writer.complete_all,
            scan=partial(scan_pages, self.writer.tables.scan),
        )
        self.manager = QueueManager(store, QueueManagerSettings(computer_name="here"), self.clock, Random(7))
        self.writer.before_seal.connect(self.manager.before_submit)
        self.manager.start()
        self.service = Service(
            self.manager, "msmq-fast test", statistics=lambda: {"extra": 1}, limits=Limits(**limits)
        )
        self.commit()

    def turn(self) -> None:
        """Serve readers and hand the batch to the disk, which does not answer yet."""
        self.reader.complete()
        self.manager.before_submit()
        self.writer.submit()

    def commit(self) -> None:
        """Turn until nothing is under way."""
        for _ in range(20):
            self.turn()
            if not self.writer.flying and not self.writer.pending_units:
                break
            self.writer.complete_all()
        self.manager.before_submit()

    def sleep(self, seconds: float) -> None:
        """Let time pass and run what is due."""
        self.clock.now += seconds
        self.manager.expire(self.manager.monotonic())
        self.commit()

    def client(self, *, hello: bool = True, token: str | None = None, identity: bool = True) -> Client:
        client = Client(self, Identity("tester", uid=0) if identity else None)
        if hello:
            answer = client.call(Frame.HELLO, {"version": 1, "token": token or ""})
            assert answer[0] == Frame.REPLY
        return client

    def tokens(self, **users: str) -> None:
        self.service.tokens = TokenTable(users)


class Client:
    """Frames to and from one engine. Nothing is hidden: ids, order and types are the test's business."""

    def __init__(self, world: World, identity: Identity | None) -> None:
        self.world = world
        self.wakes = 0
        self.engine = AppEngine(world.service, identity, self._wake)
        self.frames: list[tuple[int, int, Any]] = []
        self._cutter = FrameCutter()
        self._id = 0

    def _wake(self) -> None:
        self.wakes += 1

    def write(self, data: bytes) -> None:
        """Raw bytes to the engine."""
        while data:
            room = self.engine.room()
            count = min(len(room), len(data))
            room[:count] = data[:count]
            room.release()
            self.engine.received(count)
            data = data[count:]

    def send(self, kind: Frame | int, payload: Any, request_id: int | None = None) -> int:
        """One frame; returns its request id."""
        if request_id is None:
            self._id += 1
            request_id = self._id
        self.write(pack_frame(kind, request_id, payload))
        return request_id

    def read(self) -> list[tuple[int, int, Any]]:
        """The frames that came since the last call."""
        frames = [
            (kind, number, unpack_payload(payload))
            for buffer in self.engine.take_output()
            for kind, number, payload in self._cutter.feed(buffer)
        ]
        self.engine.written()
        self.frames += frames
        return frames

    def call(self, kind: Frame, payload: Any) -> tuple[int, Any]:
        """A request, a commit, and its last reply frame as (type, payload)."""
        number = self.send(kind, payload)
        self.world.commit()
        replies = [(kind, value) for kind, got, value in self.read() if got == number]
        assert replies, "no reply"
        return replies[-1]

    def ok(self, kind: Frame, payload: Any) -> Any:
        """As `call`; the reply must not be an error."""
        got, value = self.call(kind, payload)
        assert got != Frame.ERROR, value
        return value

    def refused(self, kind: Frame, payload: Any) -> str:
        """As `call`; the name of the error."""
        got, value = self.call(kind, payload)
        assert got == Frame.ERROR, (got, value)
        code, name, text = value
        assert code >> 16 == 0xC00E
        assert isinstance(text, str)
        assert "\n" not in text
        return str(name)

    def queue(self, name: str = "orders", access: int = 3, **properties: Any) -> int:
        """Create a queue and open it."""
        self.ok(Frame.CREATE_QUEUE, [name, properties])
        return self.open(name, access)

    def open(self, name: str = "orders", access: int = 3) -> int:
        (handle,) = self.ok(Frame.OPEN, [name, access])
        return int(handle)

    def put(self, handle: int, *bodies: bytes, recoverable: bool = True) -> None:
        """Send messages and wait until they are kept."""
        assert self.ok(Frame.SEND, [handle, 0, [[body, "", int(recoverable)] for body in bodies]]) == [
            len(bodies),
            [],
        ]
