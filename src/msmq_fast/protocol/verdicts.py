"""What became of a message, in words: the conclusion from its events at one queue manager and from the queues
that hold it.

The command line, the management API and the console share `verdict_of`, so that all of them name the same
cause and the same next step. To add a cause: 1. add it to the vocabulary in `Verdict.cause`; 2. return it
here; 3. add a row to docs/how-to/my-message-did-not-arrive.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msmq_fast.protocol.classes import MessageClass, is_negative, name_of
from msmq_fast.protocol.resources import MessageEvent, Resource

__all__ = ["Verdict", "actor_of", "detail_of", "only_taken", "verdict_of"]

_SENDER: Final = "trace it at the receiver, or look at the receiver's log"
_CAUSES: Final[dict[int, tuple[str, str, str]]] = {
    MessageClass.NACK_BAD_DST_Q: (
        "unknown queue",
        "the receiver has no queue of this name",
        "create the queue, or correct the name at the sender",
    ),
    MessageClass.NACK_DELETED: (
        "purged",
        "an operator deleted it before it arrived",
        "the audit log names the operator",
    ),
    MessageClass.NACK_REACH_QUEUE_TIMEOUT: (
        "expired",
        "its time to reach the queue passed",
        "`outgoing show` tells why it was not sent; compare the clocks of the hosts",
    ),
    MessageClass.NACK_Q_EXCEED_QUOTA: (
        "quota",
        "the queue is full",
        "receive its messages, or raise its quota: `queue set NAME --quota KB`",
    ),
    MessageClass.NACK_ACCESS_DENIED: (
        "access denied",
        "its sender may not send to the queue",
        "`acl explain NAME --user USER --right send` at the receiver",
    ),
    MessageClass.NACK_HOP_COUNT_EXCEEDED: (
        "too many hops",
        "it passed too many routers",
        "the routes of the routers contradict each other",
    ),
    MessageClass.NACK_BAD_SIGNATURE: (
        "signature",
        "its signature is wrong, or the queue demands one",
        "send it with --sign, or register the certificate of the sender",
    ),
    MessageClass.NACK_NOT_TRANSACTIONAL_Q: (
        "transactional mismatch",
        "it is transactional and the queue is not",
        "send it without a transaction, or create the queue with --transactional",
    ),
    MessageClass.NACK_NOT_TRANSACTIONAL_MSG: (
        "transactional mismatch",
        "the queue is transactional and the message is not",
        "send it with --transaction",
    ),
    MessageClass.NACK_Q_DELETED: (
        "queue deleted",
        "its queue was deleted",
        "the audit log names the operator",
    ),
    MessageClass.NACK_Q_PURGED: ("purged", "its queue was purged", "the audit log names the operator"),
    MessageClass.NACK_RECEIVE_TIMEOUT: (
        "expired",
        "no program received it in time",
        "look at the program that reads the queue",
    ),
    MessageClass.NACK_RECEIVE_TIMEOUT_AT_SENDER: (
        "expired",
        "the sender got no report of its receipt in time",
        _SENDER,
    ),
    MessageClass.NACK_RECEIVE_REJECTED: (
        "rejected",
        "the program that received it rejected it",
        "look at the log of that program",
    ),
}
"""By the class that gives the reason of a failure: the cause, a sentence, and the next step."""


@dataclass(frozen=True, slots=True)
class Verdict(Resource):
    """The conclusion about one message at one queue manager."""

    cause: str = ""
    """`waiting`, `received`, `journaled`, `moved`, `forwarded`, `duplicate`, `dead letter`, `removed`,
    `unknown`; the causes of failures: `unknown queue`, `expired`, `quota`, `access denied`, `transactional
    mismatch`, `signature`, `too many hops`, `purged`, `queue deleted`, `rejected`, `refused`; or, in an
    outgoing queue that is stalled, the cause of the stall.
    """
    text: str = ""
    """A sentence that names the cause, the queue and the peer as far as they are known."""
    next: str = ""
    """What to look at next; empty if nothing is left to do."""


def only_taken(event: MessageEvent) -> bool:
    """Return whether an event only reports that the next queue manager has received the packet. That queue
    manager has not yet accepted the message then, and may refuse it without a report if it is not
    transactional.
    """
    return event.event == "acked" and not event.reason and not event.message_class


def actor_of(event: MessageEvent) -> str:
    """Return the program that received, removed or moved a message, as people write it: `USER, program NAME,
    at ADDRESS`; "" if it is not recorded.
    """
    parts = [event.user] if event.user else []
    if event.program:
        parts.append(f"program {event.program}")
    if event.address:
        parts.append("on this computer" if event.address == "local" else f"at {event.address}")
    return ", ".join(parts)


def detail_of(event: MessageEvent, class_name: Callable[[int], str] = name_of) -> str:
    """Return what a timeline shows of an event beside its kind and queue: the class of an acknowledgment or
    of a failure, where a moved message came from, and the protocol. `class_name` names a message class.
    """
    details = []
    if only_taken(event):
        details.append("taken by the next queue manager")
    elif event.reason or event.event in ("acked", "nacked"):
        details.append(class_name(event.reason or event.message_class))
    if event.origin_queue:
        details.append(f"from {event.origin_queue}")
    if event.event in ("arrived", "sent", "acked", "duplicate") and event.transport not in ("", "local"):
        details.append(f"by {event.transport}")
    return ", ".join(details)


def verdict_of(events: Sequence[MessageEvent], places: Sequence[Mapping[str, Any]]) -> Verdict:
    """Return the conclusion from the events of a message, oldest first, and from its places: maps with
    `queue`, `queue_kind`, `state` and, in an outgoing queue, `stalled`.
    """
    failure = next((event for event in reversed(events) if _reason(event)), None)
    held = [place for place in places if place["queue_kind"] != "journal"]
    if held:
        return _held(held[-1], events, failure)
    last = _latest(events)
    if last is None:
        return _copy(places) if places else _unknown()
    if failure is not None and last.event in ("nacked", "expired", "purged", "dead_lettered", "journaled"):
        return _failed(failure)
    return _gone(last)


def _latest(events: Sequence[MessageEvent]) -> MessageEvent | None:
    """Return the event that decides: the latest one that is not about a copy in a journal."""
    own = [event for event in events if event.event != "journaled"]
    return own[-1] if own else None


def _held(place: Mapping[str, Any], events: Sequence[MessageEvent], failure: MessageEvent | None) -> Verdict:
    queue, kind = place["queue"], place["queue_kind"]
    if kind == "outgoing":
        cause = place.get("stalled") or "waiting"
        return Verdict(cause, f"it waits in {queue}: {place['state']}", f"outgoing show '{queue}'")
    if kind in ("deadletter", "xact_deadletter"):
        found = "" if failure is None else _failed(failure).text
        because = f": {found}" if found else ""
        return Verdict(
            "dead letter",
            f"it is in {queue}{because}",
            "repair the cause, then `dlq resubmit --id MESSAGE-ID`",
        )
    moved = [event for event in events if event.event == "moved"]
    if moved:
        origin = next((event.origin_queue or event.queue for event in reversed(moved)), "")
        text = f"it was moved from {origin} to {queue}{_by(moved[-1])}"
        return Verdict("moved", text, f"peek '{queue}'")
    if any(event.event == "duplicate" for event in events):
        return Verdict("duplicate", f"it arrived more than once: {queue} holds one copy", f"peek '{queue}'")
    state = f" ({place['state']})" if place["state"] else ""
    return Verdict(
        "waiting", f"it is in {queue}{state} and no program has received it", f"queue show '{queue}'"
    )


def _copy(places: Sequence[Mapping[str, Any]]) -> Verdict:
    return Verdict("journaled", f"a copy is in {places[-1]['queue']}", f"peek '{places[-1]['queue']}'")


def _failed(event: MessageEvent) -> Verdict:
    number = _reason(event)
    known = _CAUSES.get(number)
    where = f" ({event.queue})" if event.queue else ""
    if known is None:
        return Verdict("refused", f"it failed: {name_of(number)}{where}", "look at the log of the receiver")
    cause, text, following = known
    return Verdict(cause, f"{text}{where}: {name_of(number)}", following)


def _gone(last: MessageEvent) -> Verdict:
    queue = last.queue or "a queue that no longer exists"
    if last.event == "received":
        return Verdict("received", f"a program received it from {queue}{_by(last)}", "")
    if only_taken(last) or last.event == "acked":
        return Verdict(
            "forwarded",
            f"the next queue manager took it ({queue}), and may have refused it later",
            f"{_SENDER}; or send with --ack",
        )
    if last.event == "duplicate":
        return Verdict("duplicate", f"it arrived again at {queue} and was dropped", "see its earlier events")
    if last.event == "removed":
        text = f"an operator or a program removed it from {queue}{_by(last)}"
        return Verdict("removed", text, "see the audit log")
    if last.event == "moved":
        return Verdict("moved", f"it was moved out of {queue}{_by(last)}", "run `trace --search`")
    return Verdict(
        "unknown", f"{last.event.replace('_', ' ')} in {queue} is its last event", "`trace --search`"
    )


def _by(event: MessageEvent) -> str:
    actor = actor_of(event)
    return f", by {actor}" if actor else ""


def _unknown() -> Verdict:
    return Verdict(
        "unknown",
        "this queue manager never had it, or its events are older than `store.feed_max_age`, or it was an "
        "express message before a restart",
        "trace it at the queue manager whose GUID the identifier begins with; then at the receiver",
    )


def _reason(event: MessageEvent) -> int:
    """Return the class that gives the reason why the message failed; 0 if the event is not a failure."""
    if event.reason:
        return event.reason
    return event.message_class if event.event == "nacked" and is_negative(event.message_class) else 0
