"""An exception at every call inside every unit of work; then memory and store are compared.

`Injector` raises in place of the n-th call that code of this project makes while a unit of the writer is
open: of its own functions, of native ones and of built-in ones, and at the start of each function that native
code calls. `compare` starts a second queue manager from a copy of what is stored: it must see what the first
one sees. So whatever a unit did before the exception has happened on both sides, or on neither.

Calls from native code to native code are out of reach: `MemoryWriter.fail_call` lets those of the store fail,
for the crash matrix (`tests/faults/matrix`).

To add an operation: write a function that gets a `World` and does it, with one that prepares the world, and
add both to OPERATIONS of a test module.
"""

from __future__ import annotations

import ast
import dis
import linecache
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random
from types import CodeType, FrameType
from typing import Any

from msmq_fast._native.memorystore import MemoryTables
from msmq_fast.packet import Message
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.qm.faults import Faults
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.store.store import Store
from tests.support.clocks import WALL
from tests.support.worlds.queue_manager import World

_ENDS = {"keep_unit", "roll_back"}  # a unit has to end
_OPENS = {"begin_unit", "unit"}  # functions that name neither are outside of units until they return
_CALLS = {"CALL", "CALL_KW", "CALL_FUNCTION_EX"}
_SOURCES = "/src/msmq_fast/"


class Injected(Exception):
    """What is raised."""


class Injector:
    """Within `with`: counts the calls inside units of `world`, and raises in place of the one with the number
    `at`.
    """

    def __init__(self, world: World, at: int = 0) -> None:
        self._writer = world.writer
        self._at = at
        self._called = ""  # what a call that was counted is about to enter
        self.count = 0
        self.sites: list[str] = []  # of each call: who calls what

    def __enter__(self) -> Injector:
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _enter(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        called, self._called = self._called, ""
        if _SOURCES not in frame.f_code.co_filename:
            return None
        within = self._writer.in_unit
        if not within and not _OPENS & {*frame.f_code.co_names}:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if within and called != frame.f_code.co_name:
            caller = frame.f_back
            inside = caller is not None and _SOURCES in caller.f_code.co_filename
            where = _place(caller) if inside and caller is not None else "native"
            self._site(f"{where} > {frame.f_code.co_qualname}")
        return self._step

    def _step(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        if event == "opcode" and self._writer.in_unit:
            called = _called(frame.f_code).get(frame.f_lasti)
            if called is not None:
                self._called = called.rpartition(".")[2]
                if self._called not in _ENDS:
                    self._site(f"{_place(frame)} > {called}")
        return self._step

    def _site(self, site: str) -> None:
        self.count += 1
        self.sites.append(site)
        if self.count == self._at:
            sys.settrace(None)
            raise Injected(site)


@cache
def _called(code: CodeType) -> dict[int, str]:
    """The calls of a function: by the offset of their instruction, the source text of what is called."""
    found: dict[int, str] = {}
    before: list[dis.Instruction] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("PRECALL", "CACHE", "KW_NAMES", "PUSH_NULL"):
            continue
        nothing = [each.opname == "LOAD_CONST" and each.argval is None for each in before[-3:]]
        # Three times None: the end of a `with` statement, which has to happen.
        if instruction.opname in _CALLS and nothing != [True] * 3:
            found[instruction.offset] = _text(code, instruction)
        before.append(instruction)
    return found


def _text(code: CodeType, instruction: dis.Instruction) -> str:
    where = instruction.positions
    if where is None or where.lineno is None or where.end_lineno is None:
        return "?"
    lines = [
        line.encode() for line in linecache.getlines(code.co_filename)[where.lineno - 1 : where.end_lineno]
    ]
    lines[-1] = lines[-1][: where.end_col_offset]
    lines[0] = lines[0][where.col_offset or 0 :]
    try:
        expression = ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except SyntaxError:
        return f"line {where.lineno}"
    return ast.unparse(expression.func) if isinstance(expression, ast.Call) else ast.unparse(expression)


def _place(frame: FrameType) -> str:
    module = frame.f_code.co_filename.split("/src/msmq_fast/")[1].removesuffix(".py").replace("/", ".")
    return f"{module}:{frame.f_code.co_qualname}"


View = dict[str, Any]


def view(world: World) -> View:
    """What users see: queues, their properties and messages; subscriptions of the feed."""
    subscriptions = world.manager.events.subscriptions.listed()
    seen: View = {f"subscription {each.name}": each.position for each in subscriptions}
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
    other.provider = None  # its directory is in what it has stored
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
    if not isinstance(value, tuple):
        return str(value)
    _, messages, figures, available = value
    return f"{len(messages)} messages {figures}, {available} available"


def bodies(world: World) -> Counter[bytes]:
    """How often each body is in a queue; copies in journals and what the queue manager sends do not count."""
    found: Counter[bytes] = Counter()
    for queue in _all(world):
        if queue.kind is not QueueKind.JOURNAL:
            packets = _packets(world, queue)
            found.update(message.body for message in packets if message.message_class == MessageClass.NORMAL)
    return found


def _packets(world: World, queue: Queue) -> list[Message]:
    found: list[Message] = []
    for key in queue.core.positions.keys():  # noqa: SIM118 - no mapping
        queue.core.peek(key, lambda message, _: found.append(Message.from_packet(message.packet)))
        world.store.reader.complete()
    return found


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that a queue manager does: `prepare` makes the world, `act` does it.

    `stored`: what is in memory is in the store; express messages are not. `once`: each message that there is
    after `prepare` is in one queue afterwards, also after a fault; the bodies differ. `after` does what a
    peer does after a fault, such as sending again; what it returns is wrong then, or empty.
    """

    name: str
    prepare: Callable[[], World]
    act: Callable[[World], object]
    once: bool = False
    stored: bool = True
    after: Callable[[World], str] | None = None


def attempt(operation: Operation, at: int) -> tuple[str, str]:
    """Raise at call `at`: (where that was, what is wrong afterwards or empty); both empty: no such call."""
    world = operation.prepare()
    before = bodies(world) if operation.once else Counter()
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
        problem = _counted(before, bodies(world)) if operation.once else ""
        if operation.after is not None:
            problem = operation.after(world)
        world.advance(70)
        problem = problem or (compare(world) if operation.stored else "")
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    return injector.sites[at - 1], problem


def _counted(before: Counter[bytes], now: Counter[bytes]) -> str:
    wrong = {body: now[body] for body in before if now[body] != before[body]}
    return f"messages by how often they are in a queue: {wrong}" if wrong else ""


def sites(operation: Operation) -> list[str]:
    """The calls inside units, in their order."""
    world = operation.prepare()
    with (injector := Injector(world)):
        operation.act(world)
        world.run()
    return injector.sites


def failing(operation: Operation, *, everywhere: bool) -> dict[str, str]:
    """The sites after whose fault memory and store differ. Each call is tried, or the first of each site."""
    found: dict[str, str] = {}
    tried: set[str] = set()
    for number, site in enumerate(sites(operation), 1):
        if site in tried and not everywhere:
            continue
        tried.add(site)
        where, problem = attempt(operation, number)
        if problem:
            found[where] = problem
    return found


def lines(found: dict[str, str]) -> str:
    """Sites and what is wrong after a fault there, for people."""
    return "\n".join(f"{site}: {what}" for site, what in found.items())
