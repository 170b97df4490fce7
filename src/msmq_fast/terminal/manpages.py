"""Generates the man pages of a tree of commands. The pages use the macros of man(7)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from msmq_fast.protocol.exits import MEANINGS
from msmq_fast.terminal.commands import Command, Group, Node, build, paragraphs, sentence, walk
from msmq_fast.terminal.describe import ENVIRONMENT, Argument, arguments_of

__all__ = ["man_pages"]


def man_pages(root: Group, release: str) -> Iterator[tuple[str, str]]:
    """Yield the file name and the text of each page: `msmq-fast.1`, `msmq-fast-queue.1`, …"""
    for node, prog in walk(root, root.name):
        name = prog.replace(" ", "-")
        head = f'.TH "{_text(name.upper())}" "1" "" "{_text(f"msmq-fast {release}")}" "msmq-fast"'
        lines = [head, ".SH NAME", f"{_text(name)} \\- {_text(node.help)}", *_body(root, node, prog)]
        yield f"{name}.1", "\n".join(lines) + "\n"


def _body(root: Group, node: Node, prog: str) -> Iterator[str]:
    yield ".SH SYNOPSIS"
    yield _text(build(node, prog).short_usage() if isinstance(node, Command) else f"{prog} COMMAND …")
    yield ".SH DESCRIPTION"
    yield _text(paragraphs(node.description or sentence(node.help))).replace("\n\n", "\n.PP\n")
    if isinstance(node, Group):
        yield ".SH COMMANDS"
        for name, below in node.commands.items():
            if not below.hidden:
                yield from _entry(f"\\fB{_text(name)}\\fR", below.help)
    else:
        for heading, arguments in groupby(arguments_of(node, prog), lambda argument: argument.heading):
            yield f".SH {_text(heading.upper())}"
            for argument in arguments:
                yield from _entry(_argument(argument), argument.about)
        yield ".SH EXAMPLES"
        for example in node.examples:
            yield from _entry(_text(example.shown(prog)), example.about)
    if node is root:
        yield ".SH EXIT STATUS"
        for code, about in MEANINGS.items():
            yield from _entry(f"\\fB{int(code)}\\fR", about)
        yield ".SH ENVIRONMENT"
        for variable, about in ENVIRONMENT:
            yield from _entry(f"\\fB{variable}\\fR", about)
    above = prog.rpartition(" ")[0].replace(" ", "-")
    if above:
        yield ".SH SEE ALSO"
        yield f"\\fB{_text(above)}\\fR(1)"


def _entry(title: str, about: str) -> Iterator[str]:
    yield ".TP"
    yield title
    yield _text(about)


def _argument(argument: Argument) -> str:
    names = ", ".join(f"\\fB{_text(name)}\\fR" for name in argument.spellings)
    value = f"\\fI{_text(argument.value)}\\fR" if argument.value else ""
    return f"{names} {value}".strip()


def _text(text: str) -> str:
    """Return `text` with those characters escaped that roff would interpret."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in escaped.split("\n"))
