"""The size of /metrics, and the time that it takes, with very many queues, destinations and reasons."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from msmq_fast.admin.metrics import Metrics
from msmq_fast.app.service import Counters
from msmq_fast.packet.names import parse_format_name
from msmq_fast.server.admin.view import Figures, ServerView
from msmq_fast.server.runtime.refusals import MAX_REASONS, RefusalCounters
from msmq_fast.store.watermark import SpaceFigures
from tests.support.timing import processor_time
from tests.support.worlds.queue_manager import World

LIMIT = 100


def view_of(world: World, refused: RefusalCounters) -> ServerView:
    none: Any = lambda: 0  # noqa: E731 - a number that the world has not
    figures = Figures(
        sessions=none,
        app_connections=none,
        messages_in=none,
        messages_out=none,
        space=lambda: SpaceFigures(0, 0, 0, 0),
        not_ready=lambda: None,
        denied=none,
        streams=none,
        order_acks=lambda: (0, 0),
        final_acks=lambda: (0, 0),
        labelled=lambda: (),
        started=0,
        last_snapshot=lambda: None,
        loop_lag=lambda: ((0,) * 16, 0.0),
        resends=lambda: (0, 0),
        rpc_connections=none,
    )
    return ServerView(world.manager, world.manager.store, Counters(), refused, figures)


def filled(queues: int, destinations: int) -> World:
    """A world with messages in some of its queues."""
    world = World()
    for number in range(queues):
        world.manager.create_queue(f".\\private$\\q{number}", journaling=number % 2 == 0)
        if number % 200 == 0:
            world.run()  # numbers are reserved in blocks
    for number in range(destinations):
        if number % 200 == 0:
            world.run()
        address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        world.manager.outgoing_queues.to(parse_format_name(rf"DIRECT=TCP:{address}\private$\orders"))
    world.run()
    return world


def series(text: str) -> Mapping[str, float]:
    return {name: float(number) for name, number in re.findall(r"^([^#].*) (\S+)$", text, re.MULTILINE)}


def check(world: World, queues: int, destinations: int) -> None:
    refused = RefusalCounters(lambda: 0.0, 1)
    for number in range(10 * MAX_REASONS):
        refused.refuse("message", f"reason {number}", peer=f"10.1.{number >> 8}.{number & 255}")
    metrics = Metrics(view_of(world, refused), LIMIT)
    metrics.text()
    with processor_time() as spent:
        text = metrics.text().decode()
    found = series(text)
    assert len(text) < 500_000
    assert spent.seconds < 0.1 + 10e-6 * (queues + destinations)
    assert found["msmq_fast_queues"] >= queues
    assert found["msmq_fast_outgoing_queues"] == destinations
    named = [name for name in found if name.startswith("windows_msmq_messages_in_queue{")]
    assert len(named) == LIMIT + 1
    assert sum(name.startswith("msmq_fast_destination_messages{") for name in found) == LIMIT + 1
    assert sum(name.startswith("msmq_fast_refusals_total{") for name in found) <= MAX_REASONS + 1


def test_the_sums_of_the_others_are_those_of_all_that_are_not_shown() -> None:
    world = filled(queues=LIMIT + 20, destinations=LIMIT + 10)
    for number in range(LIMIT + 10):
        for _ in range(1 + number % 3):
            world.send(b"x", f"q{number}")
    check(world, LIMIT + 20, LIMIT + 10)
    view = view_of(world, RefusalCounters(lambda: 0.0, 1))
    fullest, whole = view.fullest_queues(LIMIT), list(view.queues())
    for name in ("messages", "bytes", "journal_messages", "journal_bytes"):
        shown = sum(getattr(queue, name) for queue in fullest.shown)
        assert shown + fullest.sums[name] == sum(getattr(queue, name) for queue in whole)
    hidden = [queue for queue in whole if queue.name not in {each.name for each in fullest.shown}]
    assert fullest.others == len(hidden)
    assert min(queue.messages for queue in fullest.shown) >= max(queue.messages for queue in hidden)
    assert fullest.oldest == min((queue.oldest for queue in hidden if queue.oldest), default=0)


@pytest.mark.long(seconds=90)
@pytest.mark.timeout(600)
def test_a_hundred_thousand_queues_and_ten_thousand_destinations() -> None:
    check(filled(100_000, 10_000), 100_000, 10_000)
