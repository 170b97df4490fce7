"""The object types of the directory (MS-MQDMPR 3.1.1)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

__all__ = ["BY_TITLE", "ObjectType"]


class ObjectType(IntEnum):
    """The types of objects; the number is the first byte of the key in the store."""

    QUEUE_MANAGER = 1
    QUEUE = 2
    ENTERPRISE = 3
    SITE = 4
    ROUTING_LINK = 5
    CONNECTED_NETWORK = 6
    USER = 7
    DISTRIBUTION_LIST = 64  # a group of queues; beside the data model, for DL= format names

    @property
    def title(self) -> str:
        """The name in the data model: QueueManager, Queue, …"""
        return "".join(word.capitalize() for word in self.name.split("_"))


BY_TITLE: Mapping[str, ObjectType] = {kind.title.casefold(): kind for kind in ObjectType}
