"""A subscription leases messages, acknowledges some and puts the others back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msmq_fast.qm.queues.queue import Queue
from msmq_fast.store.completion import Completion
from tests.faults.matrix.host import Host

Act = Callable[[Host], Completion[Any]]

NAME = "spark"


def _queue(host: Host) -> Queue:
    return host.manager.find("orders")


def lease(rows: int) -> Act:
    """Take messages."""
    return lambda host: host.manager.leases.lease(NAME, _queue(host), rows, 1 << 30, 3600)


def ack(upto: int) -> Act:
    """Receive what has a lower number."""
    return lambda host: host.manager.leases.ack(NAME, _queue(host), upto)


def release(upto: int) -> Act:
    """Put back what has a lower number."""
    return lambda host: host.manager.leases.release(NAME, _queue(host), upto)


def leases(host: Host) -> list[str]:
    """Which numbers the subscription has, how many of their messages are there, and what others could get."""
    found = []
    for holding in host.manager.leases.listed():
        if holding.next > 1:
            keys, _ = host.manager.leases.rows(NAME, holding.queue, max(holding.start, 1), holding.next)
            found.append(f"{holding.start} to {holding.next}: {len(keys)}")
    return [*found, f"free: {_queue(host).core.positions.available}"]
