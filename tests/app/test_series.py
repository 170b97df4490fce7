"""The recent history of queues over the application protocol, with clocks that stand still."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import pytest

from msmq_fast._native.queue import QueueCore
from msmq_fast.protocol.frames import Frame
from msmq_fast.qm.operator.series import QueueSeries
from tests.support.worlds.app import Client, World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client(world: World) -> Client:
    return world.client()


def sample(world: World, count: int = 1) -> None:
    """Take `count` samples, each when it is due."""
    series = world.manager.series
    for _ in range(count):
        world.sleep(series.next_deadline() - world.manager.monotonic())
        series.expire(world.manager.monotonic())


def history(client: Client, name: str = "orders", *more: int) -> dict[str, Any]:
    found = client.ok(Frame.SERIES, [name, *more])
    assert isinstance(found, dict)
    return found


def test_a_queue_and_the_sum_of_all(world: World, client: Client) -> None:
    handle = client.queue()
    sample(world)
    client.put(handle, *[b"x"] * 10)
    sample(world)
    for _ in range(5):
        client.ok(Frame.RECEIVE, [handle, 0])
    sample(world)
    found = history(client)
    assert found["tracked"]
    assert found["messages"][-2:] == [10, 5]
    assert found["in_per_second"][-2:] == [2.0, 0.0]
    assert found["out_per_second"][-2:] == [0.0, 1.0]
    assert found["bytes"][-2] == 2 * found["bytes"][-1] > 0
    assert found["time"][-1] - found["time"][-2] == 5
    total = history(client, "")
    for column in ("time", "messages", "bytes", "in_per_second", "out_per_second"):
        assert total[column][-2:] == found[column][-2:]
    assert history(client, "orders", 5, found["time"][-2])["messages"] == [5]


def test_an_hour_and_a_day(world: World, client: Client) -> None:
    handle = client.queue()
    sample(world)
    client.put(handle, *[b"x"] * 12)
    sample(world, 12)
    minute = history(client, "", 60)
    assert minute["messages"][-1] == 12
    assert sum(minute["in_per_second"]) == pytest.approx(0.2)
    sample(world, 720)
    assert len(history(client)["time"]) == 720
    assert len(history(client, "", 60)["time"]) == 61


def test_the_properties_of_a_queue(world: World, client: Client) -> None:
    handle = client.queue()
    assert client.ok(Frame.GET_QUEUE, ["orders"])["oldest"] == 0
    client.put(handle, b"first")
    arrived = world.manager.ledger.now_s
    world.sleep(20)
    client.put(handle, b"second")
    sample(world)
    shown = client.ok(Frame.GET_QUEUE, ["orders"])
    assert shown["oldest"] == arrived
    assert shown["in_per_second"] > 0
    client.ok(Frame.RECEIVE, [handle, 0])
    assert client.ok(Frame.GET_QUEUE, ["orders"])["oldest"] > arrived


def test_the_most_active_queues_have_a_history(world: World, client: Client) -> None:
    manager = world.manager
    handles = {name: client.queue(name) for name in ("quiet", "busy")}
    system = sum(1 for _ in manager.queues())
    series = manager.series = QueueSeries(manager.ledger, world.clock, 1)
    sample(world)
    client.put(handles["busy"], *[b"x"] * 100)
    sample(world, 13)
    assert system > 2
    assert history(client, "busy")["tracked"]
    assert not history(client, "quiet")["tracked"]
    assert history(client, "quiet")["time"] == []
    client.put(handles["quiet"], *[b"x"] * 150)
    sample(world, 13)
    assert series.of(manager.find("busy"), 5, 0).tracked, "below twice the activity of the other"
    client.put(handles["quiet"], *[b"x"] * 400)
    sample(world, 13)
    assert history(client, "quiet")["tracked"]
    assert not history(client, "busy")["tracked"]


@pytest.mark.parametrize("given", [["nowhere"], ["orders", 7], ["orders", 5, -1], [1]])
def test_bad_requests(client: Client, given: list[Any]) -> None:
    client.queue()
    expected = "MQ_ERROR_QUEUE_NOT_FOUND" if given == ["nowhere"] else "MQ_ERROR_INVALID_PARAMETER"
    assert client.refused(Frame.SERIES, given) == expected


def test_the_sum_does_not_fall_when_a_queue_is_deleted(world: World, client: Client) -> None:
    handle = client.queue()
    client.put(handle, b"x")
    sample(world)
    client.ok(Frame.DELETE_QUEUE, ["orders"])
    sample(world, 2)
    total = history(client, "")
    assert total["messages"][-1] == 0
    assert min(total["in_per_second"]) == 0.0


def test_ten_thousand_queues_take_a_few_milliseconds(world: World) -> None:
    ledger = world.manager.ledger
    cores = [QueueCore(ledger, 100_000 + number) for number in range(10_000)]
    series = QueueSeries(ledger, world.clock, 100)
    best = 1.0
    for _ in range(5):
        world.sleep(60.0)
        began = perf_counter()
        series.expire(world.manager.monotonic())
        best = min(best, perf_counter() - began)
    print(f"{best * 1000:.2f} ms for a sample of both resolutions and a selection of {len(cores)} queues")
    assert best < 0.02
