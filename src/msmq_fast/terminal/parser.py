"""The argument parser of one command. It reports a mistake in one line, with the word that was probably
meant.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from msmq_fast.protocol.exits import Exit
from msmq_fast.protocol.text import printable

__all__ = ["Parser", "did_you_mean", "filled", "shortened", "terminal_width"]

_CHOICE = re.compile(
    r"argument (?P<name>\S+): invalid choice: '(?P<given>.*?)' \(choose from (?P<known>.*)\)", re.DOTALL
)
_NUMBERS: dict[int | str | None, str] = {None: "{}", "?": "[{}]", "*": "[{} …]", "...": "[{} …]", "+": "{} …"}
_SIMILAR = 0.7  # the least similarity of a word that is proposed: 1 for equal words
_LONGEST = 60  # characters of a word of the command line that a message repeats
_LONGEST_PATH = 255
_COLUMN = 30  # where the help texts of options begin


class Parser(argparse.ArgumentParser):
    """A parser that reports wrong arguments in one line, not in a page of usage, and exits with Exit.USAGE.

    Options cannot be abbreviated: an abbreviation could become ambiguous when another option is added.
    """

    def __init__(self, **options: Any) -> None:
        defaults = {"allow_abbrev": False, "formatter_class": _Formatter}
        super().__init__(**{**defaults, **options})
        self._words: Sequence[str] = ()

    def parse_words(self, words: Sequence[str]) -> argparse.Namespace:
        """Return the parsed arguments. The error for an unknown option names the most similar option."""
        self._words = words
        arguments, unknown = self.parse_known_args(words)
        if unknown:
            option = next((word for word in unknown if word.startswith("-") and word != "-"), None)
            if option is None:
                self.error(f"unexpected argument {unknown[0]!r}")
            name = option.partition("=")[0]
            self.error(f"unknown option {name!r}{did_you_mean(name, self.options(), behind=': ')}")
        return arguments

    def add_former(self, action: argparse.Action, *spellings: str) -> None:
        """Accept `spellings`, the former names of the option `action`. No help page shows them."""
        for spelling in spellings:
            self._option_string_actions[spelling] = action

    def options(self) -> list[str]:
        """Return the spellings of all options that the help shows."""
        return [
            name
            for action in self._actions
            if action.help is not argparse.SUPPRESS
            for name in action.option_strings
        ]

    def short_usage(self) -> str:
        """Return the usage line: command, "[OPTIONS]", required options and positional arguments."""
        words = [self.prog, "[OPTIONS]"]
        for action in self._actions:
            if action.option_strings:
                words += [action.option_strings[0], str(action.metavar)] if action.required else []
            elif action.choices:
                words.append(f"[{'|'.join(map(str, action.choices))}]")
            elif action.help is not argparse.SUPPRESS:
                words.append(_NUMBERS[action.nargs].format(action.metavar))
        return " ".join(words)

    def error(self, message: str) -> NoReturn:
        """Print the error `message` in one line and exit with Exit.USAGE."""
        wrong = _CHOICE.fullmatch(message)
        if wrong is not None:
            known = [word.strip().strip("'") for word in wrong["known"].split(",")]
            hint = did_you_mean(wrong["given"], known) or f"expected one of {', '.join(known)}"
            message = f"argument {wrong['name']}: invalid choice {wrong['given']!r}: {hint}"
        message = shortened(message, self._words)
        self.exit(Exit.USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def did_you_mean(word: str, known: Iterable[str], *, behind: str = "") -> str:
    """Return "did you mean 'NAME'?" with the text `behind` in front of it. NAME is the name in `known` that
    is most similar to `word`; if no name is similar enough, return "".
    """
    names = {name.lstrip("-"): name for name in known}  # dashes would make every two options alike
    close = get_close_matches(word.lstrip("-"), list(names), 1, _SIMILAR)
    return f"{behind}did you mean {names[close[0]]!r}?" if close else ""


def shortened(message: str, words: Sequence[str]) -> str:
    """Return an error message in which long words that it repeats from the command line `words` are cut."""
    for word in words:
        for part in {word, word.partition("=")[2]}:
            # Paths and names of queues are often long, and needed whole.
            longest = _LONGEST_PATH if "/" in part or "\\" in part else _LONGEST
            if len(part) > longest:
                for shown in (part, repr(part)[1:-1], printable(part)):
                    message = message.replace(shown, f"{shown[:longest]}…")
    return message


def filled(text: str, width: int, indent: str = "") -> str:
    """Return `text` with its paragraphs wrapped at `width`. A paragraph whose first or second line is
    indented keeps its lines.
    """
    import textwrap  # only help pages need it

    parts = textwrap.dedent(text).strip("\n").split("\n\n")
    return "\n\n".join(
        part
        if part.startswith(" ") or part.partition("\n")[2].startswith(" ")
        else textwrap.fill(" ".join(part.split()), width, initial_indent=indent, subsequent_indent=indent)
        for part in parts
    )


def terminal_width() -> int:
    """Return the number of columns of the terminal, at least 40; 80 if standard output is not a terminal. The
    environment variable COLUMNS takes precedence, as in other programs.

    shutil has the same function, but importing it takes 3 ms, and argparse calls it for every argument.
    """
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdecimal() and 0 < len(columns) < 6:
        return max(40, int(columns))
    try:
        return max(40, os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1).columns)
    except (OSError, ValueError):
        return 80


class _Formatter(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=_COLUMN, width=terminal_width() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return filled(text, width, indent)
