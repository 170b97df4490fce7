"""DU-08 to DU-11 and DU-17: queues that are purged, deleted, created and changed, and messages that move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msmq_fast.qm.access import Access
from msmq_fast.store.completion import Completion
from tests.faults.matrix.host import Host
from tests.faults.matrix.scenario import RECEIPT, Scenario, Step, basic, nacks


def _purge_prepare(host: Host) -> None:
    basic(host, "1", "2", "3", wishes=RECEIPT, journaling=True)
    handle = host.reader("orders")
    request = handle.begin(0)
    host.run(request.completion)
    host.held = handle


def _purge(host: Host) -> Completion[Any]:
    handle = host.reader("orders")
    done = handle.purge()
    handle.close()
    return done


def _let_go(host: Host) -> Completion[Any]:
    if host.held is not None:
        host.held.close()
    return Completion.of(None)


PURGE = Scenario(
    "DU-08",
    _purge_prepare,
    {"orders": ["1", "2", "3"], "admin": []},
    [
        Step(
            _purge,
            [
                {"orders": ["1"], "admin": nacks("NACK_Q_PURGED", "2", "3")},
                {"orders": [], "admin": nacks("NACK_Q_PURGED", "1", "2", "3")},
            ],
            repeats=True,
        ),
        Step(
            _let_go,
            [{"orders": [], "admin": nacks("NACK_Q_PURGED", "1", "2", "3")}],
            certain=True,
        ),
    ],
    settings={"purge_batch": 1},
)

DELETE = Scenario(
    "DU-09",
    lambda host: basic(host, "1", "2", "3", wishes=RECEIPT),
    {"orders": ["1", "2", "3"], "admin": []},
    [
        Step(
            lambda host: host.manager.delete_queue("orders"),
            [{"admin": nacks("NACK_Q_DELETED", "1", "2", "3")}],
            repeats=True,
        )
    ],
    settings={"purge_batch": 1},
)


def _journals(host: Host) -> list[str]:
    """Each queue has one journal and no journal is without its queue."""
    return sorted(queue.name.rpartition("\\")[2] for queue in host.manager.queues() if queue.journal)


CREATE = Scenario(
    "DU-10",
    lambda host: host.create("orders"),
    {"orders": [], "more": ["orders"]},
    [
        Step(
            lambda host: host.manager.create_queue("bills", label="x", journaling=True),
            [{"orders": [], "bills": [], "more": ["bills", "orders"]}],
        ),
        Step(
            lambda host: host.manager.create_queue("third", transactional=True),
            [{"orders": [], "bills": [], "third": [], "more": ["bills", "orders", "third"]}],
        ),
    ],
    more=_journals,
)


def _move(source: str, target: str) -> Callable[[Host], Completion[Any]]:
    def act(host: Host) -> Completion[Any]:
        handle = host.reader(source)
        goal = host.manager.open(target, Access.MOVE)
        done = handle.move(host.manager.find(source).core.positions.keys()[0], goal)
        done.add_done_callback(lambda _: (handle.close(), goal.close()))
        return done

    return act


MOVE = Scenario(
    "DU-11",
    lambda host: basic(host, "1", "2"),
    {"orders": ["1", "2"], "admin": []},
    [
        Step(_move("orders", "orders;a"), [{"orders": ["2"], "orders;a": ["1"], "admin": []}]),
        Step(_move("orders;a", "orders;b"), [{"orders": ["2"], "orders;b": ["1"], "admin": []}]),
        Step(_move("orders;b", "orders"), [{"orders": ["1", "2"], "admin": []}]),
    ],
)


def _labels(host: Host) -> list[str]:
    queue = host.manager.find("orders")
    return [queue.label, str(queue.properties.quota_kb)]


def _set(**properties: Any) -> Callable[[Host], Completion[Any]]:
    return lambda host: host.manager.set_properties(host.manager.find("orders"), **properties)


PROPERTIES = Scenario(
    "DU-17",
    lambda host: host.create("orders", label="old", quota_kb=10),
    {"orders": [], "more": ["old", "10"]},
    [
        Step(_set(label="new"), [{"orders": [], "more": ["new", "10"]}], repeats=True),
        Step(_set(label="newer", quota_kb=20), [{"orders": [], "more": ["newer", "20"]}], repeats=True),
    ],
    more=_labels,
)
