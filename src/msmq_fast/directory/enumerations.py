"""Open enumerations: the state behind Read Directory Begin, Next and End."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msmq_fast.directory.objects import DirectoryObject
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult, generic
from msmq_fast.store.completion import Completion

MAX_HANDLES = 1024


class Enumerations:
    """The open enumerations by handle. Each yields objects as they were when it was opened: those that
    `begin` is given must not change.
    """

    def __init__(self, limit: int = MAX_HANDLES) -> None:
        self._limit = limit
        self._last = 0
        self._open: dict[int, tuple[object, Iterator[DirectoryObject]]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, items: Iterable[DirectoryObject], owner: object) -> Completion[int]:
        """Open an enumeration of `items` and return its handle. `release(owner)` closes it. Fails with
        GenericError if the limit of open enumerations is reached.
        """
        if len(self._open) >= self._limit:
            return failed(generic(f"{self._limit} enumerations are open, the most that the directory allows"))
        self._last += 1
        self._open[self._last] = (owner, iter(items))
        return Completion.of(self._last)

    def next(self, handle: int) -> Completion[DirectoryObject]:
        """Return the next object of an enumeration. Fails with EndOfData after the last one, with
        GenericError if no open enumeration has this handle.
        """
        if handle not in self._open:
            return failed(generic(f"there is no enumeration {handle}"))
        _owner, left = self._open[handle]
        item = next(left, None)
        if item is None:
            return failed(DirectoryError(DirectoryOperationResult.END_OF_DATA, "the enumeration has ended"))
        return Completion.of(item)

    def end(self, handle: int) -> Completion[None]:
        """Close an enumeration. Fails with GenericError if no open enumeration has this handle."""
        if self._open.pop(handle, None) is None:
            return failed(generic(f"there is no enumeration {handle}"))
        return Completion.of(None)

    def release(self, owner: object) -> None:
        """Close all enumerations of an owner."""
        for handle in [handle for handle, (holder, _) in self._open.items() if holder is owner]:
            del self._open[handle]


def failed(error: Exception) -> Completion:  # type: ignore[type-arg]
    """Return a completion that has failed with `error`."""
    done: Completion = Completion()  # type: ignore[type-arg]
    done.fail(error)
    return done
