"""Plots and words of reports, without a lake."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest

from msmq_fast.spark.lake.plots import HEIGHT, WIDTH, bar_plot, line_plot
from msmq_fast.spark.lake.reporttext import cell
from msmq_fast.spark.lake.summary import verdict

START = datetime(2026, 3, 1, 10, tzinfo=UTC)


def drawn(html: str) -> ElementTree.Element:
    match = re.search(r"<svg.*?</svg>", html)
    assert match is not None
    return ElementTree.fromstring(match[0].replace('xmlns="http://www.w3.org/2000/svg"', ""))  # noqa: S314


@pytest.mark.parametrize("values", [[0], [5, 5, 5], [-3, 7], [1e9, 2.5e9], [0.0001, 0.0002]])
def test_all_points_are_inside_and_higher_values_are_higher(values: list[float]) -> None:
    line = [(START + timedelta(minutes=index), value) for index, value in enumerate(values)]
    (polyline,) = drawn(line_plot({"x": line}, unit="ms")).iter("polyline")
    points = [tuple(map(float, pair.split(","))) for pair in polyline.attrib["points"].split()]
    assert len(points) == len(values)
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)
    order = sorted(range(len(values)), key=lambda index: values[index])
    heights = [-points[index][1] for index in order]
    assert heights == sorted(heights)


def test_a_step_holds_until_the_next_value() -> None:
    line = [(START, 0.0), (START + timedelta(hours=1), 10.0)]
    (polyline,) = drawn(line_plot({"x": line}, unit="", steps=True)).iter("polyline")
    points = [pair.split(",") for pair in polyline.attrib["points"].split()]
    assert len(points) == 3
    assert points[0][1] == points[1][1]
    assert points[1][0] == points[2][0]


def test_what_stays_as_it_is_is_drawn_to_the_end() -> None:
    early, late = START, START + timedelta(hours=1)
    lines = {"quiet": [(early, 4.0)], "busy": [(early, 0.0), (late, 10.0)]}
    quiet, busy = drawn(line_plot(lines, unit="", steps=True)).iter("polyline")
    ends = [line.attrib["points"].split()[-1].split(",")[0] for line in (quiet, busy)]
    assert ends[0] == ends[1]


def test_a_minute_is_as_wide_as_it_is_and_a_gap_is_none_of_the_line() -> None:
    minute = timedelta(minutes=1)
    line = [(START + minute * index, float(index)) for index in (0, 1, 5)]
    pieces = list(drawn(line_plot({"x": line}, unit="", spans=minute)).iter("polyline"))
    xs = [[float(pair.split(",")[0]) for pair in piece.attrib["points"].split()] for piece in pieces]
    assert [len(piece) for piece in xs] == [4, 2]
    width = xs[1][1] - xs[1][0]
    assert xs[0][1] - xs[0][0] == pytest.approx(width, abs=0.2)
    assert xs[1][0] - xs[0][-1] == pytest.approx(3 * width, abs=0.2)


def test_the_unit_stands_above_all_lines() -> None:
    picture = drawn(line_plot({"x": [(START, 7.0), (START + timedelta(hours=1), 8.0)]}, unit="messages"))
    (unit,) = (text for text in picture.iter("text") if text.text == "messages")
    heights = [float(line.attrib["y1"]) for line in picture.iter("line")]
    assert float(unit.attrib["y"]) < min(heights) - 5


def test_nothing_is_said_so() -> None:
    assert "no data" in line_plot({}, unit="")
    assert "none" in bar_plot([])


def test_bars_are_in_proportion_and_names_are_escaped() -> None:
    wide, narrow = drawn(bar_plot([("<b>", 100), ("y", 25)])).iter("rect")
    assert float(wide.attrib["width"]) == pytest.approx(4 * float(narrow.attrib["width"]), rel=0.01)
    assert "<b>" not in bar_plot([("<b>", 1)])


def test_values_as_people_read_them() -> None:
    assert [cell(value) for value in (None, True, 1234567, 0.12345, 52580.4, "x")] == [
        "",
        "yes",
        "1,234,567",
        "0.1235",
        "52,580",
        "x",
    ]
    assert cell(START) == "2026-03-01 10:00:00"


def test_nothing_lost_is_said_only_with_a_proof() -> None:
    good, whole, equal = {"verdict": "ok"}, {"whole": True}, {"equal": True}
    assert verdict([good], [whole], [equal], 0) == "ok"
    assert verdict([], [whole], [equal], 0) == "ok"  # a quiet day
    assert verdict([good, {"verdict": "unproven"}], [whole], [equal], 0) == "unproven"
    assert verdict([good], [whole, {"whole": False}], [equal], 0) == "unproven"
    assert verdict([good], [], [equal], 0) == "unproven"  # who knows
    assert verdict([good], [whole], [equal, {"equal": False}], 0) == "unproven"
    assert verdict([good], [whole], [equal, {"equal": None}], 0) == "unproven"
    assert verdict([good], [whole], [equal], 1) == "unproven"  # of a message that belongs to the day before
    assert verdict([good], [whole], [], 0) == "unproven"  # nothing was compared
    assert verdict([good, {"verdict": "undelivered"}], [whole], [equal], 0) == "undelivered"
    assert verdict([{"verdict": "undelivered"}, {"verdict": "unproven"}], [whole], [equal], 0) == "unproven"
    assert verdict([good, {"verdict": "lost"}], [{"whole": False}], [], 0) == "lost"
