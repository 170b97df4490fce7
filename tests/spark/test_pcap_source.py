"""`format("msmq_pcap")`: its options, and what it gives in Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from msmq_fast.spark.options import OptionError
from msmq_fast.spark.pcap.source import capture_columns, capture_options, capture_reader
from msmq_fast.spark.source import spark_schema
from tests.spark import traffic
from tests.spark.conversations import conversation
from tests.spark.traffic import Talk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _reader(given: dict[str, str]) -> object:
    options = capture_options(given)
    return capture_reader(options, spark_schema(capture_columns(options)))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "option 'path' is missing: give the path of the captures"),
        ({"path": "/nowhere/*.pcap"}, "option 'path': no capture file found at /nowhere/"),
        ({"path": "x", "port": "1"}, "did you mean 'ports'?"),
        ({"path": "x", "ports": "1801,http"}, "must be port numbers separated by commas"),
        ({"path": "x", "ports": "0"}, "must be port numbers separated by commas"),
        ({"path": "x", "table": "rpc"}, "'rpc' is not supported yet"),
        ({"path": "x", "mode": "lenient"}, "PERMISSIVE or DROPMALFORMED or FAILFAST"),
    ],
)
def test_refusals(given: dict[str, str], reason: str) -> None:
    with pytest.raises(OptionError) as refusal:
        _reader(given)
    assert reason in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_shares_and_files(tmp_path: Path) -> None:
    for name in ("b.pcap", "a.pcap", "c.pcapng.gz", "trace.pcap0", "note.txt"):
        (tmp_path / name).write_bytes(traffic.pcap([]))
    options = capture_options({"path": str(tmp_path), "minPartitions": "3"})
    schema = spark_schema(capture_columns(options))
    partitions = capture_reader(options, schema).partitions()
    assert len(partitions) == 9
    one = capture_options({"path": str(tmp_path / "[ab].pcap"), "rotated": "true", "minPartitions": "1"})
    (partition,) = capture_reader(one, schema).partitions()
    assert [Path(name).name for name in partition.scan.files] == ["a.pcap", "b.pcap"]  # type: ignore[attr-defined]


@pytest.mark.timeout(240)
@pytest.mark.long(seconds=16)
def test_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    packets = [
        packet
        for n in range(4)
        for packet in traffic.disturbed(conversation(25, Talk(("10.0.0.1", 42_000 + n))).packets, n)
    ]
    traffic.write(tmp_path / "a.pcap", packets)
    (tmp_path / "b.pcap").write_bytes(b"no capture at all")
    read = spark.read.format("msmq_pcap")
    frames = read.load(str(tmp_path))
    counts = {row["packet_type"]: row["count"] for row in frames.groupBy("packet_type").count().collect()}
    assert counts == {"establish": 8, "parameters": 8, "session_ack": 12, "user": 100, "damage": 1}
    users = frames.where("packet_type = 'user'").select("connection", "message_id", "body").distinct()
    assert users.count() == 100
    sessions = read.option("table", "sessions").load(str(tmp_path / "a.pcap")).collect()
    assert {row["messages_to_server"] for row in sessions} == {25}
    packet_count = read.option("table", "packets").load(str(tmp_path / "a.pcap")).count()
    assert packet_count == len(packets)
