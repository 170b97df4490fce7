"""A provider whose operations fail, or answer later, as a test says."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from msmq_fast.directory.enumerations import failed
from msmq_fast.directory.events import not_connected
from msmq_fast.directory.filters import Filter, Sort
from msmq_fast.directory.objects import DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.provider import DirectoryProvider, Join
from msmq_fast.store.completion import Completion


class ScriptedDirectory:
    """Passes operations on to another provider.

    `connected` False lets every one fail with DirectoryNotConnected; `script` holds errors for the next ones
    (None passes one on); `later` True keeps answers back until `answer()`. `calls` lists what was asked.
    """

    def __init__(self, inner: DirectoryProvider) -> None:
        self._inner = inner
        self.changed = inner.changed
        self.connected = True
        self.later = False
        self.script: deque[Exception | None] = deque()
        self.calls: list[tuple[str, Any]] = []
        self._held: list[tuple[Completion[Any], Completion[Any]]] = []

    integrated = True
    problem = ""
    keeps_copy = False
    is_authority = False
    directory_servers: Sequence[str] = ()

    def start(self) -> Completion[None]:
        return self._inner.start()

    def close(self) -> None:
        self._inner.close()

    def next_deadline(self) -> float | None:
        return self._inner.next_deadline()

    def expire(self, now: float) -> None:
        self._inner.expire(now)

    @property
    def server(self) -> str:
        return "dc.example.net"

    def answer(self) -> None:
        """Give the answers that were kept back."""
        held, self._held = self._held, []
        for inner, outer in held:
            inner.add_done_callback(
                lambda done, outer=outer: (
                    outer.resolve(done.result()) if done.exception() is None else outer.fail(done.exception())
                )
            )

    def _pass(self, name: str, what: object, operation: Any) -> Completion[Any]:
        self.calls.append((name, what))
        planned = self.script.popleft() if self.script else None
        if not self.connected:
            planned = not_connected()
        done: Completion[Any] = operation() if planned is None else failed(planned)
        if not self.later:
            return done
        outer: Completion[Any] = Completion()
        self._held.append((done, outer))
        return outer

    def create(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[UUID]:
        return self._pass("create", item, lambda: self._inner.create(item, attributes, join=join))

    def delete(self, item: DirectoryObject, *, join: Join | None = None) -> Completion[None]:
        return self._pass("delete", item, lambda: self._inner.delete(item, join=join))

    def write(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[None]:
        return self._pass("write", item, lambda: self._inner.write(item, attributes, join=join))

    def read(
        self,
        kind: ObjectType,
        conditions: Filter = (),
        attributes: Collection[str] | None = None,
        *,
        force: bool = False,
    ) -> Completion[DirectoryObject]:
        return self._pass(
            "read", (kind, force), lambda: self._inner.read(kind, conditions, attributes, force=force)
        )

    def begin(
        self,
        kind: ObjectType,
        conditions: Filter = (),
        attributes: Collection[str] | None = None,
        order: Sequence[Sort] = (),
        *,
        owner: object = None,
    ) -> Completion[int]:
        return self._pass(
            "begin", kind, lambda: self._inner.begin(kind, conditions, attributes, order, owner=owner)
        )

    def next(self, handle: int) -> Completion[DirectoryObject]:
        return self._pass("next", handle, lambda: self._inner.next(handle))

    def end(self, handle: int) -> Completion[None]:
        return self._pass("end", handle, lambda: self._inner.end(handle))

    def release(self, owner: object) -> None:
        self._inner.release(owner)

    def resolve_list(self, identifier: UUID, domain: str = "") -> Completion[tuple[str, ...]]:
        return self._pass("resolve_list", identifier, lambda: self._inner.resolve_list(identifier, domain))

    def machine_sid(self, computer: str) -> Completion[str]:
        return self._pass("machine_sid", computer, lambda: self._inner.machine_sid(computer))
