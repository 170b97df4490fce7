"""Commands and groups of commands. Each is declared in one place, and imported when it is named.

`parse` follows the words of a command line through the groups, and imports the modules that they name. Help,
completion, man pages and the reference are generated from the same declarations (`walk`).

To add a command:

1. Write a module that declares `COMMAND`: a `Command` with its arguments, its behaviour and its help, or a
   `Group`. Import slow modules where they are used: a help page needs none of them.
2. Name the module in the table of its group (`Modules`): for a command of `msmq-fast` in cli/tree.py.
3. Run `python -m tools.commands --write` for the reference, and add a golden file for the command's JSON in
   tests/cli/test_goldens.py.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from msmq_fast.protocol.exits import Exit
from msmq_fast.terminal.parser import Parser, did_you_mean, filled, shortened, terminal_width

__all__ = [
    "Command",
    "Example",
    "Group",
    "Modules",
    "Node",
    "build",
    "group_help",
    "members",
    "paragraphs",
    "parse",
    "sentence",
    "walk",
]

_HELP = ("-h", "--help")


class Example(NamedTuple):
    """An example command line, shown on a help page. `line` is the part after the command's name. If it
    contains "{prog}", it is the whole command line, and "{prog}" stands for the program and the command's
    name.
    """

    line: str
    about: str

    def shown(self, prog: str) -> str:
        """Return the whole command line as the user types it. `prog` is the program and the command name."""
        return self.line.replace("{prog}", prog) if "{prog}" in self.line else f"{prog} {self.line}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command: its help texts, its arguments, and `run`, which returns the exit code and may raise
    CommandError.
    """

    name: str
    help: str  # one line, in lists of commands
    run: Callable[[argparse.Namespace], int]
    add_arguments: Callable[[Parser], None]
    description: str = ""  # paragraphs of the help page; "": `help` alone
    examples: tuple[Example, ...] = ()
    hidden: bool = False  # an old spelling: it works, and no list shows it


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group of commands whose command lines begin with the same words. `sections` divide the list of
    commands on its help page: pairs of a heading and the names of the commands below it.

    `former` is the command that had the name of the group before: it gets the words that name no command of
    the group, and no help page shows it.
    """

    name: str
    help: str
    commands: Mapping[str, Command | Group]
    description: str = ""
    sections: tuple[tuple[str, tuple[str, ...]], ...] = ()
    hidden: bool = False
    former: Command | None = None


Node = Command | Group


class Modules(Mapping[str, Node]):
    """A mapping of names to commands. A command is imported when its name is first looked up: `modules` maps
    the name to the module that declares `COMMAND`.
    """

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = modules

    def __getitem__(self, name: str) -> Node:
        node: Node = importlib.import_module(self._modules[name]).COMMAND
        return node

    def __contains__(self, name: object) -> bool:
        return name in self._modules  # that of Mapping would import the command

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


def members(*nodes: Node) -> dict[str, Node]:
    """Return a mapping of names to the commands `nodes`, in the order of the arguments; for a group whose
    commands are all declared in one module.
    """
    return {node.name: node for node in nodes}


def parse(root: Group, words: Sequence[str]) -> tuple[Command, argparse.Namespace]:
    """Return the command that `words` name, and its parsed arguments.

    The attribute `command` of the arguments is the name of the command, such as "queue list". If `words` ask
    for help or contain a mistake, prints the help page, or one line about the mistake, and raises SystemExit.
    """
    group: Group = root
    path = [root.name]
    for index, word in enumerate(words):
        prog = " ".join(path)
        if word in _HELP:
            sys.stdout.write(group_help(group, prog))
            raise SystemExit(Exit.OK)
        if group.former is not None and word not in group.commands:
            return _parsed(group.former, path, words[index:])
        if word.startswith("-"):
            _fail(prog, f"unknown option {word!r}", words)
        if word not in group.commands:
            _fail(prog, f"unknown command {word!r}: {_hint(root, group, word)}", words)
        node = group.commands[word]
        path.append(word)
        if isinstance(node, Command):
            return _parsed(node, path, words[index + 1 :])
        group = node
    _fail(" ".join(path), "missing command", words)


def _parsed(
    command: Command, path: Sequence[str], words: Sequence[str]
) -> tuple[Command, argparse.Namespace]:
    arguments = build(command, " ".join(path)).parse_words(words)
    arguments.command = " ".join(path[1:])
    return command, arguments


def build(command: Command, prog: str) -> Parser:
    """Return the parser of a command. `prog` is the command line up to and including the command's name."""
    examples = "\n".join(f"  {each.shown(prog)}\n      {each.about}" for each in command.examples)
    parser = Parser(
        prog=prog,
        description=paragraphs(command.description or sentence(command.help)),
        epilog=f"examples:\n{examples}" if examples else None,
    )
    command.add_arguments(parser)
    parser.usage = parser.short_usage().replace("%", "%%")
    return parser


def walk(node: Node, prog: str) -> Iterator[tuple[Node, str]]:
    """Yield the command or group `node` and all visible ones below it, each with the words that name it.
    `prog` are the words that name `node`.
    """
    yield node, prog
    if isinstance(node, Group):
        for name in node.commands:
            below = node.commands[name]
            if not below.hidden:
                yield from walk(below, f"{prog} {name}")


def group_help(group: Group, prog: str) -> str:
    """Return the help page of a group: its purpose, and its commands with one line each."""
    import textwrap  # only help pages need it

    names = {name: node for name, node in group.commands.items() if not node.hidden}
    sections = group.sections or (("commands", tuple(names)),)
    width = max(len(name) for name in names) + 2
    columns = terminal_width() - 2
    lines = [
        f"usage: {prog} COMMAND …",
        "",
        filled(paragraphs(group.description or sentence(group.help)), columns),
    ]
    for title, listed in sections:
        lines += ["", f"{title}:"]
        for name in listed:
            indent = " " * (width + 2)
            lines += textwrap.wrap(
                names[name].help, columns, initial_indent=f"  {name:{width}}", subsequent_indent=indent
            )
    lines += ["", f"Run '{prog} COMMAND --help' for the options of a command and examples."]
    return "\n".join(lines) + "\n"


def paragraphs(text: str) -> str:
    """Return a text that is wrapped in the source file, with the lines of each paragraph joined into one."""
    lines = [line.strip() for line in text.split("\n")]
    return "\n\n".join(" ".join(part.split("\n")) for part in "\n".join(lines).strip().split("\n\n"))


def sentence(text: str) -> str:
    """Return a one-line help text as a sentence, with a capital letter and a full stop."""
    return f"{text[0].upper()}{text[1:]}."


def _hint(root: Group, group: Group, word: str) -> str:
    shown = [name for name, node in group.commands.items() if not node.hidden]
    if close := did_you_mean(word, shown):
        return close
    for name, node in root.commands.items():  # `purge` alone, which is `queue purge`
        if isinstance(node, Group) and word in node.commands:
            return f"did you mean '{name} {word}'?"
    return f"expected one of {', '.join(shown)}"


def _fail(prog: str, message: str, words: Sequence[str]) -> NoReturn:
    sys.stderr.write(f"{prog}: {shortened(message, words)} (see {prog} --help)\n")
    raise SystemExit(Exit.USAGE)
