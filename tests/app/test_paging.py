"""PAGE_QUEUES: filter, order, sums, rights, and its cost with many queues."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass

from msmq_fast.qm.operator.paging import page


@dataclass
class Plain:
    name: str
    messages: int = 0
    bytes: int = 0


def names(**chosen: object) -> list[str]:
    queues = [Plain(f"H\\private$\\q{n}", messages=n % 3, bytes=n) for n in range(6)]
    found = page(queues, **{"limit": 100, **chosen})  # type: ignore[arg-type]
    return [queue.name[-2:] for queue in found.queues]


def test_order_and_pages() -> None:
    assert names() == ["q0", "q1", "q2", "q3", "q4", "q5"]
    assert names(descending=True, limit=2) == ["q5", "q4"]
    assert names(sort="messages", descending=True) == ["q2", "q5", "q1", "q4", "q0", "q3"]
    assert names(sort="bytes", descending=True, offset=1, limit=2) == ["q4", "q3"]
    assert names(offset=9) == []


def test_filters_ignore_case() -> None:
    assert names(text="Q3") == ["q3"]
    assert names(glob="Q[12]") == ["q1", "q2"]
    assert names(glob="private$\\q4") == ["q4"]
    assert names(text="q", glob="*5") == ["q5"]


def test_sums_are_over_all_pages() -> None:
    found = page([Plain("a", 2, 20), Plain("b", 3, 30)], limit=1)  # type: ignore[list-item]
    assert (len(found.queues), found.total, found.messages, found.bytes) == (1, 2, 5, 50)


def test_ten_thousand_queues_cost_far_less_than_50_ms() -> None:
    queues = [Plain(f"HOST\\private$\\queue-{n}", n * 7919 % 10_000, n) for n in range(10_000)]
    took = []
    gc.disable()  # else the collector walks the objects of all tests that ran before in this process
    try:
        for _ in range(5):
            began = time.thread_time()
            page(queues, sort="messages", descending=True, glob="queue-*", limit=100)  # type: ignore[arg-type]
            took.append(time.thread_time() - began)
    finally:
        gc.enable()
    assert min(took) < 0.05
