"""Requests on many messages: list, move, copy, remove, send again, import (section 8 of the protocol)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msmq_fast.app.arguments import Field, arguments
from msmq_fast.app.handlers.administration import outgoing_queue
from msmq_fast.app.sending import SendTarget
from msmq_fast.app.session import Handler, Session
from msmq_fast.protocol.errors import (
    InsufficientResources,
    InvalidHandle,
    InvalidParameter,
    UnsupportedAccessMode,
)
from msmq_fast.protocol.frames import Frame
from msmq_fast.qm.operator.importing import Entry, Import
from msmq_fast.qm.operator.jobs import Progress, check_job
from msmq_fast.qm.operator.outcome import Outcome
from msmq_fast.qm.operator.plan import MAX_TARGETS, Plan
from msmq_fast.qm.operator.relocation import relocate
from msmq_fast.qm.operator.removal import remove
from msmq_fast.qm.queues.browse import (
    EVER,
    MAX_LOOKUP_IDS,
    SEQUENCE_MASK,
    Page,
    Selection,
    Stretch,
    browse,
    lookup_order,
)
from msmq_fast.store.completion import Completion

if TYPE_CHECKING:
    from msmq_fast.qm.queues.queue import Queue

MAX_IMPORTS: Final = 16  # of one connection at once
_MAX_PATTERN: Final = 249  # characters, as a label
_NO_ID: Final = bytes(20)  # the length of message identifiers
_U64: Final = 0xFFFF_FFFF_FFFF_FFFF
_HANDLE = Field("handle", int)
_QUEUE = Field("queue", int, str)  # a handle, or the name of an outgoing queue
_FILTER = Field("filter", dict, default={})
_AFTER = Field("after", int, maximum=SEQUENCE_MASK, default=0)
_UPTO = Field("upto", int, maximum=SEQUENCE_MASK, default=0)
_LIMIT = Field("limit", int, default=0xFFFF_FFFF)
_IMPORTING: Final = ("import messages", "the queue manager")
_FILTER_FIELDS = {
    "label": Field("label", str),
    "class": Field("class", int, maximum=0xFFFF),
    "since": Field("since", int, maximum=_U64),
    "until": Field("until", int, maximum=_U64),
    "id": Field("id", bytes),
    "correlation_id": Field("correlation_id", bytes),
    "priority": Field("priority", int, maximum=7),
    "lookup_ids": Field("lookup_ids", list),
}
_LOOKUP_ID = Field("a lookup id", int, maximum=_U64)


def _selection(given: dict[Any, Any]) -> Selection:
    for name in given:
        if name not in _FILTER_FIELDS:
            raise InvalidParameter(f"unknown filter field {name!r}")
    checked = {name: _FILTER_FIELDS[name].check(value) for name, value in given.items()}
    label = checked.get("label")
    if label is not None and len(label) > _MAX_PATTERN:
        raise InvalidParameter(f"label: a pattern may have at most {_MAX_PATTERN} characters")
    for name in ("id", "correlation_id"):
        if len(checked.get(name, _NO_ID)) != len(_NO_ID):
            raise InvalidParameter(f"{name} must have {len(_NO_ID)} bytes, not {len(checked[name])}")
    return Selection(
        label,
        checked.get("class"),
        checked.get("since", 0),
        checked.get("until", EVER),
        checked.get("id"),
        checked.get("correlation_id"),
        checked.get("priority"),
        _lookup_ids(checked["lookup_ids"]) if "lookup_ids" in checked else None,
    )


def _lookup_ids(given: list[Any]) -> tuple[int, ...]:
    if len(given) > MAX_LOOKUP_IDS:
        raise InvalidParameter(f"lookup_ids may have at most {MAX_LOOKUP_IDS} entries, not {len(given)}")
    return lookup_order(map(_LOOKUP_ID.check, given))


def _stretch(session: Session, given: dict[Any, Any], after: int, upto: int, limit: int) -> Stretch:
    """Return the range of messages that the parameters of a request select; `upto` 0 means all messages that
    have arrived by now.
    """
    return Stretch(_selection(given), after, upto or session.manager.ledger.sequence, limit)


def _locked(queue: Queue) -> int:
    positions = queue.core.positions
    return positions.live - positions.available - positions.pending


def _browse(session: Session, request_id: int, payload: memoryview) -> None:
    source, given, after, upto, limit = arguments(payload, _QUEUE, _FILTER, _AFTER, _UPTO, _LIMIT)
    if isinstance(source, str):
        queue: Queue = outgoing_queue(session.manager, source)
        session.manager.guard.read(session.token, queue)
    else:
        queue = session.handle(source).reader().queue
    stretch = _stretch(session, given, after, upto, limit)

    def answer(page: Page) -> dict[str, Any]:
        return {
            "next": page.next,
            "upto": stretch.upto,
            "finished": page.finished,
            "locked": _locked(queue),
            "messages": [
                [m.lookup_id, m.arrived_us, m.abort_count, m.move_count, m.packet, m.reason]
                for m in page.messages
            ],
        }

    session.when(request_id, browse(queue.core, stretch), answer)


def _answer(outcome: Outcome, stretch: Stretch) -> dict[str, Any]:
    return {
        "next": outcome.next,
        "upto": stretch.upto,
        "finished": outcome.finished,
        "count": outcome.count,
        "bytes": outcome.size,
        "refusals": outcome.refusals,
        "refused": [[code, detail, ids] for (code, detail), ids in outcome.refused.items()],
        "plan": None if outcome.plan is None else list(outcome.plan.bytes.items()),
    }


def _plan(given: list[Any] | None, *, frees: bool) -> Plan | None:
    """Return the plan that a request of a dry run brings; None for other requests."""
    if given is None:
        return None
    if len(given) > MAX_TARGETS:
        raise InvalidParameter(f"a plan may have at most {MAX_TARGETS} queues, not {len(given)}")
    if not all(isinstance(one, list) and len(one) == len(_PLANNED) for one in given):
        raise InvalidParameter("a plan must be the one of the previous reply, or empty")
    return Plan(
        [(_PLANNED[0].check(ordinal), _PLANNED[1].check(size)) for ordinal, size in given], frees=frees
    )


_PLANNED = (Field("a queue of the plan", int), Field("bytes of the plan", int, maximum=1 << 62))
_PLAN = Field("plan", list, type(None), default=None)


def _relocate(session: Session, request_id: int, payload: memoryview) -> None:
    number, target_number, keep, given, after, upto, limit, job, each, planned = arguments(
        payload,
        _HANDLE,
        Field("target", int),
        Field("keep", bool),
        _FILTER,
        Field("after", int, type(None), maximum=SEQUENCE_MASK, default=0),
        _UPTO,
        _LIMIT,
        Field("job", bytes, type(None), default=None),
        Field("each", bool, default=False),
        _PLAN,
    )
    manager, plan = session.manager, _plan(planned, frees=not keep)
    reader, sending = session.handle(number).reader(), session.handle(target_number).sending
    if not isinstance(sending, SendTarget):
        raise UnsupportedAccessMode("the target must be a single queue that is open for sending")
    if not keep and not reader.access.receives:
        raise UnsupportedAccessMode("the source is not open for receiving")
    source, target = reader.queue, sending.queue
    if job is not None and plan is not None:
        raise InvalidParameter("a dry run has no job")
    if job is not None:
        # Progress stays in the store until the job is complete, which takes the patience of an operator.
        manager.guard.administer(session.token, "copy messages with progress")
        check_job(job)

    def run(progress: Progress) -> Completion[dict[str, Any]]:
        stretch = _stretch(session, given, progress.done, progress.upto, limit)

        def note(outcome: Outcome) -> None:
            if job is not None:
                done = stretch.upto if outcome.finished else outcome.next
                manager.jobs.advance(job, Progress(done, stretch.upto, target.guid.bytes_le))

        also = note if job is not None else None
        done = relocate(
            manager.store,
            source,
            target,
            stretch,
            keep=keep,
            also=also,
            each=each,
            plan=plan,
            caller=0 if plan is not None else manager.events.callers.number(session.token),
        )
        return done.then(lambda outcome: Completion.of(_answer(outcome, stretch)))

    if after is None and job is not None:
        done = manager.jobs.find(job).then(run)
    else:
        done = run(Progress(after or 0, upto))
    key = ("relocate", source.ordinal, target.ordinal, keep)
    names = ("copy messages" if keep else "move messages", f"{source.name} to {target.name}")
    if plan is None:
        session.audited_page(key, names, done, _page, first=not after)
    session.when(request_id, done, dict)


def _page(answer: dict[str, Any]) -> tuple[int, bool]:
    """Return the number of messages of a page, and whether it is the last one."""
    return answer["count"], answer["finished"]


def _progress(outcome: Outcome) -> tuple[int, bool]:
    """Return the number of messages of a batch, and whether it is the last one."""
    return outcome.count, outcome.finished


def _resubmit(session: Session, request_id: int, payload: memoryview) -> None:
    number, given, after, upto, limit, planned = arguments(
        payload, _HANDLE, _FILTER, _AFTER, _UPTO, _LIMIT, _PLAN
    )
    reader = session.handle(number).reader()
    if not reader.access.receives:
        raise UnsupportedAccessMode("the queue is not open for receiving")
    stretch = _stretch(session, given, after, upto, limit)
    plan = _plan(planned, frees=True)
    done = session.manager.resubmission.resubmit(reader.queue, stretch, session.token, plan)
    if plan is None:
        key, names = ("resubmit", reader.queue.ordinal), ("resubmit messages", reader.queue.name)
        session.audited_page(key, names, done, _progress, first=not after)
    session.when(request_id, done, lambda outcome: _answer(outcome, stretch))


def _remove(session: Session, request_id: int, payload: memoryview) -> None:
    given, wanted, after, upto, limit, dry_run = arguments(
        payload, _QUEUE, _FILTER, _AFTER, _UPTO, _LIMIT, Field("dry run", bool, default=False)
    )
    queue = _source(session, given)
    stretch = _stretch(session, wanted, after, upto, limit)
    caller = session.manager.events.callers.number(session.token)
    done = remove(session.manager.store, queue, stretch, dry_run=dry_run, caller=caller)
    if not dry_run:
        key, names = ("remove", queue.ordinal), ("remove messages", queue.name)
        session.audited_page(key, names, done, _progress, first=not after)
    session.when(request_id, done, lambda outcome: _answer(outcome, stretch))


def _source(session: Session, given: int | str) -> Queue:
    """Return the queue from which messages are removed."""
    if isinstance(given, str):
        queue = outgoing_queue(session.manager, given)
        operation = f"remove messages from the outgoing queue {queue.name}"
        session.manager.guard.administer(session.token, operation)
        return queue
    reader = session.handle(given).reader()
    if not reader.access.receives:
        raise UnsupportedAccessMode("the queue is not open for receiving")
    return reader.queue


def _open_import(session: Session, request_id: int, payload: memoryview) -> None:
    job, anew = arguments(payload, Field("job", bytes), Field("anew", bool, default=False))
    manager = session.manager
    manager.guard.administer(session.token, "import messages")
    check_job(job)
    if len(session.imports) >= MAX_IMPORTS:
        raise InsufficientResources(
            f"{MAX_IMPORTS} imports are under way on this connection; that is the limit"
        )
    running = Import(manager.services, manager.jobs, job)
    session.imports[request_id] = running
    begun = running.begin(anew=anew)
    session.audited_page(_import_key(request_id), _IMPORTING, begun, lambda _: (0, False), first=True)
    session.when(request_id, begun, lambda done: [request_id, done])


def _import_key(number: int) -> tuple[object, ...]:
    return ("import", number)


def _import(session: Session, request_id: int, payload: memoryview) -> None:
    number, name, first, entries, skip, last = arguments(
        payload,
        Field("import", int),
        Field("queue", str, type(None)),
        Field("first record", int, maximum=_U64),
        Field("messages", list),
        Field("skip existing", bool),
        Field("last", bool),
    )
    running = session.imports.get(number)
    if running is None:
        raise InvalidHandle(f"there is no import {number}")
    queue = None if name is None else session.manager.find(name)
    done = running.put(queue, first, [_entry(value) for value in entries], skip=skip, last=last)
    if last:
        del session.imports[number]
        done.add_done_callback(lambda _: running.close())
    session.audited_page(_import_key(number), _IMPORTING, done, lambda counts: (counts[0], last), first=False)
    session.when(request_id, done, list)


def _end_job(session: Session, request_id: int, payload: memoryview) -> None:
    (job,) = arguments(payload, Field("job", bytes))
    manager = session.manager
    manager.guard.administer(session.token, "end a job")
    check_job(job)
    done = manager.records.unit(lambda: manager.jobs.end(job))
    session.when(request_id, manager.audit.recorded(done, session.token, "end job", f"job {job.hex()}"))


def _entry(value: Any) -> Entry:
    if not isinstance(value, list) or len(value) != len(_ENTRY):
        raise InvalidParameter(f"a message of an import must be an array of {len(_ENTRY)} values")
    checked = [field.check(item) for field, item in zip(_ENTRY, value, strict=True)]
    packet, arrived, aborts, moves, reason = checked
    return packet, arrived, aborts, moves, reason


_ENTRY = (
    Field("packet", bytes),
    Field("arrival time", int, maximum=1 << 63),
    Field("abort count", int),
    Field("move count", int),
    Field("reason", int, maximum=0xFFFF),
)

HANDLERS: dict[int, Handler] = {
    Frame.BROWSE: _browse,
    Frame.RELOCATE: _relocate,
    Frame.RESUBMIT: _resubmit,
    Frame.REMOVE: _remove,
    Frame.OPEN_IMPORT: _open_import,
    Frame.IMPORT: _import,
    Frame.END_JOB: _end_job,
}
