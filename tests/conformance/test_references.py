"""Every rule number in the code and the docs resolves: a reader who meets one finds its text."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.conformance import load_catalogue

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = (ROOT / "docs" / "interop-switches.md", ROOT / "docs" / "conformance" / "data-model.md")
WRITTEN = {"src": (".py", ".pyi", ".pyx", ".pxi", ".pxd", ".h"), "bench": (".py",), "docs": (".md",)}
EXPLAINED = {"AMB", "A", "RA", "DA", "M", "Q", "QM", "OQ", "OQD", "TX", "ENT"}
"""Families whose numbers begin or stand in the rows of PUBLISHED."""
LISTED = {"DM", "DS", "DU", "KV", "MP", "QB", "QP", "REC", "RP", "RR", "SR", "ST", "X"}
"""Families of the catalogue."""
NUMBER = re.compile(r"(?<![-\w])([A-Z]{1,3})-(G?[0-9]+)[a-z]?(?![-\w])")
RANGE = re.compile(r"(?<![-\w])([A-Z]{1,3})-(G?)([0-9]+) … (?:\1-)?\2([0-9]+)")


def published() -> set[str]:
    """The numbers of the catalogue, and those in the tables of the pages."""
    known = {rule.id for document in load_catalogue() for rule in document.rules}
    for page in PUBLISHED:
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith("|"):
                known.update(numbers(line))
    return known


def numbers(text: str) -> Iterator[str]:
    """All numbers in a text; `A-17 … A-21` stands for each of the five."""
    for found in NUMBER.finditer(text):
        yield found.group()
    for family, group, first, last in RANGE.findall(text):
        width = len(first)
        for number in range(int(first), int(last) + 1):
            yield f"{family}-{group}{number:0{width}}"


def unresolved(text: str, known: set[str]) -> set[str]:
    """Those of a known family whose text is published nowhere."""
    return {number for number in numbers(text) if number.partition("-")[0] in EXPLAINED | LISTED} - known


@pytest.mark.parametrize("folder", WRITTEN)
def test_every_rule_number_resolves(folder: str) -> None:
    known = published()
    found = {
        str(path.relative_to(ROOT)): missing
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in WRITTEN[folder] and (missing := unresolved(path.read_text(encoding="utf-8"), known))
    }
    assert found == {}


def test_the_families_are_those_of_the_catalogue() -> None:
    listed = {rule.id.partition("-")[0] for document in load_catalogue() for rule in document.rules}
    assert listed == LISTED


def test_a_number_without_text_is_found() -> None:
    known = {"A-17", "A-18", "QB-001"}
    assert unresolved("A-17 … A-19, QB-001 and QB-1, a SID S-1-5-7, UTF-8, DA-999", known) == {
        "A-19",
        "QB-1",
        "DA-999",
    }
