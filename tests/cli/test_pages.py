"""The reference and the man pages are made from the commands, and are complete."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from msmq_fast.cli.main import main
from msmq_fast.cli.tree import ROOT
from msmq_fast.protocol.exits import Exit
from msmq_fast.terminal.commands import Command, walk
from msmq_fast.terminal.describe import arguments_of
from msmq_fast.terminal.manpages import man_pages
from tools import commands

MACROS = (".TH", ".SH", ".PP", ".TP")


def test_the_reference_is_what_the_commands_say() -> None:
    assert commands.PAGE.read_text(encoding="utf-8") == commands.page(), "python -m tools.commands --write"


def test_there_is_a_man_page_for_every_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "--man", str(tmp_path / "man1")]) == Exit.OK
    names = {prog.replace(" ", "-") for _, prog in walk(ROOT, ROOT.name)}
    assert {page.name for page in (tmp_path / "man1").iterdir()} == {f"{name}.1" for name in names}
    assert capsys.readouterr().out == f"{len(names)} pages in {tmp_path / 'man1'}\n"


def test_man_pages_have_every_option_and_no_stray_macro() -> None:
    pages = dict(man_pages(ROOT, "1.2.3"))
    for node, prog in walk(ROOT, ROOT.name):
        page = pages[f"{prog.replace(' ', '-')}.1"]
        assert all(line.startswith(MACROS) for line in page.splitlines() if line.startswith((".", "'")))
        plain = re.sub(r"\\f[BIR]", "", page).replace("\\-", "-").replace("\\e", "\\")
        if isinstance(node, Command):
            for argument in arguments_of(node, prog):
                assert argument.about in plain
                assert all(name in plain for name in argument.spellings)
            assert all(example.shown(prog) in plain for example in node.examples)


def test_a_directory_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["help", "--man", str(tmp_path / "file" / "man1")]) == Exit.FAILURE
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.needs("mandoc")
@pytest.mark.long(seconds=5)
def test_mandoc_has_no_complaint(tmp_path: Path) -> None:
    main(["help", "--man", str(tmp_path)])
    pages = sorted(map(str, tmp_path.glob("*.1")))
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *pages], capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if "missing date" not in line]
    assert lines == []
