"""The directory interface that keys and certificates use."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol
from uuid import UUID

from msmq_fast.directory.events import DirectoryEvents
from msmq_fast.directory.filters import Filter
from msmq_fast.directory.objects import DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.store.completion import Completion

__all__ = ["Directory"]


class Directory(Protocol):
    """The methods of the directory that the queue manager uses for keys and certificates."""

    @property
    def events(self) -> DirectoryEvents:
        """The directory events; their attribute `integrated` shows whether this queue manager uses a
        directory.
        """

    def queue_manager(self) -> DirectoryObject:
        """Returns the QueueManager object of this queue manager."""

    def create(self, item: DirectoryObject) -> Completion[UUID]:
        """Create a directory object; resolved with its GUID."""

    def read(
        self, kind: ObjectType, conditions: Filter, attributes: Collection[str] | None = None
    ) -> Completion[DirectoryObject]:
        """Read the directory object that matches the conditions."""

    def write(self, item: DirectoryObject, attributes: Collection[str] | None = None) -> Completion[None]:
        """Change attributes of a directory object."""
