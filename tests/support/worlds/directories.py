"""Directories over a store in memory or on disk, and the queue manager they belong to."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any, TypeVar
from uuid import UUID

from msmq_fast._native.lmdbthreads import LmdbWriter
from msmq_fast._native.memorystore import MemoryTables, MemoryWriter
from msmq_fast.directory.embedded import DirectoryEnvironment, EmbeddedDirectory
from msmq_fast.directory.events import DirectoryEvents
from msmq_fast.directory.notices import Notice
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.provider import DirectoryProvider
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult
from msmq_fast.store.completion import Completion
from msmq_fast.store.store import Store, StoreOptions
from tests.support.worlds.stores import crash

T = TypeVar("T")

WALL = 1_700_000_000
OWN = UUID("00000000-0000-4000-8000-000000000001")
OTHER = UUID("00000000-0000-4000-8000-000000000002")
Result = DirectoryOperationResult


class Local:
    """A queue manager called HOST, as the directory sees it."""

    def __init__(self, *queues: DirectoryObject) -> None:
        self.guid = OWN
        self.own = machine("HOST", OWN)
        self.held = list(queues)
        self.private = {7: r"HOST\private$\seven"}
        self.refreshed: list[DirectoryObject] = []

    def is_local(self, computer: str) -> bool:
        return computer.casefold() in ("host", ".")

    def queue_manager(self) -> DirectoryObject:
        return self.own

    def queues(self) -> Iterable[DirectoryObject]:
        return list(self.held)

    def private_path(self, number: int) -> str | None:
        return self.private.get(number)

    def refresh_queue_manager(self, item: DirectoryObject) -> None:
        self.own = item

    def refresh_queue(self, item: DirectoryObject) -> None:
        self.refreshed.append(item)


def machine(name: str, guid: UUID | None = None, **values: object) -> DirectoryObject:
    given: dict[str, object] = {"ComputerName": name} | values
    if guid is not None:
        given[IDENTIFIER] = guid
    return DirectoryObject(ObjectType.QUEUE_MANAGER, given)


def queue(path: str, **values: object) -> DirectoryObject:
    return DirectoryObject(ObjectType.QUEUE, {"Pathname": path} | values)


def site(name: str, **values: object) -> DirectoryObject:
    return DirectoryObject(ObjectType.SITE, {"Name": name} | values)


class World:
    """An embedded directory; `finish` waits for the disk. Worlds of other providers override what differs."""

    creates = frozenset(ObjectType)  # types of objects that programs create
    chooses_guids = False  # whether the directory gives every object a GUID of its own
    root = "DC=example,DC=net"

    def __init__(self, directory: Path | None = None, *, tables: MemoryTables | None = None) -> None:
        self.path = directory
        self.now = WALL
        self.random = Random(3)
        self.max_handles = 8
        self.corrupt: list[str] = []
        self._open(tables)

    def _open(self, tables: MemoryTables | None) -> None:
        if self.path is None:
            self.store = Store.in_memory(now_s=WALL, random=self.random, tables=tables)
        else:
            options = StoreOptions(map_size=1 << 30, force_place=True)
            self.store = Store.open(self.path, now_s=WALL, random=self.random, options=options)
        around = DirectoryEnvironment(
            now_s=lambda: self.now,
            random_bytes=self.random.randbytes,
            domain="example.net",
            server="HOST",
            report_corrupt=self.corrupt.append,
        )
        self.directory: DirectoryProvider = EmbeddedDirectory(
            self.store, around, max_handles=self.max_handles
        )

    def run(self) -> None:
        writer = self.store.writer
        if isinstance(writer, MemoryWriter):
            writer.complete_all()
            return
        assert isinstance(writer, LmdbWriter)
        ended: list[int] = []
        writer.when_durable(ended.append)
        while not ended:
            writer.flush()
            assert select.select([writer.fileno()], [], [], 10)[0]
            writer.complete()

    def finish(self, done: Completion[T]) -> T:
        if not done.done:
            self.run()
        return done.result()

    def restart(self) -> None:
        """The process dies; what is not durable is lost."""
        if self.path is None:
            writer = self.store.writer
            assert isinstance(writer, MemoryWriter)
            self._open(writer.crash())
        else:
            crash(self.store)
            self._open(None)

    def objects(self, kind: ObjectType = ObjectType.QUEUE) -> list[DirectoryObject]:
        """All objects of a type that the test has made."""
        return everything(self.directory, kind)

    # ---- what has to be there first

    def account(self, name: str) -> None:
        """Make what the queue manager of a computer needs before it can be created."""

    def home(self, name: str) -> None:
        """Make what the queues of a computer need before they can be created."""

    def fitted(self, kind: ObjectType, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return values of a new object, with what they refer to replaced by what is there."""
        return dict(values)

    def make_list(self, name: str, queue: UUID, alias: str) -> UUID:
        """Make a distribution list of a public queue and of another format name; returns its GUID."""
        members = (f"PUBLIC={queue}", alias)
        values = {"Name": name, "Members": members}
        return self.finish(self.directory.create(DirectoryObject(ObjectType.DISTRIBUTION_LIST, values)))

    # ---- how values come back

    def same(self, name: str, found: Any, given: Any) -> bool:
        """Whether a value that was read is that which was given."""
        return bool(found == given)

    def stamped(self, seconds: int) -> bool:
        """Whether this is the present."""
        return seconds == self.now


def everything(provider: DirectoryProvider, kind: ObjectType) -> list[DirectoryObject]:
    handle = provider.begin(kind).result()
    found: list[DirectoryObject] = []
    while True:
        step = provider.next(handle)
        if isinstance(step.exception(), DirectoryError):
            provider.end(handle)
            return found
        found.append(step.result())


def result_of(done: Completion[T]) -> DirectoryOperationResult:
    """The DirectoryOperationResult of something that has ended."""
    assert done.done
    error = done.exception()
    if error is None:
        return Result.SUCCESS
    assert isinstance(error, DirectoryError), error
    return error.result


class Events:
    """Directory events over any provider, a clock moved by hand, and the notices that went out."""

    def __init__(self, provider: DirectoryProvider, local: Local | None = None) -> None:
        self.seconds = 1000.0
        self.local = local or Local()
        self.notices: list[tuple[UUID, Notice]] = []
        self.events = DirectoryEvents(
            provider,
            self.local,
            lambda: self.seconds,
            lambda owner, notice: self.notices.append((owner, notice)),
        )

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
        due = self.events.online.due
        if due is not None and due <= self.seconds:
            self.events.expire(self.seconds)


Factory = Callable[[], World]
