"""What Windows exports of queues, as the documentation of its cmdlets shows it, becomes definitions."""

from __future__ import annotations

import codecs
import json

import pytest

from msmq_fast.cli.windows import read_definitions
from tests.support.processes.definitions import JSON, ORDERS, PUBLIC, exported

EXPECTED = {
    "label": 'Bestellungen; "neu"',
    "transactional": True,
    "journal": True,
    "quota_kb": 2048,
    "journal_quota_kb": 0xFFFFFFFF,
    "authenticated": False,
    "privacy_level": 1,
    "base_priority": 0,
    "type": "00000000-0000-0000-0000-000000000000",
}


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode("utf-8"),
        lambda text: codecs.BOM_UTF8 + text.encode("utf-8"),
        lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le"),
        lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
    ],
    ids=["utf-8", "utf-8-bom", "utf-16-le", "utf-16-be"],
)
def test_export_csv_of_every_culture_and_encoding(separator: str, typed: bool, encode) -> None:  # type: ignore[no-untyped-def]
    read = read_definitions(encode(exported(ORDERS, PUBLIC, separator=separator, typed=typed)))
    assert (read.mistakes, read.skipped) == ([], [])
    first, second = read.found
    assert (first.row, first.path, first.properties) == (1, r".\private$\orders", EXPECTED)
    assert second.path == r".\Prices"
    assert "label" not in second.properties
    assert second.properties["multicast_address"] == "234.1.1.1:8001"
    assert (second.properties["base_priority"], second.properties["privacy_level"]) == (-7, 2)


@pytest.mark.parametrize(
    "document",
    [JSON, [JSON], {"value": [JSON], "Count": 1}],
    ids=["object", "array", "wrapped-array"],
)
def test_convertto_json(document: object) -> None:
    for data in (
        json.dumps(document).encode(),
        codecs.BOM_UTF16_LE + json.dumps(document).encode("utf-16-le"),
    ):
        read = read_definitions(data)
        assert read.mistakes == []
        assert [(one.path, one.properties) for one in read.found] == [(r".\private$\orders", EXPECTED)]


@pytest.mark.parametrize(
    ("column", "value", "path"),
    [
        ("QueueName", r"private$\a", r".\private$\a"),
        ("QueueName", "Public1", r".\Public1"),
        ("Path", r"HOST\private$\a", r".\private$\a"),
        ("Path", r".\private$\a", r".\private$\a"),
        ("Path", r"HOST\pub", r".\pub"),
        ("Path", r"FormatName:DIRECT=OS:HOST\private$\a", r".\private$\a"),
        ("Path", r"formatname:DIRECT=TCP:10.0.0.7\pub", r".\pub"),
        ("FormatName", r"DIRECT=OS:HOST\private$\a", r".\private$\a"),
        ("Name", r"private$\a", r".\private$\a"),
        ("Name", r"HOST\private$\a", r".\private$\a"),
    ],
)
def test_where_the_name_comes_from(column: str, value: str, path: str) -> None:
    read = read_definitions(json.dumps({column: value}).encode())
    assert [one.path for one in read.found] == [path]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (r"HOST\system$;deadxact", "system queue"),
        (r"HOST\private$\a;journal", "journal"),
        (r"HOST\private$\a;poison", "subqueue"),
        (r"HOST\private$\order_queue$", "own"),
        (r"HOST\PRIVATE$\Admin_Queue$", "own"),
    ],
)
def test_what_is_passed_over(name: str, why: str) -> None:
    read = read_definitions(json.dumps([{"Path": name}, {"Path": r"HOST\private$\b"}]).encode())
    assert [(row, shown) for row, shown, _ in read.skipped] == [(1, name)]
    assert why in read.skipped[0][2]
    assert [one.row for one in read.found] == [2]


@pytest.mark.parametrize(
    ("column", "value", "line"),
    [
        ("MaximumQueueSize", "viel", "column MaximumQueueSize: expected a whole number, got 'viel'"),
        ("MaximumQueueSize", "4294967296", "column MaximumQueueSize: expected KB from 0 to 4294967295"),
        ("Transactional", "Wahr", "column Transactional: expected True or False, got 'Wahr'"),
        ("BasePriority", "40000", "column BasePriority: expected a number from -32768 to 32767"),
        ("EncryptionRequired", "Full", "column EncryptionRequired: expected None, Optional or Body"),
        ("MulticastAddress", "10.0.0.1:80", "column MulticastAddress: expected a multicast address"),
        ("MulticastAddress", "234.1.1.1:70000", "column MulticastAddress: expected a multicast address"),
        ("MulticastAddress", "234.1.1.1:80", "column MulticastAddress: a transactional queue has no"),
        ("Category", "x", "column Category: expected a GUID"),
        ("Label", "x" * 125, "column Label: a label has at most 124 characters, not 125"),
        ("QueueName", "private$\\a,b", "column QueueName: 'private$\\\\a,b' is not a valid queue name"),
    ],
)
def test_mistakes_name_row_and_column(column: str, value: str, line: str) -> None:
    good = ORDERS | {"QueueName": r"private$\good"}
    read = read_definitions(exported(good, ORDERS | {column: value}).encode())
    assert read.mistakes == [found for found in read.mistakes if found.startswith("row 2 (line 4), " + line)]
    assert len(read.mistakes) == 1


def test_all_mistakes_are_told_at_once() -> None:
    rows = [ORDERS | {"QueueName": rf"private$\q{n}", "UseJournalQueue": "maybe"} for n in range(3)]
    assert len(read_definitions(exported(*rows).encode()).mistakes) == 3


def test_one_queue_twice_and_columns_that_contradict() -> None:
    twice = read_definitions(exported(ORDERS, ORDERS | {"QueueName": r"Private$\ORDERS"}).encode())
    assert twice.mistakes == [
        r"row 2 (line 4), Private$\ORDERS: row 1 has a queue with the same name",
    ]
    entry = {"QueueName": "a", "MaximumQueueSize": 5, "QueueQuota": 6}
    assert read_definitions(json.dumps(entry).encode()).mistakes == [
        "object 1, column QueueQuota: contradicts column MaximumQueueSize"
    ]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", "the file is empty"),
        (b"#TYPE X\r\n\r\n", "the file is empty"),
        (
            b'"Handles","Id"\r\n"1","2"\r\n',
            "line 1: expected one of the columns QueueName, Path, FormatName, Name",
        ),
        ("QueueName\r\nprivate$\\ä".encode("utf-16-le"), "neither UTF-8 nor UTF-16"),
        ("QueueName\r\nprivate$\\ä".encode("latin-1"), "neither UTF-8 nor UTF-16"),
        (b"[{", "line 1: not JSON"),
        (b"[1]", "object 1: expected the properties of a queue"),
        (b'{"Label": "x"}', "object 1, columns QueueName, Path, FormatName, Name: the queue has no name"),
        (b"QueueName,Label\r\na,b,c\r\n", "row 1 (line 2): 3 values for 2 columns"),
    ],
)
def test_files_that_are_none(data: bytes, line: str) -> None:
    read = read_definitions(data)
    assert read.found == []
    assert len(read.mistakes) == 1
    assert line in read.mistakes[0]


def test_line_breaks_inside_values_and_excels_separator_line() -> None:
    text = 'sep=;\r\nQueueName;Label\r\n"a";"two\r\nlines"\r\n\r\nb;"x"\r\n"c,d";\r\n'
    read = read_definitions(text.encode())
    assert [(one.row, one.path, one.properties) for one in read.found] == [
        (1, r".\a", {"label": "two\r\nlines"}),
        (2, r".\b", {"label": "x"}),
    ]
    assert read.mistakes == ["row 3 (line 7), column QueueName: 'c,d' is not a valid queue name"]


def test_quotas_without_limit() -> None:
    for value in (-1, "-1", "4294967295", 4294967295):
        read = read_definitions(json.dumps({"QueueName": "a", "MaximumQueueSize": value}).encode())
        assert read.found[0].properties == {"quota_kb": 0xFFFFFFFF}
