"""The requests that return what happened to a message, and what would happen to one (sections 8.3 and 8.7 of
the protocol).
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.app.arguments import Field, arguments
from msmq_fast.app.session import Handler, Session
from msmq_fast.protocol.errors import InvalidParameter
from msmq_fast.protocol.frames import Frame
from msmq_fast.protocol.resources import MessageEvent
from msmq_fast.qm.feed.callers import FeedCaller
from msmq_fast.qm.queues.kinds import kind_of
from msmq_fast.store.completion import Completion
from msmq_fast.store.decode import EventKind, FeedEvent, Transport

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager

_BUDGET: Final = 1 << 20  # bytes of the feed that one request looks through: a few milliseconds
_MOST: Final = 1 << 62
_ID_SIZE: Final = 20
_NO_NAME: Final = ("", "")


def _trace(session: Session, request_id: int, payload: memoryview) -> None:
    message_id, start = arguments(payload, Field("message id", bytes), Field("from", int, maximum=_MOST))
    session.manager.guard.administer(session.token, "trace a message")
    if len(message_id) != _ID_SIZE:
        raise InvalidParameter(f"a message id must have {_ID_SIZE} bytes, not {len(message_id)}")
    if start:
        session.reply(request_id, _page(session.manager, message_id, start))
        return
    # Events of refusals and express messages wait for the next commit, which an idle server does not make.
    written: Completion[None] = Completion()

    def flushed(_: Completion[None]) -> None:
        written.resolve(None)  # if the commit fails, the older events are still of use

    session.manager.records.unit(lambda: None).add_done_callback(flushed)
    session.when(request_id, written, lambda _: _page(session.manager, message_id, 0))


def _page(manager: QueueManager, message_id: bytes, start: int) -> dict[str, Any]:
    """Return the events of a message in one page of the feed from the event `start` on."""
    feed = manager.events.feed
    ordinal = int.from_bytes(message_id[16:], "little")
    found, following = feed.find(message_id[:16], ordinal, start, _BUDGET)
    names = _names(manager) if found else {}
    callers = manager.events.callers
    return {
        "next": following,
        "finished": following >= feed.bounds()[1],
        "events": [_shown(event, names, callers.find(event.caller)).as_map() for event in found],
    }


def _names(manager: QueueManager) -> dict[int, tuple[str, str]]:
    """Return the name and kind of each queue that an event may refer to, by its ordinal."""
    names = {ordinal: (name, kind) for ordinal, (name, _, kind) in manager.events.names.gone().items()}
    for queue in (*manager.registry.local(), *manager.outgoing()):
        names[queue.ordinal] = (queue.name, kind_of(queue))
    return names


def _shown(event: FeedEvent, names: dict[int, tuple[str, str]], caller: FeedCaller | None) -> MessageEvent:
    queue, kind = names.get(event.queue, _NO_NAME)
    return MessageEvent(
        feed_seq=event.number,
        event=_word(EventKind, event.kind),
        event_time=event.time_us // 1_000_000,
        queue=queue,
        queue_kind=kind,
        origin_queue=names.get(event.origin, _NO_NAME)[0],
        lookup_id=event.lookup_id,
        arrival_seq=event.arrival_seq,
        message_class=event.message_class,
        reason=event.reason,
        transport=_word(Transport, event.flags),
        user="" if caller is None else caller.user or caller.sid,
        address="" if caller is None else caller.address,
        program="" if caller is None else caller.program,
    )


def _word(kind: type[IntEnum], number: int) -> str:
    """Return the lower-case name that `kind` gives a number in the feed; the number as text if this version
    does not know it.
    """
    try:
        return kind(number).name.lower()
    except ValueError:
        return str(number)


def _explain_route(session: Session, request_id: int, payload: memoryview) -> None:
    (name,) = arguments(payload, Field("name", str))
    session.manager.guard.read_everything(session.token, "explain a route")
    session.reply(request_id, session.manager.routes.explain(name).as_map())


HANDLERS: dict[int, Handler] = {Frame.TRACE: _trace, Frame.EXPLAIN_ROUTE: _explain_route}
