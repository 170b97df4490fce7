"""The directory events of MS-MQDMPR 3.1.7.1.18 to 3.1.7.1.25, which the queue manager and the protocols
raise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar
from uuid import UUID

from msmq_fast.directory.enumerations import failed
from msmq_fast.directory.filters import Filter, Sort, equals, predicate
from msmq_fast.directory.local import LocalObjects
from msmq_fast.directory.notices import Change, Notice
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.online import OnlineState
from msmq_fast.directory.provider import DirectoryProvider, Join
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult, generic, not_found
from msmq_fast.signals import Signal
from msmq_fast.store.completion import Completion

T = TypeVar("T")

Announce = Callable[[UUID, Notice], None]
"""Sends a change notification to PRIVATE=<owner>\\3; the owner's queue-manager GUID is the first argument."""

_TOPOLOGY = (ObjectType.QUEUE_MANAGER, ObjectType.SITE, ObjectType.ROUTING_LINK)


class DirectoryEvents:
    """Passes each event to the directory's provider. While the provider is not connected, reads are answered
    from the local objects. After a change, the queue manager that owns the object is notified.

    `monotonic` returns seconds. `announce(GUID of the owner, notice)` is called after a successful change to
    an object of another queue manager.
    """

    def __init__(
        self,
        provider: DirectoryProvider,
        local: LocalObjects,
        monotonic: Callable[[], float],
        announce: Announce,
    ) -> None:
        self.provider = provider
        self.online = OnlineState()
        self.topology_changed: Signal[[]] = Signal()  # a queue manager, site or routing link changed
        self.users_changed: Signal[[]] = Signal()  # a user changed, or its certificates
        self.reconnected: Signal[[]] = Signal()  # the directory answers again
        self._local = local
        self._monotonic = monotonic
        self._announce = announce
        provider.changed.connect(self._changed_by_others)

    @property
    def integrated(self) -> bool:
        """The state DirectoryIntegrated: False in a workgroup."""
        return self.provider.integrated

    @property
    def offline(self) -> bool:
        """The state DirectoryOffline: the directory cannot be reached. Always False in a workgroup."""
        return self.online.offline

    # ---- changes

    def create(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[UUID]:
        """Create Directory Object (3.1.7.1.18)."""
        done = self._changed(self.provider.create(item, attributes, join=join), item.kind)
        if item.kind is ObjectType.QUEUE:
            done.add_done_callback(lambda done: self._created(done, item))
        return done

    def delete(self, item: DirectoryObject, *, join: Join | None = None) -> Completion[None]:
        """Delete Directory Object (3.1.7.1.19)."""
        if item.kind is not ObjectType.QUEUE:
            return self._changed(self.provider.delete(item, join=join), item.kind)
        return self._known(item).then(lambda item: self._delete_queue(item, join))

    def _delete_queue(self, item: DirectoryObject, join: Join | None) -> Completion[None]:
        done = self._changed(self.provider.delete(item, join=join), item.kind)
        done.add_done_callback(lambda done: self._tell(done, Change.QUEUE_DELETION, item))
        return done

    def write(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[None]:
        """Write Directory (3.1.7.1.24)."""
        changes = {
            ObjectType.QUEUE: Change.QUEUE_UPDATE,
            ObjectType.QUEUE_MANAGER: Change.QUEUE_MANAGER_UPDATE,
        }
        change = changes.get(item.kind)
        if change is None:
            return self._changed(self.provider.write(item, attributes, join=join), item.kind)
        return self._known(item).then(lambda known: self._write(item, attributes, join, change, known))

    def _write(
        self,
        item: DirectoryObject,
        attributes: Collection[str] | None,
        join: Join | None,
        change: Change,
        known: DirectoryObject,
    ) -> Completion[None]:
        done = self._changed(self.provider.write(item, attributes, join=join), item.kind)
        done.add_done_callback(lambda done: self._tell(done, change, known))
        return done

    def _known(self, item: DirectoryObject) -> Completion[DirectoryObject]:
        """Return the object with the attributes that identify its owner. Reads the object from the directory
        if `item` has only a GUID or a path.
        """
        if item.identifier is not None and (item.kind is not ObjectType.QUEUE or item.get("Pathname")):
            return Completion.of(item)
        for name in (IDENTIFIER, "FullPath", "Pathname", "ComputerName"):
            if item.get(name) is not None:
                return self.read(item.kind, (equals(name, item[name]),))
        return failed(
            generic(f"the {item.kind.title} is not identified: give its name or its Identifier", item.kind)
        )

    # ---- reading

    def read(
        self,
        kind: ObjectType,
        conditions: Filter = (),
        attributes: Collection[str] | None = None,
        *,
        force: bool = False,
    ) -> Completion[DirectoryObject]:
        """Read Directory (3.1.7.1.20)."""
        if self.offline and not force and not self.provider.keeps_copy:
            return self._local_answer(kind, conditions)
        done = self.provider.read(kind, conditions, attributes, force=force)
        return done if force else self._watched(done)

    def _local_answer(self, kind: ObjectType, conditions: Filter) -> Completion[DirectoryObject]:
        try:
            holds = predicate(kind, conditions)
        except ValueError as error:
            return failed(generic(str(error), kind))
        if kind is ObjectType.QUEUE:
            for item in self._local.queues():
                if holds(item):
                    return Completion.of(item)
            return failed(
                not_found(kind, "the directory is not connected, and no queue of this computer matches")
            )
        own = self._local.queue_manager()
        if kind is ObjectType.QUEUE_MANAGER and holds(own):
            return Completion.of(own)
        return failed(not_connected(kind))

    def begin(
        self,
        kind: ObjectType,
        conditions: Filter = (),
        attributes: Collection[str] | None = None,
        order: Sequence[Sort] = (),
        *,
        owner: object = None,
    ) -> Completion[int]:
        """Read Directory Begin (3.1.7.1.21)."""
        return self._watched(self.provider.begin(kind, conditions, attributes, order, owner=owner))

    def next(self, handle: int) -> Completion[DirectoryObject]:
        """Read Directory Next (3.1.7.1.22)."""
        return self._watched(self.provider.next(handle))

    def end(self, handle: int) -> Completion[None]:
        """Read Directory End (3.1.7.1.23)."""
        return self.provider.end(handle)

    def all(
        self, kind: ObjectType, conditions: Filter = (), *, limit: int | None = None
    ) -> Completion[list[DirectoryObject]]:
        """Return at most `limit` objects that meet the conditions, in the order of their GUIDs."""
        return self.begin(kind, conditions).then(lambda handle: self._rest(handle, [], limit))

    def _rest(
        self, handle: int, found: list[DirectoryObject], limit: int | None
    ) -> Completion[list[DirectoryObject]]:
        """Append the remaining objects of an enumeration to `found`, until it has `limit` objects. Closes the
        handle, also after an error.
        """
        while limit is None or len(found) < limit:
            step = self.next(handle)
            if not step.done:
                return self._later(handle, found, limit, step)
            error = step.exception()
            if error is not None:
                if not _is_end(error):
                    self.end(handle)
                    return failed(error)
                break
            found.append(step.result())
        return self.end(handle).then(lambda _: Completion.of(found))

    def _later(
        self,
        handle: int,
        found: list[DirectoryObject],
        limit: int | None,
        step: Completion[DirectoryObject],
    ) -> Completion[list[DirectoryObject]]:
        """Continue `_rest` when `step`, the pending answer of the provider, is resolved."""
        answered: Completion[bool] = Completion()

        def answer(step: Completion[DirectoryObject]) -> None:
            error = step.exception()
            if error is None:
                found.append(step.result())
                answered.resolve(True)
            elif _is_end(error):
                answered.resolve(False)
            else:
                self.end(handle)
                answered.fail(error)

        step.add_done_callback(answer)
        return answered.then(lambda more: self._rest(handle, found, limit if more else 0))

    # ---- connected or not

    def check_online(self) -> Completion[None]:
        """Check Directory Online (3.1.7.1.25). The completion is resolved when the check has ended, also if
        the directory is offline; see `offline`.
        """
        done: Completion[None] = Completion()
        conditions = (equals(IDENTIFIER, self._local.guid),)

        def answered(answer: Completion[DirectoryObject]) -> None:
            if answer.exception() is not None:
                self.online.lost(self._monotonic())
                done.resolve(None)
                return
            self._local.refresh_queue_manager(answer.result())
            self.online.restored()
            self._refresh_queues()
            self.reconnected()
            done.resolve(None)

        self.read(ObjectType.QUEUE_MANAGER, conditions, force=True).add_done_callback(answered)
        return done

    def _refresh_queues(self) -> None:
        for queue in list(self._local.queues()):
            path = queue.get("Pathname") or ""
            if "\\private$\\" in path.casefold() or queue.identifier is None:
                continue
            self.read(ObjectType.QUEUE, (equals(IDENTIFIER, queue.identifier),)).add_done_callback(
                self.refresh_queue
            )

    def refresh_queue(self, answer: Completion[DirectoryObject]) -> None:
        """Give the local queue the properties that the directory has, if it has answered."""
        if answer.exception() is None:
            self._local.refresh_queue(answer.result())

    def expire(self, now: float) -> None:
        """Handle the Directory Online Timer, if it is due."""
        if self.online.take_due(now):
            self.check_online()

    def _changed(self, done: Completion[T], kind: ObjectType) -> Completion[T]:
        if kind in _TOPOLOGY:
            done.add_done_callback(self._rearranged)
        elif kind is ObjectType.USER:
            done.add_done_callback(self._users_changed)
        return self._watched(done)

    def _changed_by_others(self, kind: ObjectType) -> None:
        if kind in _TOPOLOGY:
            self.topology_changed()
        elif kind is ObjectType.USER:
            self.users_changed()

    def _users_changed(self, done: Completion[T]) -> None:
        if done.exception() is None:
            self.users_changed()

    def _rearranged(self, done: Completion[T]) -> None:
        if done.exception() is None:
            self.topology_changed()

    def _watched(self, done: Completion[T]) -> Completion[T]:
        """Return `done`. If it fails because the directory is not connected, the state becomes offline."""

        def look(done: Completion[T]) -> None:
            error = done.exception()
            if isinstance(error, DirectoryError) and error.result is DirectoryOperationResult.NOT_CONNECTED:
                self.online.lost(self._monotonic())

        done.add_done_callback(look)
        return done

    # ---- change notifications

    def _created(self, done: Completion[UUID], item: DirectoryObject) -> None:
        if done.exception() is None:
            self._notify(Change.QUEUE_CREATION, item.changed({IDENTIFIER: done.result()}))

    def _tell(self, done: Completion[None], change: Change, item: DirectoryObject) -> None:
        if done.exception() is None:
            self._notify(change, item)

    def _notify(self, change: Change, item: DirectoryObject) -> None:
        """Notify the owner of the changed object `item`, if the owner is another queue manager and has an
        object in the directory.
        """
        notice = Notice(change, item[IDENTIFIER], self.provider.server)
        if item.kind is ObjectType.QUEUE_MANAGER:
            if item.identifier != self._local.guid:
                self._announce(item[IDENTIFIER], notice)
            return
        computer = str(item.get("Pathname") or "").partition("\\")[0]
        if self._local.is_local(computer):
            return

        def found(owner: Completion[DirectoryObject]) -> None:
            if owner.exception() is None:
                self._announce(owner.result()[IDENTIFIER], notice)

        conditions = (equals("ComputerName", computer),)
        self.read(ObjectType.QUEUE_MANAGER, conditions, (IDENTIFIER,)).add_done_callback(found)


def _is_end(error: Exception) -> bool:
    return isinstance(error, DirectoryError) and error.result is DirectoryOperationResult.END_OF_DATA


def not_connected(kind: ObjectType | None = None) -> DirectoryError:
    """Return the error DirectoryNotConnected."""
    return DirectoryError(DirectoryOperationResult.NOT_CONNECTED, "the directory is not connected", kind=kind)
