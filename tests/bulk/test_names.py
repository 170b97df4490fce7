"""A property has one name behind each door: the same name shows the same value, and the page lists it."""

from __future__ import annotations

import json
import urllib.request
from base64 import b64decode
from datetime import datetime
from typing import Any

import pytest

from msmq_fast.client import sync
from msmq_fast.client.bulk.client import BulkClient
from msmq_fast.client.message import Message, ReceivedMessage
from msmq_fast.spark.sink import sink_options
from tests.support.http import bulk as api
from tests.support.processes.servers import Server
from tools import names

QUEUE = r".\private$\names"
SENT = Message(
    body=b"payload",
    label="label",
    delivery=1,
    priority=6,
    body_type=30,
    app_specific=77,
    correlation_id=bytes(range(20)),
    extension=b"extension",
    response_queue=r"DIRECT=OS:beta\private$\answers",
    admin_queue=r"DIRECT=OS:beta\private$\admin",
    acknowledge=9,
    journal=2,
    time_to_reach_queue=1000,
    time_to_be_received=2000,
)


@pytest.fixture(scope="module")
def message(bulk_server: Server) -> ReceivedMessage:
    """A message whose properties all have values of their own, as a client sees it in the queue."""
    bulk_server.ok("queue", "create", QUEUE)
    with sync.connect(f"unix:{bulk_server.ready['app']}") as connection, connection.open(QUEUE) as queue:
        queue.send(SENT)
        return queue.peek()


def plain(value: Any) -> Any:
    """Values that doors write in different ways, in one: bytes, times, numbers of a set."""
    if isinstance(value, datetime):
        return int(value.timestamp())
    if isinstance(value, bytes):
        return value.hex()
    return int(value) if isinstance(value, int) else str(value) if value is not None else None


def test_the_client_and_json_show_the_same_values_under_one_name(message: ReceivedMessage) -> None:
    doors = names.message_doors()
    shown = message.to_json()
    compared = set()
    for name, key in doors["`--json`"].items():
        if name in ("body_size", "delivery"):  # of the body; a word for people
            continue
        value = shown[key]  # type: ignore[literal-required]
        attribute = getattr(message, doors["client"][name])
        if key.endswith("_b64"):
            value = None if value is None else b64decode(value)
        assert plain(value) == plain(attribute), name
        compared.add(name)
    assert compared >= {"body", "label", "class", "time_to_reach_queue", "response_queue", "source_machine"}


def test_columns_in_bulk_show_the_same_values_under_one_name(
    bulk: BulkClient, message: ReceivedMessage
) -> None:
    doors = names.message_doors()
    stop = bulk.bounds([QUEUE]).next
    (row,) = api.table(bulk.rows(QUEUE, 0, stop, columns="all")).to_pylist()
    compared = set()
    for name, attribute in doors["client"].items():
        if name in row and hasattr(message, attribute):
            assert plain(row[name]) == plain(getattr(message, attribute)), name
            compared.add(name)
    assert compared >= {"body", "time_to_be_received", "admin_queue", "destination_queue", "message_id"}


def test_options_of_the_sink_stand_for_the_columns_of_their_names() -> None:
    doors = names.message_doors()
    for name, option in doors["option of the Spark sink"].items():
        assert name in doors["column in bulk"], option
        assert name in doors["client"], option
        sink_options({"url": "msmq+bulk://127.0.0.1:1", option: "recoverable" if name == "delivery" else "1"})


def test_queues_look_the_same_behind_each_door(
    bulk_server: Server, bulk: BulkClient, message: ReceivedMessage
) -> None:
    address = f"http://127.0.0.1:{bulk_server.port('admin')}/api/v1/queues"
    with urllib.request.urlopen(address) as answer:
        (over_http,) = [queue for queue in json.load(answer)["items"] if queue["name"].endswith("names")]
    (listed,) = [queue for queue in bulk_server.ok("queue", "list") if queue["name"].endswith("names")]
    (shown,) = bulk_server.ok("queue", "show", QUEUE)
    assert shown == listed
    assert shown == over_http
    (bounds,) = bulk.bounds([QUEUE]).queues
    common = names.queue_doors()["bounds in bulk"].keys() & shown.keys()
    assert common >= {"name", "guid", "kind", "messages", "bytes", "transactional"}
    assert {name: getattr(bounds, name) for name in common} == {name: shown[name] for name in common}


def test_the_page_lists_the_names() -> None:
    assert names.main([]) == 0
