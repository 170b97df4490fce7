"""The directory as a JSON document: an export for another directory, an import that creates or corrects
objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

from msmq_fast.directory.enumerations import failed
from msmq_fast.directory.filters import Condition, Filter, equals
from msmq_fast.directory.objects import IDENTIFIER, RULES, DirectoryObject
from msmq_fast.directory.objecttypes import BY_TITLE, ObjectType
from msmq_fast.directory.provider import Join
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult, generic
from msmq_fast.store.completion import Completion

FORMAT = "msmq_fast_directory"
VERSION = 1
_TYPE = "object"  # key of the object type; no attribute is called so


class Outcome(StrEnum):
    """What an import did with one object of a document."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


class Changes(Protocol):
    """The part of the directory that an import uses; `DirectoryEvents` implements it."""

    def create(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[UUID]: ...

    def write(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[None]: ...

    def read(
        self,
        kind: ObjectType,
        conditions: Filter = (),
        attributes: Collection[str] | None = None,
        *,
        force: bool = False,
    ) -> Completion[DirectoryObject]: ...


def entry_of(item: DirectoryObject) -> dict[str, Any]:
    """Return the entry that describes `item` in a document."""
    return {_TYPE: item.kind.title} | item.to_json()


def document_of(items: Iterable[DirectoryObject]) -> dict[str, Any]:
    """Return the document that has an entry for each of `items`."""
    return {FORMAT: VERSION, "objects": [entry_of(item) for item in items]}


def object_of(entry: object) -> DirectoryObject:
    """Return the object that `entry` describes. Raises ValueError, whose text says what is wrong."""
    if not isinstance(entry, Mapping):
        raise ValueError("expected a JSON object with the attributes of a directory object")
    title = entry.get(_TYPE)
    kind = BY_TITLE.get(title.casefold()) if isinstance(title, str) else None
    if kind is None:
        names = ", ".join(kind.title for kind in ObjectType)
        raise ValueError(f'"{_TYPE}": expected one of {names}, got {title!r}')
    item = DirectoryObject.from_json(kind, {name: entry[name] for name in entry if name != _TYPE})
    if item.identifier is None:
        for name in RULES[kind].required:
            if item.get(name) is None:
                raise ValueError(f"{name}: required for a {kind.title} without an {IDENTIFIER}")
    return item


def read_document(
    document: object, kinds: Collection[ObjectType] | None = None
) -> tuple[list[DirectoryObject], list[str]]:
    """Return (objects, mistakes) of a document: the valid objects, only those of the types in `kinds` if
    given, and one line of text for each invalid entry.
    """
    if not isinstance(document, Mapping) or document.get(FORMAT) != VERSION:
        return [], [f'this is not a directory document: expected the first key "{FORMAT}": {VERSION}']
    entries = document.get("objects")
    if not isinstance(entries, list):
        return [], ['"objects": expected a list']
    found: list[DirectoryObject] = []
    mistakes: list[str] = []
    seen: dict[UUID, int] = {}
    for number, entry in enumerate(entries):
        try:
            item = object_of(entry)
            if item.identifier is not None:
                first = seen.setdefault(item.identifier, number)
                if first != number:
                    raise ValueError(f"objects[{first}] has the same {IDENTIFIER}")
        except ValueError as error:
            mistakes.append(f"objects[{number}]: {error}")
            continue
        if kinds is None or item.kind in kinds:
            found.append(item)
    return found, mistakes


def put(directory: Changes, item: DirectoryObject, *, dry_run: bool = False) -> Completion[Outcome]:
    """Bring one object of the directory up to date: create it, change the attributes that differ, or leave it
    unchanged. Resolves to what was done.

    Attributes that the directory sets itself are not compared. Fails with GenericError if an attribute that
    cannot be changed differs. With `dry_run`, changes nothing, and resolves to what it would do.
    """
    outcome: Completion[Outcome] = Completion()

    def answered(answer: Completion[DirectoryObject]) -> None:
        error = answer.exception()
        if error is None:
            _correct(directory, answer.result(), item, dry_run).add_done_callback(pass_on)
        elif isinstance(error, DirectoryError) and error.result is DirectoryOperationResult.OBJECT_NOT_FOUND:
            if dry_run:
                outcome.resolve(Outcome.CREATED)
                return
            made = directory.create(_without_computed(item))
            made.then(lambda _: Completion.of(Outcome.CREATED)).add_done_callback(pass_on)
        else:
            outcome.fail(error)

    def pass_on(done: Completion[Outcome]) -> None:
        error = done.exception()
        if error is None:
            outcome.resolve(done.result())
        else:
            outcome.fail(error)

    directory.read(item.kind, _which(item)).add_done_callback(answered)
    return outcome


def _which(item: DirectoryObject) -> list[Condition]:
    """Returns the conditions that find the object: by its GUID, its unique key, or the attributes that cannot
    change.
    """
    rules = RULES[item.kind]
    for names in ((IDENTIFIER,), rules.unique, rules.fixed):
        conditions = [equals(name, item[name]) for name in names if item.get(name) is not None]
        if conditions:
            return conditions
    return []


def _without_computed(item: DirectoryObject) -> DirectoryObject:
    computed = RULES[item.kind].computed
    return item.only([name for name in item.values if name not in computed])


def _correct(
    directory: Changes, stored: DirectoryObject, wanted: DirectoryObject, dry_run: bool
) -> Completion[Outcome]:
    rules = RULES[wanted.kind]
    differing = [
        name
        for name, value in wanted.values.items()
        if name not in rules.computed and stored.get(name) != value
    ]
    if not differing:
        return Completion.of(Outcome.UNCHANGED)
    for name in differing:
        if name in rules.fixed:
            said = f"it is {stored.get(name)!r} and the document says {wanted.get(name)!r}"
            return failed(
                generic(f"{name} of an existing {wanted.kind.title} cannot be changed: {said}", wanted.kind)
            )
    if dry_run:
        return Completion.of(Outcome.CHANGED)
    changed = wanted.changed({IDENTIFIER: stored[IDENTIFIER]})
    return directory.write(changed, differing).then(lambda _: Completion.of(Outcome.CHANGED))
