"""Context handles: state of a client that a server keeps between calls (C706 5.1.6, MS-RPCE 3.3.1.4.1).

Handles belong to an association. The server checks that a handle was created by it, and has the type that the
operation expects (strict and type-strict, 3.1.1.5.3.2, .3).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from msmq_fast.rpc.faults import CONTEXT_MISMATCH, NO_MEMORY, RpcFault
from msmq_fast.rpc.handlebudget import HandleShare

__all__ = ["ContextHandles"]

_log = logging.getLogger("msmq_fast.rpc")

_ATTRIBUTES = bytes(4)  # ndr_context_handle.context_handle_attributes, always 0


class _Entry(NamedTuple):
    kind: str
    state: Any
    rundown: Callable[[Any], None]
    order: int


class ContextHandles:
    """The context handles of one association: 20 bytes each, unguessable, never reused."""

    def __init__(self, random: Callable[[int], bytes], share: HandleShare) -> None:
        """`random(n)` returns n random bytes. `share` limits how many handles are open at a time."""
        self._random = random
        self._share = share
        self._entries: dict[bytes, _Entry] = {}
        self._ended = False

    def __len__(self) -> int:
        return len(self._entries)

    def create(self, kind: str, state: Any, rundown: Callable[[Any], None], order: int = 0) -> bytes:
        """Returns a new handle of the type `kind` for `state`.

        If the association ends while handles are open, `rundown(state)` is called for each, in ascending
        `order`. If the association has already ended, which a deferred call may find, `rundown(state)` is
        called at once. Raises RpcFault(NO_MEMORY) if the clients at this address have too many handles.
        """
        handle = _ATTRIBUTES + self._random(16)
        entry = _Entry(kind, state, rundown, order)
        if self._ended:
            self._run_down(entry)
        elif self._share.take():
            self._entries[handle] = entry
        else:
            raise RpcFault(NO_MEMORY, "the clients at this address have too many context handles")
        return handle

    def get(self, handle: bytes | None, kind: str) -> Any:
        """Returns the state of a handle.

        Raises RpcFault(CONTEXT_MISMATCH) if the handle is NULL or closed, or belongs to another association
        or type.
        """
        return self._entry(handle, kind).state

    def close(self, handle: bytes | None, kind: str) -> Any:
        """Remove a handle without calling its `rundown`, and return its state. Raises what `get` raises."""
        entry = self._entry(handle, kind)
        del self._entries[bytes(handle)]  # type: ignore[arg-type]  # _entry found it
        self._share.release()
        return entry.state

    def run_down(self) -> None:
        """Call `rundown` of all open handles after the end of the association. If one raises, the exception
        is logged, and the others still run.
        """
        self._ended = True
        entries, self._entries = self._entries, {}
        self._share.release(len(entries))
        for entry in sorted(entries.values(), key=lambda entry: entry.order):
            self._run_down(entry)

    @staticmethod
    def _run_down(entry: _Entry) -> None:
        try:
            entry.rundown(entry.state)
        except Exception:
            _log.exception("the rundown of a context handle (%s) failed", entry.kind)

    def _entry(self, handle: bytes | None, kind: str) -> _Entry:
        entry = self._entries.get(bytes(handle)) if handle is not None else None
        if entry is None or entry.kind != kind:
            raise RpcFault(CONTEXT_MISMATCH)
        return entry
