"""What could not be written is not in memory either."""

from __future__ import annotations

import pytest

from msmq_fast.qm.queues.queue import Queue
from tests.support.worlds.queue_manager import World


def failing(*_: object) -> None:
    raise RuntimeError("the record cannot be encoded")


def test_the_name_of_a_deleted_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(feed=True)
    queue = world.create()
    names = world.manager.events.names
    with monkeypatch.context() as patched:
        patched.setattr(world.manager.records, "set_meta", failing)
        with pytest.raises(RuntimeError):
            names.deleted(queue, "queue")
    assert queue.ordinal not in names.gone()


def test_a_subscription(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(feed=True)
    subscriptions = world.manager.events.subscriptions
    with monkeypatch.context() as patched:
        patched.setattr(world.manager.records, "set_meta", failing)
        with pytest.raises(RuntimeError):
            subscriptions.create("reader")
    assert len(subscriptions) == 0


def test_a_subqueue(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    queue = world.create()
    with monkeypatch.context() as patched:
        patched.setattr(world.manager.records, "set_queue", failing)
        with pytest.raises(RuntimeError):
            world.manager.subqueues.make(queue, "later")
    assert not queue.subqueues
    assert not any(isinstance(found, Queue) and ";later" in found.name for found in world.manager.queues())
    world.send(b"written without it")
