"""Where the value of a key comes from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["DEFAULT", "Origin", "Source"]


class Source(StrEnum):
    """The kinds of places, from the weakest to the strongest."""

    DEFAULT = "default"
    PROFILE = "profile"
    FILE = "file"
    VARIABLE = "variable"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Origin:
    """One place: for a file `name` is its path, for a variable or a flag how it is written."""

    source: Source
    name: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = f"{self.name}:{self.line}" if self.line is not None else self.name
        return place or self.source.value


DEFAULT = Origin(Source.DEFAULT)
