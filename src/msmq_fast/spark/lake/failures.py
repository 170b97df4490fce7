"""Translates failures of queue managers, Spark and the disk into one-line messages."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Final

from msmq_fast.client.bulk.client import (
    AccessDenied,
    BulkError,
    NotFound,
    QueueNotFound,
    Unauthorized,
    Unavailable,
)
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.spark.lake.delta import Conflict
from msmq_fast.spark.restarting import WORKER_LATE

__all__ = ["explained", "explaining"]

_SOURCE: Final = re.compile(r"(?:SourceError|DataLoss|OptionError|OffsetError): (.+)")
"""Finds the message of the data source in a long traceback of Python and Java."""
_PYTHON: Final = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception)(?:: .+)?$", re.MULTILINE)
"""Finds the last line of a Python traceback."""
_FULL: Final = re.compile(r"No space left on device|Disk quota exceeded|not enough space", re.IGNORECASE)
_NO_MEMORY: Final = re.compile(r"java\.lang\.OutOfMemoryError")
_CONFLICT: Final = re.compile(r"lake\.delta\.Conflict: |CONCURRENT_STREAM_LOG_UPDATE")
"""Finds a change by two processes at once: in a table, or, of two archives with one checkpoint, in Spark."""
_DENIED: Final = re.compile(r"(?:AccessControlException|AccessDeniedException|Permission denied)[^\n]*")
_EXTRA: Final = ("pyarrow", "pyspark", "pandas", "lmdb", "deltalake")
"""Packages that the extra `spark` installs."""
_CODES: Final = (
    (Unavailable, Exit.UNREACHABLE),
    (AccessDenied, Exit.REFUSED),
    (Unauthorized, Exit.REFUSED),
    (QueueNotFound, Exit.NOT_FOUND),
    (NotFound, Exit.NOT_FOUND),
)


def explaining(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Wrap the function of a command, so that it raises CommandError for each exception that `explained` can
    put into words.
    """

    def explained_run(arguments: argparse.Namespace) -> int:
        try:
            return int(run(arguments))
        except CommandError:
            raise
        except Exception as error:
            failure = explained(error)
            if failure is None:
                raise
            raise failure from error

    return explained_run


def explained(error: BaseException) -> CommandError | None:
    """Return one line that explains an expected error to the user; None for an unexpected one, which is a
    bug.
    """
    if isinstance(error, BulkError):
        code = next((code for kind, code in _CODES if isinstance(error, kind)), Exit.FAILURE)
        return CommandError(code, str(error))
    missing = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if missing in _EXTRA:
        return CommandError(
            Exit.FAILURE,
            f"the Python package {missing} is not installed: install msmq-fast with its extra `spark` (in a "
            "clone: pip install '.[spark]')",
        )
    text = str(error)
    if isinstance(error, Conflict) or _CONFLICT.search(text):
        return CommandError(
            Exit.IN_USE,
            "another command changes the same part of the lake at the same time, and this one gave way: "
            "run it again",
        )
    if _FULL.search(text):
        return CommandError(
            Exit.FAILURE,
            "the disk of the lake is full; the batch that was being written does not count: "
            "make room and run it again",
        )
    if match := _DENIED.search(text):
        return CommandError(Exit.REFUSED, f"the lake cannot be written: {match[0].strip()}")
    if match := _SOURCE.search(text):
        return CommandError(Exit.FAILURE, match[1].strip())
    if WORKER_LATE in text:
        return CommandError(
            Exit.FAILURE,
            "this machine is too busy: a Python worker did not start within the 10 s that Spark waits; "
            "run the command again",
        )
    if "JAVA_GATEWAY_EXITED" in text:
        return CommandError(
            Exit.FAILURE,
            "Spark needs Java 17 or 21, and the Java of JAVA_HOME, or otherwise of PATH, did not start",
        )
    if _NO_MEMORY.search(text):
        return CommandError(
            Exit.FAILURE,
            "Spark's Java has too little memory: set SPARK_DRIVER_MEMORY=4g, or more, in the environment",
        )
    java = type(error).__module__.startswith("py4j.")
    if (java and not hasattr(error, "java_exception")) or isinstance(error, ConnectionError):
        return CommandError(
            Exit.FAILURE,
            f"Spark's Java has ended, perhaps because this machine has too little memory "
            f"({_first_line(text)}); -v shows what it writes",
        )
    if isinstance(error, OSError) or type(error).__module__ == "_internal":  # the latter is deltalake
        return CommandError(Exit.FAILURE, "; ".join(_lines(text)) or type(error).__name__)
    if type(error).__module__.startswith("pyarrow"):
        return CommandError(
            Exit.FAILURE, f"a file cannot be read: {_first_line(text)}; `msmq-lake verify` names the file"
        )
    if java:  # the first line names a call of Py4J
        cause = _first_line(text.partition("\n")[2]).lstrip(": ")
        return CommandError(Exit.FAILURE, cause or _first_line(text))
    if type(error).__module__.startswith("pyspark."):
        line = _first_line(text) or type(error).__name__
        if line.endswith(":") and (match := _PYTHON.search(text)):  # the exception is further below
            line = f"{line} {match[0]}"
        return CommandError(Exit.FAILURE, line)
    return None


def _first_line(text: str) -> str:
    return next(iter(_lines(text)), "")


def _lines(text: str) -> list[str]:
    """Returns the lines of a text that are not empty, without the colours and arrows of deltalake."""
    plain = (re.sub(r"\x1b\[[0-9]*m|\u21b3", "", line).strip() for line in text.splitlines())
    return [line for line in plain if line]
