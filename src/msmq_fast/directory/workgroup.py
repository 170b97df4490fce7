"""The provider of a computer without a directory: its own objects can be read, nothing is published."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

from msmq_fast.directory.enumerations import MAX_HANDLES, Enumerations, failed
from msmq_fast.directory.filters import Filter, Sort, arrange, predicate
from msmq_fast.directory.local import LocalObjects
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject, ObjectType, attribute_kind
from msmq_fast.directory.provider import Join
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult, generic, not_found
from msmq_fast.packet.errors import UnsupportedOperation
from msmq_fast.store.completion import Completion


class WorkgroupDirectory:
    """Fulfils `DirectoryProvider` as MSMQ in workgroup mode does: direct and private names only."""

    integrated = False
    server = ""

    def __init__(self, local: LocalObjects, *, max_handles: int = MAX_HANDLES) -> None:
        self._local = local
        self._enumerations = Enumerations(max_handles)

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

    def read(
        self,
        kind: ObjectType,
        conditions: Filter = (),
        attributes: Collection[str] | None = None,
        *,
        force: bool = False,
    ) -> Completion[DirectoryObject]:
        try:
            holds = predicate(kind, conditions)
            found = next((item for item in self._objects(kind) if holds(item)), None)
            if found is None:
                raise not_found(kind, f"no {kind.title} meets the conditions")
            for name in attributes or ():
                attribute_kind(kind, name)
                found[name]
        except DirectoryError as error:
            return failed(error)
        except ValueError as error:
            return failed(generic(str(error), kind))
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
        try:
            for name in attributes or ():
                attribute_kind(kind, name)
            holds = predicate(kind, conditions)
            found = arrange(kind, filter(holds, self._objects(kind)), order)
        except ValueError as error:
            return failed(generic(str(error), kind))
        return self._enumerations.begin([item.only(attributes) for item in found], owner)

    def next(self, handle: int) -> Completion[DirectoryObject]:
        return self._enumerations.next(handle)

    def end(self, handle: int) -> Completion[None]:
        return self._enumerations.end(handle)

    def release(self, owner: object) -> None:
        self._enumerations.release(owner)

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
