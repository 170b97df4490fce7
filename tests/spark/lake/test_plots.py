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


def test_nothing_is_said_so() -> None:
    assert "no data" in line_plot({}, unit="")
    assert "none" in bar_plot([])


def test_bars_are_in_proportion_and_names_are_escaped() -> None:
    wide, narrow = drawn(bar_plot([("<b>", 100), ("y", 25)])).iter("rect")
    assert float(wide.attrib["width"]) == pytest.approx(4 * float(narrow.attrib["width"]), rel=0.01)
    assert "<b>" not in bar_plot([("<b>", 1)])


def test_values_as_people_read_them() -> None:
    assert [cell(value) for value in (None, True, 1234567, 0.12345, "x")] == [
        "",
        "yes",
        "1,234,567",
        "0.1235",
        "x",
    ]
    assert cell(START) == "2026-03-01 10:00:00"


def test_nothing_lost_is_said_only_with_a_proof() -> None:
    good, whole = {"verdict": "ok"}, {"whole": True}
    assert verdict([good], [whole], []) == "ok"
    assert verdict([good, {"verdict": "unproven"}], [whole], []) == "unproven"
    assert verdict([good], [whole, {"whole": False}], []) == "unproven"
    assert verdict([good], [whole], [{"queue": "x"}]) == "unproven"
    assert verdict([good, {"verdict": "lost"}], [{"whole": False}], []) == "lost"
