"""What the tests prove of each protocol document.

The catalogue, docs/conformance/*.toml, has one entry per rule. A test proves a rule by carrying
`@pytest.mark.rule("QB-199")`. `make conformance` prints both side by side, and fails where they contradict
each other: a mark for a rule that the catalogue does not have or says is not built, or a rule listed twice.
"""

import argparse
import ast
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CATALOGUE = ROOT / "docs" / "conformance"
TESTS = ROOT / "tests"

RULE_ID = re.compile(r"[A-Z]{1,3}-G?[0-9]+[a-z]?")
LINE_LIMIT = 160
STATUSES = ("built", "partly", "not-built")


class CatalogueError(Exception):
    """A catalogue file does not have the form that docs/project/development.md describes."""


@dataclass(frozen=True)
class Rule:
    """One rule of a document. `reason` says what is missing, or why; it is empty for a built rule."""

    id: str
    section: str
    line: str
    status: str
    reason: str = ""


@dataclass(frozen=True)
class Document:
    """The rules of one protocol document, in the order of the document."""

    title: str
    source: Path
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Mark:
    """One id in one `rule` mark; `where` is `file:line`; `long`: `make test` does not run it."""

    rule: str
    where: str
    long: bool = False


def load_catalogue(folder: Path = CATALOGUE) -> list[Document]:
    """Read all documents of the catalogue; CatalogueError names the file and the entry that is wrong."""
    return [_load_document(source) for source in sorted(folder.glob("*.toml"))]


def _load_document(source: Path) -> Document:
    try:
        content = tomllib.loads(source.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise CatalogueError(f"{source.name}: {error}") from error
    if not isinstance(content.get("title"), str):
        raise CatalogueError(f"{source.name}: no title")
    rules = tuple(_rule(source, number, entry) for number, entry in enumerate(content.get("rule", []), 1))
    return Document(content["title"], source, rules)


def _rule(source: Path, number: int, entry: dict[str, object]) -> Rule:
    where = f"{source.name}: rule {number} ({entry.get('id', 'without id')})"
    text = {key: entry.pop(key, "") for key in ("id", "section", "line", "status", "reason")}
    if entry:
        raise CatalogueError(f"{where}: unknown key {', '.join(sorted(entry))}")
    if not all(isinstance(value, str) for value in text.values()):
        raise CatalogueError(f"{where}: every value is a string")
    values = {key: str(value) for key, value in text.items()}
    if not RULE_ID.fullmatch(values["id"]):
        raise CatalogueError(f"{where}: not an id")
    if not values["section"] or not values["line"] or len(values["line"]) > LINE_LIMIT:
        raise CatalogueError(f"{where}: needs a section and one line of at most {LINE_LIMIT} characters")
    if values["status"] not in STATUSES:
        raise CatalogueError(f"{where}: status is one of {', '.join(STATUSES)}")
    if (values["status"] == "built") != (values["reason"] == ""):
        raise CatalogueError(f"{where}: a reason stands with every status but 'built'")
    return Rule(**values)


def collect_marks(folder: Path = TESTS) -> list[Mark]:
    """Find the ids of all `pytest.mark.rule(…)` below a folder, without importing the tests."""
    return [mark for source in sorted(folder.rglob("*.py")) for mark in _marks(source, folder)]


def _marks(source: Path, folder: Path) -> Iterator[Mark]:
    statements = ast.parse(source.read_text(encoding="utf-8"), str(source)).body
    all_long = any(map(_is_long, statements))
    for statement in statements:
        long = all_long or any(_is_mark(each, "long") for each in getattr(statement, "decorator_list", ()))
        for node in ast.walk(statement):
            if not (isinstance(node, ast.Call) and _is_mark(node, "rule")):
                continue
            where = f"{source.relative_to(folder.parent)}:{node.lineno}"
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield Mark(argument.value, where, long)
                else:
                    raise CatalogueError(f"{where}: the ids of a rule mark are written out as strings")


def _is_long(statement: ast.stmt) -> bool:
    """Whether it is a `pytestmark` that makes all tests of its file long."""
    if not isinstance(statement, ast.Assign) or ast.unparse(statement.targets[0]) != "pytestmark":
        return False
    marks = statement.value.elts if isinstance(statement.value, ast.List) else [statement.value]
    return any(_is_mark(each, "long") for each in marks)


def _is_mark(node: ast.expr, name: str) -> bool:
    function = node.func if isinstance(node, ast.Call) else node
    return (
        isinstance(function, ast.Attribute)
        and function.attr == name
        and isinstance(function.value, ast.Attribute)
        and function.value.attr == "mark"
    )


def contradictions(documents: Iterable[Document], marks: Iterable[Mark]) -> list[str]:
    """Every way in which the catalogue and the marks contradict each other, one line each."""
    rules = [rule for document in documents for rule in document.rules]
    known = {rule.id: rule for rule in rules}
    found = [f"{id}: listed {count} times" for id, count in Counter(r.id for r in rules).items() if count > 1]
    for mark in marks:
        if mark.rule not in known:
            found.append(f"{mark.where}: no rule {mark.rule} in the catalogue")
        elif known[mark.rule].status == "not-built":
            found.append(f"{mark.where}: proves {mark.rule}, which the catalogue says is not built")
    return found


def report(documents: Iterable[Document], marks: Iterable[Mark], details: bool) -> Iterator[str]:
    """The lines of the report: figures per document; `details` names every rule that is not proven."""
    marks = list(marks)
    proving = {mark.rule for mark in marks}
    soon = {mark.rule for mark in marks if not mark.long}
    for document in documents:
        groups: dict[str, list[Rule]] = {status: [] for status in ("proven", *STATUSES)}
        for rule in document.rules:
            proven = rule.status == "built" and rule.id in proving
            groups["proven" if proven else rule.status].append(rule)
        yield document.title
        yield f"  {len(groups['proven']):5} built and proven by a test"
        late = [rule for rule in groups["proven"] if rule.id not in soon]
        if late:
            yield f"        {len(late):5} of them in make test-long only"
            if details:
                yield from map(_detail, late)
        yield f"  {len(groups['built']):5} built, not proven by a test"
        if details:
            yield from map(_detail, groups["built"])
        for status, heading in (("partly", "built in part"), ("not-built", "not built")):
            yield f"  {len(groups[status]):5} {heading}"
            yield from _by_reason(groups[status], details)


def _by_reason(rules: list[Rule], details: bool) -> Iterator[str]:
    reasons: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        reasons[rule.reason].append(rule)
    for reason, group in sorted(reasons.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        yield f"        {len(group):5} {reason}"
        if details:
            yield from map(_detail, group)


def _detail(rule: Rule) -> str:
    return f"              {rule.id}  {rule.section}  {rule.line}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="What the tests prove of each protocol document.")
    parser.add_argument("--details", action="store_true", help="name every rule that is not proven")
    options = parser.parse_args(arguments)
    try:
        documents, marks = load_catalogue(), collect_marks()
    except CatalogueError as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 1
    print("\n".join(report(documents, marks, options.details)))
    wrong = contradictions(documents, marks)
    for line in wrong:
        print(f"conformance: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
