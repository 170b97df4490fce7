"""Mistakes in a configuration, as text for people."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from msmq_fast.protocol.text import printable

__all__ = ["ConfigError", "Mistake", "suggestion"]


class Mistake:
    """One mistake: the file, variable or flag, the line in the file if it is known, and what is wrong.

    The text of a mistake is always one line: characters of the file that cannot be printed are escaped.
    """

    __slots__ = ("line", "text", "where")

    def __init__(self, where: str, line: int | None, text: str) -> None:
        self.where = where
        self.line = line
        self.text = text

    def __str__(self) -> str:
        place = f"{self.where}:{self.line}" if self.line is not None else self.where
        return printable(f"{place}: {self.text}")


class ConfigError(Exception):
    """The configuration is invalid; `mistakes` holds all mistakes that were found, not only the first."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        super().__init__("; ".join(str(mistake) for mistake in mistakes))
        self.mistakes = mistakes


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean "…"?` with the most similar known word, or "" if none is similar."""
    near = difflib.get_close_matches(word, list(known), 1, 0.6)
    return f'; did you mean "{near[0]}"?' if near else ""
