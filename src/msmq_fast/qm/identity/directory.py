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
    """The directory as the queue manager uses it."""

    @property
    def events(self) -> DirectoryEvents:
        """The directory events; they tell whether a directory is integrated."""

    def queue_manager(self) -> DirectoryObject:
        """Returns the QueueManager object of this queue manager."""

    def create(self, item: DirectoryObject) -> Completion[UUID]:
        """Create an object."""

    def read(
        self, kind: ObjectType, conditions: Filter, attributes: Collection[str] | None = None
    ) -> Completion[DirectoryObject]:
        """Read the object that matches the conditions."""

    def write(self, item: DirectoryObject, attributes: Collection[str] | None = None) -> Completion[None]:
        """Change attributes of an object."""
