"""The origin of the value of a key: the default, a profile, the file, a variable or a flag."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["DEFAULT", "Origin", "Source"]


class Source(StrEnum):
    """Kinds of origins, in the order of precedence: a later one overrides an earlier one."""

    DEFAULT = "default"
    PROFILE = "profile"
    FILE = "file"
    VARIABLE = "variable"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Origin:
    """One origin. `name` is the path of a file, or the spelling of a variable or flag."""

    source: Source
    name: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = f"{self.name}:{self.line}" if self.line is not None else self.name
        return place or self.source.value


DEFAULT = Origin(Source.DEFAULT)
