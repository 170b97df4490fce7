"""`msmq-lake archive --follow` while Spark is slow: a query that did not start in time is started again."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from msmq_fast.spark.lake.archive import Archive, Source
from msmq_fast.terminal.progress import Progress


class Query:
    """A streaming query that has ended with an error, or goes on."""

    def __init__(self, error: str = "") -> None:
        self.isActive = not error
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
    late, good = Query("Python worker failed to connect back."), Query()
    archive = Following(late, good)
    archive.follow("1 second", Progress("archive", 0), Ended(3))
    assert not archive.left
    assert good.stopped


def test_any_other_error_ends_the_archive() -> None:
    archive = Following(Query("no space left"), Query())
    with pytest.raises(RuntimeError, match="no space left"):
        archive.follow("1 second", Progress("archive", 0), Ended(3))
    assert len(archive.left) == 1
