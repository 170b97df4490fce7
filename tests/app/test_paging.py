"""PAGE_QUEUES: filter, order, sums, fields, and its cost with many queues."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

import pytest

from msmq_fast._native.packetbuild import build_user_message
from msmq_fast._native.queue import QueueCore
from msmq_fast.protocol.frames import Frame
from msmq_fast.protocol.resources import QueueInfo
from msmq_fast.qm.operator.paging import SORTS, page
from msmq_fast.qm.queues.registry import Ordered
from tests.support.timing import processor_time
from tests.support.worlds.app import Client, World
from tests.support.worlds.cores import Core

DESTINATION = b"\x04\x00a\x00\x00\x00\x00\x00"


@dataclass
class Named:
    """A queue, as far as a page needs one."""

    name: str
    core: QueueCore

    @property
    def folded(self) -> str:
        return self.name.casefold()


def queues(sizes: Iterable[tuple[str, list[int]]]) -> list[Named]:
    """Queues with these names; each has a message for each of its sizes, the sizes of the bodies."""
    ledger, found = Core().ledger, []
    for ordinal, (name, bodies) in enumerate(sizes, start=100):
        core = QueueCore(ledger, ordinal)
        if bodies:
            core.enqueue_packets([build_user_message(DESTINATION, body=bytes(body)) for body in bodies])
        found.append(Named(name, core))
    return found


def names(**chosen: object) -> list[str]:
    given = queues((f"H\\private$\\q{n}", [100 * n] * (n % 3)) for n in range(6))
    found = page(Ordered.of(given), **{"limit": 100, **chosen})  # type: ignore[arg-type]
    return [queue.name[-2:] for queue in found.queues]


def test_order_and_pages() -> None:
    assert names() == ["q0", "q1", "q2", "q3", "q4", "q5"]
    assert names(descending=True, limit=2) == ["q5", "q4"]
    assert names(sort="messages") == ["q0", "q3", "q1", "q4", "q2", "q5"]
    assert names(sort="messages", descending=True) == ["q2", "q5", "q1", "q4", "q0", "q3"]
    assert names(sort="bytes", descending=True, offset=1, limit=2) == ["q2", "q4"]
    assert names(offset=9) == []
    assert names(sort="bytes", offset=9) == []


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("descending", [False, True])
def test_a_page_near_the_beginning_is_that_of_the_whole_order(sort: str, descending: bool) -> None:
    given = queues((f"Q{n * 7919 % 300}", [n % 7] * (n * 31 % 5)) for n in range(300))
    ordered = Ordered.of(given)  # type: ignore[arg-type]
    whole = page(ordered, limit=1000, sort=sort, descending=descending).queues
    assert len(whole) == 300
    if sort in ("messages", "bytes"):
        value = attrgetter(f"core.{sort}")
        by_name = sorted(given, key=attrgetter("folded"))
        sign = -1 if descending else 1
        assert whole == sorted(by_name, key=lambda one: sign * value(one))
    for offset in (0, 7, 290):
        part = page(ordered, limit=20, offset=offset, sort=sort, descending=descending).queues
        assert part == whole[offset : offset + 20]


def test_an_empty_queue_is_younger_than_every_message() -> None:
    given = queues([("empty", []), ("full", [1])])
    for descending in (False, True):
        found = page(Ordered.of(given), sort="oldest", descending=descending, limit=2).queues  # type: ignore[arg-type]
        assert [one.name for one in found] == (["full", "empty"] if descending else ["empty", "full"])


def test_filters_ignore_case() -> None:
    assert names(text="Q3") == ["q3"]
    assert names(glob="Q[12]") == ["q1", "q2"]
    assert names(glob="private$\\q4") == ["q4"]
    assert names(text="q", glob="*5") == ["q5"]


def test_sums_are_over_all_pages() -> None:
    given = queues([("a", [10, 10]), ("b", [20, 30, 40])])
    found = page(Ordered.of(given), limit=1)  # type: ignore[arg-type]
    assert (len(found.queues), found.total, found.messages) == (1, 2, 5)
    assert found.bytes == sum(one.core.bytes for one in given) > 110


def test_queues_that_come_and_go_keep_the_order() -> None:
    given = queues((name, []) for name in ("b", "D", "f", "h"))
    ordered = Ordered.of(given[:3])  # type: ignore[arg-type]
    ordered.insert(given[3])  # type: ignore[arg-type]
    for name in ("e", "A", "z", "d"):
        ordered.insert(*queues([(name, [])]))  # type: ignore[arg-type]
    ordered.remove(given[0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not in list"):
        ordered.remove(given[0])  # type: ignore[arg-type]
    ordered.remove(given[1])  # type: ignore[arg-type]
    assert [one.name for one in ordered.queues] == ["A", "d", "e", "f", "h", "z"]
    assert ordered.cores == [one.core for one in ordered.queues]


@pytest.fixture
def client() -> Client:
    return World().client()


def shown(client: Client, *more: object) -> list[str]:
    found = client.ok(Frame.PAGE_QUEUES, ["user", *more])
    assert isinstance(found, dict)
    return [one["name"].rpartition("\\")[2] for one in found["queues"]]


def test_a_list_that_was_seen_before_has_the_queues_of_now(client: Client) -> None:
    assert shown(client) == []
    for name in ("middle", "Zulu", "alpha"):
        client.ok(Frame.CREATE_QUEUE, [name, {"journal": True}])
    assert shown(client) == ["alpha", "middle", "Zulu"]
    client.ok(Frame.DELETE_QUEUE, ["middle"])
    assert shown(client) == ["alpha", "Zulu"]
    client.ok(Frame.CREATE_QUEUE, ["MIDDLE", {}])
    assert shown(client) == ["alpha", "MIDDLE", "Zulu"]
    journals = client.ok(Frame.PAGE_QUEUES, ["journal"])
    assert isinstance(journals, dict)
    assert journals["total"] == 3


def test_only_the_wanted_fields(client: Client) -> None:
    client.queue()
    given = ["user", "", "", "name", False, 100, 0]
    whole = client.ok(Frame.PAGE_QUEUES, given)
    some = client.ok(Frame.PAGE_QUEUES, [*given, ["messages", "name", "name", "incoming"]])
    assert isinstance(whole, dict)
    assert isinstance(some, dict)
    (queue,), (part,) = whole["queues"], some["queues"]
    assert QueueInfo.from_map(queue).as_map() == queue
    assert part == {name: queue[name] for name in ("messages", "name")}
    assert {name: whole[name] for name in ("total", "messages", "bytes")} == {
        name: some[name] for name in ("total", "messages", "bytes")
    }


@pytest.mark.parametrize("field", ["nosuch", 5, ["name"], None])
def test_an_unknown_field_is_refused(client: Client, field: object) -> None:
    kind, value = client.call(Frame.PAGE_QUEUES, ["user", "", "", "name", False, 100, 0, ["name", field]])
    assert kind == Frame.ERROR
    assert value[1:] == [
        "MQ_ERROR_INVALID_PARAMETER",
        f'fields must be fields of a queue, such as name; not "{field}"',
    ]


def test_ten_thousand_queues_cost_far_less_than_50_ms() -> None:
    given = queues((f"HOST\\private$\\queue-{n}", [0] * (n * 7919 % 3)) for n in range(10_000))
    ordered = Ordered.of(given)  # type: ignore[arg-type]
    for most, chosen in ((0.05, {"glob": "queue-*"}), (0.005, {})):
        took = []
        for _ in range(5):
            with processor_time() as spent:
                page(ordered, sort="messages", descending=True, limit=100, **chosen)  # type: ignore[arg-type]
            took.append(spent.seconds)
        print(f"{min(took) * 1000:.2f} ms for a page of {len(given)} queues {chosen}")
        assert min(took) < most
