"""Sizes, durations and rates mean the same in TOML, on the command line and in Spark options."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.config import kinds
from msmq_fast.protocol.units import UnitError, parse_duration, parse_rate, parse_size
from msmq_fast.spark.options import Option, Options

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1048576", 1 << 20),
        ("64 MiB", 64 << 20),
        ("64MiB", 64 << 20),
        ("64mib", 64 << 20),
        ("64m", 64 << 20),
        ("64MB", 64_000_000),
        ("64 mb", 64_000_000),
        (" 1.5 KiB ", 1536),
        ("0.3 kB", 300),
        ("1 TiB", 1 << 40),
        ("9007199254740993", 9_007_199_254_740_993),  # a float has no such number
        ("0.0001", 0),
    ],
)
def test_size(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30.0), ("30 s", 30.0), ("1h", 3600.0), ("2d", 172_800.0), ("500ms", 0.5), ("1.5 m", 90.0)],
)
def test_duration(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


def test_bare_duration_in_another_unit() -> None:
    assert parse_duration("500", bare="ms") == 0.5
    assert parse_duration("500s", bare="ms") == 500.0


@pytest.mark.parametrize("text", ["10 MiB/s", "10MiB", "10mib/S", "10485760", "10485760/s "])
def test_rate(text: str) -> None:
    assert parse_rate(text) == 10 << 20


@pytest.mark.parametrize(
    "text", ["", "x", "64x", "-1", "1e9", "1 Mi B", "MiB", "٣", "1" * 21, "64 MiB/s", "1m " * 9]
)
def test_invalid_size(text: str) -> None:
    with pytest.raises(
        UnitError, match=r'^invalid size ".*": write a number with a unit, for example 64 MiB$'
    ):
        parse_size(text)


def test_errors_show_the_text() -> None:
    with pytest.raises(UnitError) as size:
        parse_size("64x")
    assert str(size.value) == 'invalid size "64x": write a number with a unit, for example 64 MiB'
    with pytest.raises(UnitError) as duration:
        parse_duration("1 year")
    assert str(duration.value) == 'invalid duration "1 year": write a number with a unit, for example 30 s'
    with pytest.raises(UnitError) as rate:
        parse_rate("fast/s")
    assert str(rate.value) == 'invalid rate "fast/s": write a number with a unit, for example 10 MiB/s'


def test_an_error_is_one_short_line() -> None:
    with pytest.raises(UnitError) as raised:
        parse_size("\x1b[31m\n" * 10_000)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 250


@given(st.text(max_size=60))
def test_any_text_is_a_quantity_or_an_error(text: str) -> None:
    for parse in (parse_size, parse_duration, parse_rate):
        with suppress(UnitError):
            assert parse(text) >= 0


@given(
    number=st.integers(1, 10**9),
    unit=st.sampled_from(["", "B", "kB", "MB", "GB", "KiB", "MiB", "GiB", "k", "m", "g"]),
    blank=st.sampled_from(["", " "]),
)
def test_a_size_is_the_same_at_every_door(number: int, unit: str, blank: str) -> None:
    text = f"{number}{blank}{unit}"
    size = parse_size(text)
    assert kinds.size(0, 1 << 70).from_text(text) == size
    assert Options({"o": text}, [Option("o", "size")], "f")["o"] == size


@given(
    number=st.integers(0, 10**6),
    unit=st.sampled_from(["ms", "s", "m", "h", "d"]),
    blank=st.sampled_from(["", " "]),
)
def test_a_duration_is_the_same_at_every_door(number: int, unit: str, blank: str) -> None:
    text = f"{number}{blank}{unit}"
    seconds = parse_duration(text)
    assert kinds.duration(0, 1e12).from_text(text) == seconds
    assert Options({"o": text}, [Option("o", "duration")], "f")["o"] == round(seconds * 1000)
