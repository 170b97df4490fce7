"""The body functions in Spark: values, twins, SQL."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING
from uuid import UUID

import pyarrow as pa
import pytest

from msmq_fast.bodies.errors import BodyError
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.spark import functions
from msmq_fast.spark.decoding import DECODERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_nulls_and_errors_without_spark() -> None:
    rows = (pa.array([b"a\0", None, b"a", b"x"]), pa.array([8, 8, 8, None]))
    assert functions._rows(functions.msmq_text.plain, 1, rows) == [
        ("a", None),
        (None, None),
        (None, "byte 0 is not utf-16-le: truncated data"),
        ("x", None),
    ]


def test_no_headers_are_null_and_utf16_needs_no_type() -> None:
    headers = functions.msmq_extension_headers.plain
    assert functions._rows(headers, 1, (pa.array([b"", bytes(4), b"{}", b'{"a": "b"}']),)) == [
        (None, None),
        (None, None),
        (None, None),
        ({"a": "b"}, None),
    ]
    bodies = (pa.array(["né".encode("utf-16-le"), b"a"]),)
    assert functions._rows(functions.msmq_utf16.plain, 1, bodies) == [
        ("né", None),
        (None, "byte 0 is not utf-16-le: truncated data"),
    ]


def test_class_names() -> None:
    name = functions.msmq_class_name.plain
    assert all(name(int(one)) == one.name for one in MessageClass)
    assert name(0xC123) == "0xc123"
    for number in (-1, 0x10000):
        with pytest.raises(BodyError, match=r"must be from 0 to 65535"):
            name(number)


def test_deep_lists_are_json_or_an_error() -> None:
    for depth in range(900, 1000):
        with contextlib.suppress(BodyError):
            assert DECODERS["json"](b"[" * depth + b"]" * depth, None)
    with pytest.raises(BodyError, match="not JSON"):
        DECODERS["json"](b"[" * 100_000, None)


@pytest.mark.timeout(240)
def test_in_dataframes_and_sql(spark: SparkSession) -> None:
    identifier = UUID(int=7)
    rows = [
        (1, 8, bytearray("héllo".encode("utf-16-le")), 0x8002, bytearray(b'{"a": "b"}')),
        (2, 0, bytearray(b"\0\1\0\1\4\2\1x\3\7<e/>"), 0, None),
        (3, None, None, -1, bytearray(b"?")),
        (4, 72, bytearray(identifier.bytes_le), 2, bytearray(b"")),
    ]
    frame = spark.createDataFrame(rows, "n int, body_type int, body binary, class int, extension binary")
    f = functions
    found = {
        row["n"]: row
        for row in frame.select(
            "n",
            f.msmq_body_kind("body_type", "body").alias("kind"),
            f.msmq_text("body", "body_type").alias("text"),
            f.msmq_nmf("body").alias("nmf"),
            f.msmq_nmf.error("body").alias("nmf_error"),
            f.msmq_guid("body").alias("guid"),
            f.msmq_class_name("class").alias("class_name"),
            f.msmq_class_name.error("class").alias("class_error"),
            f.msmq_extension_headers("extension").alias("headers"),
            f.msmq_extension_headers.error("extension").alias("headers_error"),
        ).collect()
    }
    assert [found[n]["kind"] for n in (1, 2, 3, 4)] == ["text", "net_framing", None, "guid"]
    assert found[1]["text"] == "héllo"
    assert found[2]["nmf"].asDict() == {
        "version": "1.0",
        "mode": "singleton_sized",
        "via": "x",
        "encoding": "application/soap+msbin1",
        "envelope": 10,
        "envelope_size": 4,
    }
    assert (found[1]["nmf"], found[1]["nmf_error"]) == (
        None,
        "the body is not framed: it must begin with a version record",
    )
    assert (found[3]["nmf"], found[3]["nmf_error"]) == (None, None)
    assert found[4]["guid"] == str(identifier)
    assert [found[n]["class_name"] for n in (1, 2, 3, 4)] == [
        "NACK_REACH_QUEUE_TIMEOUT",
        "NORMAL",
        None,
        "ACK_REACH_QUEUE",
    ]
    assert found[3]["class_error"] == "a message class must be from 0 to 65535, not -1"
    assert found[1]["headers"] == {"a": "b"}
    assert found[4]["headers"] is None
    assert found[3]["headers_error"] == "the extension holds neither XML nor JSON headers"

    functions.register(spark)
    frame.createOrReplaceTempView("bodies")
    sql = "SELECT msmq_netbinary_info(body).root r, msmq_netbinary_info_error(body) e FROM bodies"
    first = spark.sql(sql + " WHERE n = 1").collect()[0]
    assert first["r"] is None
    assert first["e"] == "the body does not begin with the header of a BinaryFormatter stream"
