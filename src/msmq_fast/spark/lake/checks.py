"""What an audit has checked, as a list in words: which checks a day has passed, and which not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from msmq_fast.protocol.text import counted, noun_of

PASSED: Final = "passed"
FAILED: Final = "failed"
UNPROVEN: Final = "unproven"
"""The lake lacks what the check needs."""
NOTED: Final = "noted"
"""No fault of the system, but an operator should know of it."""


class Check(NamedTuple):
    """One check of a day. `name`: what was checked. `result`: PASSED, FAILED, UNPROVEN or NOTED. `text`: a
    sentence with the figures. `anchor`: the section of a page that has the details. `how`: what the check
    compares.
    """

    name: str
    result: str
    text: str
    anchor: str
    how: str = ""


def checks(found: dict[str, Any]) -> list[Check]:
    """Returns the checks of the day that `summary.gather` returned, in a fixed order."""
    all_of_them = (*_feeds(found), *_messages(found), *_counts(found), *_order(found), *_others(found))
    return [check._replace(how=_HOW[check.name]) for check in all_of_them]


_HOW: Final = {
    "No event is missing": "Queue managers number their events. The lake must have each number of the "
    "searched days.",
    "The whole day is archived": "The lake must have the events of each queue manager from the beginning of "
    "the day, and an event or a count from after its end.",
    "No store was set back": "A store that comes back from a backup begins a new incarnation. One that was "
    "set back otherwise counts fewer events than before.",
    "Sender and receiver are archived": "The lake must have events of each queue manager that sent or "
    "received a message.",
    "No message is lost": "A message is lost if the next queue manager has acknowledged it, and the whole "
    "feed of its receiver does not have it.",
    "Every message was delivered or waits": "Counts the messages that were refused, expired, purged or "
    "removed.",
    "Messages leave their sender in time": "Counts the messages that the next queue manager has not "
    "acknowledged within the time allowed (--grace).",
    "Queues have as many messages as the events tell": "Compares the messages that a queue manager counts in "
    "each queue with those that arrived and did not leave.",
    "Transactional sequences are complete": "A sender numbers its transactional messages to a queue. Each "
    "number must arrive, unless its message ended at the sender.",
    "Transactional messages are in order": "The numbers of a sequence must arrive in rising order.",
    "No message was delivered twice": "Each identifier must arrive once and be received once.",
    "Programs can process every message": "Counts the messages that were aborted several times "
    "(--poison-aborts), or moved to a subqueue named retry or poison.",
    "Clocks agree": "A message that arrives before it was sent shows that two clocks differ.",
}
"""What each check compares."""


def _feeds(found: dict[str, Any]) -> Iterator[Check]:
    feeds = found["coverage"]
    events = sum(row["events"] for row in feeds)
    missing = sum(row["missing"] + row["dropped"] for row in feeds)
    absent = sum(row["from_seq"] is None for row in feeds)
    if not feeds or absent:
        text = f"{absent or 'all'} queue managers have no events in the lake"
    elif missing:
        text = f"{missing:,} {noun_of(missing, 'event number is', 'event numbers are')} missing"
    else:
        text = f"{events:,} events of {_queue_managers(feeds)}, numbered without a hole"
    whole = bool(feeds) and not absent and not missing
    yield Check("No event is missing", PASSED if whole else UNPROVEN, text, "coverage")

    partial = [row for row in feeds if row.get("began_late") or row.get("ended_early")]
    text = f"{len(partial)} feeds begin after the start of the day, or end before its end"
    if feeds and not partial:
        text = f"{_queue_managers(feeds)} from the beginning of the day to its end"
    result = PASSED if feeds and not partial else UNPROVEN
    yield Check("The whole day is archived", result, text, "coverage")

    back = sum(bool(row["restored"] or row.get("rolled_back")) for row in feeds)
    text = "all feeds only grew"
    if back:
        text = f"{counted(back, 'store')} came back from a backup or an earlier state"
    yield Check("No store was set back", UNPROVEN if back else PASSED, text, "coverage")

    known = {row["qm"] for row in feeds}
    rows = found["reconciliation"]
    partners = {row[side] for row in rows for side in ("sender", "receiver")}
    unknown = len(partners - known)
    text = (
        f"of {unknown} senders or receivers the lake has no events" if unknown else "both sides of each way"
    )
    yield Check("Sender and receiver are archived", UNPROVEN if unknown else PASSED, text, "destinations")


def _messages(found: dict[str, Any]) -> Iterator[Check]:
    totals = found["totals"]
    lost, unclear = totals["lost"], totals["unclear"]
    text = f"{totals['sent']:,} messages were sent; each of them has an end or is still in a queue"
    if lost or unclear:
        text = f"{counted(lost, 'message is', 'messages are')} lost, "
        text += f"{counted(unclear, 'was', 'were')} not found at their receiver"
    result = FAILED if lost else UNPROVEN if unclear else PASSED
    yield Check("No message is lost", result, text, "lost")

    undelivered, dead = totals["undelivered"], totals["undelivered"] - totals["discarded"]
    text = "no message was refused, expired, purged or removed"
    if undelivered:
        were = noun_of(undelivered, "message was", "messages were")
        text = f"{undelivered:,} {were} not delivered, {dead:,} of them in dead-letter queues"
    yield Check("Every message was delivered or waits", NOTED if undelivered else PASSED, text, "undelivered")

    overdue = totals["overdue"]
    text = "no message waits at its sender or at a router for longer than the time allowed"
    if overdue:
        wait = noun_of(overdue, "message waits", "messages wait")
        text = f"{overdue:,} {wait} at the sender or at a router for longer than the time allowed"
    yield Check("Messages leave their sender in time", NOTED if overdue else PASSED, text, "overdue")


def _counts(found: dict[str, Any]) -> Iterator[Check]:
    differing, unproven = len(found["counters_differing"]), found["counters_unproven"]
    compared = found["counters_compared"]
    if differing:
        result, text = UNPROVEN, f"{differing} of {compared} queues differ from the sum of their events"
    elif unproven:
        result, text = UNPROVEN, f"{compared} queues are equal, {unproven} could not be compared"
    elif not compared and found["reconciliation"]:
        result, text = UNPROVEN, "the lake has no counts of the queue managers"
    else:
        result, text = PASSED, f"{compared} queues were counted; each count is the sum of the events"
    yield Check("Queues have as many messages as the events tell", result, text, "counters")


def _order(found: dict[str, Any]) -> Iterator[Check]:
    kinds = found["sequence_kinds"]
    gaps, moved = kinds.get("gap", 0), kinds.get("reorder", 0)
    text = "no number of a sequence is missing"
    if gaps:
        text = f"{counted(gaps, 'gap')} in transactional sequences"
    yield Check("Transactional sequences are complete", UNPROVEN if gaps else PASSED, text, "sequences")
    text = f"{counted(moved, 'message')} arrived out of order" if moved else "all numbers rise"
    yield Check("Transactional messages are in order", NOTED if moved else PASSED, text, "sequences")


def _others(found: dict[str, Any]) -> Iterator[Check]:
    twice, wire = found["duplicates"]["n"], found["wire_duplicates"]
    text = "no message came twice"
    if twice:
        text = f"{counted(twice, 'message')} came or left more than once"
    if wire:
        text += f"; {counted(wire, 'repetition was', 'repetitions were')} dropped on the wire, as intended"
    yield Check("No message was delivered twice", FAILED if twice else PASSED, text, "duplicates")

    poison = found["poison"]["n"]
    text = "no message was aborted again and again"
    if poison:
        text = f"{counted(poison, 'message was', 'messages were')} aborted again and again, or moved to a "
        text += "retry or poison queue"
    yield Check("Programs can process every message", NOTED if poison else PASSED, text, "poison")

    skews = [row["clock_skew_ms"] for row in found["latency"] if (row["clock_skew_ms"] or 0) < 0]
    text = (
        f"clocks differ by at least {-min(skews):.0f} ms"
        if skews
        else "no message arrived before it was sent"
    )
    yield Check("Clocks agree", NOTED if skews else PASSED, text, "latency")


def _queue_managers(feeds: list[dict[str, Any]]) -> str:
    number = len({row["qm"] for row in feeds})
    return counted(number, "queue manager")
