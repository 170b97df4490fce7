"""An exception at every call inside every unit of work; then memory and store are compared.

`Injector` raises at the n-th call of a function of this project, or of native code by it, while a unit of the
writer is open. `compare` starts a second queue manager from a copy of what is stored: it must see what the
first one sees. So whatever a unit did before the exception has happened on both sides, or on neither.

To add an operation: write a function that gets a `World` and does it, with `prepare_…` for what it needs, and
add both to OPERATIONS. Sites that still fail stand in `injection_sites.txt`, one line each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from types import FrameType
from typing import Any

from msmq_fast._native.batch import MemoryTables
from msmq_fast.qm.faults import Faults
from msmq_fast.qm.queue import Queue
from msmq_fast.store.store import Store
from tests.qm.world import WALL, World

_ENDS = ("end_unit", "abandon_unit")  # a unit has to end


class Injected(Exception):
    """What is raised."""


class Injector:
    """Within `with`: counts the calls inside units of `world`, and raises at the one with the number `at`."""

    def __init__(self, world: World, at: int = 0) -> None:
        self._writer = world.writer
        self._at = at
        self.count = 0
        self.sites: list[str] = []  # of each call: who calls what

    def __enter__(self) -> Injector:
        sys.setprofile(self._event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, argument: Any) -> None:
        if event not in ("call", "c_call") or not self._writer.in_unit:
            return
        if event == "c_call":
            caller: FrameType | None = frame
            name = getattr(argument, "__name__", "?")
            if name in _ENDS:
                return
        else:
            caller, name = frame.f_back, frame.f_code.co_qualname
            if "/src/msmq_fast/" not in frame.f_code.co_filename:
                return
        if caller is None or "/src/msmq_fast/" not in caller.f_code.co_filename:
            if event == "c_call":
                return
            where = "native"
        else:
            where = _place(caller)
        self.count += 1
        self.sites.append(f"{where} > {name}")
        if self.count == self._at:
            sys.setprofile(None)
            raise Injected(self.sites[-1])


def _place(frame: FrameType) -> str:
    module = frame.f_code.co_filename.split("/src/msmq_fast/")[1].removesuffix(".py").replace("/", ".")
    return f"{module}:{frame.f_code.co_qualname}"


View = dict[str, Any]


def view(world: World) -> View:
    """What users see of a queue manager: its queues, their properties and messages; its sequences."""
    seen: View = {}
    for queue in _all(world):
        record = dict(queue.record())
        record.pop("purged_to", None)
        messages: list[Any] = []

        def looked(message: Any, status: int, into: list[Any] = messages) -> None:
            into.append((message.lookup_id, message.packet, message.abort_count) if message else status)

        for key in queue.core.positions.keys():  # noqa: SIM118 - no mapping
            queue.core.peek(key, looked)
            world.store.reader.complete()
        seen[f"{queue.name} {queue.kind.name}"] = (
            record,
            messages,
            (queue.core.messages, queue.core.bytes, queue.core.used_bytes),
            queue.core.positions.available + queue.core.positions.pending,
        )
    return seen


def _all(world: World) -> list[Queue]:
    found = list(world.manager.queues())
    for queue in list(found):
        found += [queue.journal] if queue.journal is not None and queue.journal not in found else []
        found += [each for each in queue.subqueues.values() if each not in found]
    return found


def restarted(world: World) -> World:
    """Another queue manager from a copy of what this one has stored."""
    tables = MemoryTables()
    for mine, theirs in zip(tables.tables, world.writer.tables.tables, strict=True):
        mine.update(theirs)
    other = World.__new__(World)
    other.faults, other.settings, other.clock, other.random = Faults, world.settings, world.clock, Random(5)
    other.store = Store.in_memory(now_s=WALL, random=other.random, tables=tables)
    other._begin()
    return other


def compare(world: World) -> str:
    """Empty, or what is different in memory and store."""
    if world.writer.failed:
        return "the store has failed: the server would end"
    if world.writer.in_unit:
        return "a unit is open for ever"
    mine, theirs = view(world), view(restarted(world))
    for name in sorted(mine.keys() | theirs.keys()):
        if mine.get(name) != theirs.get(name):
            return f"{name}: in memory {_short(mine.get(name))}, in the store {_short(theirs.get(name))}"
    return ""


def _short(value: Any) -> str:
    if value is None:
        return "nothing"
    _, messages, figures, available = value
    return f"{len(messages)} messages {figures}, {available} available"


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that a queue manager does: `prepare` makes the world, `act` does it."""

    name: str
    prepare: Callable[[], World]
    act: Callable[[World], object]


def attempt(operation: Operation, at: int) -> tuple[str, str]:
    """Raise at call `at`: (where that was, what is wrong afterwards or empty); both empty: no such call."""
    world = operation.prepare()
    injector = Injector(world, at)
    try:
        with injector:
            operation.act(world)
            world.run()
    except Exception:  # noqa: S110 - what became of it is looked at, not what was raised
        pass
    if injector.count < at:
        return "", ""
    try:
        world.run()
        world.advance(70)
        problem = compare(world)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    return injector.sites[at - 1], problem


def sites(operation: Operation) -> list[str]:
    """The calls inside units, in their order."""
    world = operation.prepare()
    with (injector := Injector(world)):
        operation.act(world)
        world.run()
    return injector.sites
