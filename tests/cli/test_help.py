"""The help pages: every command has one, with examples that parse; nothing is left without a word."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

from msmq_fast.cli.main import main
from msmq_fast.cli.tree import ROOT
from msmq_fast.protocol.exits import Exit
from msmq_fast.spark.lake.main import main as lake_main
from msmq_fast.terminal.commands import Command, Group, build, parse, walk

pytestmark = pytest.mark.smoke

NODES = list(walk(ROOT, ROOT.name))
COMMANDS = [(node, prog) for node, prog in NODES if isinstance(node, Command)]
BEHIND = ("|", ">", "<")


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == Exit.OK
    return capsys.readouterr().out


@pytest.mark.parametrize(("node", "prog"), NODES, ids=lambda value: value if isinstance(value, str) else "")
def test_every_page_is_the_same_for_help_and_the_option(
    node: Command | Group, prog: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = prog.split()[1:]
    page = shown(capsys, *words, "--help")
    assert page == shown(capsys, "help", *words)
    assert page == shown(capsys, *words, "-h")
    assert page.startswith(f"usage: {prog} ")
    assert all(len(line) <= 120 for line in page.splitlines())


@pytest.mark.parametrize(
    ("command", "prog"), COMMANDS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_example_parses(command: Command, prog: str) -> None:
    assert command.examples, f"{prog} has no example"
    for example in command.examples:
        words = shlex.split(example.shown(prog))
        while "msmq-fast" in words[1:]:  # behind a pipe
            words = words[1:]
        ends = [words.index(word) for word in BEHIND if word in words]
        found, _ = parse(ROOT, words[1 : min(ends, default=len(words))])
        assert found is command


@pytest.mark.parametrize(
    ("command", "prog"), COMMANDS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_argument_has_a_help_text(command: Command, prog: str) -> None:
    parser = build(command, prog)
    without = [action.dest for action in parser._actions if not action.help]
    assert not without


def test_sections_list_every_command() -> None:
    listed = [name for _, names in ROOT.sections for name in names]
    assert sorted(listed) == sorted(name for name, node in ROOT.commands.items() if not node.hidden)
    assert len(set(listed)) == len(listed)


def test_the_names_of_modules_and_commands_agree() -> None:
    for node, _ in NODES:
        if isinstance(node, Group):
            assert [below.name for below in node.commands.values()] == list(node.commands)


def test_the_lake_is_a_group_and_a_program_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    group = shown(capsys, "lake", "audit", "--help")
    with pytest.raises(SystemExit):
        lake_main(["audit", "--help"])
    assert capsys.readouterr().out.replace("msmq-lake", "msmq-fast lake").split() == group.split()


def test_help_of_what_does_not_exist_says_what_is_close(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["help", "queeu"])
    assert ended.value.code == Exit.USAGE
    assert "unknown command 'queeu': did you mean 'queue'?" in capsys.readouterr().err


def test_a_page_in_a_pipe_has_no_colours() -> None:
    page = subprocess.run(
        [sys.executable, "-m", "msmq_fast", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert "\x1b" not in page
    assert "receive" in page
