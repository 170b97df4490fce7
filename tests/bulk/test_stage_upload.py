"""Arrow streams into stages: every column, its types and defaults, and streams cut anywhere."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.columns import MESSAGE_COLUMNS
from msmq_fast.qm.settings import QueueManagerSettings
from tests.bulk.uploads import Uploads, stream, uploads, workers, world
from tests.support.worlds.stages import publish

__all__ = ["uploads", "workers", "world"]
INFINITE = 0xFFFFFFFF


def test_every_column_becomes_what_it_says(uploads: Uploads) -> None:
    message = uploads.one(
        {
            "body": [b"payload"],
            "queue": ["plain"],
            "label": ["ünïcödé 😀"],
            "priority": pa.array([6], pa.int8()),
            "correlation_id": [bytes(range(20))],
            "app_specific": [0xFFFFFFFF],
            "body_type": pa.array([0x2011], pa.int32()),
            "extension": [b"ext"],
            "time_to_reach_queue": [70],
            "time_to_be_received": [80],
            "delivery": pa.array([1], pa.int8()),
            "acknowledge": pa.array([15], pa.uint8()),
            "journal": [3],
            "admin_queue": [r"DIRECT=OS:HOST\private$\admin"],
            "response_queue": [r"PUBLIC=6b29fc40-ca47-1067-b31d-00dd010662da"],
        }
    )
    assert message.body == b"payload"
    assert message.label == "ünïcödé 😀"
    assert (message.priority, message.delivery) == (6, 1)
    assert message.correlation_id == bytes(range(20))
    assert (message.app_specific, message.body_type, message.extension) == (0xFFFFFFFF, 0x2011, b"ext")
    assert (message.time_to_reach_queue, message.time_to_be_received) == (70, 80)
    assert (int(message.acknowledge), int(message.journal)) == (15, 3)
    assert message.admin_queue == parse_format_name(r"DIRECT=OS:HOST\private$\admin")
    assert message.response_queue == parse_format_name("PUBLIC=6b29fc40-ca47-1067-b31d-00dd010662da")
    assert message.source_machine == uploads.world.manager.guid
    assert message.sent_time == uploads.world.manager.ledger.now_s
    assert message.destination == parse_format_name(r"DIRECT=OS:HOST\private$\plain")


def test_columns_and_defaults_with_old_names_are_understood(uploads: Uploads) -> None:
    answers, admin = r"DIRECT=OS:HOST\private$\answers", r"DIRECT=OS:HOST\private$\admin"
    rows = {"body": [b"payload"], "ttrq_seconds": [70], "resp_format_name": [answers]}
    (message,) = uploads.messages(rows, ttbr_seconds="80", acknowledge="1", admin_format_name=admin)
    assert (message.time_to_reach_queue, message.time_to_be_received) == (70, 80)
    assert message.response_queue == parse_format_name(answers)
    assert message.admin_queue == parse_format_name(admin)


def test_what_is_missing_or_null_is_as_the_query_says_else_as_a_local_send(uploads: Uploads) -> None:
    nothing = uploads.one({"body": pa.array([None], pa.binary()), "label": pa.nulls(1), "priority": [None]})
    assert (nothing.body, nothing.body_type, nothing.label) == (b"", 0, "")
    assert (nothing.priority, nothing.delivery, int(nothing.acknowledge), int(nothing.journal)) == (
        3,
        1,
        0,
        0,
    )
    assert nothing.time_to_reach_queue == QueueManagerSettings("x").long_lived
    assert nothing.time_to_be_received == INFINITE
    assert (nothing.app_specific, nothing.extension, nothing.correlation_id) == (0, b"", bytes(20))
    words = {
        "label": "from the query",
        "priority": "5",
        "delivery": "0",
        "journal": "1",
        "app_specific": "9",
        "body_type": "30",
        "time_to_reach_queue": "7",
        "time_to_be_received": "8",
        "acknowledge": "1",
        "admin_queue": r"DIRECT=OS:HOST\private$\admin",
        "response_queue": r".\private$\answers",
    }
    first, second = uploads.messages(
        {"body": [b"1", b"2"], "label": [None, "own"], "priority": pa.array([None, 5], pa.int16())}, **words
    )
    assert (first.label, second.label) == ("from the query", "own")
    for message in (first, second):
        assert (message.priority, message.delivery, int(message.journal), message.app_specific) == (
            5,
            0,
            1,
            9,
        )
        assert (message.body_type, message.time_to_reach_queue, message.time_to_be_received) == (30, 7, 8)
        assert message.response_queue == parse_format_name(r"DIRECT=OS:HOST\private$\answers")


@pytest.mark.parametrize(
    ("body_type", "kind", "body"),
    [(None, 31, "utf-16-le"), (31, 31, "utf-16-le"), (8, 8, "utf-16-le"), (30, 30, "utf-8"), (0, 0, "utf-8")],
)
def test_text_is_written_as_its_type_wants(
    uploads: Uploads, body_type: int | None, kind: int, body: str
) -> None:
    text = "grüße, 世界 😀\0"
    columns: dict[str, Any] = {"body": [text]}
    if body_type is not None:
        columns["body_type"] = [body_type]
    message = uploads.one(columns)
    assert (message.body_type, message.body) == (kind, text.encode(body))


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string(), pa.dictionary(pa.int8(), pa.string())])
def test_types_that_say_the_same_are_taken(uploads: Uploads, kind: pa.DataType) -> None:
    found = uploads.messages(
        {
            "body": pa.array([b"1", b"2", b"3"], pa.large_binary()),
            "label": pa.array(["a", "b", "a"]).cast(kind),
            "queue": pa.array(["plain", "plain", None]).cast(kind),
            "priority": pa.array([3, 3, 3], pa.uint64()),
            "correlation_id": pa.array([bytes(20)] * 3, pa.binary(20)),
        }
    )
    assert [(message.body, message.label) for message in found] == [(b"1", "a"), (b"2", "b"), (b"3", "a")]


def test_rows_of_the_source_may_be_written_back_as_they_are(uploads: Uploads) -> None:
    columns: dict[str, Any] = {column.name: pa.nulls(1) for column in MESSAGE_COLUMNS}
    columns |= {"body": [b"again"], "queue": ["plain"], "lookup_id": [5], "class": pa.array([0], pa.int32())}
    assert uploads.one(columns).body == b"again"


def test_slices_and_batches_of_any_size_and_bytes_in_any_pieces(uploads: Uploads) -> None:
    table = pa.table({"body": [b"%d" % n for n in range(900)], "label": [str(n) for n in range(900)]}).slice(
        100, 777
    )
    for rows, step in ((None, 1 << 20), (1, 333), (100, 1), (500, 7)):
        data = stream(table, rows)
        staged = uploads.stage(data, step=step, queue="plain", batch=str(uploads.batch))
        publish(uploads.world, batch=uploads.batch, stages=[staged.stage])
        uploads.batch += 1
        core = uploads.world.manager.find("plain").core
        assert core.messages == 777
        core.purge()
        uploads.world.run()


def test_large_bodies_are_cut_into_bounded_pieces(uploads: Uploads) -> None:
    body = Random(1).randbytes(3 << 20)
    found = uploads.messages({"body": [body, b"small", body]}, "exact")
    assert [message.body for message in found] == [body, b"small", body]
