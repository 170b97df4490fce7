"""Finds the line of a table or key in a TOML text, so that mistakes can be reported by line.

`tomllib` parses but keeps no positions. This scan reads table headers and the first key of each line, and
skips multi-line strings and arrays. A mistake in a key that the scan does not find is reported without a line
number.
"""

from __future__ import annotations

import re

__all__ = ["LineIndex"]

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=(.*)$"""
)
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|' + r"'[^']*'")


class LineIndex:
    """Maps (table, index in its array or 0, key) to line numbers from 1; the key "" is the table's header."""

    def __init__(self, text: str) -> None:
        self._lines: dict[tuple[str, int, str], int] = {}
        counts: dict[str, int] = {}
        table, index = "", 0
        until = ""
        depth = 0
        for number, line in enumerate(text.splitlines(), 1):
            if until:
                if until in line:
                    until = ""
                continue
            if depth > 0:
                depth += self._brackets(line)
                continue
            header = _HEADER.match(line)
            if header is not None:
                table = _plain(header[2])
                index = counts.get(table, 0) if header[1] == "[[" else 0
                counts[table] = index + 1
                self._lines[table, index, ""] = number
                continue
            key = _KEY.match(line)
            if key is None:
                continue
            self._place(table, index, _plain(key[1]), number)
            value = key[2]
            for quote in ('"""', "'''"):
                if value.count(quote) % 2:
                    until = quote
            depth = 0 if until else max(0, self._brackets(value))

    def _place(self, table: str, index: int, key: str, number: int) -> None:
        self._lines.setdefault((table, index, key), number)
        if "." in key:  # listen.mqqb.port = 1801 is the key "port" of the table "server"
            head, tail = key.split(".", 1)
            self._lines.setdefault((f"{table}.{head}".lstrip("."), index, tail), number)

    @staticmethod
    def _brackets(text: str) -> int:
        bare = _QUOTED.sub("", text).split("#", 1)[0]
        return bare.count("[") + bare.count("{") - bare.count("]") - bare.count("}")

    def line(self, table: str, key: str = "", index: int = 0) -> int | None:
        """Return the line number of a key. If that is not known, return the line number of the table of the
        key, or None if that is not known either.
        """
        return self._lines.get((table, index, key)) or self._lines.get((table, index, ""))


def _plain(name: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in name.split("."))
