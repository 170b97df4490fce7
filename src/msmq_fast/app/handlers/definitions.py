"""Requests that export definitions, and that import one at a time (section 8.7 of the protocol).

Exports and imports need the right to administer the queue manager: an export leaves out nothing that its
caller may not see, so that it is complete or refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from msmq_fast.app.arguments import Field, arguments
from msmq_fast.app.handlers.administration import NAMES, properties_of
from msmq_fast.app.handlers.permissions import descriptor_of
from msmq_fast.app.session import Handler, Session
from msmq_fast.directory.document import Outcome, entry_of
from msmq_fast.directory.filters import Condition, Operator
from msmq_fast.directory.objects import IDENTIFIER, RULES, DirectoryObject
from msmq_fast.directory.objecttypes import BY_TITLE, ObjectType
from msmq_fast.directory.results import for_applications
from msmq_fast.protocol.definitions import DIRECTORY_OBJECTS, PARTS
from msmq_fast.protocol.errors import (
    IllegalQueuePathName,
    InvalidParameter,
    PropertyError,
)
from msmq_fast.protocol.frames import Frame
from msmq_fast.protocol.resources import QueueProperties
from msmq_fast.protocol.text import quoted
from msmq_fast.qm.operator.showing import KINDS, infos
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.edit import merge
from msmq_fast.security.sddl import to_sddl

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.qm.queues.queue import Queue

_PAGE: Final = 1000  # queues
_PAGE_BYTES: Final = 2 << 20  # of the descriptors of one page of queues
_OBJECTS: Final = 100  # of one page
_KEYS: Final = tuple(QueueProperties.__annotations__)
_TYPES: Final = tuple(BY_TITLE[title.casefold()] for title in DIRECTORY_OBJECTS)


# ---- export


def _export(session: Session, request_id: int, payload: memoryview) -> None:
    part, after = arguments(payload, Field("part", str), Field("after", str, default=""))
    manager = session.manager
    manager.guard.administer(session.token, "export definitions")
    match part:
        case "queue_manager":
            entry = {"security": to_sddl(manager.guard.machine)}
            session.reply(request_id, {"entries": [entry], "next": ""})
        case "queues":
            session.reply(request_id, _queues(manager, after))
        case "directory":
            _directory(session, request_id, after)
        case _:
            raise InvalidParameter(f"part must be one of {', '.join(PARTS)}")


def _local(queue: Queue) -> str:
    """Return the name of a queue of this computer without the computer."""
    return queue.name.partition("\\")[2]


def _queues(manager: QueueManager, after: str) -> dict[str, Any]:
    waiting = sorted(
        ((_local(queue).casefold(), queue) for queue in manager.queues() if queue.kind in KINDS["user"]),
        key=lambda one: one[0],
    )
    waiting = [one for one in waiting if one[0] > after]
    entries: list[dict[str, Any]] = []
    size, last = 0, ""
    page = (queue for _, queue in waiting[:_PAGE])
    for info, (key, queue) in zip(infos(page, manager.guid, (), lambda _: True), waiting, strict=False):
        shown = info.as_map()
        entries.append({"name": f".\\{_local(queue)}"} | {name: shown[name] for name in _KEYS})
        size, last = size + len(shown["security"]), key
        if size > _PAGE_BYTES:
            break
    return {"entries": entries, "next": last if len(entries) < len(waiting) else ""}


def _directory(session: Session, request_id: int, after: str) -> None:
    """Reply with the next objects of one type. `after` is the number of the type in _TYPES, a colon, and the
    GUID after which to begin.
    """
    number, _, identifier = after.partition(":")
    try:
        index = int(number or "0")
        kind = _TYPES[index]
        conditions = (Condition(IDENTIFIER, Operator.GREATER_THAN, UUID(identifier)),) if identifier else ()
    except (ValueError, IndexError):
        raise InvalidParameter("after must be the `next` of the page before") from None
    manager = session.manager
    found = for_applications(manager.directory.events.all(kind, conditions, limit=_OBJECTS))

    def answer(items: list[DirectoryObject]) -> dict[str, Any]:
        following = f"{index + 1}:" if index + 1 < len(_TYPES) else ""
        if len(items) == _OBJECTS:
            following = f"{index}:{items[-1].identifier}"
        return {
            "entries": [_entry(item) for item in items if not _own(manager, item)],
            "next": following,
        }

    session.when(request_id, found, answer)


def _own(manager: QueueManager, item: DirectoryObject) -> bool:
    """Return whether an object is this queue manager or one of its queues, which definitions describe in
    another way.
    """
    if item.kind is ObjectType.QUEUE:
        return manager.directory.is_own_path(item.get("Pathname"))
    return item.kind is ObjectType.QUEUE_MANAGER and item.identifier == manager.guid


def _entry(item: DirectoryObject) -> dict[str, Any]:
    computed = RULES[item.kind].computed
    # There is one enterprise in a directory, which each directory makes with a GUID of its own.
    left_out = (*computed, IDENTIFIER) if item.kind is ObjectType.ENTERPRISE else computed
    return {name: value for name, value in entry_of(item).items() if name not in left_out}


# ---- import


def _put(session: Session, request_id: int, payload: memoryview) -> None:
    entry, dry_run = arguments(payload, Field("entry", dict), Field("dry run", bool, default=False))
    session.manager.guard.administer(session.token, "import definitions")
    name = entry.pop("name", None)
    if name is None:
        _put_manager(session, request_id, entry, dry_run=dry_run)
        return
    if not isinstance(name, str):
        raise InvalidParameter("the name of a queue must be text")
    values = properties_of(entry)
    security = values.pop("security", None)
    registry = session.manager.registry
    part = registry.part_of_path(name)
    queue = registry.by_key(part.key)
    if queue is None:
        _create(session, request_id, name, security, values, dry_run=dry_run)
    elif queue.kind not in KINDS["user"]:
        raise IllegalQueuePathName(f"{quoted(name)} is not the path of a public or private queue")
    else:
        _change(session, request_id, queue, security, values, dry_run=dry_run)


def _put_manager(session: Session, request_id: int, entry: Mapping[str, Any], *, dry_run: bool) -> None:
    unknown = next((str(name) for name in entry if name != "security"), None)
    if unknown is not None:
        raise PropertyError(f"the definition of a queue manager has no property {quoted(unknown)}")
    manager, token = session.manager, session.token
    old = manager.guard.machine
    given = descriptor_of(entry["security"]) if entry else None
    if given is None or _same(old, given):
        session.reply(request_id, [Outcome.UNCHANGED.value, ""])
    elif dry_run:
        manager.guard.change_permissions(token, None, given)
        session.reply(request_id, [Outcome.CHANGED.value, "security"])
    else:
        done = manager.set_security(None, given, token=token)
        session.when(request_id, done, lambda _: [Outcome.CHANGED.value, "security"])


def _create(
    session: Session,
    request_id: int,
    name: str,
    security: SecurityDescriptor | None,
    values: dict[str, Any],
    *,
    dry_run: bool,
) -> None:
    manager, token = session.manager, session.token
    answer = [Outcome.CREATED.value, ""]
    if dry_run:
        manager.queue_admin.check_new(name, token, security, values)
        session.reply(request_id, answer)
        return
    done = manager.create_queue(name, token=token, security=security, **values)
    session.when(request_id, done, lambda _: answer)


def _change(
    session: Session,
    request_id: int,
    queue: Queue,
    security: SecurityDescriptor | None,
    values: dict[str, Any],
    *,
    dry_run: bool,
) -> None:
    manager, token = session.manager, session.token
    wanted = replace(queue.properties)
    wanted.update(values)
    differing = [name for name in values if getattr(wanted, name) != getattr(queue.properties, name)]
    if "transactional" in differing:
        kind = "transactional" if queue.transactional else "not transactional"
        raise PropertyError(f"the queue is {kind}, which cannot be changed")
    if security is not None and _same(queue.security, security):
        security = None
    names = [NAMES.get(name, name) for name in differing] + ["security"] * (security is not None)
    if not names:
        session.reply(request_id, [Outcome.UNCHANGED.value, ""])
        return
    changes = {name: values[name] for name in differing}
    answer = [Outcome.CHANGED.value, ", ".join(names)]
    if dry_run:
        manager.queue_admin.check_change(queue, token, security, changes)
        session.reply(request_id, answer)
        return
    done = manager.set_properties(queue, token=token, security=security, **changes)
    session.when(request_id, done, lambda _: answer)


def _same(old: SecurityDescriptor, given: SecurityDescriptor) -> bool:
    """Return whether the parts that `given` has are those of `old`."""
    return to_sddl(merge(old, given)) == to_sddl(old)


HANDLERS: dict[int, Handler] = {Frame.EXPORT_DEFINITIONS: _export, Frame.PUT_DEFINITION: _put}
