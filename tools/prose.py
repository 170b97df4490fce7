"""Checks how the sources and documents are written: python -m tools.prose [--write]

The check reports these patterns:

1. `pronoun`: who, whoever, nobody, somebody, he. A program has the name of its part: the caller, the peer.
2. `duration`: "for so long", "after so long", "once in so long". Write "after 30 s", "once every 10 s".
3. `is-no`: "is no X". Write "is not an X". ("is no longer" and "there is no X" are free.)
4. `width`: a line of Markdown above 120 characters, addresses of links not counted. A table row is one line,
   and lines in fenced blocks are as they are.
5. `rule`: the number of a rule whose text is neither in docs/conformance nor in the page of the switches.

Patterns 1 to 3 are looked for in src/ and in Markdown. Today's findings are in tools/prose.txt, one
`path pattern count` a line. A count may only go down. The counts of files that are gone serve files that are
not listed, so that a file may move or be split. `--write` renews the file; it refuses if a pattern is found
more often than before. A rule number has no exceptions.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tools.conformance import load_catalogue

ROOT = Path(__file__).resolve().parent.parent
EXCEPTIONS = Path(__file__).with_suffix(".txt")
PAGES = ROOT / "docs"
PUBLISHED = (PAGES / "reference" / "interop-switches.md", PAGES / "conformance" / "data-model.md")
SOURCES = (".py", ".pyi", ".pyx", ".pxd", ".h")
WIDTH = 120

PATTERNS = {
    "pronoun": re.compile(r"\b(?:who|whoever|nobody|somebody|he)\b", re.IGNORECASE),
    "duration": re.compile(r"\b(?:for|after|once in) so long\b", re.IGNORECASE),
    "is-no": re.compile(r"(?<!there )\bis no\b(?! longer)", re.IGNORECASE),
}
EXPLAINED = {"AMB", "A", "RA", "DA", "M", "Q", "QM", "OQ", "OQD", "TX", "ENT"}
"""Families of rules whose numbers begin or stand in the rows of PUBLISHED."""
LISTED = {"DM", "DS", "DU", "KV", "MP", "MR", "QB", "QP", "REC", "RP", "RR", "SM", "SR", "ST", "X"}
"""Families of the catalogue."""
_NUMBER = re.compile(r"(?<![-\w])([A-Z]{1,3})-(G?[0-9]+)[a-z]?(?![-\w])")
_RANGE = re.compile(r"(?<![-\w])([A-Z]{1,3})-(G?)([0-9]+) … (?:\1-)?\2([0-9]+)")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_ADDRESS = re.compile(r"\]\([^)\s]*\)")


def numbers(text: str) -> Iterator[str]:
    """All rule numbers in a text; `A-17 … A-21` stands for each of the five."""
    for found in _NUMBER.finditer(text):
        yield found.group()
    for family, group, first, last in _RANGE.findall(text):
        width = len(first)
        for number in range(int(first), int(last) + 1):
            yield f"{family}-{group}{number:0{width}}"


@cache
def published() -> frozenset[str]:
    """The numbers of the catalogue, and those in the tables of the pages."""
    rows = (line for page in PUBLISHED for line in page.read_text(encoding="utf-8").splitlines())
    known = {rule.id for document in load_catalogue() for rule in document.rules}
    return frozenset(known.union(*(numbers(row) for row in rows if row.startswith("|"))))


def unresolved(text: str, known: frozenset[str]) -> set[str]:
    """The numbers of a known family whose text is published nowhere."""
    return {number for number in numbers(text) if number.partition("-")[0] in EXPLAINED | LISTED} - known


def _too_wide(text: str) -> Iterator[int]:
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
        if not fenced and not line.startswith("|") and len(_ADDRESS.sub("]()", line)) > WIDTH:
            yield number


def findings(text: str, *, markdown: bool, known: frozenset[str]) -> Iterator[tuple[int, str, str]]:
    """Yields the line, the pattern and the words of everything in a text that the style rejects."""
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, expression in PATTERNS.items():
            yield from ((number, pattern, found.group()) for found in expression.finditer(line))
        yield from ((number, "rule", rule) for rule in sorted(unresolved(line, known)))
    if markdown:
        yield from ((number, "width", f"a line above {WIDTH} characters") for number in _too_wide(text))


def texts(root: Path) -> Iterator[Path]:
    """The files that are checked, sorted."""
    yield from sorted(path for path in (root / "src").rglob("*") if path.suffix in SOURCES)
    yield from sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")])


def _listed(path: Path) -> Counter[str]:
    rows = (line.rpartition(" ") for line in path.read_text(encoding="utf-8").splitlines())
    return Counter({key: int(count) for key, _, count in rows})


def _totals(counts: Mapping[str, int]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for key, count in counts.items():
        totals[key.rpartition(" ")[2]] += count
    return totals


def _excess(counts: Mapping[str, int], allowed: Mapping[str, int], root: Path) -> Iterator[str]:
    """The keys that are found too often, also with the room that files which are gone leave."""
    gone = {key: count for key, count in allowed.items() if not (root / key.partition(" ")[0]).exists()}
    room = _totals(gone)
    for key in sorted(key for key in counts if counts[key] > allowed.get(key, 0)):
        pattern = key.rpartition(" ")[2]
        if key not in allowed and counts[key] <= room[pattern]:
            room[pattern] -= counts[key]
        else:
            yield key


def main(arguments: list[str], root: Path = ROOT, exceptions: Path = EXCEPTIONS) -> int:
    """Prints what is found beyond the exceptions, or writes the exceptions; 1 if a count went up."""
    found: dict[str, list[str]] = {}
    for path in texts(root):
        name = str(path.relative_to(root))
        text = path.read_text(encoding="utf-8")
        for line, pattern, words in findings(text, markdown=path.suffix == ".md", known=published()):
            found.setdefault(f"{name} {pattern}", []).append(f"{name}:{line}: {pattern}: {words}")
    counts = {key: len(lines) for key, lines in found.items()}
    allowed = _listed(exceptions)
    if "--write" in arguments:
        grown = _totals(counts) - _totals(allowed)
        if grown:
            print("not written, found more often than before:", dict(grown))
            return 1
        exceptions.write_text("".join(f"{key} {counts[key]}\n" for key in sorted(counts)), encoding="utf-8")
        return 0
    more = list(_excess(counts, allowed, root))
    for key in more:
        print(*found[key], f"  {counts[key]} in this file, tools/prose.txt allows {allowed[key]}", sep="\n")
    return int(bool(more))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
