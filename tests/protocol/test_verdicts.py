"""The conclusion from the events of a message, for cases that need no server."""

from __future__ import annotations

import pytest

from msmq_fast.protocol.classes import MessageClass, is_negative
from msmq_fast.protocol.resources import MessageEvent
from msmq_fast.protocol.verdicts import actor_of, verdict_of

QUEUE = r"BETA\private$\orders"
PLACE = {"queue": QUEUE, "queue_kind": "queue", "lookup_id": 1, "state": "", "stalled": ""}


def event(kind: str, reason: int = 0) -> MessageEvent:
    return MessageEvent(event=kind, queue=QUEUE, queue_kind="queue", reason=reason)


def test_a_duplicate_was_dropped_and_its_first_copy_is_named() -> None:
    held = verdict_of([event("arrived"), event("duplicate")], [PLACE])
    assert (held.cause, "holds one copy" in held.text) == ("duplicate", True)
    assert verdict_of([event("duplicate")], []).cause == "duplicate"


@pytest.mark.parametrize("number", [number for number in MessageClass if is_negative(number)])
def test_each_failure_names_its_class_and_the_next_step(number: int) -> None:
    verdict = verdict_of([event("nacked", number)], [])
    assert MessageClass(number).name in verdict.text
    assert verdict.cause
    assert verdict.next


def test_a_copy_in_a_journal_does_not_hide_that_it_was_received() -> None:
    journal = PLACE | {"queue": f"{QUEUE};JOURNAL", "queue_kind": "journal"}
    assert (
        verdict_of([event("arrived"), event("received"), event("journaled")], [journal]).cause == "received"
    )
    assert verdict_of([], [journal]).cause == "journaled"


def test_the_program_that_received_or_removed_a_message_is_named() -> None:
    by = {"user": "anna", "program": "biller", "address": "10.0.0.9"}
    for kind in ("received", "removed", "moved"):
        done = MessageEvent(event=kind, queue=QUEUE, **by)
        assert verdict_of([done], []).text.endswith(", by anna, program biller, at 10.0.0.9")
    assert actor_of(MessageEvent(event="received", user="anna", address="local")) == "anna, on this computer"
    assert actor_of(MessageEvent(event="received")) == ""
    assert verdict_of([event("received")], []).text == f"a program received it from {QUEUE}"
