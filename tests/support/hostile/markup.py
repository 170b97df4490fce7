"""Texts that become markup or script wherever a page forgets to escape, and what a page may consist of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import resources
from urllib.parse import urlsplit

RUN = "alert(1)"
TEXTS = (
    f"<script>{RUN}</script>",
    f"\"'><img src=x onerror={RUN}>",
    f"'\"><svg/onload={RUN}>",
    f"</title><script>{RUN}</script>",
    f"</pre></textarea></select><svg onload={RUN}>",
    f"--><!--><script>{RUN}</script>",
    f"]]><script>{RUN}</script>",
    f"javascript:{RUN}",
    f"JaVaScRiPt&colon;{RUN}",
    f"data:text/html,<script>{RUN}</script>",
    f'" onfocus={RUN} autofocus x="',
    f"' onmouseover='{RUN}",
    f"` onload=`{RUN}",
    f'" hx-on:load="{RUN}',
    f'" data-hx-on::load="{RUN}',
    '" hx-get="/ui/logout" hx-trigger="load',
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<a href=javascript:{RUN}>x</a>",
    "<form action=/ui/logout method=post><button>x</button></form>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    "<base href=//evil.example/>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={RUN}>",
    f'<noscript><p title="</noscript><img src=x onerror={RUN}>">',
    f"<template><script>{RUN}</script></template>",
    f"&lt;script&gt;{RUN}&lt;/script&gt;",
    f"\u003cscript\u003e{RUN}\u003c/script\u003e",
    f"+ADw-script+AD4-{RUN}+ADw-/script+AD4-",
    f"%3Cscript%3E{RUN}%3C/script%3E",
    "{{ 7777*3 }}{% for x in () %}",
    "${7777*3}#{7777*3}<%= 7777*3 %>",
    "\u202etxt.exe\u2066\u200b\ufeff",
    "../../../../etc/passwd",
    "\\\\evil.example\\share",
    "//evil.example/%0d%0aSet-Cookie:x=1",
    "x?y=1&action=purge#z;w",
    "a" * 120,
)
"""The corpus; each at most 124 characters, as a label."""

_CONSOLE = resources.files("msmq_fast.console")
_SOURCES = [file.read_text() for file in (_CONSOLE / "templates").iterdir() if file.name.endswith(".html")]
# Elements that filters and the marks of live pages make.
_SOURCES += [(_CONSOLE / name).read_text() for name in ("formats.py", "live.py")]
TAGS = {tag for source in _SOURCES for tag in re.findall(r"<([a-z][a-z0-9]*)", source)}
_WITH_VALUE = r"[\s}]([a-z][a-z0-9:-]*)(?==\"|=')"
_WITHOUT = r"[\s}](defer|hidden|required|checked|selected|autofocus|open|data-[a-z-]+)\b"
ATTRIBUTES = {
    name for source in _SOURCES for way in (_WITH_VALUE, _WITHOUT) for name in re.findall(way, source)
} | {"data-sample"}  # a keyword argument in the templates
"""The tags and the attributes that the templates contain; a page has no others."""
_URLS = ("href", "src", "action", "formaction", "poster", "data", "hx-get", "hx-post", "xlink:href")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))


def tags_of(html: str) -> list[tuple[str, dict[str, str]]]:
    """Return the elements of a page with their attributes."""
    reader = _Reader()
    reader.feed(html)
    return reader.tags


def skeleton(html: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return what must not depend on texts: the elements in their order, with the names of attributes."""
    return [(tag, tuple(sorted({*attributes} - {"selected"}))) for tag, attributes in tags_of(html)]


def faults(html: str) -> Iterator[str]:
    """Yield what a page contains that no template has: elements, attributes, addresses of other places."""
    for tag, attributes in tags_of(html):
        if tag not in TAGS:
            yield f"element {tag}"
        for name, value in attributes.items():
            if name not in ATTRIBUTES or name.startswith("on") or name in ("style", "srcdoc"):
                yield f"attribute {name} of {tag}"
            if name in _URLS and not _is_own(value):
                yield f"{name}={value!r} of {tag}"
            if tag == "meta" and name == "http-equiv":
                yield "meta http-equiv"
        if tag == "script" and not attributes.get("src"):
            yield "script in the page"


def _is_own(url: str) -> bool:
    parts = urlsplit(url)
    return url == "#main" or (not parts.scheme and not parts.netloc and parts.path.startswith("/ui"))
