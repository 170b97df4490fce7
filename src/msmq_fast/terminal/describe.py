"""Describes the arguments of a command as plain values, for man pages, the reference and completion."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from msmq_fast.terminal.commands import Command, build

__all__ = ["ENVIRONMENT", "Argument", "arguments_of"]

ENVIRONMENT = (
    ("MSMQ_FAST_ENDPOINT", "the server, as --endpoint takes it; --endpoint and --data win"),
    ("MSMQ_FAST_TOKEN", "the token for a connection over TCP; --token-file wins"),
    ("MSMQ_FAST_TOKEN_FILE", "a file with that token"),
    ("MSMQ_FAST_CONFIG", "the configuration file; --config wins"),
    ("MSMQ_FAST_SECTION__KEY", "a key of the configuration, such as MSMQ_FAST_SERVER__NAME"),
    ("NO_COLOR", "set to any value: no colours"),
    ("COLUMNS", "the width of help pages"),
)
"""Environment variables that commands read, with their meanings."""
_TITLES = {"positional arguments": "arguments"}


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a command: an option or a positional."""

    spellings: tuple[str, ...]  # of an option; () for a positional argument
    value: str  # what stands for its value; "" for an option without one
    about: str
    heading: str  # the group of the help page
    required: bool
    several: bool  # takes more than one value
    choices: tuple[str, ...]
    parse: Callable[[str], object] | None  # what reads the value

    @property
    def shown(self) -> str:
        """The argument in the form of a synopsis, such as `--label, -l TEXT`."""
        names = ", ".join(self.spellings)
        return f"{names} {self.value}".strip() if names else f"{self.value}{' …' if self.several else ''}"


def arguments_of(command: Command, prog: str) -> list[Argument]:
    """Return the arguments of a command in the order of its help page, without -h, hidden arguments and
    former spellings. `prog` is the program and the command's name.
    """
    return [
        _argument(action, _TITLES.get(str(group.title), str(group.title)))
        for group in build(command, prog)._action_groups
        for action in group._group_actions
        if action.help is not argparse.SUPPRESS and "--help" not in action.option_strings
    ]


def _argument(action: argparse.Action, heading: str) -> Argument:
    choices = tuple(map(str, action.choices or ()))
    metavar = action.metavar if isinstance(action.metavar, str) else "|".join(choices) or action.dest.upper()
    optional = action.nargs in ("?", "*", argparse.REMAINDER)
    return Argument(
        spellings=tuple(action.option_strings),
        value="" if action.nargs == 0 else metavar,
        about=str(action.help or ""),
        heading=heading,
        required=action.required and not optional,
        several=action.nargs in ("*", "+", argparse.REMAINDER),
        choices=choices,
        parse=action.type if callable(action.type) else None,
    )
