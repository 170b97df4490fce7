"""The start of a queue manager with a directory (MS-MQDMPR 3.1.3, directory-integrated)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar
from uuid import UUID

from msmq_fast.directory.enumerations import failed
from msmq_fast.directory.events import DirectoryEvents
from msmq_fast.directory.filters import equals
from msmq_fast.directory.local import LocalObjects
from msmq_fast.directory.objects import IDENTIFIER, RULES, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult
from msmq_fast.store.completion import Completion

_log = logging.getLogger(__name__)

T = TypeVar("T")

DEFAULT_TIME_TO_LIVE_S = 345_600  # LongLiveTime

_ABSENT = (DirectoryOperationResult.OBJECT_NOT_FOUND,)


def default_enterprise(*, notify_others: bool = False) -> DirectoryObject:
    """Return the default Enterprise, for a directory that has none (ENT-01 … ENT-05)."""
    return DirectoryObject(
        ObjectType.ENTERPRISE,
        {
            "Name": "msmq_fast",
            "WeakenedSecurity": False,
            "NonLDAPCapableQueueManagerNotification": notify_others,
            "DefaultTimeToLive": DEFAULT_TIME_TO_LIVE_S,
            "OldDirectory": False,
        },
    )


def introduce(
    events: DirectoryEvents, local: LocalObjects, *, provisioning: bool, site: UUID | None = None
) -> Completion[DirectoryObject]:
    """Register the queue manager in the directory. Resolves to the Enterprise (EnterpriseReference).

    `provisioning` is True at the first start: the object of this queue manager is then created if the
    directory does not have it, in the site `site` if given. At any later start a missing object is an error.
    Attributes that the queue manager itself determines, such as its name, are written back. Fails with
    DirectoryNotConnected if the directory cannot be reached: the queue manager then runs as in a workgroup.
    """

    def found(answer: Completion[DirectoryObject]) -> Completion[None]:
        error = answer.exception()
        if error is None:
            local.refresh_queue_manager(answer.result())
            return keep_current(events, answer.result(), local.queue_manager())
        if _result(error) not in _ABSENT or not provisioning:
            return failed(error)
        own = local.queue_manager()
        if site is not None:
            own = own.changed({"SiteIdentifierList": (*(own.get("SiteIdentifierList") or ()), site)})
            local.refresh_queue_manager(own)
        return events.create(own).then(lambda _: Completion.of(None))

    own = events.read(ObjectType.QUEUE_MANAGER, (equals(IDENTIFIER, local.guid),))
    return _whatever(own, found).then(lambda _: _enterprise(events))


def _enterprise(events: DirectoryEvents) -> Completion[DirectoryObject]:
    def answered(answer: Completion[DirectoryObject]) -> Completion[DirectoryObject]:
        error = answer.exception()
        if error is None:
            return answer
        match _result(error):
            case DirectoryOperationResult.ATTRIBUTE_NOT_FOUND:
                return Completion.of(default_enterprise(notify_others=True))
            case DirectoryOperationResult.OBJECT_NOT_FOUND:
                return Completion.of(default_enterprise())
            case _:
                return failed(error)

    return _whatever(events.read(ObjectType.ENTERPRISE), answered)


def keep_current(
    events: DirectoryEvents, stored: DirectoryObject, wanted: DirectoryObject
) -> Completion[None]:
    """Write those attributes of `wanted` that differ from the object `stored` in the directory.

    If fixed attributes differ, for example because the computer was renamed, the object is created again with
    the same identifier, unless the directory is the authority.
    """
    rules = RULES[wanted.kind]
    changes = {
        name: value
        for name, value in wanted.values.items()
        if name not in rules.computed and stored.get(name) != value
    }
    if events.provider.is_authority:
        kept = (*rules.fixed, "Security")
        changes = {name: value for name, value in changes.items() if name not in kept}
    if not changes:
        return Completion.of(None)
    if any(name in rules.fixed for name in changes):
        renewed = DirectoryObject(stored.kind, dict(stored.values) | dict(wanted.values))
        return events.delete(stored).then(
            lambda _: events.create(renewed).then(lambda _: Completion.of(None))
        )
    return events.write(DirectoryObject(wanted.kind, {IDENTIFIER: stored[IDENTIFIER]} | changes))


def publish(events: DirectoryEvents, objects: Iterable[DirectoryObject]) -> None:
    """Create or correct the directory objects of this queue manager's public queues. A queue that was created
    while the directory was offline has no object yet. If the directory is the authority, the queues are
    corrected instead.
    """

    def settle(answer: Completion[DirectoryObject], wanted: DirectoryObject) -> None:
        error = answer.exception()
        authority = events.provider.is_authority
        if error is None and authority:
            events.refresh_queue(answer)
        elif error is None:
            keep_current(events, answer.result(), wanted)
        elif _result(error) in _ABSENT and authority:
            _log.warning("the directory has no object for the queue %s", wanted["Pathname"])
        elif _result(error) in _ABSENT:
            events.create(wanted)

    for wanted in objects:
        answer = events.read(wanted.kind, (equals(IDENTIFIER, wanted[IDENTIFIER]),))
        answer.add_done_callback(lambda answer, wanted=wanted: settle(answer, wanted))  # type: ignore[misc]


def _whatever(
    done: Completion[DirectoryObject], step: Callable[[Completion[DirectoryObject]], Completion[T]]
) -> Completion[T]:
    """Return the completion of `step(done)`, which is called whether `done` succeeded or failed."""
    ended: Completion[None] = Completion()

    def end(_: Completion[DirectoryObject]) -> None:
        ended.resolve(None)

    done.add_done_callback(end)
    return ended.then(lambda _: step(done))


def _result(error: Exception) -> DirectoryOperationResult:
    return error.result if isinstance(error, DirectoryError) else DirectoryOperationResult.GENERIC_ERROR
