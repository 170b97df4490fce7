"""PAGE_QUEUES: filter, order, sums, rights, and its cost with many queues."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.qm.operator.paging import page
from msmq_fast.qm.queues.registry import Ordered
from tests.support.timing import processor_time


@dataclass
class Plain:
    name: str
    messages: int = 0
    bytes: int = 0

    @property
    def folded(self) -> str:
        return self.name.casefold()

    @property
    def core(self) -> Plain:
        return self


def names(**chosen: object) -> list[str]:
    queues = [Plain(f"H\\private$\\q{n}", messages=n % 3, bytes=n) for n in range(6)]
    found = page(Ordered.of(queues), **{"limit": 100, **chosen})  # type: ignore[arg-type]
    return [queue.name[-2:] for queue in found.queues]


def test_order_and_pages() -> None:
    assert names() == ["q0", "q1", "q2", "q3", "q4", "q5"]
    assert names(descending=True, limit=2) == ["q5", "q4"]
    assert names(sort="messages", descending=True) == ["q2", "q5", "q1", "q4", "q0", "q3"]
    assert names(sort="bytes", descending=True, offset=1, limit=2) == ["q4", "q3"]
    assert names(offset=9) == []


def test_a_page_near_the_beginning_is_that_of_the_whole_order() -> None:
    queues = [Plain(f"H\\private$\\Q{n * 7919 % 1000}", n % 5, n % 11) for n in range(1000)]
    for sort in ("name", "messages", "bytes"):
        for descending in (False, True):
            given = {"sort": sort, "descending": descending}
            whole = page(Ordered.of(queues), limit=1000, **given).queues  # type: ignore[arg-type]
            for offset in (0, 7, 990):
                part = page(Ordered.of(queues), limit=20, offset=offset, **given).queues  # type: ignore[arg-type]
                assert part == whole[offset : offset + 20]


def test_filters_ignore_case() -> None:
    assert names(text="Q3") == ["q3"]
    assert names(glob="Q[12]") == ["q1", "q2"]
    assert names(glob="private$\\q4") == ["q4"]
    assert names(text="q", glob="*5") == ["q5"]


def test_sums_are_over_all_pages() -> None:
    found = page(Ordered.of([Plain("a", 2, 20), Plain("b", 3, 30)]), limit=1)  # type: ignore[list-item]
    assert (len(found.queues), found.total, found.messages, found.bytes) == (1, 2, 5, 50)


def test_ten_thousand_queues_cost_far_less_than_50_ms() -> None:
    queues = [Plain(f"HOST\\private$\\queue-{n}", n * 7919 % 10_000, n) for n in range(10_000)]
    took = []
    for _ in range(5):
        with processor_time() as spent:
            page(Ordered.of(queues), sort="messages", descending=True, glob="queue-*", limit=100)  # type: ignore[arg-type]
        took.append(spent.seconds)
    assert min(took) < 0.05
