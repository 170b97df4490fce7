"""The directory of a domain as the queue manager uses it: reads come from a copy of the domain's objects in
memory, changes go to a domain controller.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from msmq_fast.directory.enumerations import MAX_HANDLES, failed
from msmq_fast.directory.filters import Filter, Sort, equals
from msmq_fast.directory.ldap.compact import Compactor
from msmq_fast.directory.ldap.copy import RECENT_S, DomainCopy
from msmq_fast.directory.ldap.domain import Changes, Domain
from msmq_fast.directory.ldap.requests import Requests
from msmq_fast.directory.ldap.saved import SavedCopy
from msmq_fast.directory.ldap.schema import UNSUPPORTED
from msmq_fast.directory.ldap.worker import Worker
from msmq_fast.directory.objects import IDENTIFIER, RULES, DirectoryObject, attribute_kind
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.paths import check_public
from msmq_fast.directory.provider import Join
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult, generic
from msmq_fast.directory.searching import SearchableDirectory, as_directory_error
from msmq_fast.store.completion import Completion

__all__ = ["Intervals", "LdapDirectory"]

_log = logging.getLogger(__name__)

T = TypeVar("T")

_LISTED_PROBLEMS: Final = 5
_NETBIOS_LENGTH: Final = 15
_REVIEWED: Final = 100  # lists in use that are asked for after each change of a group
_NEVER: Final = float("inf")


class Watch(Protocol):
    """Tells at once when something has changed in the domain."""

    def start(self, changed: Callable[[], None]) -> None:
        """Begin. Calls `changed` in a thread of its own."""

    def close(self) -> None:
        """Stop."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """Seconds between two looks for changes, between two complete readings, which also find what was deleted,
    and from a failure to the next attempt.
    """

    changes: float = 10.0
    complete: float = 3_600.0
    retry: float = 5.0


class LdapDirectory(SearchableDirectory):
    """Implements `DirectoryProvider` on a domain. Until the domain has been read for the first time, reads
    fail with DirectoryNotConnected. After that they are answered at once, also while no domain controller
    answers; changes then fail.

    `monotonic` returns seconds. Implements `Timed`: `next_deadline` and `expire` are for the clock of the
    queue manager.
    """

    integrated = True
    keeps_copy = True
    is_authority = True

    def __init__(
        self,
        domain: Domain,
        worker: Worker,
        monotonic: Callable[[], float],
        *,
        watch: Watch | None = None,
        saved: SavedCopy | None = None,
        intervals: Intervals | None = None,
        max_handles: int = MAX_HANDLES,
    ) -> None:
        super().__init__(max_handles)
        self._domain = domain
        self._worker = worker
        self._requests = Requests(worker, monotonic)
        self._monotonic = monotonic
        self._intervals = intervals or Intervals()
        self._watch = watch
        self._saved = saved
        self._copy = DomainCopy(monotonic)
        self._lists: dict[UUID, tuple[str, ...]] = {}
        self._used: OrderedDict[UUID, None] = OrderedDict()  # lists, the latest at the end
        self._controller = ""
        self._usn = 0
        self._reading: Completion[None] | None = None
        self._stale = False
        self._due: float | None = None
        self._complete_due = 0.0
        self._failing = ""
        self._missing = ""
        self._started: Completion[None] = Completion()

    @property
    def server(self) -> str:
        """The distinguished name of the domain controller that answered last, "" before the first answer."""
        return self._controller

    @property
    def directory_servers(self) -> Sequence[str]:
        """The names of the domain controllers, that in use first: NetBIOS names, or addresses."""
        known = self._domain.controllers
        urls = sorted(known.urls, key=lambda url: url != known.current)
        return tuple(dict.fromkeys(_computer_name(url) for url in urls))

    @property
    def problem(self) -> str:
        """Why the last reading of the domain failed, or left other domains out, "" if it did neither."""
        if self._failing:
            return f"the domain cannot be read: {self._failing}"
        return f"other domains cannot be read: {self._missing}" if self._missing else ""

    def count(self, kind: ObjectType) -> int | None:
        """Return how many objects of a type the copy has, None before the first reading."""
        return self._copy.count(kind) if self._copy.filled else None

    def start(self) -> Completion[None]:
        """Read the domain, and keep the copy fresh from then on. Resolves after the first complete
        reading.
        """
        if self._saved is not None:
            self._worker.submit(self._load_saved).add_done_callback(self._loaded)
        self._refresh()
        if self._watch is not None:
            self._watch.start(lambda: self._worker.tell(self._told))
        return self._started

    def _load_saved(self) -> None:
        assert self._saved is not None  # noqa: S101 - else it is not called
        compactor = Compactor()
        try:
            for objects, gone, lists in self._saved.load():
                self._worker.tell(self._put_saved, [compactor.compact(item) for item in objects], gone, lists)
                self._worker.give_way()
        except (OSError, ValueError, TypeError, LookupError) as error:
            _log.warning("the saved copy of the domain cannot be used: %s", error)

    def _put_saved(
        self, objects: list[DirectoryObject], gone: list[UUID], lists: dict[UUID, tuple[str, ...]]
    ) -> None:
        self._put_all(objects)
        for identifier in gone:
            self._copy.discard(identifier)
        self._lists |= lists

    def _loaded(self, done: Completion[None]) -> None:
        total = sum(self._copy.count(kind) for kind in ObjectType)
        if total and done.exception() is None and not self._copy.filled:
            self._copy.filled = True
            _log.info("a saved copy of the domain with %d objects is used until the domain is read", total)

    def _told(self) -> None:
        """Something has changed. A reading that runs may have missed it."""
        self._stale = True
        if self._reading is None and not self._failing:
            self._refresh()

    def close(self) -> None:
        """Stop reading."""
        self._due = None
        if self._watch is not None:
            self._watch.close()
        self._worker.close()

    # ---- the copy

    def next_deadline(self) -> float | None:
        """Return the time of the next reading, or when an operation has no answer in time, in monotonic
        seconds; None if neither is to come.
        """
        found = [due for due in (self._due, self._requests.next_deadline()) if due is not None]
        return min(found, default=None)

    def expire(self, now: float) -> None:
        """Read what has changed in the domain, if the time has come, and fail overdue operations."""
        self._requests.expire(now)
        if self._due is not None and now >= self._due:
            self._refresh()

    def _refresh(self) -> Completion[None]:
        """Read what has changed, or everything if that is due. A reading that runs already is shared."""
        if self._reading is not None:
            return self._reading
        self._due = None
        domain, controller, usn = self._domain, self._controller, self._usn
        complete = not self._controller or self._monotonic() >= self._complete_due
        compactor = Compactor()

        def each(objects: list[DirectoryObject]) -> None:
            self._save(lambda saved: saved.add(objects))
            self._worker.tell(self._put_all, [compactor.compact(item) for item in objects])

        def begin(at: str) -> None:
            self._worker.tell(self._copy.begin, bool(controller) and at != controller)
            self._save(SavedCopy.begin)

        def look() -> Changes:
            turn = self._worker.give_way
            if complete:
                found = domain.load(each, begin, turn)
            else:
                found = domain.changes(controller, usn, each, begin, turn)
            if found.complete:
                self._save(lambda saved: saved.add(found.objects))
                self._save(lambda saved: saved.end(found.lists, partly=bool(found.missing)))
            else:
                self._save(lambda saved: saved.append(found.objects, found.gone))
            return found

        self._stale = False
        begun = self._monotonic()
        done = self._worker.submit(look)
        reading: Completion[None] = Completion()
        self._reading = reading

        def read(done: Completion[Changes]) -> None:
            self._reading = None
            now = self._monotonic()
            error = done.exception()
            if error is None:
                self._take(done.result(), now)
                if done.result().complete:
                    total = sum(self._copy.count(kind) for kind in ObjectType)
                    _log.info("%d objects of the domain were read in %.1f s", total, now - begun)
                self._due = now + (0.0 if self._stale else self._intervals.changes)
                self._note("")
                reading.resolve(None)
                self._started.resolve(None)
                return
            self._copy.end(complete=False)
            self._due = now + self._intervals.retry
            self._note(str(error))
            reading.fail(error)

        done.add_done_callback(read)
        return reading

    def _save(self, step: Callable[[SavedCopy], None]) -> None:
        """Write to the file. A full disk does not fail the reading: the file is of use only while no domain
        controller answers.
        """
        if self._saved is None:
            return
        try:
            step(self._saved)
        except OSError as error:
            self._saved.abandon()
            _log.warning("the copy of the domain cannot be saved: %s", error)

    def _note(self, failing: str) -> None:
        if failing and not self._failing:
            _log.warning("the domain cannot be read: %s", failing)
        elif self._failing and not failing:
            _log.info("the domain is read again: %s", self._controller)
        self._failing = failing

    def _take(self, changes: Changes, now: float) -> None:
        for line in changes.problems[:_LISTED_PROBLEMS]:
            _log.warning("an object of the domain is passed over: %s", line)
        if len(changes.problems) > _LISTED_PROBLEMS:
            _log.warning(
                "%d more objects of the domain are passed over", len(changes.problems) - _LISTED_PROBLEMS
            )
        self._controller, self._usn = changes.controller, changes.usn
        self._put_all(changes.objects)
        self._missing = changes.missing
        held = self._copy.end(complete=changes.complete, partly=bool(changes.missing))
        if changes.complete:
            self._lists = {**changes.lists, **self._lists} if changes.missing else dict(changes.lists)
            self._complete_due = now + min(self._intervals.complete, RECENT_S if held else _NEVER)
        else:
            for item in changes.objects:
                self._copy.touch(item[IDENTIFIER])
        if changes.missing:  # a complete reading looks whether other domains can be read again
            self._complete_due = min(self._complete_due, now + RECENT_S)
        for identifier in changes.gone:
            self._gone(identifier)
        changed = self._copy.take_changed()
        if (changes.lists_changed or (changes.gone and not changes.complete)) and not changes.missing:
            self._review_lists()
        for kind in changed:
            self.changed(kind)

    def _gone(self, identifier: UUID) -> None:
        self._copy.touch(identifier)
        self._copy.discard(identifier)

    def _put_all(self, objects: Iterable[DirectoryObject]) -> None:
        for item in objects:
            self._copy.put(item)

    def _search(self, kind: ObjectType, conditions: Filter) -> Iterable[DirectoryObject]:
        if not self._copy.filled:
            reason = self._failing or "it has not been read yet"
            raise DirectoryError(
                DirectoryOperationResult.NOT_CONNECTED,
                f"the domain is not known: {reason}",
                kind=kind,
            )
        return self._copy.search(kind, conditions)

    # ---- operations

    def read(
        self,
        kind: ObjectType,
        conditions: Filter = (),
        attributes: Collection[str] | None = None,
        *,
        force: bool = False,
    ) -> Completion[DirectoryObject]:
        """Read the first object that meets the conditions; see DirectoryProvider. `force` reads the changes
        of the domain first, however long that takes; otherwise, only the first reading is waited for.
        """
        try:
            _supported(kind, attributes)
        except (DirectoryError, ValueError) as error:
            return failed(as_directory_error(error, kind))
        if not force and self._copy.filled:
            return super().read(kind, conditions, attributes)
        reading = self._refresh() if force else self._requests.in_time(self._refresh())
        return reading.then(lambda _: SearchableDirectory.read(self, kind, conditions, attributes))

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
            _supported(kind, attributes)
        except (DirectoryError, ValueError) as error:
            return failed(as_directory_error(error, kind))
        return super().begin(kind, conditions, attributes, order, owner=owner)

    def create(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[UUID]:
        try:
            wanted = self._limited(item, attributes)
            for name in RULES[item.kind].required:
                if name not in wanted.values:
                    raise generic(f"a new {item.kind.title} needs the attribute {name}", item.kind)
            if item.kind is ObjectType.QUEUE:
                check_public(wanted["Pathname"])
        except (DirectoryError, ValueError) as error:
            return failed(as_directory_error(error, item.kind))

        def made(found: DirectoryObject) -> Completion[UUID]:
            self._copy.change(found)
            identifier: UUID = found[IDENTIFIER]
            return self._joined(join, identifier).then(lambda _: Completion.of(identifier))

        return self._requests.submit(lambda proceed: self._domain.create(wanted, proceed)).then(made)

    def write(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[None]:
        rules = RULES[item.kind]
        kept = {IDENTIFIER, *rules.fixed, *rules.computed}
        try:
            wanted = self._limited(item, attributes).values
        except (DirectoryError, ValueError) as error:
            return failed(as_directory_error(error, item.kind))
        values = {name: value for name, value in wanted.items() if name not in kept}

        def written(found: DirectoryObject) -> Completion[None]:
            self._copy.change(found)
            return self._joined(join, found[IDENTIFIER])

        return self._requests.submit(lambda proceed: self._domain.write(item, values, proceed)).then(written)

    def delete(self, item: DirectoryObject, *, join: Join | None = None) -> Completion[None]:
        def deleted(identifier: UUID) -> Completion[None]:
            self._gone(identifier)
            return self._joined(join, identifier)

        return self._requests.submit(lambda proceed: self._domain.delete(item, proceed)).then(deleted)

    def _joined(self, join: Join | None, identifier: UUID) -> Completion[None]:
        if join is not None:
            join(identifier)
        return Completion.of(None)

    def _limited(self, item: DirectoryObject, attributes: Collection[str] | None) -> DirectoryObject:
        """Return the part of an object that is to be kept."""
        _supported(item.kind, attributes)
        lost = UNSUPPORTED.get(item.kind, ())
        values: dict[str, Any] = {
            name: value
            for name, value in item.values.items()
            if name not in lost and (attributes is None or name in attributes)
        }
        return DirectoryObject.trusted(item.kind, values)

    def resolve_list(self, identifier: UUID, domain: str = "") -> Completion[tuple[str, ...]]:
        self._used[identifier] = None
        self._used.move_to_end(identifier)
        if len(self._used) > _REVIEWED:
            self._lists.pop(self._used.popitem(last=False)[0], None)
        found = self._lists.get(identifier)
        if found is not None:
            return Completion.of(found)

        def resolved(members: tuple[str, ...]) -> Completion[tuple[str, ...]]:
            self._lists[identifier] = members
            return Completion.of(members)

        return self._requests.submit(lambda _: self._domain.members(identifier)).then(resolved)

    def _review_lists(self) -> None:
        """Ask for the members of the lists that programs use, since members may have changed. Until there is
        an answer, the old members count. Other lists are asked for when they are used.
        """
        self._lists = {key: members for key, members in self._lists.items() if key in self._used}
        for identifier in list(self._lists):
            done = self._worker.submit(partial(self._domain.members, identifier))
            done.add_done_callback(partial(self._reviewed, identifier))

    def _reviewed(self, identifier: UUID, done: Completion[tuple[str, ...]]) -> None:
        error = done.exception()
        if error is None:
            self._lists[identifier] = done.result()
        elif isinstance(error, DirectoryError) and error.result is not DirectoryOperationResult.NOT_CONNECTED:
            self._lists.pop(identifier, None)

    def machine_sid(self, computer: str) -> Completion[str]:
        known = SearchableDirectory.read(
            self, ObjectType.QUEUE_MANAGER, (equals("ComputerName", computer),), ("MachineSid",)
        )
        if known.exception() is None:
            return known.then(lambda item: Completion.of(item["MachineSid"]))
        return self._requests.submit(lambda _: self._domain.computer_sid(computer))


def _supported(kind: ObjectType, attributes: Collection[str] | None) -> None:
    """Raise ValueError if a type does not have an attribute, DirectoryError if a domain does not keep it or
    has no objects of the type (3.1.6.3, 3.1.6.4, 3.1.6.7, 3.1.6.20).
    """
    if kind is ObjectType.CONNECTED_NETWORK:
        raise generic("a domain has no connected networks", kind)
    for name in attributes or ():
        attribute_kind(kind, name)
        if name in UNSUPPORTED.get(kind, ()):
            raise generic(f"a domain does not keep the attribute {name} of a {kind.title}", kind)


def _computer_name(url: str) -> str:
    """Return the NetBIOS name of the domain controller with a URL, its address if that has one instead."""
    host = urlsplit(url).hostname or ""
    try:
        return str(ip_address(host))
    except ValueError:
        return host.partition(".")[0].upper()[:_NETBIOS_LENGTH]
