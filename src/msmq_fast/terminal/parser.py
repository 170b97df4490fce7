"""The parser of a command line that is mistyped now and then."""

from __future__ import annotations

import argparse
import re
from difflib import get_close_matches
from typing import Any, NoReturn

from msmq_fast.protocol.exits import Exit

__all__ = ["Parser"]

_CHOICE = re.compile(
    r"argument (?P<name>\S+): invalid choice: '(?P<given>.*?)' \(choose from (?P<known>.*)\)", re.DOTALL
)


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line instead of a page of usage. Options are not abbreviated: the shortest
    spelling of one would change its meaning with the next option that is added.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with Exit.USAGE."""
        wrong = _CHOICE.fullmatch(message)
        if wrong is not None:
            known = [word.strip().strip("'") for word in wrong["known"].split(",")]
            close = get_close_matches(wrong["given"], known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(known)}"
            message = f"unknown {wrong['name'].strip('-').lower()} {wrong['given']!r}: {hint}"
        self.exit(Exit.USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")
