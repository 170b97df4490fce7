"""The changes from one rendering of a page to the next."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from msmq_fast.console.formats import account, code, duration, plural
from msmq_fast.console.live import Live, changes
from msmq_fast.console.slices import SLICE

pytestmark = pytest.mark.smoke


def content(html: str) -> Callable[[], Awaitable[str]]:
    """What a template has inside of a `call` block."""

    async def caller() -> str:
        return html

    return caller


def rendered(rows: dict[str, str], figure: str = "1", shape: object = True) -> Live:
    async def render(live: Live) -> Live:
        live.text("figure", figure)
        await live.part("part", shape, caller=content("<p></p>"))
        for key, cell in rows.items():
            await live.row("table", key, caller=content(f"<td>{cell}</td>"))
        return live

    return asyncio.run(render(Live()))


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
    asyncio.run(before.sample("history", 5, caller=content("<td></td>"), sample="5 1"))
    assert changes(before, after) == {}
    asyncio.run(after.sample("history", 10, caller=content("<td></td>"), sample="10 1"))
    assert changes(before, after)["rows"]["history"]["order"] == ["10"]


def test_keys_and_figures_are_escaped() -> None:
    live = Live()
    marked = live.text('"><script>', "<b>")
    marked += asyncio.run(live.row("t", '"><img>', caller=content("<td></td>"), more='"'))
    assert "<script>" not in marked
    assert "<b>" not in marked
    assert "<img>" not in marked
    assert 'data-more="&#34;"' in marked


def test_a_row_whose_item_is_the_same_is_not_rendered_again() -> None:
    made: list[str] = []

    async def row(item: Mapping[str, Any]) -> str:
        made.append(item["name"])
        return f"<td>{item['number']}</td>"

    def render(before: Live | None, items: dict[str, int]) -> tuple[Live, str]:
        live = Live(before=before)
        given = [{"name": name, "number": number} for name, number in items.items()]
        return live, asyncio.run(live.rows_of("table", given, "name", caller=row))

    before, _ = render(None, {"a": 1, "b": 1, "c": 1})
    assert made == ["a", "b", "c"]
    after, html = render(before, {"c": 1, "a": 2, "b": 1})
    assert made == ["a", "b", "c", "a"]
    assert html == "\n".join(after.rows["table"].values())
    assert changes(before, after) == {
        "rows": {"table": {"order": ["c", "a", "b"], "html": {"a": '<tr data-row="a"><td>2</td></tr>'}}}
    }
    last, _ = render(after, {"b": 1, "a": 2})
    assert last.rows["table"] == {name: after.rows["table"][name] for name in ("b", "a")}
    assert len(made) == 4
    none, html = render(last, {})
    assert (none.rows, html) == ({}, "")


def test_a_rendering_gives_other_tasks_their_turn() -> None:
    turns: list[float] = []

    async def other(ended: asyncio.Event) -> None:
        while not ended.is_set():
            turns.append(time.perf_counter())
            await asyncio.sleep(0)

    async def slow() -> str:
        began = time.perf_counter()
        while time.perf_counter() - began < SLICE:
            pass
        return "<td></td>"

    async def render() -> None:
        live, ended = Live(), asyncio.Event()
        task = asyncio.create_task(other(ended))
        for key in range(10):
            await live.row("table", key, caller=slow)
        ended.set()
        await task

    asyncio.run(render())
    assert len(turns) >= 10


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (61, "1 min 1 s"), (60, "1 min"), (3600, "1 h"), (90000, "1 d 1 h"), (86700, "1 d")],
)
def test_durations_have_two_units(seconds: int, text: str) -> None:
    assert duration(seconds) == text


def test_nouns_follow_their_number() -> None:
    assert [plural(value, "message") for value in (0, 1, 2)] == ["0 messages", "1 message", "2 messages"]
    assert plural(2, "entry", "entries") == "2 entries"


@pytest.mark.parametrize(
    ("name", "sid", "text"),
    [
        ("admin", "S-1-5-21-1-2-3-1000", "admin"),
        ("", "S-1-22-1-1000", "uid:1000"),
        ("", "S-1-5-18", "Local System"),
        ("", "S-1-5-21-1-2-3-1000", "S-1-5-21-1-2-3-1000"),
        ("", "", "–"),
    ],
)
def test_accounts_without_a_name_have_another(name: str, sid: str, text: str) -> None:
    assert account({"name": name, "sid": sid}) == text


def test_text_between_backticks_is_code_and_the_rest_is_escaped() -> None:
    assert code("a `b<` <c>") == 'a <span class="mono">b&lt;</span> &lt;c&gt;'
    assert code("none") == "none"
