"""Completion in bash, zsh and fish: short scripts that ask the program itself for the candidates.

All shells therefore share one grammar, and candidates can come from the server. The shell runs `complete
SHELL WORD …`, where the last word is the one to complete; the program prints one candidate a line. A line
that begins with a colon tells the shell to complete file names.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from msmq_fast.terminal.commands import Command, Group
from msmq_fast.terminal.describe import Argument, arguments_of

__all__ = ["SHELLS", "Candidate", "answer", "candidates", "script", "split_line"]

FILES: Final = ":files"
DIRECTORIES: Final = ":directories"
_OF_FILES: Final = {"FILE": FILES, "PATH": FILES, "DIR": DIRECTORIES}
_BREAKS: Final = re.compile(r"(?<!\\)[=:]")  # bash completes only what follows the last of these

_SCRIPTS: Final = {
    "bash": """\
# Completion of {prog} in bash: source <({prog} completion bash)
{function}() {{
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :files) compopt -o default ;;
            :directories) compopt -o dirnames ;;
            *) COMPREPLY+=("$line") ;;
        esac
    done < <({prog} complete bash "${{COMP_LINE:0:COMP_POINT}}" 2>/dev/null)
}}
complete -F {function} {prog}
""",
    "zsh": """\
#compdef {prog}
# Completion of {prog} in zsh: source <({prog} completion zsh), after compinit
{function}() {{
    local line
    local -a found
    for line in "${{(@f)$({prog} complete zsh "${{(@Q)words[2,CURRENT]}}" 2>/dev/null)}}"; do
        case $line in
            :files) _files; return ;;
            :directories) _files -/; return ;;
            ?*) found+=("$line") ;;
        esac
    done
    _describe -V {prog} found
}}
compdef {function} {prog}
""",
    "fish": """\
# Completion of {prog} in fish: {prog} completion fish | source
function {function}
    set -l token (commandline -ct)
    for line in ({prog} complete fish (commandline -opc)[2..-1] "$token" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$token"
            case :directories
                __fish_complete_directories "$token"
            case '*'
                echo $line
        end
    end
end
complete -c {prog} -f -a '({function})'
""",
}
SHELLS: Final = tuple(_SCRIPTS)


class Candidate(NamedTuple):
    """A word that can come next on the command line, with a short description."""

    word: str
    about: str = ""


Lookup = Callable[[Argument, Sequence[str]], Iterable[Candidate]]
"""Returns the candidates for an argument whose values only a server knows; gets the words of the line."""


def script(shell: str, prog: str) -> str:
    """Return the script with which a shell completes the command lines of the program `prog`."""
    return _SCRIPTS[shell].format(prog=prog, function=f"_{prog.replace('-', '_')}")


def split_line(line: str) -> list[str]:
    """Return the words of a command line after the program name. The last word is the one being typed, ""
    after a space.
    """
    for end in ("", "'", '"', "\\"):
        try:
            words = shlex.split(line + end)
        except ValueError:  # a quotation that is not closed yet
            continue
        return words[1:] if line[-1:].strip() and len(words) > 1 else [*words[1:], ""]
    return [""]


def candidates(root: Group, words: Sequence[str], lookup: Lookup) -> list[Candidate]:
    """Return the candidates for the last of `words`. A candidate whose word is FILES or DIRECTORIES asks the
    shell to complete names of files or directories itself.
    """
    *before, current = words or [""]
    if before[:1] == ["help"]:
        before = before[1:]
    group, prog = root, root.name
    for index, word in enumerate(before):
        if word not in group.commands:
            return []
        node, prog = group.commands[word], f"{prog} {word}"
        if isinstance(node, Command):
            found = _arguments(arguments_of(node, prog), before[index + 1 :], current, words, lookup)
            return [each for each in found if each.word.startswith((current, ":"))]
        group = node
    shown = [Candidate(name, node.help) for name, node in group.commands.items() if not node.hidden]
    return [each for each in shown if each.word.startswith(current)]


def _arguments(
    arguments: list[Argument], before: Sequence[str], current: str, words: Sequence[str], lookup: Lookup
) -> Iterable[Candidate]:
    """Yield the candidates for `current`, the word being typed. `before` are the words between the command's
    name and `current`; `words` is the whole line.
    """
    options = {name: argument for argument in arguments for name in argument.spellings}
    name, equals, _ = current.partition("=")
    if equals and name in options:
        for word, about in _values(options[name], words, lookup):
            yield Candidate(word if word.startswith(":") else f"{name}={word}", about)
    elif before and before[-1] in options and options[before[-1]].value:
        yield from _values(options[before[-1]], words, lookup)
    elif current.startswith("-"):
        yield from (Candidate(name, argument.about) for name, argument in options.items())
        yield Candidate("--help", "show the help page")
    else:
        positional = [argument for argument in arguments if not argument.spellings]
        given = _positionals(before, {name for name, argument in options.items() if argument.value})
        if positional and (given < len(positional) or positional[-1].several):
            yield from _values(positional[min(given, len(positional) - 1)], words, lookup)


def _positionals(words: Sequence[str], takers: set[str]) -> int:
    """Return the number of `words` that are neither options nor values of options. `takers` are the spellings
    of the options that take a value.
    """
    return sum(
        not word.startswith("-") and (index == 0 or words[index - 1] not in takers)
        for index, word in enumerate(words)
    )


def _values(argument: Argument, words: Sequence[str], lookup: Lookup) -> Iterable[Candidate]:
    if argument.choices:
        yield from (Candidate(choice) for choice in argument.choices)
    elif argument.value in _OF_FILES:
        yield Candidate(_OF_FILES[argument.value])
    else:
        yield from lookup(argument, words)


def answer(shell: str, found: Iterable[Candidate], current: str, line: str = "") -> list[str]:
    """Return the lines that report the candidates `found` to a shell. `current` is the word to complete;
    `line` is the command line as typed, which only bash needs.
    """
    if shell == "zsh":
        return [f"{_escaped(word)}:{about}" if word[:1] != ":" else word for word, about in found]
    if shell == "fish":
        return [f"{word}\t{about}".rstrip("\t") for word, about in found]
    breaks = [found.end() for found in _BREAKS.finditer(current)]
    cut = breaks[-1] if breaks else 0
    quoted = line.rpartition(" ")[2][:1] in ("'", '"')
    return [word if word[:1] == ":" else _typed(word[cut:], quoted=quoted) for word, _ in found]


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace(":", "\\:")


def _typed(word: str, *, quoted: bool) -> str:
    return word if quoted else re.sub(r"([^\w@%+=:,./~-])", r"\\\1", word)
