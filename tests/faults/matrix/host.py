"""A queue manager whose store fails, dies or is copied at a chosen moment; in memory or in LMDB."""

from __future__ import annotations

import select
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from msmq_fast._native.lmdbthreads import LmdbReader, LmdbWriter
from msmq_fast._native.memorystore import MemoryTables, MemoryWriter
from msmq_fast._native.tables import StoreError
from msmq_fast.packet import Message
from msmq_fast.qm.access import Access
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.qm.settings import QueueManagerSettings
from msmq_fast.store.completion import Completion
from msmq_fast.store.store import Store, StoreOptions
from tests.support.clocks import StillClock

_PATIENCE = 10.0  # seconds of the real clock that a native thread may take for one thing
LOG_SIZE = 1 << 18


class Died(Exception):
    """The process ends here: nobody hears of anything more."""


class Host:
    """`directory` None is a store in memory, which `tables` gives another life. One on disk has a redo log
    of `log_size` bytes, or none.

    `at_commit(number, moment)` is called at each commit; moments are "before"
    (gathered), "under way" (handed to the writer) and "after" (durable, nobody knows it yet; in memory the
    listeners do). `faults` counts exceptions of the store that came out of the queue manager.
    """

    def __init__(
        self,
        directory: Path | None = None,
        tables: MemoryTables | None = None,
        *,
        later: float = 0.0,
        log_size: int = LOG_SIZE,
        **settings: Any,
    ) -> None:
        self.directory = directory
        self.options = StoreOptions(map_size=1 << 28, force_place=True, log=log_size > 0, log_size=log_size)
        self.settings = settings
        self.clock = StillClock()
        self.clock.advance(later)
        self.random = Random(7)
        self.at_commit: Callable[[int, str], None] | None = None
        self.commits = 0
        self.faults = 0
        self.held: OpenQueue | None = None  # by a program, while the host lives
        self._open(tables)

    def _open(self, tables: MemoryTables | None) -> None:
        now_s = self.clock.wall // 1_000_000
        if self.directory is None:
            self.store = Store.in_memory(now_s=now_s, random=self.random, tables=tables)
        else:
            self.store = Store.open(self.directory, now_s=now_s, random=self.random, options=self.options)
        settings = QueueManagerSettings(
            computer_name="HOST", addresses=frozenset({"10.0.0.7"}), **self.settings
        )
        self.manager = QueueManager(self.store, settings, self.clock, self.random)
        self.store.writer.before_seal.connect(self.manager.before_submit)
        self.manager.start()

    # ---- the loop

    @property
    def memory(self) -> MemoryWriter:
        writer = self.store.writer
        assert isinstance(writer, MemoryWriter)
        return writer

    def run(self, until: Completion[Any] | None = None) -> None:
        """Turn the loop until nothing is left to do, and `until` has an outcome."""
        quiet = 0
        while quiet < 3 or (until is not None and not until.done and quiet < 1000):
            quiet = 0 if self._turn(wait=quiet > 0) else quiet + 1

    def _guarded(self, call: Callable[[], object]) -> None:
        """The loop goes on after a handler that raised, as that of the server does."""
        try:
            call()
        except StoreError:
            self.faults += 1
        self.stop_if_failed()

    def stop_if_failed(self) -> None:
        """The server ends at once when its writer has failed."""
        if self.store.writer.failed:
            raise Died

    def _turn(self, *, wait: bool) -> bool:
        self.manager.tick()
        self._guarded(self.manager.before_submit)
        writer = self.store.writer
        if self._handed_over():
            self._commit()
            return True
        busy = writer.needs_commit
        if busy:
            self._moment("before")
            self._guarded(writer.submit)
            self._commit()
        self._read(wait=wait)
        due = self.manager.next_deadline()
        if due is not None and due <= self.clock.seconds:
            self._guarded(lambda: self.manager.expire(self.clock.seconds))
        return busy

    def _moment(self, moment: str) -> None:
        if self.at_commit is not None:
            self.at_commit(self.commits, moment)

    def _handed_over(self) -> bool:
        """Whether there is a commit that left when the one before was done; it may have ended as well."""
        writer = self.store.writer
        return writer.busy or (
            isinstance(writer, LmdbWriter) and bool(select.select([writer.fileno()], [], [], 0)[0])
        )

    def _commit(self) -> None:
        writer = self.store.writer
        self.commits += 1
        self._moment("under way")
        if isinstance(writer, MemoryWriter):
            self._guarded(writer.complete_one)
            self._moment("after")
            return
        assert isinstance(writer, LmdbWriter)
        assert select.select([writer.fileno()], [], [], _PATIENCE)[0], "the writer does not answer"
        self._moment("after")
        self._guarded(writer.complete)

    def _read(self, *, wait: bool) -> None:
        reader = self.store.reader
        if isinstance(reader, LmdbReader):
            select.select([reader.fileno()], [], [], 0.005 if wait else 0)
        self._guarded(reader.complete)

    def advance(self, seconds: float) -> None:
        """Later, with everything done that was due."""
        self.clock.advance(seconds)
        self.manager.tick()
        self.run()

    def settle(self) -> None:
        """Time for everything that is tried again."""
        for seconds in (2, 2, 2, 2, 60):  # an expiry that raised is tried again after a minute
            self.advance(seconds)

    # ---- lives

    def die(self) -> MemoryTables | None:
        """The process is killed."""
        if self.directory is None:
            return self.memory.crash()
        if isinstance(self.store.writer, LmdbWriter):
            self.store.writer.abandon()
        self.store._release()  # what is gathered must be nothing: the writer commits it
        return None

    def again(self) -> None:
        """Killed, started, killed when it has just recovered, and started once more."""
        for _ in range(2):
            tables = self.die()
            self._open(tables)
        self.at_commit = self.held = None
        self.run()

    # ---- what programs do

    def create(self, name: str, **properties: Any) -> Queue:
        done = self.manager.create_queue(name, **properties)
        self.run(done)
        return done.result()

    def sender(self, name: str) -> OpenQueue:
        return self.manager.open(name, Access.SEND)

    def reader(self, name: str) -> OpenQueue:
        return self.manager.open(name, Access.RECEIVE)

    def send(self, name: str, *bodies: str, **values: Any) -> None:
        """Messages that are kept when this returns."""
        handle = self.sender(name)
        for body in bodies:
            done = handle.send(Message(body=body.encode(), delivery=1, **values))
            self.run(done)
            done.result()
        handle.close()
