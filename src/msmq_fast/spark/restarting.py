"""Starts a streaming query again if a Python worker of Spark was late.

Spark waits 10 s for each Python process that it starts, and no setting changes this time. On a busy machine a
query therefore ends at its start with "Python worker failed to connect back". It has done nothing then, and
the same query can be started again with the same checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["ATTEMPTS", "WORKER_LATE", "Restarts", "run_stream"]

WORKER_LATE: Final = "Python worker failed to connect back"
"""What the error of such a query contains."""
ATTEMPTS: Final = 5
"""How often a query is started without having completed a batch in between."""


class Restarts:
    """Decides whether a streaming query that has ended is started again: at most `attempts` starts in a row
    that were in vain. A query that completed a batch begins to count anew.
    """

    def __init__(self, attempts: int = ATTEMPTS) -> None:
        self._attempts = attempts
        self._failed = 0

    def again(self, error: BaseException | None, *, worked: bool) -> bool:
        """Return whether to start the query again. `error` is the reason of its end, None if there was none;
        `worked`: it has completed a batch since it was started.
        """
        if error is None or WORKER_LATE not in str(error):
            return False
        self._failed = 1 if worked else self._failed + 1
        return self._failed < self._attempts


def run_stream(start: Callable[[], StreamingQuery], *, attempts: int = ATTEMPTS) -> StreamingQuery:
    """Start a streaming query with `start`, wait until it ends, and return it:

        run_stream(lambda: rows.writeStream.option("checkpointLocation", place).start(directory))

    Calls `start` again if a Python worker was late, at most `attempts` times without a completed batch.
    Raises StreamingQueryException for every other error of the query, and for that of the last attempt.
    """
    from pyspark.errors import StreamingQueryException

    restarts = Restarts(attempts)
    while True:
        query = start()
        try:
            query.awaitTermination()
            return query
        except StreamingQueryException as error:
            if not restarts.again(error, worked=query.lastProgress is not None):
                raise
