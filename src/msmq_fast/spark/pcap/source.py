"""The reader of `format("msmq_pcap")`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from msmq_fast.protocol.columns import Column
from msmq_fast.spark.options import Option, OptionError, Options
from msmq_fast.spark.pcap.captures import capture_files
from msmq_fast.spark.pcap.errors import CaptureError
from msmq_fast.spark.pcap.tables import Scan, read

FORMAT: Final = "msmq_pcap"
OPTIONS: Final = (
    Option("path", "text", None, "a capture, a directory of captures, or a pattern"),
    Option("table", "frames|packets|sessions|rpc|srmp", "frames", "the table to read"),
    Option("ports", "text", None, "TCP and UDP ports, separated by commas"),
    Option("includeBody", "flag", "true", "include the column `body` (of table=packets: `payload`)"),
    Option("includeRaw", "flag", "false", "include the column `raw_packet` (of table=frames)"),
    Option("minPartitions", "count", "2", "tasks of one capture; each reads all files and keeps its share"),
    Option("rotated", "flag", "false", "all files are one capture, in the order of their names"),
    Option("maxFlowBytes", "size", "16m", "bytes after a hole that wait before it counts as a gap"),
    Option("mode", "PERMISSIVE|DROPMALFORMED|FAILFAST", "PERMISSIVE", "how malformed rows are handled"),
)
PORTS: Final = {"frames": "1801,3527", "sessions": "1801", "packets": "1801,3527,2103,2105,135,80,443"}
"""The default ports of each table."""


class CapturePartition(InputPartition):
    """The partition that Spark passes to one task: the files of a capture, and the share (a subset) of their
    connections that the task processes.
    """

    def __init__(self, scan: Scan) -> None:
        super().__init__(None)
        self.scan = scan


class CaptureReader(DataSourceReader):
    """Divides the connections of each capture into shares, one for each task.

    Every task reads all files of the capture, and processes only the connections of its share. This is
    efficient because it takes little time to find the connection of a record, but much time to put streams in
    order and decode them.
    """

    def __init__(self, scan: Scan, captures: list[tuple[str, ...]], shares: int) -> None:
        self._scan = scan
        self._captures = captures
        self._shares = shares

    def partitions(self) -> list[InputPartition]:
        """Returns one partition for each share of each capture."""
        return [
            CapturePartition(replace(self._scan, files=files, share=share, shares=self._shares))
            for files in self._captures
            for share in range(self._shares)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of one share. Raises CaptureError only in the mode FAILFAST."""
        if isinstance(partition, CapturePartition):
            yield from read(partition.scan)


def capture_options(given: Mapping[str, str]) -> Options:
    """Returns the checked options. Raises OptionError for an option that is unknown, has an invalid value, or
    has no effect on the selected table, and for a table that is not supported yet.
    """
    options = Options(given, OPTIONS, FORMAT)
    if options["table"] in ("rpc", "srmp"):
        raise OptionError(
            f"option 'table' must be frames, packets or sessions: {options['table']!r} is not supported yet; "
            "the table packets has the bytes of all protocols"
        )
    if options["table"] != "frames":
        options.refuse(["includeRaw"], "goes with table=frames")
    if options["table"] == "sessions":
        options.refuse(["includeBody"], "goes with table=frames or packets")
    if options["table"] == "packets":
        options.refuse(["maxFlowBytes"], "goes with table=frames or sessions")
    return options


def scan_of(options: Options) -> Scan:
    """Returns the parameters that the scans of all tasks share, without files. Raises OptionError for invalid
    ports.
    """
    text = options["ports"] or PORTS[options["table"]]
    try:
        ports = frozenset(int(port) for port in text.split(","))
    except ValueError:
        ports = frozenset((0,))
    if not all(0 < port < 0x10000 for port in ports):
        raise OptionError(
            f"option 'ports' must be port numbers separated by commas, such as 1801,3527, not {text!r}"
        )
    return Scan(
        options["table"],
        (),
        ports,
        flow_limit=options["maxFlowBytes"],
        body=options["includeBody"],
        raw=options["includeRaw"],
        mode=options["mode"],
    )


def capture_columns(options: Options) -> tuple[Column, ...]:
    """Returns the columns of the table that the options select."""
    return scan_of(options).columns


def capture_reader(options: Options, schema: StructType) -> CaptureReader:
    """Returns a reader. Raises OptionError if the option `path` selects no files, or `schema` does not have
    the columns of the table.
    """
    scan = scan_of(options)
    if schema.fieldNames() != [column.name for column in scan.columns]:
        raise OptionError(
            f"format {FORMAT!r} has its own columns: select them with option 'table', not a schema"
        )
    try:
        files = capture_files(options.need("path", "give the path of the captures"))
    except CaptureError as error:
        raise OptionError(f"option 'path': {error}") from None
    captures: list[tuple[str, ...]] = [tuple(files)] if options["rotated"] else [(file,) for file in files]
    return CaptureReader(scan, captures, options["minPartitions"])
