"""The interface of the directory to its queue manager."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol
from uuid import UUID

from msmq_fast.directory.objects import DirectoryObject


class LocalObjects(Protocol):
    """The queue manager's own objects, as the directory would show them."""

    @property
    def guid(self) -> UUID:
        """QueueManager.Identifier."""

    def is_local(self, computer: str) -> bool:
        """Whether a computer name means this computer."""

    def queue_manager(self) -> DirectoryObject:
        """The own QueueManager object."""

    def queues(self) -> Iterable[DirectoryObject]:
        """The Queue objects of QueueCollection."""

    def private_path(self, number: int) -> str | None:
        """The path name of the private queue with a number."""

    def refresh_queue_manager(self, item: DirectoryObject) -> None:
        """Take over what the directory says of the own QueueManager object."""

    def refresh_queue(self, item: DirectoryObject) -> None:
        """Take over what the directory says of an own public queue."""
