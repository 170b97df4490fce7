"""What the documents point at exists, and what they tell people to type is understood."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import msmq_fast
from msmq_fast.cli.tree import ROOT as COMMANDS
from msmq_fast.spark.lake.main import COMMAND as LAKE
from msmq_fast.terminal.commands import parse

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).parents[2]
PACKAGE = Path(msmq_fast.__file__).parent
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^(?:\w*\$ +|> +|docker exec msmq )?(msmq-(?:fast|lake) .*)")
BEHIND = re.compile(r"\s{2,}#.*|\s+#\s.*|\s{3,}msmq-fast.*|\s+[|<>]\s.*")
"""What stands behind a command: a remark, another command beside it, where its output goes."""
PLACEHOLDER = re.compile(r"[…\[|]")


def prose(document: Path) -> str:
    return BLOCK.sub("", document.read_text(encoding="utf-8"))


def anchors(document: Path) -> set[str]:
    """Of the headings, as they are made where the documents are shown."""
    headings = re.findall(r"^#+ (.*)$", prose(document), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in plain}


def commands() -> list[tuple[str, str]]:
    found = [
        (document.name, BEHIND.sub("", matched[1]).strip())
        for document in DOCUMENTS
        for block in BLOCK.findall(document.read_text(encoding="utf-8"))
        for line in block.splitlines()
        if (matched := COMMAND.match(line.strip()))
    ]
    return [(name, line) for name, line in found if not PLACEHOLDER.search(line.partition("'")[0])]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_links_lead_somewhere(document: Path) -> None:
    lost = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(document)):
        file, _, anchor = target.partition("#")
        place = (document.parent / file).resolve() if file else document
        if "://" not in target and not (place.exists() and (not anchor or anchor in anchors(place))):
            lost.append(target)
    assert not lost


def test_the_pages_that_sources_name_exist() -> None:
    files = [
        path
        for folder in ("src", "tests", "tools", "bench", "pipelines", "contrib", "packaging", "docs")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".pyx", ".pxd", ".h", ".c", ".cs", ".ps1", ".toml", ".yml", ".service")
    ]
    named = {
        name
        for path in files
        for name in re.findall(r"(?<![\w/])docs/[\w/-]+\.md", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_file_that_says_how_to_extend_it_is_listed() -> None:
    sources = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".pyx", ".pxd", ".h")]
    extensible = {
        path.name
        for path in sources
        if re.search(r"^(?:# )?To add (?:a|an|something)\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    page = (ROOT / "docs" / "project" / "development.md").read_text(encoding="utf-8")
    section = page.partition("## Where a change begins")[2].partition("\n## ")[0]
    listed = {Path(name).name for name in re.findall(r"`([\w/]+\.(?:py|pyx|pxd))`", section)}
    assert extensible == listed


def test_every_command_is_one() -> None:
    known = commands()
    assert len(known) > 60
    programs = {"msmq-fast": COMMANDS, "msmq-lake": LAKE}
    wrong = []
    for name, line in known:
        program, *arguments = shlex.split(line)
        try:
            if arguments != ["--version"]:
                parse(programs[program], arguments)
        except SystemExit as ended:
            if ended.code:
                wrong.append(f"{name}: {line}")
    assert not wrong


def test_the_architecture_names_every_folder_and_every_native_module() -> None:
    text = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    folders = [
        str(place.parent.relative_to(PACKAGE)) + "/"
        for place in sorted(PACKAGE.rglob("__init__.py"))
        if place.parent != PACKAGE
    ]
    modules = [place.stem for place in sorted((ROOT / "src" / "_native").glob("*.pyx"))]
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", text, re.MULTILINE)  # a row may have several modules
    listed = {name.strip("`") for row in rows for name in row.split(", ")}
    assert len(folders) > 20
    assert len(modules) > 15
    assert [name for name in folders if name not in text] == []
    assert [name for name in modules if name not in listed] == []
