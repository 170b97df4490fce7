"""The provider of a computer without a directory: it reads the computer's own objects and publishes none."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from uuid import UUID

from msmq_fast.directory.enumerations import MAX_HANDLES, failed
from msmq_fast.directory.filters import Filter, predicate
from msmq_fast.directory.local import LocalObjects
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.provider import Join
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult, not_found
from msmq_fast.directory.searching import SearchableDirectory
from msmq_fast.protocol.errors import UnsupportedOperation
from msmq_fast.store.completion import Completion


class WorkgroupDirectory(SearchableDirectory):
    """Implements `DirectoryProvider` for a workgroup, where queues have only direct and private names.

    Reads find only the objects of this queue manager; no object can be created, changed or deleted.
    """

    integrated = False
    server = ""

    def __init__(self, local: LocalObjects, *, max_handles: int = MAX_HANDLES) -> None:
        super().__init__(max_handles)
        self._local = local

    def create(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[UUID]:
        return failed(_refused(item.kind, "created"))

    def delete(self, item: DirectoryObject, *, join: Join | None = None) -> Completion[None]:
        return failed(_refused(item.kind, "deleted"))

    def write(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[None]:
        return failed(_refused(item.kind, "changed"))

    def _search(self, kind: ObjectType, conditions: Filter) -> Iterable[DirectoryObject]:
        return filter(predicate(kind, conditions), self._objects(kind))

    def resolve_list(self, identifier: UUID, domain: str = "") -> Completion[tuple[str, ...]]:
        return failed(not_found(ObjectType.DISTRIBUTION_LIST, "a workgroup has no distribution lists"))

    def machine_sid(self, computer: str) -> Completion[str]:
        return failed(not_found(ObjectType.QUEUE_MANAGER, "a workgroup has no computer accounts"))

    def _objects(self, kind: ObjectType) -> Iterable[DirectoryObject]:
        match kind:
            case ObjectType.QUEUE:
                return sorted(self._local.queues(), key=lambda item: item[IDENTIFIER].bytes)
            case ObjectType.QUEUE_MANAGER:
                return (self._local.queue_manager(),)
            case _:
                return ()


def _refused(kind: ObjectType, done: str) -> DirectoryError:
    detail = f"a {kind.title} cannot be {done} in a workgroup: there is no directory"
    return DirectoryError(
        DirectoryOperationResult.GENERIC_ERROR, detail, kind=kind, refusal=UnsupportedOperation(detail)
    )
