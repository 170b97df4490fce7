"""Logs and refusal counters."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from msmq_fast.server.runtime.logs import set_up
from msmq_fast.server.runtime.refusals import MAX_REASONS, RefusalCounters


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)


def test_json_lines_carry_fields_and_never_secrets(stream: io.StringIO) -> None:
    set_up("info", "json", stream)
    logging.getLogger("msmq_fast.x").info("hello", extra={"fields": {"peer": "10.0.0.1", "token": "s3cret"}})
    entry = json.loads(stream.getvalue())
    assert (entry["level"], entry["message"], entry["peer"], entry["token"]) == (
        "info",
        "hello",
        "10.0.0.1",
        "***",
    )
    assert entry["ts"].endswith("Z")


def test_a_peer_cannot_forge_lines_of_the_text_log(stream: io.StringIO) -> None:
    set_up("info", "text", stream)
    logging.getLogger("msmq_fast.x").info("queue %s", "a\n2026-01-01 forged\x1b[2J")
    assert stream.getvalue().count("\n") == 1
    assert "\x1b" not in stream.getvalue()


def test_a_traceback_cannot_forge_lines_either(stream: io.StringIO) -> None:
    set_up("info", "text", stream)
    try:
        raise ValueError("a\n2026-01-01T00:00:00.000Z info    msmq_fast.audit: granted\x1b[2J")
    except ValueError:
        logging.getLogger("msmq_fast.x").exception("failed")
    first, *others = stream.getvalue().splitlines()
    assert first.endswith("msmq_fast.x: failed")
    assert any("granted" in line for line in others)
    assert all(line.startswith("    ") for line in others)
    assert "\x1b" not in stream.getvalue()


def test_refusals_are_all_counted_and_logged_at_a_bounded_rate(stream: io.StringIO) -> None:
    set_up("info", "json", stream)
    now = 1.0
    counters = RefusalCounters(lambda: now, 2)
    for _ in range(10):
        counters.refuse("message", "no such queue")
    assert len(stream.getvalue().splitlines()) == 2
    now = 2.0
    counters.refuse("packet", "bad size", "10.0.0.1")
    assert json.loads(stream.getvalue().splitlines()[-1])["suppressed"] == 8
    assert list(counters.items()) == [("message", "no such queue", 10), ("packet", "bad size", 1)]
    assert counters.total("message") == 10


def test_reasons_cannot_grow_without_bound() -> None:
    counters = RefusalCounters(lambda: 1.0, 1)
    for number in range(MAX_REASONS * 2):
        counters.refuse("packet", f"reason {number}")
    assert len(list(counters.items())) == MAX_REASONS + 1
    assert counters.total("packet") == MAX_REASONS * 2
