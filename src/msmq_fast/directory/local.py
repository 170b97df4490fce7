"""The interface of the directory to its queue manager."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol
from uuid import UUID

from msmq_fast.directory.objects import DirectoryObject


class LocalObjects(Protocol):
    """The queue manager's own objects, in the form that the directory has them."""

    @property
    def guid(self) -> UUID:
        """The GUID of the queue manager (QueueManager.Identifier)."""

    def is_local(self, computer: str) -> bool:
        """Whether `computer` is a name of this computer."""

    def queue_manager(self) -> DirectoryObject:
        """The own QueueManager object."""

    def queues(self) -> Iterable[DirectoryObject]:
        """The Queue objects of QueueCollection."""

    def private_path(self, number: int) -> str | None:
        """The path name of the private queue with this number, None if there is none."""

    def refresh_queue_manager(self, item: DirectoryObject) -> None:
        """Update the queue manager from its QueueManager object in the directory."""

    def refresh_queue(self, item: DirectoryObject) -> None:
        """Update a public queue of this queue manager from its object in the directory."""
