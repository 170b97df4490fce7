"""Every command that the documents show is typed at a server, or stands in commands.toml with the reason."""

from __future__ import annotations

import re
import tempfile
import tomllib
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from msmq_fast import sync
from tests.support.processes.guides import COMMANDS, Preparation, Reader, blocks, commands, matches, steps
from tests.support.processes.servers import Server, data_directory

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "packaging" / "client" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
KNOWN: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("commands.toml").read_text(encoding="utf-8")
)
TUTORIAL = ROOT / "docs" / "tutorial" / "first-queue.md"
MANY = {"docs/reference/cli.md", "docs/how-to/my-message-did-not-arrive.md"}
"""The pages with the most commands: some ten seconds each."""
OTHER = {"c", "cython", "frame", "go", "ini", "yaml", "json", "mermaid", "python", "text", "toml", "usage"}
"""The kinds of blocks without commands; `usage` has the grammar of commands."""
FENCE = re.compile(r"^ *```([^\n]*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
PROGRAMS = "curl|docker|journalctl|make|msmq-fast|msmq-lake|pip|python3?|sudo|systemctl"
TYPED = re.compile(rf"^\s*(?:\w*\$ |> |(?:{PROGRAMS}) )", re.MULTILINE)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def typed_on(page: Path) -> list[str]:
    return [typed for typed, _ in commands(page)]


def listed(page: str) -> dict[str, str]:
    """The commands that commands.toml says are not typed, and why; `…` at the end stands for any text."""
    groups = KNOWN.get(page, {}).get("left_out", [])
    return {command: group["why"] for group in groups for command in group["commands"]}


def is_one_of(typed: str, entry: str) -> bool:
    return typed.startswith(entry[:-1]) if entry.endswith("…") else typed == entry


def prepared(page: Path) -> Preparation:
    known = {key: value for key, value in KNOWN.get(name(page), {}).items() if key != "left_out"}
    entries = listed(name(page))
    left_out = {typed for typed in typed_on(page) for entry in entries if is_one_of(typed, entry)}
    return Preparation(left_out=frozenset(left_out), **known)


@pytest.fixture
def reader() -> Iterator[Reader]:
    with tempfile.TemporaryDirectory(prefix="msmq") as folder:  # short: a Unix socket's path is limited
        reading = Reader(Path(folder))
        try:
            yield reading
        finally:
            reading.close()


def with_needs() -> Iterator[Any]:
    """The pages with commands, each with the programs that not every machine has."""
    for page in PAGES:
        left_out = prepared(page).left_out
        words = {word for typed in typed_on(page) if typed not in left_out for word in typed.split()}
        if words or left_out:
            programs = sorted(words & {"curl", "jq"})
            marks = [pytest.mark.needs(*programs)]
            if name(page) in MANY:
                marks.append(pytest.mark.long(seconds=15))
            yield pytest.param(page, id=name(page), marks=marks)


@pytest.mark.parametrize("page", list(with_needs()))
def test_the_commands_of_a_page_do_what_it_says(reader: Reader, page: Path) -> None:
    known = prepared(page)
    assert reader.follow(page, known) == sum(typed not in known.left_out for typed in typed_on(page))


def test_the_program_of_the_tutorial_does_what_it_says(reader: Reader) -> None:
    reader.follow(TUTORIAL, prepared(TUTORIAL))
    ((_, program),) = blocks(TUTORIAL, "python")
    assert reader.python(program) == "b'from Python'\n"


def test_the_calls_beside_the_cmdlets_exist() -> None:
    page = (ROOT / "docs" / "how-to" / "migrate-from-windows.md").read_text(encoding="utf-8")
    calls = set(re.findall(r"`(?:with )?(connection|queue)\.([\w.]+)\(", page))
    assert len(calls) > 15
    with data_directory() as data:
        server = Server(data).start()
        try:
            with sync.connect(server.endpoint) as connection:
                connection.admin.queues.create("orders")
                with connection.open("orders") as queue:
                    places = {"connection": connection, "queue": queue}
                    found = [attrgetter(name)(places[place]) for place, name in calls]
                    assert all(map(callable, found)), calls
        finally:
            server.kill()


def test_what_is_listed_is_on_the_pages() -> None:
    shown = {name(page): typed_on(page) for page in PAGES}
    stale = [
        (page, entry)
        for page, known in KNOWN.items()
        for entry in ({*known.get("before", {}), *listed(page)} - {""})
        if not any(is_one_of(typed, entry) for typed in shown.get(page, []))
    ]
    assert stale == []


def test_the_tests_that_reasons_name_exist() -> None:
    named = {
        test
        for page in KNOWN
        for why in listed(page).values()
        for test in re.findall(r"tests/[\w/]+\.py", why)
    }
    assert len(named) > 3
    assert [test for test in sorted(named) if not (ROOT / test).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_are_in_blocks_of_commands(page: Path) -> None:
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    assert {language for language, _ in found} <= OTHER | {*COMMANDS}
    plain = [block for language, block in found if language not in {*COMMANDS, "usage", "python"}]
    assert [block for block in plain if TYPED.search(block)] == []


def test_commands_and_what_they_print_are_told_apart() -> None:
    block = "$ msmq-fast queue list   # all\nNAME  MESSAGES\n…  1\nhere$ send \\\n --label x\n"
    assert list(steps("console", block)) == [
        ("msmq-fast queue list", ["NAME  MESSAGES", "…  1"]),
        ("send   --label x", []),
    ]
    assert list(steps("bash", "# a remark\none  # first\n\ntwo\n")) == [("one", []), ("two", [])]
    assert matches("NAME     MESSAGES\norders  1\n", ["NAME MESSAGES", "… 1"])
    assert not matches("NAME     MESSAGES\norders  2\n", ["NAME MESSAGES", "… 1"])
    assert not matches("NAME MESSAGES\n", ["NAME MESSAGES", "… 1"])


def test_a_command_that_fails_on_a_page_is_found(reader: Reader, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```bash\nmsmq-fast queue show nosuch\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"\$ msmq-fast queue show nosuch"):
        reader.follow(page, Preparation(server=True))
