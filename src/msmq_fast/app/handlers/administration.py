"""Requests that create, show and change queues, and requests that return counters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from msmq_fast.app.arguments import Field, arguments
from msmq_fast.app.handlers.permissions import descriptor_of
from msmq_fast.app.session import Handler, Session
from msmq_fast.app.versions import EXPECTED, check_version
from msmq_fast.protocol.errors import (
    IllegalPropertyValue,
    InvalidParameter,
    PropertyError,
    QueueNotFound,
    UnsupportedOperation,
)
from msmq_fast.protocol.frames import Frame
from msmq_fast.protocol.text import quoted
from msmq_fast.protocol.versions import queue_settings
from msmq_fast.qm.operator.paging import SORTS, page
from msmq_fast.qm.operator.showing import FIELDS, KINDS, infos, maps
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.queue import Queue, QueueKind

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager

_NAME = Field("name", str)
_PROPERTIES = Field("properties", dict)
_KIND = Field("kind", str, default="user")
_MAX_PAGE = 1000
_MAX_PATTERN = 249  # characters, as a label

# The property names of this protocol that the queue manager calls by another name.
_RENAMED = {"journal": "journaling", "privacy_level": "privacy"}
NAMES = {own: name for name, own in _RENAMED.items()}
"""The names of this protocol, by those of the queue manager; the other names are the same."""
_SETTABLE = frozenset(
    (
        "label",
        "transactional",
        "journal",
        "quota_kb",
        "journal_quota_kb",
        "authenticated",
        "base_priority",
        "privacy_level",
        "security",
        "multicast_address",
        "poison_after",
        "type",
    )
)

_LISTED = {
    **KINDS,
    "local": tuple(kind for kind in QueueKind if kind is not QueueKind.OUTGOING),
    "all": tuple(QueueKind),
}


def properties_of(given: dict[Any, Any]) -> dict[str, Any]:
    """Return properties of a queue under the names of the queue manager. Values are checked as far as their
    types here differ from those there. Raises PropertyError, IllegalPropertyValue.
    """
    for name in given:
        if name not in _SETTABLE:
            raise PropertyError(f"a queue has no property {name!r}")
    values = {_RENAMED.get(name, name): value for name, value in given.items()}
    if isinstance(values.get("type"), str):
        try:
            values["type"] = UUID(values["type"])
        except ValueError:
            raise IllegalPropertyValue(f"type: {values['type']!r} is not a GUID") from None
    if "security" in values:
        values["security"] = descriptor_of(values["security"])
    return values


def _ping(session: Session, request_id: int, payload: memoryview) -> None:
    arguments(payload)
    session.reply(request_id)


def _stats(session: Session, request_id: int, payload: memoryview) -> None:
    arguments(payload)
    service = session.service
    counters = {f"app_{name}": value for name, value in service.counters.as_dict().items()}
    session.reply(request_id, counters | dict(service.statistics()))


def _reload(session: Session, request_id: int, payload: memoryview) -> None:
    arguments(payload)
    session.manager.guard.administer(session.token, "reload the configuration")
    reload = session.service.reload
    if reload is None:
        raise UnsupportedOperation("this server has no configuration to reload")
    session.reply(request_id, dict(reload(session.token)))


def _series(session: Session, request_id: int, payload: memoryview) -> None:
    name, resolution, since = arguments(
        payload,
        _NAME,
        Field("resolution", int, default=5),
        Field("since", int, default=0, maximum=0xFFFF_FFFF),
    )
    manager = session.manager
    queue = manager.find(name) if name else None
    if queue is not None:
        manager.guard.read_properties(session.token, queue)
    session.reply(request_id, manager.series.of(queue, resolution, since).as_map())


def _create(session: Session, request_id: int, payload: memoryview) -> None:
    name, properties = arguments(payload, _NAME, _PROPERTIES)
    manager = session.manager
    done = manager.create_queue(name, token=session.token, **properties_of(properties))
    session.when(request_id, done, lambda queue: _shown(session, queue))


def _delete(session: Session, request_id: int, payload: memoryview) -> None:
    name, expected = arguments(payload, _NAME, EXPECTED)
    check_queue(session, session.manager.find(name), expected)
    session.when(request_id, session.manager.delete_queue(name, token=session.token))


def _get(session: Session, request_id: int, payload: memoryview) -> None:
    (name,) = arguments(payload, _NAME)
    session.reply(request_id, _seen(session, session.manager.find(name)))


def _set(session: Session, request_id: int, payload: memoryview) -> None:
    name, properties, expected = arguments(payload, _NAME, _PROPERTIES, EXPECTED)
    manager = session.manager
    queue = manager.find(name)
    check_queue(session, queue, expected)
    done = manager.set_properties(queue, token=session.token, **properties_of(properties))
    session.when(request_id, done, lambda _: _shown(session, queue))


def check_queue(session: Session, queue: Queue, expected: list[Any] | None) -> None:
    """Raise Changed unless `expected` is None or holds the version of the settings that the caller sees."""
    if expected is not None:
        check_version(expected, queue_settings(_shown(session, queue)))


def _list(session: Session, request_id: int, payload: memoryview) -> None:
    (kind,) = arguments(payload, _KIND)
    session.reply(request_id, _maps(session, _visible(session, kind)))


def _page(session: Session, request_id: int, payload: memoryview) -> None:
    kind, text, glob, sort, descending, limit, offset, fields, rights = arguments(
        payload,
        _KIND,
        Field("text", str, default=""),
        Field("glob", str, default=""),
        Field("sort", str, default="name"),
        Field("descending", bool, default=False),
        Field("limit", int, maximum=_MAX_PAGE, default=100),
        Field("offset", int, default=0),
        Field("fields", list, default=[]),
        Field("rights", bool, default=False),
    )
    if sort not in SORTS:
        raise InvalidParameter(f"sort must be one of {', '.join(SORTS)}")
    if limit == 0:
        raise InvalidParameter(f"limit must be from 1 to {_MAX_PAGE}")
    if max(len(text), len(glob)) > _MAX_PATTERN:
        raise InvalidParameter(f"text and glob may have at most {_MAX_PATTERN} characters")
    for name in fields:
        if name not in FIELDS:
            raise InvalidParameter(
                f"fields must be fields of a queue, such as name; not {quoted(str(name)[:40])}"
            )
    manager = session.manager
    ordered = manager.in_order(_kinds(kind))
    found = page(
        ordered,
        manager.guard.visible(session.token, ordered.queues),
        text=text,
        glob=glob,
        sort=sort,
        descending=descending,
        limit=limit,
        offset=offset,
    )
    shown = _maps(session, found.queues, tuple(dict.fromkeys(fields)) or FIELDS)
    if rights and kind != "outgoing":
        for one, may_peek in zip(shown, manager.guard.peekable(session.token, found.queues), strict=True):
            one["may_peek"] = may_peek
    session.reply(
        request_id,
        {
            "queues": shown,
            "total": found.total,
            "messages": found.messages,
            "bytes": found.bytes,
        },
    )


def _visible(session: Session, kind: str) -> Sequence[Queue]:
    """Return the queues of a kind that the caller may see. Raises InvalidParameter for an unknown kind."""
    manager, kinds = session.manager, _kinds(kind)
    return manager.guard.visible(session.token, [one for one in manager.queues() if one.kind in kinds])


def _kinds(name: str) -> tuple[QueueKind, ...]:
    if name not in _LISTED:
        raise InvalidParameter(f"kind must be one of {', '.join(_LISTED)}")
    return _LISTED[name]


def _maps(
    session: Session, queues: Iterable[Queue], fields: Collection[str] = FIELDS
) -> list[dict[str, Any]]:
    manager, token = session.manager, session.token
    return list(
        maps(
            queues,
            fields,
            manager.guid,
            manager.incoming.transfers(),
            lambda queue: manager.guard.sees_permissions(token, queue),
        )
    )


def _shown(session: Session, queue: Queue) -> dict[str, Any]:
    """Return the properties of a queue that the caller may see (section 3.1 of the protocol)."""
    manager, token = session.manager, session.token
    (info,) = infos(
        [queue],
        manager.guid,
        manager.incoming.transfers(),
        lambda queue: manager.guard.sees_permissions(token, queue),
    )
    return info.as_map()


def _seen(session: Session, queue: Queue) -> dict[str, Any]:
    session.manager.guard.read_properties(session.token, queue)
    return _shown(session, queue)


def outgoing_queue(manager: QueueManager, name: str) -> OutgoingQueue:
    """Return an outgoing queue. Raises QueueNotFound."""
    queue = manager.find(name)
    if not isinstance(queue, OutgoingQueue):
        raise QueueNotFound(f"{name} is a queue of this computer, not an outgoing queue")
    return queue


def _administered(session: Session, name: str, operation: str) -> OutgoingQueue:
    queue = outgoing_queue(session.manager, name)
    session.manager.guard.administer(session.token, f"{operation} the outgoing queue {queue.name}")
    return queue


def _list_outgoing(session: Session, request_id: int, payload: memoryview) -> None:
    arguments(payload)
    session.reply(request_id, _maps(session, _visible(session, "outgoing")))


def _show_outgoing(session: Session, request_id: int, payload: memoryview) -> None:
    (name,) = arguments(payload, _NAME)
    session.reply(request_id, _seen(session, outgoing_queue(session.manager, name)))


def _pause_outgoing(session: Session, request_id: int, payload: memoryview) -> None:
    (name,) = arguments(payload, _NAME)
    queue = _administered(session, name, "pause")
    session.when(request_id, session.manager.pause(queue, token=session.token))


def _resume_outgoing(session: Session, request_id: int, payload: memoryview) -> None:
    (name,) = arguments(payload, _NAME)
    queue = _administered(session, name, "resume")
    session.when(request_id, session.manager.resume(queue, token=session.token))


def _purge_outgoing(session: Session, request_id: int, payload: memoryview) -> None:
    (name,) = arguments(payload, _NAME)
    queue = _administered(session, name, "purge")
    session.when(request_id, session.manager.purge(queue, token=session.token), int)


def _kick_outgoing(session: Session, request_id: int, payload: memoryview) -> None:
    (name,) = arguments(payload, _NAME)
    queue = _administered(session, name, "kick")
    session.manager.kick(queue, token=session.token)
    session.reply(request_id, _shown(session, queue))


HANDLERS: dict[int, Handler] = {
    Frame.PING: _ping,
    Frame.STATS: _stats,
    Frame.RELOAD: _reload,
    Frame.SERIES: _series,
    Frame.CREATE_QUEUE: _create,
    Frame.DELETE_QUEUE: _delete,
    Frame.GET_QUEUE: _get,
    Frame.SET_QUEUE: _set,
    Frame.LIST_QUEUES: _list,
    Frame.PAGE_QUEUES: _page,
    Frame.LIST_OUTGOING: _list_outgoing,
    Frame.SHOW_OUTGOING: _show_outgoing,
    Frame.PAUSE_OUTGOING: _pause_outgoing,
    Frame.RESUME_OUTGOING: _resume_outgoing,
    Frame.PURGE_OUTGOING: _purge_outgoing,
    Frame.KICK_OUTGOING: _kick_outgoing,
}
