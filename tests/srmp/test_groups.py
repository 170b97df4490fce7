"""Queues of multicast groups are looked up, not searched for with every message."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from msmq_fast.qm.queues.queue import QueueKind
from msmq_fast.srmp.destinations import Destinations


def queue(kind: QueueKind, address: str) -> Any:
    return SimpleNamespace(kind=kind, properties=SimpleNamespace(multicast_address=address))


def test_queues_are_looked_at_once_until_they_change() -> None:
    queues = [
        queue(QueueKind.PRIVATE, " 234.1.1.1:8001"),
        queue(QueueKind.PUBLIC, "234.1.1.1:8001"),
        queue(QueueKind.PRIVATE, ""),
    ]
    scans = []
    nobody: Any = None
    destinations = Destinations(nobody, nobody, lambda: scans.append(1) or queues)  # type: ignore[func-returns-value]
    for _ in range(3):
        assert destinations.bound("234.1.1.1:8001") == queues[:2]
        assert destinations.bound("234.1.1.1:8002") == destinations.bound("") == []
    assert len(scans) == 1
    queues[0].properties.multicast_address = "234.1.1.1:8002"
    destinations.forget()
    assert destinations.bound("234.1.1.1:8001") == queues[1:2]
    assert destinations.bound("234.1.1.1:8002") == queues[:1]
