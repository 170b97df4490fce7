"""Points in time as people write them."""

from __future__ import annotations

import pytest

from msmq_fast.protocol.moments import parse_moment

NOON = 1769860800  # 2026-01-31T12:00:00Z


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2026-01-31", NOON - 43200, NOON + 43199),
        ("2026-01-31T12", NOON, NOON + 3599),
        ("2026-01-31T12:00", NOON, NOON + 59),
        (" 2026-01-31 12:00 ", NOON, NOON + 59),
        ("2026-01-31 12:00:00", NOON, NOON),
        ("2026-01-31t12:00:00.999z", NOON, NOON),
        ("2026-01-31T13:00+01:00", NOON, NOON + 59),
        ("2026-01-31T06:30-0530", NOON, NOON + 59),
        (str(NOON), NOON, NOON),
        ("0", 0, 0),
        ("1969-12-31", 0, 0),
        ("0001-01-01T00:00+23:00", 0, 0),
        ("9999-12-31T23:59-23:00", 253402383540, 253402383599),
    ],
)
def test_a_time_has_a_first_and_a_last_second(text: str, first: int, last: int) -> None:
    assert (parse_moment(text), parse_moment(text, last=True)) == (first, last)


@pytest.mark.parametrize(
    "text",
    [
        "", "yesterday", "2026-02-30", "2026-01-31T25:00", "2026-01-31x12:00", "31.1.2026", "-1", "1" * 13,
        "٢٠٢٦-٠١-٣١", "2026-01-31T12:00:00:00", "2026-01-31 12:00\n; drop", "2026-01-31T12:00+99:00",
    ],
)  # fmt: skip
def test_another_text_gets_one_line_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid time .*write 2026-01-31") as found:
        parse_moment(text)
    assert "\n" not in str(found.value)
    assert len(str(found.value)) < 200
