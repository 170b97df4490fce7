"""The directory in the queue manager's own store. It is always connected, and a change of an object can be in
the same commit as the operation that caused it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from msmq_fast._native.batch import Writer
from msmq_fast._native.tables import Tables
from msmq_fast.directory import paths
from msmq_fast.directory.enumerations import MAX_HANDLES, failed
from msmq_fast.directory.filters import Filter, equals
from msmq_fast.directory.index import ObjectIndex
from msmq_fast.directory.objects import ATTRIBUTES, IDENTIFIER, RULES, DirectoryObject, attribute_kind
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.paths import check_public
from msmq_fast.directory.provider import Join
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult, generic, not_found
from msmq_fast.directory.searching import SearchableDirectory, as_directory_error
from msmq_fast.protocol.errors import MessageStorageFailed
from msmq_fast.store import decode
from msmq_fast.store.completion import Completion
from msmq_fast.store.paging import scan_pages
from msmq_fast.store.records import cold
from msmq_fast.store.schema import Table


class DirectoryStore(Protocol):
    """The part of the store that the directory uses."""

    @property
    def writer(self) -> Writer:
        """The writer for mutations."""

    @property
    def tables(self) -> Tables:
        """The durable tables."""


@dataclass(frozen=True, slots=True)
class DirectoryEnvironment:
    """Facts that the directory needs from the queue manager."""

    now_s: Callable[[], int]  # wall clock, Unix seconds
    random_bytes: Callable[[int], bytes]
    domain: str = ""  # DNS domain below which distinguished names lie; "": a workgroup
    server: str = "localhost"  # computer name of this queue manager
    report_corrupt: Callable[[str], None] = lambda _line: None  # called for each damaged record


class EmbeddedDirectory(SearchableDirectory):
    """Implements `DirectoryProvider`. All objects are in memory; the store has one record for each.

    Each operation that changes an object is a unit of work of its own: do not call it inside another unit. To
    write other data in the unit of an operation, pass a function `join`, which is called inside that unit.
    Reads see a change at once; the change is undone if its commit fails.
    """

    integrated = True

    def __init__(
        self, store: DirectoryStore, environment: DirectoryEnvironment, *, max_handles: int = MAX_HANDLES
    ) -> None:
        super().__init__(max_handles)
        self._store = store
        self._environment = environment
        self._root = paths.root_of(environment.domain)
        self._objects = {kind: ObjectIndex(kind) for kind in ObjectType}
        self._suspect: set[bytes] = set()  # keys of objects whose last commit failed
        self._load()

    @property
    def server(self) -> str:
        return self._environment.server

    # ---- operations

    def create(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[UUID]:
        try:
            made = self._made(item, attributes)
        except (DirectoryError, ValueError) as error:
            return failed(as_directory_error(error, item.kind))
        identifier: UUID = made[IDENTIFIER]
        done = self._keep(made.kind, identifier, made, join)
        return done.then(lambda _: Completion.of(identifier))

    def delete(self, item: DirectoryObject, *, join: Join | None = None) -> Completion[None]:
        found = self._locate(item)
        if found is None:
            return failed(not_found(item.kind, f"there is no {item.kind.title} {item.describe()}"))
        return self._keep(found.kind, found[IDENTIFIER], None, join)

    def write(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[None]:
        found = self._locate(item)
        if found is None:
            return failed(not_found(item.kind, f"there is no {item.kind.title} {item.describe()}"))
        rules = RULES[item.kind]
        kept = {IDENTIFIER, *rules.fixed, *rules.computed}
        try:
            changes: dict[str, Any] = {
                name: value for name, value in self._limited(item, attributes).items() if name not in kept
            }
        except ValueError as error:
            return failed(as_directory_error(error, item.kind))
        if "ModifyTime" in ATTRIBUTES[item.kind]:
            changes["ModifyTime"] = max(self._environment.now_s(), found.get("ModifyTime") or 0)
        return self._keep(item.kind, found[IDENTIFIER], found.changed(changes), join)

    def _search(self, kind: ObjectType, conditions: Filter) -> Iterable[DirectoryObject]:
        return self._objects[kind].search(conditions)

    def resolve_list(self, identifier: UUID, domain: str = "") -> Completion[tuple[str, ...]]:
        found = self._objects[ObjectType.DISTRIBUTION_LIST].get(identifier)
        if found is None:
            return failed(
                not_found(ObjectType.DISTRIBUTION_LIST, f"there is no distribution list {identifier}")
            )
        return Completion.of(found.get("Members") or ())

    def machine_sid(self, computer: str) -> Completion[str]:
        found = self.read(ObjectType.QUEUE_MANAGER, (equals("ComputerName", computer),), ("MachineSid",))
        return found.then(lambda item: Completion.of(item["MachineSid"]))

    # ---- making objects

    def _limited(self, item: DirectoryObject, attributes: Collection[str] | None) -> dict[str, Any]:
        for name in attributes or ():
            attribute_kind(item.kind, name)
        return {
            name: value for name, value in item.values.items() if attributes is None or name in attributes
        }

    def _made(self, item: DirectoryObject, attributes: Collection[str] | None) -> DirectoryObject:
        kind, rules = item.kind, RULES[item.kind]
        values = self._limited(item, attributes)
        for name in rules.required:
            if name not in values:
                raise generic(f"a new {kind.title} needs the attribute {name}", kind)
        if kind is ObjectType.QUEUE:
            check_public(values["Pathname"])
        identifier = item.identifier
        if identifier is None:
            identifier = UUID(bytes=self._environment.random_bytes(16), version=4)
        elif any(identifier in objects for objects in self._objects.values()):
            raise _exists(kind, f"an object {identifier} already exists")
        values[IDENTIFIER] = identifier
        made = DirectoryObject.trusted(kind, values).changed(self._computed(kind, values))
        held = self._objects[kind].holder(made)
        if held is not None:
            name, other = held
            raise _exists(kind, f"the {kind.title} {other.identifier} already has the {name} {other[name]}")
        return made

    def _computed(self, kind: ObjectType, values: dict[str, Any]) -> dict[str, Any]:
        known = ATTRIBUTES[kind]
        found: dict[str, Any] = {}
        path = paths.full_path(DirectoryObject.trusted(kind, values), self._root)
        if path:
            found["FullPath"] = path
        if "DirectoryPath" in known:
            found["DirectoryPath"] = f"LDAP://{path}"
        if "CreateTime" in known:
            found["CreateTime"] = found["ModifyTime"] = self._environment.now_s()
        return found

    def _locate(self, item: DirectoryObject) -> DirectoryObject | None:
        """Return the stored object of `item`: by identifier, else by path, else by unique key. None if there
        is none.
        """
        objects = self._objects[item.kind]
        if item.identifier is not None:
            return objects.get(item.identifier)
        path = item.get("FullPath") or str(item.get("DirectoryPath") or "").removeprefix("LDAP://")
        if path and "FullPath" in ATTRIBUTES[item.kind]:
            found = next(objects.search((equals("FullPath", path),)), None)
            if found is not None:
                return found
        held = objects.holder(item)
        return None if held is None else held[1]

    # ---- the store

    def _keep(
        self, kind: ObjectType, identifier: UUID, item: DirectoryObject | None, join: Join | None
    ) -> Completion[None]:
        """Write an object into memory and store, or delete it if `item` is None. `join` is called in the same
        unit of work.
        """
        done: Completion[None] = Completion()
        key = _key(kind, identifier)
        before = self._objects[kind].get(identifier)
        try:
            with self._store.writer.unit() as writer:
                if item is None:
                    writer.delete_record(Table.DIRECTORY, key)
                else:
                    writer.put_record(Table.DIRECTORY, key, cold(item.to_store()))
                writer.on_roll_back(lambda: self._place(kind, identifier, before))
                self._place(kind, identifier, item)
                writer.when_durable(lambda status: self._kept(done, kind, identifier, status))
                if join is not None:
                    join(identifier)
        except Exception as error:
            return failed(error)
        return done

    def _kept(self, done: Completion[None], kind: ObjectType, identifier: UUID, status: int) -> None:
        key = _key(kind, identifier)
        if status:
            self._suspect.add(key)
        if key in self._suspect:  # the state in memory depends on a failed commit
            record = self._store.tables.get(Table.DIRECTORY, key)
            self._place(kind, identifier, None if record is None else _object(kind, record))
        if status:
            done.fail(MessageStorageFailed(f"the store failed (status {status})"))
        else:
            done.resolve(None)

    def _place(self, kind: ObjectType, identifier: UUID, item: DirectoryObject | None) -> None:
        if item is None:
            self._objects[kind].discard(identifier)
        else:
            self._objects[kind].put(item)

    def _load(self) -> None:
        """Load every durable object.

        Damaged records are reported and skipped. Records of types that this version does not know are
        ignored.
        """
        known = {int(kind): kind for kind in ObjectType}
        for key, record in scan_pages(self._store.tables.scan, Table.DIRECTORY):
            kind = known.get(key[0])
            if kind is None:
                continue
            try:
                self._objects[kind].put(_stored(kind, key, record))
            except (ValueError, TypeError, DirectoryError) as error:
                self._environment.report_corrupt(
                    f"the directory record with the key {key.hex()} is damaged: {error}"
                )


def _key(kind: ObjectType, identifier: UUID) -> bytes:
    return bytes((kind,)) + identifier.bytes


def _object(kind: ObjectType, record: bytes) -> DirectoryObject:
    values = decode.cold(record)
    if not isinstance(values, dict):
        raise decode.DecodeError("a directory record must be a map")
    return DirectoryObject.from_store(kind, values)


def _stored(kind: ObjectType, key: bytes, record: bytes) -> DirectoryObject:
    """Returns the object of an unchecked record. Raises ValueError, TypeError or DirectoryError if the record
    is not valid.
    """
    item = _object(kind, record)
    if _key(kind, item[IDENTIFIER]) != key:
        raise ValueError("the object in the record does not match the key of the record")
    for name in RULES[kind].required:
        item[name]
    return item


def _exists(kind: ObjectType, detail: str) -> DirectoryError:
    return DirectoryError(DirectoryOperationResult.OBJECT_ALREADY_EXISTS, detail, kind=kind)
