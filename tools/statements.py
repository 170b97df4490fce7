"""Walks the statements of a syntax tree. Expressions, which are nine nodes of ten, have none inside."""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["statements"]

_INSIDE = (ast.stmt, ast.ExceptHandler, ast.match_case)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield `node` and all statements inside, at any depth."""
    pending = [node]
    while pending:
        one = pending.pop()
        yield one
        for name in ("body", "orelse", "handlers", "finalbody", "cases"):
            inside = getattr(one, name, None)
            if isinstance(inside, list):
                pending += (each for each in inside if isinstance(each, _INSIDE))
