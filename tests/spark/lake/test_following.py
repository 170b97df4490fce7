"""Streams while Spark is slow: a query that did not start in time is started again, but not without end."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from msmq_fast.spark import run_stream
from msmq_fast.spark.lake.archive import Archive, Source
from msmq_fast.spark.restarting import ATTEMPTS
from msmq_fast.terminal.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LATE = "[STREAM_FAILED] Query terminated with exception: Python worker failed to connect back."


class Query:
    """A streaming query that has ended with an error, or goes on."""

    def __init__(self, error: str = "", batches: int = 0) -> None:
        self.isActive = not error
        self.lastProgress = {"batchId": batches - 1} if batches else None
        self.stopped = False
        self._error = error

    def exception(self) -> Exception:
        return RuntimeError(self._error)

    def awaitTermination(self) -> None:
        raise self.exception()

    def stop(self) -> None:
        self.stopped = True


class Ended(threading.Event):
    """Set when it was waited for so often."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self._looks = looks

    def wait(self, timeout: float | None = None) -> bool:
        self._looks -= 1
        return self._looks < 0


class Following(Archive):
    """Starts these queries, one after the other."""

    def __init__(self, *queries: Query) -> None:
        self._source = Source(("msmq+bulk://nowhere:1",), contents=("events",))
        self.left = list(queries)
        self.archived, self._shown = {"events": 0}, 0

    def _start(self, content: str, **trigger: Any) -> Any:
        return self.left.pop(0)

    def look(self) -> None:
        pass


def test_a_query_that_started_too_late_is_started_again() -> None:
    late, good = Query(LATE), Query()
    archive = Following(late, good)
    archive.follow("1 second", Progress("archive", 0), Ended(3))
    assert not archive.left
    assert good.stopped


def test_a_query_that_never_starts_ends_the_archive() -> None:
    archive = Following(*(Query(LATE) for _ in range(10)))
    with pytest.raises(RuntimeError, match="connect back"):
        archive.follow("1 second", Progress("archive", 0), Ended(30))
    assert len(archive.left) == 10 - ATTEMPTS


def test_a_query_that_works_in_between_is_started_again_and_again() -> None:
    archive = Following(*(Query(LATE, batches=number % 2) for number in range(10)), Query())
    archive.follow("1 second", Progress("archive", 0), Ended(30))
    assert not archive.left


@pytest.mark.long(seconds=10)
def test_a_stream_of_a_user_is_started_again_with_the_same_checkpoint(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The worker of the first query is late; the second one is a query of Spark's own."""
    starts = []

    def start() -> Any:
        starts.append(1)
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
        if len(starts) == 1:

            def late(batch: Any, number: int) -> None:
                raise RuntimeError(LATE)
        else:

            def late(batch: Any, number: int) -> None:
                batch.collect()

        writer = rows.writeStream.foreachBatch(late).option("checkpointLocation", str(tmp_path))
        return writer.trigger(once=True).start()

    query = run_stream(start)
    assert len(starts) == 2
    assert query.lastProgress["batchId"] == 0


def test_any_other_error_ends_the_archive() -> None:
    archive = Following(Query("no space left"), Query())
    with pytest.raises(RuntimeError, match="no space left"):
        archive.follow("1 second", Progress("archive", 0), Ended(3))
    assert len(archive.left) == 1
