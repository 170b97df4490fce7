"""The reader of `format("msmq_store")`: reads a snapshot, or the store of a stopped server. Each task reads
some key ranges of one table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from msmq_fast.protocol.columns import Column
from msmq_fast.spark.offline.backend import opened
from msmq_fast.spark.offline.catalogue import (
    Catalogue,
    Stretch,
    event_stretches,
    message_stretches,
    read_catalogue,
)
from msmq_fast.spark.offline.errors import OfflineError
from msmq_fast.spark.offline.place import usable_directory
from msmq_fast.spark.offline.tables import Request, Task, read, table_columns
from msmq_fast.spark.options import COLUMNS, GROUPS, Option, OptionError, Options, check_columns
from msmq_fast.spark.pushdown import Conditions

FORMAT: Final = "msmq_store"
OPTIONS: Final = (
    Option("path", "text", None, "directory of a snapshot or of a stopped queue manager"),
    Option("table", "messages|events|queues|writers|raw", "messages", "the table to read"),
    Option(
        "queues",
        "text",
        None,
        "for messages: path names or patterns with *, separated by commas; default: all",
    ),
    *COLUMNS,
    Option("partitions", "count", "8", "tasks, at most"),
    Option("mode", "PERMISSIVE|DROPMALFORMED|FAILFAST", "PERMISSIVE", "how damaged records are handled"),
    Option("pushdown", "flag", "false", "apply filters while reading; see docs/how-to/spark.md"),
    Option("allowLive", "flag", "false", "copy a store that a server has open before reading"),
    Option("copyDirectory", "text", None, "directory of that copy; every executor must see it"),
    Option("computerName", "text", ".", "computer name in path names, which the store does not contain"),
    Option("decoder", "auto|native|plain", "auto", "plain: without native code, much slower"),
)
_EACH: Final = 8
"""Number of key ranges of a queue and priority per task, because keys are not spread evenly."""


class StorePartition(InputPartition):
    """The partition that Spark passes to one task."""

    def __init__(self, task: Task) -> None:
        super().__init__(None)
        self.task = task


class StoreReader(DataSourceReader):
    """Divides a table of the store into key ranges, and assigns them to the tasks in turn."""

    def __init__(self, request: Request, options: Options) -> None:
        self._request = request
        self._options = options
        self._conditions = Conditions(request.columns)
        if options["pushdown"]:
            # Set on the instance only: a class that has pushFilters fails if the session does not allow it.
            self.pushFilters = self._push  # type: ignore[method-assign]

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop("pushFilters", None)
        return state

    def _push(self, filters: list[Filter]) -> Iterable[Filter]:
        yield from self._conditions.take(filters)

    def partitions(self) -> list[InputPartition]:
        """Plans the query and returns one partition for each task. Raises OfflineError if the store cannot be
        read, and OptionError if it does not have a selected queue.
        """
        options, request = self._options, self._request
        directory = usable_directory(
            options.need("path", "give the directory of the store"),
            allow_live=options["allowLive"],
            copies=options["copyDirectory"],
        )
        request = replace(request, directory=directory)
        with opened(directory, request.decoder) as backend:
            catalogue = read_catalogue(backend, request.computer)
            request = replace(request, transaction=backend.transaction())
            if request.table not in ("messages", "events"):
                return [StorePartition(Task(request))]
            tasks = options["partitions"]
            if request.table == "messages":
                wanted = self._wanted(catalogue)
                found = [one for one in message_stretches(backend, tasks * _EACH) if wanted(one)]
            else:
                found = list(event_stretches(backend, tasks * _EACH))
        shares = [tuple(found[index::tasks]) for index in range(min(tasks, len(found)))]
        return [StorePartition(Task(request, share)) for share in shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of one task. Raises OfflineError."""
        if isinstance(partition, StorePartition):
            for batch in read(partition.task):
                kept = self._conditions.apply(batch)
                if kept.num_rows:
                    yield kept

    def _wanted(self, catalogue: Catalogue) -> Callable[[Stretch], bool]:
        """Returns a function that tells whether a key range can contain rows that the options and filters
        select. Raises OptionError if the store does not have a selected queue.
        """
        text = self._options["queues"]
        ordinals = None if text is None else chosen_queues(catalogue, text)

        def wanted(stretch: Stretch) -> bool:
            if ordinals is not None and stretch.ordinal not in ordinals:
                return False
            return self._conditions.may_hold("queue", catalogue.queue(stretch.ordinal).name)

        return wanted


def chosen_queues(catalogue: Catalogue, text: str) -> set[int]:
    """Returns the ordinals of the queues that `text` names: a list, separated by commas, of path names with
    or without the computer, and of patterns with * and ?.

    Raises OptionError if a name or pattern matches no queue.
    """
    found: set[int] = set()
    for name in filter(None, map(str.strip, text.split(","))):
        pattern = name.casefold().removeprefix(".\\")
        hits = {
            ordinal for ordinal, queue in catalogue.queues.items() if queue.name and _is(pattern, queue.name)
        }
        if not hits:
            names = ", ".join(sorted(queue.name for queue in catalogue.queues.values() if queue.name)[:20])
            raise OptionError(f"option 'queues': the store has no queue {name!r}; it has {names}")
        found |= hits
    return found


def _is(pattern: str, name: str) -> bool:
    spellings = (name.casefold(), name.casefold().partition("\\")[2])
    if "*" in pattern or "?" in pattern:
        return any(spelling and fnmatchcase(spelling, pattern.replace("[", "[[]")) for spelling in spellings)
    return pattern in spellings or f"private$\\{pattern}" == spellings[1]


def store_options(given: Mapping[str, str]) -> Options:
    """Returns the checked options. Raises OptionError for an option that is unknown, has an invalid value, or
    has no effect on the selected table.
    """
    options = Options(given, OPTIONS, FORMAT)
    if options["table"] == "messages":
        check_columns(options)
    else:
        options.refuse(["queues", "columns", *GROUPS], "requires table=messages")
    if not options["allowLive"]:
        options.refuse(["copyDirectory"], "requires allowLive=true")
    return options


def store_columns(options: Options) -> tuple[Column, ...]:
    """Returns the columns of the table. Raises OptionError for an unknown column."""
    try:
        return table_columns(
            options["table"],
            options["columns"],
            body=options["includeBody"],
            raw=options["includeRaw"],
            security=options["includeSecurity"],
        )
    except ValueError as error:
        raise OptionError(f"option 'columns': {error}") from None


def store_reader(options: Options, schema: StructType) -> StoreReader:
    """Returns a reader. Raises OptionError if the option `path` is missing, or `schema` does not have the
    columns that the options select.
    """
    columns = store_columns(options)
    if schema.fieldNames() != [column.name for column in columns]:
        raise OptionError(
            f"format {FORMAT!r} has its own columns: select them with option 'columns', not a schema"
        )
    path = options.need("path", "give the directory of the store")
    request = Request(
        Path(path), options["table"], columns, options["computerName"], options["decoder"], options["mode"]
    )
    return StoreReader(request, options)


__all__ = ["OPTIONS", "OfflineError", "StoreReader", "store_columns", "store_options", "store_reader"]
