"""The columns in bulk, and their Arrow types."""

from __future__ import annotations

import pyarrow as pa
import pytest

from msmq_fast.protocol.arrow import arrow_schema
from msmq_fast.protocol.columns import (
    EVENT_COLUMNS,
    GROUPS,
    KINDS,
    MESSAGE_COLUMNS,
    OLD_NAMES,
    chosen,
    chosen_events,
)

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize("columns", [MESSAGE_COLUMNS, EVENT_COLUMNS])
def test_tables_are_sound(columns):
    assert len({column.name for column in columns}) == len(columns)
    assert {column.kind for column in columns} <= set(KINDS)
    assert {column.group for column in columns} <= set(GROUPS)


def test_arrow_types():
    """Those that Spark makes of its own types: anything else would be refused there."""
    schema = arrow_schema(MESSAGE_COLUMNS)
    types = {
        "queue": pa.string(),
        "body": pa.binary(),
        "priority": pa.int8(),
        "class": pa.int32(),
        "lookup_id": pa.int64(),
        "encrypted": pa.bool_(),
        "sent_time": pa.timestamp("us", tz="UTC"),
    }
    assert {name: schema.field(name).type for name in types} == types
    assert all(field.nullable for field in schema)


def test_groups_are_chosen():
    names = {column.name for column in chosen("core")}
    assert "body" in names
    assert not names & {"raw_packet", "xact_id", "signature"}
    assert not any(column.group != "core" for column in chosen("core", body=False))
    everything = chosen("all", raw=True, security=True)
    assert everything == MESSAGE_COLUMNS
    assert {column.group for column in chosen("all")} == {"core", "body", "extra"}


def test_old_names_of_columns_are_understood():
    assert [column.name for column in chosen("ttrq_seconds,label")] == ["time_to_reach_queue", "label"]
    assert [column.name for column in chosen_events("source_machine_guid")] == ["source_machine"]
    current = {column.name for column in (*MESSAGE_COLUMNS, *EVENT_COLUMNS)}
    assert set(OLD_NAMES.values()) <= current
    assert not OLD_NAMES.keys() & current


def test_names_are_chosen_in_their_order():
    columns = chosen("label, arrival_seq,signature", body=True)
    assert [column.name for column in columns] == ["label", "arrival_seq", "signature"]
    assert [column.name for column in chosen_events("event,queue")] == ["event", "queue"]
    assert chosen_events("all") == EVENT_COLUMNS


@pytest.mark.parametrize("text", ["", "label,", "labels", "label,label"])
def test_wrong_names_are_named(text):
    with pytest.raises(ValueError, match=r"no column|named twice"):
        chosen(text)
