"""Patterns of names match what Python's regular expressions match."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.bulk.patterns import NamePattern

ATOMS = ["a", "b", "B", ".", "[ab]", "[^a]", "[a-c1]", r"\d", r"\w", r"\\", r"\$", r"\.", "1", "[]a]"]
REPEATS = ["*", "+", "?", "{2}", "{0,2}", "{1,}", "{0}", "*?", "??"]


def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        pairs.map("".join),
        pairs.map(lambda two: f"({two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(REPEATS)).map(lambda two: f"(?:{two[0]}){two[1]}"),
        inner.map(lambda one: f"({one})"),
    )


PATTERNS = st.recursive(st.sampled_from(ATOMS), grow, max_leaves=8)


@given(PATTERNS, st.lists(st.text("aAbBc1$.\\ä", max_size=8), min_size=1, max_size=10))
def test_they_agree_with_regular_expressions(pattern: str, names: list[str]) -> None:
    ours, theirs = NamePattern(pattern), re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for name in names:
        assert ours.matches(name) == bool(theirs.fullmatch(name)), name


def test_ends_may_be_marked() -> None:
    assert NamePattern(r"^host\\q.*$").matches("HOST\\Q1")
    assert not NamePattern(r"^host\\q$").matches("HOST\\Q1")
    assert NamePattern("").matches("")
