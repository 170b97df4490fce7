"""The changes from one rendering of a page to the next."""

from __future__ import annotations

import pytest

from msmq_fast.console.formats import duration, plural
from msmq_fast.console.live import Live, changes

pytestmark = pytest.mark.smoke


def rendered(rows: dict[str, str], figure: str = "1", shape: object = True) -> Live:
    live = Live()
    live.text("figure", figure)
    live.part("part", shape, caller=lambda: "<p></p>")
    for key, cell in rows.items():
        live.row("table", key, caller=lambda cell=cell: f"<td>{cell}</td>")  # type: ignore[misc]
    return live


def test_without_a_rendering_before_everything_is_returned() -> None:
    assert changes(None, rendered({"a": "1"})) == {
        "texts": {"figure": "1"},
        "parts": {"part": {"shape": "True", "html": "<p></p>"}},
        "rows": {"table": {"order": ["a"], "html": {"a": '<tr data-row="a"><td>1</td></tr>'}}},
    }


def test_an_unchanged_page_has_no_changes() -> None:
    assert changes(rendered({"a": "1"}), rendered({"a": "1"})) == {}


def test_only_rows_and_figures_that_differ_are_returned() -> None:
    found = changes(rendered({"a": "1", "b": "2"}), rendered({"a": "1", "b": "3"}, figure="2"))
    assert found["texts"] == {"figure": "2"}
    assert list(found["rows"]["table"]["html"]) == ["b"]
    assert "parts" not in found


@pytest.mark.parametrize("after", [{"b": "2", "a": "1"}, {"a": "1"}, {}])
def test_the_order_tells_of_rows_that_moved_or_left(after: dict[str, str]) -> None:
    found = changes(rendered({"a": "1", "b": "2"}), rendered(after))
    assert found == {"rows": {"table": {"order": list(after), "html": {}}}}


def test_a_part_is_returned_when_its_shape_changes() -> None:
    found = changes(rendered({}), rendered({}, shape=False))
    assert found == {"parts": {"part": {"shape": "False", "html": "<p></p>"}}}


def test_samples_that_are_not_repeated_stay_in_the_page() -> None:
    before, after = Live(), Live(5)
    before.sample("history", 5, caller=lambda: "<td></td>", sample="5 1")
    assert changes(before, after) == {}
    after.sample("history", 10, caller=lambda: "<td></td>", sample="10 1")
    assert changes(before, after)["rows"]["history"]["order"] == ["10"]


def test_keys_and_figures_are_escaped() -> None:
    live = Live()
    marked = live.text('"><script>', "<b>") + live.row("t", '"><img>', caller=lambda: "<td></td>", more='"')
    assert "<script>" not in marked
    assert "<b>" not in marked
    assert "<img>" not in marked
    assert 'data-more="&#34;"' in marked


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (61, "1 min 1 s"), (60, "1 min"), (3600, "1 h"), (90000, "1 d 1 h"), (86700, "1 d")],
)
def test_durations_have_two_units(seconds: int, text: str) -> None:
    assert duration(seconds) == text


def test_nouns_follow_their_number() -> None:
    assert [plural(value, "message") for value in (0, 1, 2)] == ["0 messages", "1 message", "2 messages"]
    assert plural(2, "entry", "entries") == "2 entries"
