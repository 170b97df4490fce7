"""What of a page can change while the page is open, and the changes from one rendering to the next.

1. A template marks it: `live.text` a figure, `live.row` a row of a table, `live.rows_of` all rows of one,
   `live.part` a piece of the page that is replaced as a whole when its shape changes, for example from a
   table to a sentence.
2. While the page is rendered, `Live` collects the marked texts by their keys.
3. A stream renders the page again and again, and sends `changes` of two renderings (streams.py).
4. `live.js` applies them. It changes only the cells that differ, so that focus and selections stay.
5. A row of `live.rows_of` is not rendered again while the item that it shows is the same.
6. After each row and part, other tasks get a turn if the rendering has held the event loop for too long.

A table of samples grows at its beginning: a rendering has only the rows after `since`, and the older ones
stay in the page, as many as the `data-append` of the `tbody` says.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any

from markupsafe import Markup

from msmq_fast.console.slices import Slices

__all__ = ["Live", "changes"]

Caller = Callable[[], Awaitable[str]]
"""What a template has inside its `call` block."""


class Live:
    """The marked texts of one rendering.

    `since` is the time, in seconds since 1970, of the newest sample that the browser has; None if the page is
    rendered for the first time and needs all of them. The page raises it to the newest sample it shows.
    `before` is the rendering before in the same stream.
    """

    def __init__(self, since: int | None = None, before: Live | None = None) -> None:
        self.since = since
        self.slices = Slices()
        self.texts: dict[str, str] = {}
        self.parts: dict[str, tuple[str, str]] = {}  # key → (shape, HTML)
        self.rows: dict[str, dict[str, str]] = {}  # table → key of the row → HTML
        self.growing: set[str] = set()  # tables of samples
        self._items: dict[str, dict[str, Mapping[str, Any]]] = {}  # table → key of the row → its item
        # Not the object, which knows that before it, and so on.
        self._before = ({}, {}) if before is None else (before.rows, before._items)

    def text(self, key: str, value: object) -> Markup:
        """Mark a figure. `key` is unique in the page."""
        self.texts[key] = str(value)
        return Markup('<span data-live="{}">{}</span>').format(key, value)

    async def part(self, key: str, shape: object, caller: Caller) -> Markup:
        """Mark a piece of the page. `shape` differs if the rows and figures in it are not enough to bring the
        browser from the one to the other.
        """
        content = Markup(await caller())  # noqa: S704 - a template rendered it, with autoescape
        await self.slices.pause()
        self.parts[key] = str(shape), str(content)
        return Markup('<div data-part="{}" data-shape="{}">{}</div>').format(key, shape, content)

    async def row(self, table: str, key: object, caller: Caller, **attributes: object) -> Markup:
        """Mark a row of the table whose `tbody` has `data-rows="TABLE"`. `key` is unique in the table;
        `attributes` become `data-` attributes of the row.
        """
        more = Markup("").join(
            Markup(' data-{}="{}"').format(name, value) for name, value in attributes.items()
        )
        content = Markup(await caller())  # noqa: S704 - a template rendered it, with autoescape
        row = Markup('<tr data-row="{}"{}>{}</tr>').format(key, more, content)
        self.rows.setdefault(table, {})[str(key)] = str(row)
        await self.slices.pause()
        return row

    async def rows_of(
        self,
        table: str,
        items: Iterable[Mapping[str, Any]],
        key: str,
        caller: Callable[[Mapping[str, Any]], Awaitable[str]],
    ) -> Markup:
        """Mark the rows of a table of which each shows one item and nothing else that may change. A row is
        rendered only if its item differs from that of the rendering before. `key` names a value of an item,
        which is unique in the table.
        """
        rows, items_before = self._before
        known, shown = rows.get(table, {}), items_before.get(table, {})
        for item in items:
            name = str(item[key])
            self._items.setdefault(table, {})[name] = item
            if shown.get(name) == item:
                self.rows.setdefault(table, {})[name] = known[name]
            else:
                await self.row(table, name, caller=partial(caller, item))
        return Markup("\n").join(map(Markup, self.rows.get(table, {}).values()))

    async def sample(self, table: str, key: object, caller: Caller, **attributes: object) -> Markup:
        """Mark a row of a table of samples."""
        self.growing.add(table)
        return await self.row(table, key, caller, **attributes)


def changes(before: Live | None, after: Live) -> dict[str, Any]:
    """Return what differs between two renderings of a page, as JSON for `live.js`; empty if nothing does.

    `before` is None if it is not known what the browser shows: then everything is returned. The values of
    `texts` are plain text; those of `parts` and `rows` are HTML of the templates.
    """
    old = before or Live()
    texts = {key: text for key, text in after.texts.items() if old.texts.get(key) != text}
    parts = {
        key: {"shape": shape, "html": html}
        for key, (shape, html) in after.parts.items()
        if key not in old.parts or old.parts[key][0] != shape
    }
    tables: dict[str, Any] = {}
    for table in after.rows.keys() | old.rows.keys():
        rows, known = after.rows.get(table, {}), old.rows.get(table, {})
        changed = {key: html for key, html in rows.items() if known.get(key) != html}
        if changed or (table not in after.growing | old.growing and list(rows) != list(known)):
            tables[table] = {"order": list(rows), "html": changed}
    found = {"texts": texts, "parts": parts, "rows": tables}
    return {name: content for name, content in found.items() if content}
