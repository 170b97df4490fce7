"""Generates the reference of a tree of commands as one page of Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from msmq_fast.protocol.exits import MEANINGS
from msmq_fast.terminal.commands import Command, Group, build, paragraphs, sentence, walk
from msmq_fast.terminal.describe import ENVIRONMENT, Argument, arguments_of

__all__ = ["reference"]

_WIDTH = 120  # characters of a line, table rows apart
_SHARED = ("output", "reporting", "connection")  # headings of options that most commands have


def reference(root: Group) -> str:
    """Return the page: the commands of the group `root` by section, the exit codes, and the environment
    variables.
    """
    lines = ["| command | |", "|---|---|"]
    lines += [
        f"| [`{name}`](#{root.name}-{name}) | {_cell(root.commands[name].help)} |"
        for _, names in root.sections
        for name in names
    ]
    common = _common(root)
    for heading, found in common.items():
        lines += ["", f"## Options: {heading}", "", *_table(found)]
    for title, names in root.sections:
        lines += ["", f"## {sentence(title).rstrip('.')}"]
        for name in names:
            for node, prog in walk(root.commands[name], f"{root.name} {name}"):
                lines += ["", f"### {prog}", "", *_wrapped(node.description or sentence(node.help))]
                if isinstance(node, Command):
                    lines += _command(node, prog, set(common))
    lines += ["", "## Exit codes", "", "| code | meaning |", "|---|---|"]
    lines += [f"| {int(code)} | {_cell(about)} |" for code, about in MEANINGS.items()]
    lines += ["", "## Environment variables", "", "| variable | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {_cell(about)} |" for name, about in ENVIRONMENT]
    return "\n".join(lines) + "\n"


def _common(root: Group) -> dict[str, list[Argument]]:
    """Return the options that several commands share, by the heading under which help pages list them. The
    reference describes each of these options once.
    """
    found: dict[str, list[Argument]] = {}
    for node, prog in walk(root, root.name):
        if isinstance(node, Command):
            for argument in arguments_of(node, prog):
                listed = found.setdefault(argument.heading, [])
                if argument.heading in _SHARED and argument not in listed:
                    listed.append(argument)
    return {heading: found[heading] for heading in _SHARED if heading in found}


def _command(command: Command, prog: str, shared: set[str]) -> Iterator[str]:
    yield from ("", "```usage", build(command, prog).short_usage(), "```")
    arguments = arguments_of(command, prog)
    own = [argument for argument in arguments if argument.heading not in shared]
    if own:
        yield ""
        yield from _table(own)
    headings = [heading for heading in _SHARED if any(each.heading == heading for each in arguments)]
    if headings:
        links = " and ".join(f"[{heading}](#options-{heading})" for heading in headings)
        yield from ("", f"Also the options for {links}.")
    yield from ("", "```bash")
    for number, example in enumerate(command.examples):
        if number:
            yield ""
        yield f"# {example.about}"
        yield example.shown(prog)
    yield "```"


def _table(arguments: Iterable[Argument]) -> Iterator[str]:
    yield from ("| argument | meaning |", "|---|---|")
    for argument in arguments:
        yield f"| `{_cell(argument.shown)}` | {_cell(argument.about)} |"


def _wrapped(text: str) -> Iterator[str]:
    for number, part in enumerate(paragraphs(text).split("\n\n")):
        if number:
            yield ""
        yield from textwrap.wrap(part, _WIDTH, break_on_hyphens=False, break_long_words=False)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
