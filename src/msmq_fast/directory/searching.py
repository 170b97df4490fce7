"""Read Directory and enumerations, for providers that can search all their objects at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence

from msmq_fast.directory.enumerations import MAX_HANDLES, Enumerations, failed
from msmq_fast.directory.filters import Filter, Sort, arrange
from msmq_fast.directory.objects import DirectoryObject, attribute_kind
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError, generic, not_found
from msmq_fast.signals import Signal
from msmq_fast.store.completion import Completion

__all__ = ["SearchableDirectory", "as_directory_error"]


class SearchableDirectory(ABC):
    """The base of a `DirectoryProvider`: reads and enumerations. A subclass adds the other operations."""

    keeps_copy = False
    is_authority = False

    @property
    def directory_servers(self) -> Sequence[str]:
        """Return no names: the directory is in this process."""
        return ()

    def __init__(self, max_handles: int = MAX_HANDLES) -> None:
        self._enumerations = Enumerations(max_handles)
        self.changed: Signal[[ObjectType]] = Signal()

    @property
    def problem(self) -> str:
        """The directory is always there."""
        return ""

    def start(self) -> Completion[None]:
        """All objects are there from the beginning."""
        return Completion.of(None)

    def close(self) -> None:  # noqa: B027 - most providers hold nothing
        """Nothing has to be closed."""

    def next_deadline(self) -> float | None:
        """Return None: nothing falls due."""
        return None

    def expire(self, now: float) -> None:  # noqa: B027 - most providers have no deadline
        """Nothing falls due."""

    @abstractmethod
    def _search(self, kind: ObjectType, conditions: Filter) -> Iterable[DirectoryObject]:
        """Return the objects that meet the conditions, in the order of their GUIDs. Raises ValueError,
        DirectoryError.
        """

    def read(
        self,
        kind: ObjectType,
        conditions: Filter = (),
        attributes: Collection[str] | None = None,
        *,
        force: bool = False,
    ) -> Completion[DirectoryObject]:
        """Read the first object that meets the conditions; see DirectoryProvider."""
        try:
            found = next(iter(self._search(kind, conditions)), None)
            if found is None:
                raise not_found(kind, f"no {kind.title} meets the conditions")
            for name in attributes or ():
                attribute_kind(kind, name)
                found[name]
        except (DirectoryError, ValueError) as error:
            return failed(as_directory_error(error, kind))
        return Completion.of(found.only(attributes))

    def begin(
        self,
        kind: ObjectType,
        conditions: Filter = (),
        attributes: Collection[str] | None = None,
        order: Sequence[Sort] = (),
        *,
        owner: object = None,
    ) -> Completion[int]:
        """Start an enumeration; see DirectoryProvider."""
        try:
            for name in attributes or ():
                attribute_kind(kind, name)
            found = arrange(kind, self._search(kind, conditions), order)
        except (DirectoryError, ValueError) as error:
            return failed(as_directory_error(error, kind))
        return self._enumerations.begin((item.only(attributes) for item in found), owner)

    def next(self, handle: int) -> Completion[DirectoryObject]:
        """Return the next object of an enumeration; see Enumerations."""
        return self._enumerations.next(handle)

    def end(self, handle: int) -> Completion[None]:
        """Close a handle."""
        return self._enumerations.end(handle)

    def release(self, owner: object) -> None:
        """Close all handles of an owner."""
        self._enumerations.release(owner)


def as_directory_error(error: DirectoryError | ValueError, kind: ObjectType) -> DirectoryError:
    """Return a DirectoryError unchanged, a ValueError as GenericError."""
    return error if isinstance(error, DirectoryError) else generic(str(error), kind)
