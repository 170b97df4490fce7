"""Uploads that are refused: one line says why, and nothing is left of the stage."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from msmq_fast.bulk.errors import Refusal
from msmq_fast.protocol.errors import InsufficientResources, MSMQError
from msmq_fast.security.token import EVERYONE_TOKEN
from tests.bulk.uploads import ORIGINAL, REMOTE, Uploads, nothing_left, stream, uploads, workers, world

__all__ = ["uploads", "workers", "world"]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"body": ["x", "y"], "priority": [1, 8]}, "row 1: priority is a number from 0 to 7"),
        ({"body": ["x"], "priority": [-1]}, "row 0: priority is a number from 0 to 7"),
        ({"body": ["x"], "delivery": [2]}, "row 0: delivery is 0 (express) or 1 (recoverable)"),
        ({"body": ["x"], "acknowledge": [16], "admin_queue": ["x"]}, "row 0: acknowledge is a number"),
        ({"body": ["x"], "journal": [4]}, "row 0: journal is a number from 0 to 3"),
        ({"body": ["x"], "app_specific": [1 << 32]}, "row 0: app_specific is a number from 0 to 4294967295"),
        ({"body": ["x"], "app_specific": [-1]}, "row 0: app_specific is a number from 0 to 4294967295"),
        ({"body": ["x"], "body_type": [1 << 32]}, "row 0: body_type is a number of 32 bits"),
        ({"body": ["x"], "time_to_reach_queue": [-5]}, "row 0: time_to_reach_queue is a number"),
        ({"body": ["x"], "time_to_be_received": [1 << 40]}, "row 0: time_to_be_received is a number"),
        (
            {"body": ["x"], "correlation_id": [b"19 bytes are too few"[:19]]},
            "row 0: correlation_id has 20 bytes",
        ),
        ({"body": ["x"], "label": ["é" * 250]}, "row 0: the label has more than 249 characters"),
        ({"body": ["x"] * 3, "label": ["é" * 249, "", "😀" * 125]}, "row 2: the label has more than 249"),
        ({"body": [b"x" * (4 << 20)]}, "row 0: the message is too large"),
        ({"body": ["x" * (2 << 20)]}, "row 0: the message is too large"),
        ({"body": ["x"], "extension": [b"x" * (4 << 20)]}, "row 0: the message is too large"),
        (
            {"body": ["x"], "acknowledge": [1]},
            "row 0: the row requests an acknowledgment, but has no admin_queue",
        ),
        ({"body": ["x"], "response_queue": ["DIRECT=nonsense"]}, "row 0: response_queue: "),
        (
            {"body": ["x"], "response_queue": [f"{REMOTE},{REMOTE}"]},
            "response_queue: this message can have only one response or admin queue",
        ),
        ({"body": ["x"], "message_id": ["{6b29fc40}\\1"]}, "row 0: message_id has the form {GUID}\\number"),
        ({"body": ["x"], "message_id": [ORIGINAL[:-2] + "4294967296"]}, "row 0: message_id has the form"),
        ({"body": ["x", "y"], "queue": ["plain", "nowhere"]}, "row 1: there is no queue nowhere"),
        ({"body": ["x", "y"], "queue": ["plain", f"{REMOTE},plain"]}, "row 1: the name means several"),
        ({"body": ["x"], "queue": ["plain;journal"]}, "row 0: a journal cannot be sent to"),
        ({"body": ["x"], "queue": ["guarded"]}, "row 0: HOST\\private$\\guarded takes signed messages only"),
        ({"body": [1]}, "column body of type int64: texts or bytes are needed"),
        ({"body": ["x"], "priority": [1.0]}, "column priority of type floating point: whole numbers"),
        ({"body": ["x"], "priority": ["1"], "label": ["x"]}, "column priority of type string: whole numbers"),
        ({"body": ["x"], "extension": ["text"]}, "column extension of type string: bytes"),
        ({"body": ["x"], "colour": [1]}, "unknown column 'colour'; known columns: acknowledge, admin_"),
        ({"label": ["x"]}, "the column body is missing"),
        ({"body": [b"x"], "label": pa.array([b"\xff"]).view(pa.string())}, "row 0: the label is not UTF-8"),
    ],
)
def test_a_row_that_cannot_be_a_message_refuses_all(
    uploads: Uploads, columns: dict[str, Any], words: str
) -> None:
    with pytest.raises((ValueError, MSMQError)) as refused:
        uploads.stage(stream(pa.table(columns)), queue="plain")
    line = getattr(refused.value, "detail", "") or str(refused.value)
    assert words in line
    assert "\n" not in line
    nothing_left(uploads.world)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"priority": "8"}, "priority must be a whole number from 0 to 7"),
        ({"colour": "red"}, "unknown parameter 'colour'"),
        ({"writer": "\x07"}, "writer must not hold characters that cannot be printed"),
        ({"writer": "w" * 201}, "1 to 200 printable characters"),
        ({"batch": "-1"}, "batch must be a whole number"),
        ({"transaction": "all"}, "transaction must be one of row, stage"),
        ({"label": "x" * 250}, "the label has more than 249 characters"),
        ({"transactional": "true"}, "row 0: HOST\\private$\\plain is not transactional"),
        ({"transactional": "false", "queue": "exact"}, "row 0: HOST\\private$\\exact takes transactional"),
    ],
)
def test_a_query_that_is_wrong_is_refused(uploads: Uploads, query: dict[str, str], words: str) -> None:
    with pytest.raises((Refusal, ValueError, MSMQError)) as refused:
        uploads.stage(stream(pa.table({"body": ["x"]})), **({"queue": "plain"} | query))
    assert words in str(refused.value)
    nothing_left(uploads.world)


def test_unknown_columns_may_be_passed_over(uploads: Uploads) -> None:
    assert uploads.one({"body": [b"1"], "colour": ["red"]}, unknown="ignore").body == b"1"


def test_who_may_not_send_to_a_queue_stages_nothing_for_it(uploads: Uploads) -> None:
    from msmq_fast.security.acl import Acl
    from msmq_fast.security.descriptor import SecurityDescriptor

    queue = uploads.world.manager.find("exact")
    queue.security = SecurityDescriptor.build(None, None, Acl())
    table = pa.table({"body": ["x", "y"], "queue": ["plain", "exact"]})
    with pytest.raises(MSMQError, match=r"ACCESS_DENIED.*row 1: "):
        uploads.stage(stream(table), token=EVERYONE_TOKEN)
    nothing_left(uploads.world)


def test_a_stage_is_not_greater_than_it_may_be(uploads: Uploads) -> None:
    table = pa.table({"body": [b"x" * (1 << 20)] * 11})
    with pytest.raises(InsufficientResources, match="a stage has at most 10485760 bytes: use more parts"):
        uploads.stage(stream(table, 1), queue="plain")
    nothing_left(uploads.world)
