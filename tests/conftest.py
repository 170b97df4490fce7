"""What all tests share: the marks `rule`, `long` and `needs`, and the time budget of a run."""

import shutil
import time
from collections.abc import Iterator

import pytest

from tools.conformance import load_catalogue

_STARTED = time.monotonic()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--budget",
        type=float,
        default=None,
        metavar="SECONDS",
        help="skip the tests that would not end within this time, counted from the start of the run",
    )


def _rules(item: pytest.Item) -> Iterator[str]:
    for mark in item.iter_markers("rule"):
        yield from mark.args


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse marks that name no rule: such a test would seem to prove something."""
    known = {rule.id for document in load_catalogue() for rule in document.rules}
    wrong = [
        f"{item.nodeid}: no rule {rule!r} in docs/conformance"
        for item in items
        for rule in _rules(item)
        if rule not in known
    ]
    if wrong:
        raise pytest.UsageError("\n".join(wrong))


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        missing = [program for program in mark.args if shutil.which(program) is None]
        if missing:
            pytest.fail(
                f"not installed: {', '.join(missing)} (docs/development.md lists the packages)", pytrace=False
            )
    budget = item.config.getoption("--budget")
    long = item.get_closest_marker("long")
    if budget is not None and long is not None:
        expected = long.kwargs.get("seconds", 60)
        if time.monotonic() - _STARTED + expected > budget:
            pytest.skip(f"takes about {expected} s, more than is left of the {budget:.0f} s for this run")
