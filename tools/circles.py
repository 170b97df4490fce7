"""Checks that no modules import each other in a circle: python -m tools.circles

Imports that only type checkers see count as well: a module cannot be read alone if its types come
from modules that need it. (import-linter holds the order of the rooms, without such imports.) To
cut a module out of a circle, give it a Protocol for what it needs, move what both sides need into a
module below them, or pass an argument.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.statements import statements

ROOT = Path(__file__).resolve().parent.parent / "src"
PACKAGE = "msmq_fast"

Graph = Mapping[str, set[str]]


def modules(root: Path, package: str) -> dict[str, Path]:
    """The modules of a package by their names, native ones by their stubs."""
    found: dict[str, Path] = {}
    for path in sorted((root / package).rglob("*.py*")):
        if path.suffix in (".py", ".pyi"):
            name = ".".join(path.relative_to(root).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def imports(tree: ast.AST, known: Mapping[str, object]) -> Iterator[str]:
    """The known modules that a module imports, anywhere in it. Relative imports are not used here."""
    for node in statements(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                if inner in known:
                    yield inner
                elif node.module in known:
                    yield node.module


def graph(root: Path, package: str) -> dict[str, set[str]]:
    """What each module imports of the package."""
    known = modules(root, package)
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in known.items()}
    return {name: set(imports(tree, known)) - {name} for name, tree in trees.items()}


def circles(of: Graph) -> list[list[str]]:
    """The modules that import each other, directly or not: strongly connected components, by Tarjan.

    Each component is sorted, and the components are.
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    found: list[list[str]] = []

    def enter(name: str) -> tuple[str, Iterator[str]]:
        index[name] = low[name] = len(index)
        path.append(name)
        on_path.add(name)
        return name, iter(sorted(of[name]))

    for start in sorted(of):
        stack = [enter(start)] if start not in index else []
        while stack:
            name, rest = stack[-1]
            after = next(rest, None)
            if after is None:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[name])
                if low[name] == index[name]:
                    found.append(_component(name, path, on_path))
            elif after not in index:
                stack.append(enter(after))
            elif after in on_path:
                low[name] = min(low[name], index[after])
    return sorted(each for each in found if len(each) > 1)


def _component(first: str, path: list[str], on_path: set[str]) -> list[str]:
    at = path.index(first)
    component = path[at:]
    del path[at:]
    on_path.difference_update(component)
    return sorted(component)


def shortest(of: Graph, within: list[str]) -> list[str]:
    """A shortest way from the first of these modules back to itself, to show where to cut."""
    start = within[0]
    before: dict[str, str] = {}
    queue = [start]
    for name in queue:
        for after in sorted(of[name] & set(within)):
            if after == start:
                way = [start, name]
                while way[-1] != start:
                    way.append(before[way[-1]])
                return way[::-1]
            if after not in before:
                before[after] = name
                queue.append(after)
    return []


def main(root: Path = ROOT, package: str = PACKAGE) -> int:
    """Prints the circles; 1 if there are any."""
    of = graph(root, package)
    found = circles(of)
    for circle in found:
        print(f"{len(circle)} modules import each other: {' -> '.join(shortest(of, circle))}")
        print(f"  all of them: {' '.join(circle)}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
