"""Bodies that Mono's and .NET's formatters wrote: all of them are read, and simple values are written
alike.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from msmq_fast.bodies import Decoded, Encoded, decode, encode
from msmq_fast.bodies.types import TYPES

pytestmark = pytest.mark.smoke

GUID = UUID("0fb15084-af41-11ce-bd2b-204c4f4f5020")
NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
BY_NET_NAME = {f"System.{kind.net}": kind.name for kind in TYPES.values()}


class Golden(NamedTuple):
    """A line of a golden file."""

    runtime: str
    formatter: str
    name: str
    type: str
    body_type: int
    body: bytes

    @property
    def simple_type(self) -> str | None:
        """Our name of the .NET type; None: it is not a simple one."""
        if self.formatter == "activex":
            return {"true": "boolean", "false": "boolean", "date-before-1900": "date"}.get(
                self.name, self.name
            )
        element = self.type if self.type in BY_NET_NAME else self.type.removesuffix("[]")
        if element not in BY_NET_NAME:
            return None
        return BY_NET_NAME[element] + ("" if element == self.type else "[]")


def _goldens() -> list[Golden]:
    found = []
    for runtime in ("mono", "net"):
        with (Path(__file__).parent / "goldens" / f"{runtime}.jsonl").open() as lines:
            for line in map(json.loads, lines):
                line["body"] = bytes.fromhex(line["body"])
                found.append(Golden(runtime, **line))
    return found


GOLDENS = _goldens()
SIMPLE = [golden for golden in GOLDENS if golden.simple_type]

STRUCTURED: dict[tuple[str, str], Any] = {
    ("binary", "order"): {
        "__class__": "Shop.Order",
        "Id": 7,
        "Customer": "Ann & Söhne",
        "Note": None,
        "When": NOON + timedelta(minutes=30),
        "Key": GUID,
        "Paid": True,
        "Colour": {"__class__": "Shop.Colour", "value__": 5},
        "Size": {"__class__": "Shop.Size", "Width": 3, "Height": 0.5},
        "Data": b"\1\2\3",
        "Lines": [
            {"__class__": "Shop.Line", "Sku": "a", "Price": Decimal("9.50"), "Count": 2, "Extra": 1.5},
            {"__class__": "Shop.Line", "Sku": "b", "Price": Decimal(1), "Count": None, "Extra": "text"},
        ],
        "Tags": ["x", None, ""],
    },
    ("xml", "order"): {
        "__class__": "Order",
        "Id": "7",
        "Customer": "Ann & Söhne",
        "When": "2026-11-26T12:30:00Z",
        "Key": str(GUID),
        "Paid": "true",
        "Colour": "Green",
        "Size": {"Width": "3", "Height": "0.5"},
        "Data": "AQID",
        "Lines": {
            "Line": [
                {"@Sku": "a", "Price": "9.50", "Count": "2", "Extra": 1.5},
                {"@Sku": "b", "Price": "1", "Count": None, "Extra": "text"},
            ]
        },
        "Tags": ["x", None, ""],
    },
    ("binary", "cycle"): {
        "__class__": "Shop.Node",
        "Name": "a",
        "Next": {"__class__": "Shop.Node", "Name": "b", "Next": {"__ref__": "$"}, "Shared": None},
        "Shared": {"__ref__": "$.Next"},
    },
    ("binary", "enum"): {"__class__": "Shop.Colour", "value__": 5},
    ("xml", "enum"): "Green",
    ("binary", "struct"): {"__class__": "Shop.Size", "Width": 1, "Height": 2.5},
    ("xml", "struct"): {"__class__": "Size", "Width": "1", "Height": "2.5"},
    ("binary", "dictionary"): {"a": 1, "b": 2},
    ("binary", "matrix"): [[1, 2, 3], [4, 5, 6]],
}
STRUCTURED["binary", "order-list"] = [STRUCTURED["binary", "order"]]
STRUCTURED["xml", "order-list"] = [
    {name: value for name, value in STRUCTURED["xml", "order"].items() if name != "__class__"}
]
for _formatter in ("binary", "xml"):
    STRUCTURED[_formatter, "list"] = [1, 2, 3]
    STRUCTURED[_formatter, "jagged"] = [[1, 2], [3]]
    STRUCTURED[_formatter, "objects"] = [1, "two", None, 3.5, True, datetime(2026, 1, 1, tzinfo=UTC)]

VALUES: dict[str, Any] = {
    "string": "hello",
    "string-empty": "",
    "string-long": "x" * 300,
    "string-special": "h\u00e9 \U0001f600 <&>\"' ]]> \t",
    "string-lines": "a\r\nb\nc",
    "string-nul": "a\0b",
    "true": True,
    "false": False,
    "byte": 200,
    "sbyte": -3,
    "int16": -2,
    "uint16": 65535,
    "int32": -(2**31),
    "uint32": 4_000_000_000,
    "int64": -(2**63),
    "uint64": 2**64 - 1,
    "single": 1.5,
    "char": "x",
    "char-wide": "\u20ac",
    "decimal": Decimal("-12.340"),
    "decimal-large": Decimal(2**96 - 1),
    "datetime-utc": NOON,
    "datetime-fraction": datetime(2026, 11, 26, 12, 0, 0, 123000),
    "guid": GUID,
    "timespan": timedelta(days=1, hours=2, minutes=3, seconds=4, milliseconds=5),
    "bytes": b"\1\2\3\xff",
    "bytes-empty": b"",
    "bools": [True, False],
    "chars": ["a", "\u20ac"],
    "int16s": [-1, 2],
    "uint16s": [1, 65535],
    "int32s": [1, -2],
    "int32s-empty": [],
    "uint32s": [1],
    "int64s": [1, -5],
    "uint64s": [1, 2**64 - 1],
    "decimals": [Decimal("1.50"), Decimal(-2)],
    "datetimes": [datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)],
    "strings": ["a", None, "", "b"],
    "strings-nulls": [None] * 600,
    "strings-same": ["a", "a"],
    "guids": [GUID],
}
VARIANTS: dict[str, Any] = {
    "bstr": "h\u00e9 \U0001f600",
    "lpwstr": "h\u00e9 \U0001f600",
    "lpstr": "plain",
    "true": True,
    "false": False,
    "int8": -3,
    "uint8": 200,
    "int16": -2,
    "uint16": 65535,
    "int32": -7,
    "uint32": 4_000_000_000,
    "int64": -(2**63),
    "uint64": 2**64 - 1,
    "single": 1.5,
    "double": 0.1,
    "currency": Decimal("-12.3456"),
    "date": datetime(2026, 11, 26, 18, 45, 30),
    "date-before-1900": datetime(1815, 6, 18, 6),
    "clsid": GUID,
    "bytes": b"\0\1\2\xff",
}


def _id(golden: Golden) -> str:
    return f"{golden.runtime}-{golden.formatter}-{golden.name}"


def _read(golden: Golden) -> Any:
    found = decode(golden.body, golden.body_type)
    assert found.error is None
    return found.value


@pytest.mark.parametrize("golden", [one for one in GOLDENS if not one.simple_type], ids=_id)
def test_structured_bodies_are_read(golden: Golden) -> None:
    found = _read(golden)
    assert found == STRUCTURED[golden.formatter, golden.name]
    assert repr(found) == repr(STRUCTURED[golden.formatter, golden.name])  # 1 is not True, nor 1.0


@pytest.mark.parametrize("golden", SIMPLE, ids=_id)
def test_simple_values_are_read(golden: Golden) -> None:
    found = _read(golden)
    if golden.name in ("doubles", "singles"):
        assert all(isinstance(value, float) for value in found)
        return  # their values are compared below, by writing them
    expected = (VARIANTS if golden.formatter == "activex" else VALUES)[golden.name]
    if golden.formatter == "xml" and golden.name == "string-lines":
        expected = expected.replace("\r\n", "\n")  # a rule of XML for all that is read
    assert found == expected
    assert repr(found) == repr(expected)


def _on_windows(golden: Golden) -> bytes:
    """What .NET Framework writes there: see goldens/README.md."""
    if golden.formatter != "xml":
        return golden.body
    xsi = b' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    xsd = b' xmlns:xsd="http://www.w3.org/2001/XMLSchema"'
    head, end, rest = golden.body.partition(b"\n")
    head = head.replace(b' encoding="utf-8"', b"")
    rest = rest.replace(xsd + xsi, xsi + xsd)
    return head + b"\r" + end + (rest if golden.name == "string-lines" else rest.replace(b"\n", b"\r\n"))


def _differs(golden: Golden) -> bool:
    """What .NET 8 writes otherwise than .NET Framework, and arrays that are read only."""
    newer = golden.runtime == "net" and golden.formatter == "xml"
    return (newer and golden.name in ("doubles", "singles", "string-lines")) or (
        golden.formatter == "binary" and golden.name == "guids"
    )


@pytest.mark.parametrize("golden", [one for one in SIMPLE if not _differs(one)], ids=_id)
def test_simple_values_are_written_byte_for_byte(golden: Golden) -> None:
    values = VARIANTS if golden.formatter == "activex" else VALUES
    value = values[golden.name] if golden.name in values else _read(golden)
    made = encode(value, golden.formatter, type=golden.simple_type)
    assert made == Encoded(_on_windows(golden), golden.body_type)


def test_floating_point_numbers_of_all_sizes_read_back() -> None:
    values = [mantissa * 10.0**power for power in range(-320, 309, 7) for mantissa in (1.0, -1 / 3, 0.1)]
    for formatter in ("xml", "binary"):
        assert decode(*encode(values, formatter)) == Decoded(
            "xml" if formatter == "xml" else "net_binary", values
        )
    nan = decode(*encode(math.nan)).value
    assert math.isnan(nan)
