"""Jinja2 templates of the console. All output is escaped; an unknown name in a template is an error.

The templates are compiled to coroutines, so that a long page is rendered in slices (slices.py).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from msmq_fast.console import formats
from msmq_fast.console.slices import Slices

__all__ = ["Renderer", "link"]


@lru_cache(maxsize=4096)
def link(path: str, **parameters: object) -> str:
    """Return the URL of a page; parameters that are empty or None are left out, and
    a tuple gives one parameter for each of its items.
    """
    given = {name: value for name, value in parameters.items() if value not in (None, "", ())}
    return f"/ui/{path}?{urlencode(given, doseq=True)}" if given else f"/ui/{path}"


class Renderer:
    """Renders the templates, all of which are compiled at the start."""

    def __init__(self) -> None:
        environment = Environment(
            loader=PackageLoader("msmq_fast.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            enable_async=True,
        )
        environment.globals["link"] = link
        for filter_ in (
            formats.account,
            formats.caller,
            formats.code,
            formats.count,
            formats.duration,
            formats.in_words,
            formats.kind_of_queue,
            formats.literal,
            formats.path,
            formats.plural,
            formats.size,
            formats.rate,
            formats.moment,
            formats.reason,
            formats.class_name,
            formats.utc,
        ):
            environment.filters[filter_.__name__] = filter_
        self._templates = {
            name: environment.get_template(name) for name in environment.list_templates(["html"])
        }

    async def render(self, name: str, slices: Slices, **values: Any) -> str:
        """Return the text of a page."""
        pieces = []
        async for piece in self._templates[name].generate_async(**values):
            pieces.append(piece)
            await slices.pause()
        return "".join(pieces)
