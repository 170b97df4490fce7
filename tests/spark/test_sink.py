"""`format("msmq")` as a sink, on a real server: batches and streams become messages, once and in order."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from msmq_fast import sync
from msmq_fast.client.bulk.client import TooLarge
from msmq_fast.spark import sink
from msmq_fast.spark.options import OptionError
from msmq_fast.spark.sink import MsmqWriter, SinkError, Staged, _pieces, sink_options
from tests.spark.fakeserver import serving
from tests.spark.realserver import RealServer, running

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def server() -> Iterator[RealServer]:
    with running() as found:
        yield found


@pytest.fixture
def queue(server: RealServer, request: pytest.FixtureRequest) -> str:
    name = f"q{abs(hash(request.node.name))}"
    server.create(name)
    return name


def bodies(server: RealServer, queue: str) -> list[bytes]:
    """What is in a queue, in its order; it is empty afterwards."""
    with server.receiving(queue) as opened:
        return [bytes(message.body) for message in received(opened, server.count(queue))]


def received(opened: sync.Queue, count: int) -> list[Any]:
    return [opened.receive(timeout=0) for _ in range(count)]


def numbers(spark: SparkSession, count: int, parts: int = 2) -> DataFrame:
    return spark.range(0, count, 1, parts).selectExpr("encode(cast(id as string), 'utf-8') as body")


def write(rows: DataFrame, server: RealServer, **options: str) -> None:
    rows.write.format("msmq").mode("append").option("url", server.url).options(**options).save()


def test_rows_become_messages_in_the_order_of_their_partitions(
    spark: SparkSession, server: RealServer, queue: str
) -> None:
    write(numbers(spark, 1000), server, queue=queue)
    assert bodies(server, queue) == [b"%d" % number for number in range(1000)]


def test_columns_become_properties_and_options_stand_for_missing_ones(
    spark: SparkSession, server: RealServer, queue: str
) -> None:
    rows = spark.sql("select cast('a' as binary) as body, 'L' as label, cast(7 as tinyint) as priority")
    write(rows, server, queue=queue, appSpecific="42", delivery="express")
    with server.receiving(queue) as opened:
        (message,) = received(opened, 1)
    assert (message.body, message.label, message.priority, message.app_specific) == (b"a", "L", 7, 42)
    assert message.delivery == 0


def test_a_job_that_is_repeated_writes_nothing(spark: SparkSession, server: RealServer, queue: str) -> None:
    for _ in range(2):
        write(numbers(spark, 10), server, queue=queue, jobId=f"job of {queue}")
    assert server.count(queue) == 10
    with pytest.raises(Exception, match=r"has written other rows before.*10 rows with checksum"):
        write(numbers(spark, 7), server, queue=queue, jobId=f"job of {queue}")
    server.create(f"{queue}-2")
    for other in ("'other' as label", f"'{queue}-2' as queue"):  # the same bodies, but not the same messages
        with pytest.raises(Exception, match="has written other rows before"):
            write(numbers(spark, 10).selectExpr("*", other), server, queue=queue, jobId=f"job of {queue}")
    assert (server.count(queue), server.count(f"{queue}-2")) == (10, 0)
    write(numbers(spark, 10).repartition(3), server, queue=queue, jobId=f"job of {queue}")
    assert server.count(queue) == 10
    write(numbers(spark, 10), server, queue=queue)
    assert server.count(queue) == 20


def test_a_row_that_cannot_be_a_message_keeps_all_of_them_out(
    spark: SparkSession, server: RealServer, queue: str
) -> None:
    rows = spark.range(0, 100, 1, 2).selectExpr(
        "cast('x' as binary) as body", f"if(id = 90, 'none-such', '{queue}') as queue"
    )
    with pytest.raises(Exception, match="none-such"):
        write(rows, server)
    assert server.count(queue) == 0


@pytest.mark.long(seconds=15)
def test_a_stream_goes_on_behind_what_it_has_written(
    spark: SparkSession, server: RealServer, queue: str, tmp_path: Path
) -> None:
    """Also without its checkpoint: then the queue manager fences it off until its epoch is raised."""

    def run(checkpoint: str, epoch: int) -> None:
        rows = spark.readStream.schema("text string").text(str(tmp_path / "in"))
        query = (
            rows.selectExpr("text as body")
            .writeStream.format("msmq")
            .option("url", server.url)
            .options(queue=queue, writerId=f"stream of {queue}", writerEpoch=str(epoch))
            .option("checkpointLocation", str(tmp_path / checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.txt").write_text(f"line {number}\n")
        run("first", 2)
        if not number:
            shutil.copytree(tmp_path / "first", tmp_path / "copy")
    assert [body.decode("utf-16-le") for body in bodies(server, queue)] == ["line 0", "line 1", "line 2"]
    with pytest.raises(Exception, match="writerEpoch"):
        run("second", 1)
    with pytest.raises(Exception, match=r"were published from.*writerEpoch"):
        run("third", 2)  # its first batch has the number of one that is there, and other rows
    with pytest.raises(Exception, match=r"already published batch 1 .*the checkpoint is older"):
        run("copy", 2)
    assert server.count(queue) == 0
    run("fourth", 3)
    assert server.count(queue) == 3


def test_at_least_once_needs_no_name(
    spark: SparkSession, server: RealServer, queue: str, tmp_path: Path
) -> None:
    write(numbers(spark, 100), server, queue=queue, semantics="atLeastOnce")
    assert sorted(map(int, bodies(server, queue))) == list(range(100))
    with serving() as fake:  # the server remembers no writer for each task
        fake.manager.create(queue)
        rows = numbers(spark, 100).write.format("msmq").mode("append").option("url", fake.url)
        rows.options(queue=queue, semantics="atLeastOnce").save()
        assert len(fake.manager.queues[f"private$\\{queue}"].held) == 100
        assert fake.manager.fences == {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "option 'queue' is missing"),
        ({"queue": "q", "wirterId": "x"}, "did you mean 'writerId'"),
        ({"queue": "q", "writerId": "x"}, "is for streams"),
        ({"queue": "q", "semantics": "atLeastOnce", "jobId": "j"}, "'jobId' goes with semantics=exactlyOnce"),
        ({"queue": "q", "semantics": "idempotent"}, "exactlyOnce or atLeastOnce"),
        ({"queue": "q", "url": "msmq+bulk://a:1,msmq+bulk://b:1"}, "must have one address only"),
    ],
)
def test_mistakes_in_options(spark: SparkSession, options: dict[str, str], said: str) -> None:
    given = {"url": "msmq+bulk://127.0.0.1:1", **options}
    with pytest.raises(Exception, match=said):
        numbers(spark, 1).write.format("msmq").mode("append").options(**given).save()


def test_a_stage_that_the_server_does_not_take_is_told_of_with_the_option() -> None:
    from pyspark.sql.types import BinaryType, StructType

    options = sink_options({"url": "msmq+bulk://127.0.0.1:1", "queue": "q"})
    writer = MsmqWriter(options, StructType().add("body", BinaryType()), overwrite=False)
    error = TooLarge("POST /stage: a stage has at most 1048576 bytes (bulk.max_stage_bytes): use more parts")
    assert "option 'maxStageBytes'" in writer._explained(error)
    assert "maxStageBytes" not in writer._explained(TooLarge("POST /stage: row 3: the message is too large"))


def test_mistakes_in_columns(spark: SparkSession, server: RealServer, queue: str) -> None:
    with pytest.raises(Exception, match="no column 'body'"):
        write(spark.range(1), server, queue=queue)
    with pytest.raises(Exception, match="'colour'"):
        write(spark.sql("select 'a' as body, 'red' as colour"), server, queue=queue)
    write(spark.sql("select 'a' as body, 'red' as colour"), server, queue=queue, ignoreUnknownColumns="true")
    assert server.count(queue) == 1
    with pytest.raises(Exception, match="append"):
        numbers(spark, 1).write.format("msmq").mode("overwrite").option("url", server.url).option(
            "queue", queue
        ).save()


def test_idempotent_is_refused() -> None:
    with pytest.raises(OptionError, match="identifiers"):
        sink_options({"semantics": "Idempotent"})


def test_options_with_old_names_are_understood() -> None:
    options = sink_options({"url": "msmq+bulk://127.0.0.1:1", "queue": "q", "ttrq": "70", "TTBR": "80"})
    assert (options["timeToReachQueue"], options["timeToBeReceived"]) == (70, 80)


def test_pieces_hold_about_as_much_as_a_stage_takes() -> None:
    import pyarrow as pa

    batches = [pa.record_batch({"body": [b"x" * size]}) for size in (100, 100, 5000, 100)]
    found = list(_pieces(iter([*batches, batches[0].slice(0, 0)]), 1000))
    assert [[len(batch["body"][0].as_py()) for batch in piece] for piece in found] == [
        [100, 100],
        [5000],
        [100],
    ]
    short = pa.record_batch({"body": [b"x"]})
    assert [len(piece) for piece in _pieces(iter([short] * 7), 1000)] == [
        3,
        3,
        1,
    ]  # a message is more than its body


def test_large_rows_side_by_side_are_cut_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """However they lie, no batch is greater than the server takes."""
    import pyarrow as pa

    monkeypatch.setattr(sink, "MOST_BATCH", 1000)
    sizes = [1] * 300 + [400] * 10 + [2000] + [1] * 100
    batch = pa.record_batch({"body": [b"x" * size for size in sizes]})
    found = [part for piece in _pieces(iter([batch]), 1 << 20) for part in piece]
    assert all(part.nbytes <= 1000 or part.num_rows == 1 for part in found)
    assert [len(body.as_py()) for part in found for body in part["body"]] == sizes


def test_more_stages_than_a_batch_has_are_told_of_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql.types import BinaryType, StructType

    monkeypatch.setattr(sink, "_MOST_STAGES", 2)
    options = sink_options({"url": "msmq+bulk://127.0.0.1:1", "queue": "q"})
    writer = MsmqWriter(options, StructType().add("body", BinaryType()), overwrite=False)
    with pytest.raises(SinkError, match=r"uploaded 3 stages, and a batch has at most 2: .*coalesce"):
        writer.commit([Staged([(0, "a"), (1, "b")]), None, Staged([(2, "c")])])
