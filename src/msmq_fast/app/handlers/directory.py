"""Requests that read and, for administrators, change the directory (section 3.2 of the protocol)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from msmq_fast.app.arguments import Field, arguments
from msmq_fast.app.session import Handler, Session
from msmq_fast.directory.document import Outcome, entry_of, object_of, put
from msmq_fast.directory.filters import Condition, Operator
from msmq_fast.directory.names import QueuePath, get_queue_path
from msmq_fast.directory.objects import IDENTIFIER, RULES, DirectoryObject, attribute_kind
from msmq_fast.directory.objecttypes import BY_TITLE, ObjectType
from msmq_fast.directory.results import for_applications
from msmq_fast.protocol.errors import IllegalFormatName, InvalidParameter
from msmq_fast.protocol.frames import Frame
from msmq_fast.store.completion import Completion

if TYPE_CHECKING:
    from msmq_fast.qm.operator.directorychanges import DirectoryChanges
    from msmq_fast.qm.queues.queue import Queue

_MAX_PAGE = 1000
_MAX_CONDITIONS = 8
_FORMAT_NAMES = ("PUBLIC", "PRIVATE", "DIRECT")
_TYPE = Field("object", str)
_NAME = Field("name", str)


def _kind(title: str) -> ObjectType:
    kind = BY_TITLE.get(title.casefold())
    if kind is None:
        raise InvalidParameter(f"object must be one of {', '.join(kind.title for kind in ObjectType)}")
    return kind


def named(title: str, name: str, computer: str) -> DirectoryObject:
    """Return a directory object of the type `title` that holds only its key: the GUID or the unique name that
    `name` gives. `.` in the path of a queue stands for `computer`. Raises InvalidParameter.
    """
    kind = _kind(title)
    if kind is ObjectType.QUEUE and name.startswith(".\\"):
        name = computer + name[1:]
    try:
        return DirectoryObject(kind, {IDENTIFIER: UUID(name)})
    except ValueError:
        pass
    try:
        return DirectoryObject(kind, {RULES[kind].unique[0]: name})
    except ValueError as error:
        raise InvalidParameter(str(error)) from None


def _object(session: Session, title: str, name: str) -> Completion[DirectoryObject]:
    """Return a directory object that holds only its key, as `named` does; `name` may also be the format name
    of a queue. The completion fails with ILLEGAL_FORMATNAME if the directory does not know the path of that
    queue.
    """
    computer = session.manager.name
    if name.partition("=")[0].upper() not in _FORMAT_NAMES or _kind(title) is not ObjectType.QUEUE:
        return Completion.of(named(title, name, computer))
    directory = session.manager.directory
    found = get_queue_path(name, directory.events, directory)

    def of_path(queue: QueuePath) -> Completion[DirectoryObject]:
        if not queue.path:
            raise IllegalFormatName(f"the directory does not know the path of the queue {name}")
        return Completion.of(named(title, queue.path, computer))

    return found.then(of_path)


def _found(directory: DirectoryChanges, item: DirectoryObject) -> Completion[DirectoryObject]:
    (name,) = item.values
    return directory.read(item.kind, (Condition(name, Operator.EQUALS, item[name]),))


def _own_queue(session: Session, item: DirectoryObject) -> Queue | None:
    identifier = item.identifier if item.kind is ObjectType.QUEUE else None
    return None if identifier is None else session.manager.registry.by_guid(identifier)


def _shown(session: Session, item: DirectoryObject) -> dict[str, Any]:
    """Return the entry of an object. For a queue of this computer, the entry holds the security descriptor
    only if the caller may see it.
    """
    queue = _own_queue(session, item)
    if queue is not None and not session.manager.guard.sees_permissions(session.token, queue):
        item = item.only([name for name in item.values if name != "Security"])
    return entry_of(item)


def _list(session: Session, request_id: int, payload: memoryview) -> None:
    title, after, limit, where = arguments(
        payload,
        _TYPE,
        Field("after", str, default=""),
        Field("limit", int, default=_MAX_PAGE),
        Field("where", list, default=[]),
    )
    kind = _kind(title)
    conditions = [_condition(kind, one) for one in where[:_MAX_CONDITIONS]]
    if len(where) > _MAX_CONDITIONS:
        raise InvalidParameter(f"where has {len(where)} conditions; at most {_MAX_CONDITIONS} are allowed")
    try:
        conditions += [Condition(IDENTIFIER, Operator.GREATER_THAN, UUID(after))] if after else []
    except ValueError:
        raise InvalidParameter("after must be the Identifier of an object, or empty") from None
    events = session.manager.directory.events
    found = events.all(kind, conditions, limit=min(limit, _MAX_PAGE))
    session.when(request_id, for_applications(found), lambda items: _visible(session, items))


def _condition(kind: ObjectType, given: Any) -> Condition:
    """Return a condition from its map in the request. Raises InvalidParameter."""
    if not isinstance(given, list) or len(given) != 3 or not all(isinstance(one, str) for one in given[:2]):
        raise InvalidParameter("a condition in where must be [attribute, operator, value]")
    attribute, sign, value = given
    try:
        known = attribute_kind(kind, attribute)
        wanted = known.from_json([value])[0] if known.many else known.from_json(value)
        return Condition(attribute, Operator(sign), wanted)
    except ValueError as error:
        raise InvalidParameter(f"where: {error}") from None


def _visible(session: Session, items: list[DirectoryObject]) -> list[dict[str, Any]]:
    """Return the entries of objects. For a queue of this computer that the caller may not see, return only
    the identifier and the path.
    """
    entries: list[dict[str, Any]] = []
    for item in items:
        queue = _own_queue(session, item)
        if queue is not None and not session.manager.guard.sees(session.token, queue):
            item = item.only(("Pathname",))
        entries.append(_shown(session, item))
    return entries


def _show(session: Session, request_id: int, payload: memoryview) -> None:
    title, name = arguments(payload, _TYPE, _NAME)
    directory = session.manager.directory_changes
    found = _object(session, title, name).then(lambda item: _found(directory, item))

    def checked(item: DirectoryObject) -> Completion[DirectoryObject]:
        queue = _own_queue(session, item)
        if queue is not None:
            session.manager.guard.read_properties(session.token, queue)
        return Completion.of(item)

    done = for_applications(found.then(checked))
    session.when(request_id, done, lambda item: _shown(session, item))


def _put(session: Session, request_id: int, payload: memoryview) -> None:
    entry, how, dry_run = arguments(
        payload, Field("entry", dict), Field("how", str), Field("dry_run", bool, default=False)
    )
    session.manager.guard.administer(session.token, "change the directory")
    try:
        item = object_of(entry)
    except ValueError as error:
        raise InvalidParameter(str(error)) from None
    directory = session.manager.directory_changes
    done: Completion[Outcome]
    match how:
        case "create":
            done = directory.create(item).then(lambda _: Completion.of(Outcome.CREATED))
        case "set":
            done = directory.write(item).then(lambda _: Completion.of(Outcome.CHANGED))
        case "import":
            done = put(directory, item, dry_run=dry_run)
        case _:
            raise InvalidParameter("how must be create, set or import")
    if not dry_run:
        name = item.get("Pathname") or item.get("Name") or item.identifier
        target = f"{item.kind.name.lower()} {name}"
        session.manager.audit.recorded(
            done, session.token, "change directory", target, lambda outcome: outcome.value
        )
    session.when(request_id, for_applications(done), lambda outcome: outcome.value)


def _delete(session: Session, request_id: int, payload: memoryview) -> None:
    title, name = arguments(payload, _TYPE, _NAME)
    session.manager.guard.administer(session.token, "change the directory")
    directory = session.manager.directory_changes

    def delete(item: DirectoryObject) -> Completion[Any]:
        return directory.delete(item)

    done = _found(directory, named(title, name, session.manager.name)).then(delete)
    session.manager.audit.recorded(
        done, session.token, "change directory", f"{title.lower()} {name}", lambda _: "deleted"
    )
    session.when(request_id, for_applications(done))


HANDLERS: dict[int, Handler] = {
    Frame.LIST_DIRECTORY: _list,
    Frame.SHOW_DIRECTORY: _show,
    Frame.PUT_DIRECTORY: _put,
    Frame.DELETE_DIRECTORY: _delete,
}
