"""What all tests share: the marks `rule`, `long` and `needs`, time and turn of a run, and who runs what."""

import contextlib
import importlib.util
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests import rights
from tests.rotation import PARTS, parts, rotated
from tools.conformance import load_catalogue

# How long one example takes says more about what else the machine does than about the code.
hypothesis.settings.register_profile(
    "shared", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("shared")

_STARTED = time.monotonic()
_TELLING_S = 50.0
"""A test that is expected to be shorter says little about the machine."""
_PATIENCE = 4.0
"""A long test may take so many times what it usually takes, unless it has a mark `timeout` of its own."""
_PATIENCE_S = 120.0
"""What it may take in any case, as every other test."""
_OVERRUN_S = 45.0
"""The last test may take so much longer than the time of the run. Then it is stopped, which is no verdict."""
_WRONG = pytest.StashKey[str]()
_PACE = pytest.StashKey[float]()
LONG = pytest.StashKey[dict[str, float]]()
"""What was collected of the long tests: how many seconds each takes in continuous integration."""
_FUZZ_S = 90.0
"""What continuous integration gives each fuzzer."""
ALWAYS = ("tests/interop/conversations/",)
"""Long tests that .ci/run runs each time, in a step of their own: they have no turn."""

# Several processes run the tests of `make test`: each takes a file at a time, and of these rooms, whose files
# share what they start, the whole.
_TOGETHER = ("tests/spark/",)
# What takes long begins first, so that no process is left alone with it at the end.
_FIRST = (*_TOGETHER, "tests/simulator/", "tests/faults/", "tests/interop/", "tests/cli/", "tests/server/")


# A shell lets what it starts in the background ignore SIGINT, and so would the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--budget",
        type=float,
        default=None,
        metavar="SECONDS",
        help="skip the tests that would not end within this time, counted from the start of the run",
    )
    parser.addoption(
        "--pace",
        type=float,
        default=1.0,
        metavar="FACTOR",
        help="this machine takes so many times the seconds that the marks of long tests say",
    )
    parser.addoption(
        "--turn",
        type=int,
        default=None,
        metavar="NUMBER",
        help=f"of the long tests, run the part (of {PARTS}) whose turn it is",
    )
    parser.addoption(
        "--missing",
        choices=("name", "fail"),
        default="name",
        help="what becomes of tests that need what this machine lacks: left out by name, or failed",
    )


def _rules(item: pytest.Item) -> Iterator[str]:
    for mark in item.iter_markers("rule"):
        yield from mark.args


def _unit(nodeid: str) -> str:
    """What one process runs as a whole: a file, or a room."""
    return next((room for room in _TOGETHER if nodeid.startswith(room)), nodeid.partition("::")[0])


def _place(nodeid: str) -> int:
    return next((place for place, room in enumerate(_FIRST) if nodeid.startswith(room)), len(_FIRST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Whole files go to the processes, in the order of the collection."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduler(LoadScopeScheduling):
        """The place where pytest-xdist lets units of one's own be named."""

        def _split_scope(self, nodeid: str) -> str:
            return _unit(nodeid)

    config.option.loadscopereorder = False
    return Scheduler(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Of several processes, every other one collects all tests from the last folder on.

    Assertions of a new or changed module are rewritten once, and kept: a process that comes to a module that
    the other one has had saves that, a third of a minute of a first run.
    """
    config = session.config
    if hasattr(config, "workerinput") and config.args == config.getini("testpaths"):
        folders = sorted(str(path) for path in Path(__file__).parent.iterdir() if path.is_dir())
        config.args = folders[:: -1 if config.workerinput["workerid"][-1] in "13579" else 1]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse marks that name no rule: such a test would seem to prove something."""
    known = {rule.id for document in load_catalogue() for rule in document.rules}
    wrong = {
        item: f"{item.nodeid}: no rule {rule!r} in docs/conformance"
        for item in items
        for rule in _rules(item)
        if rule not in known
    }
    config.stash[LONG] = {item.nodeid: _planned(item) for item in items if _expected(item) is not None}
    for item in items:
        expected = _expected(item)
        if expected is None:
            item.add_marker("ci")
        elif item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(max(_PATIENCE_S, _PATIENCE * expected)))
    if not hasattr(config, "workerinput"):
        if wrong:
            raise pytest.UsageError("\n".join(wrong.values()))
        if config.getoption("--turn") is not None:
            _take_turn(config, items)
        return
    items.sort(key=lambda item: (_place(item.nodeid), item.path))
    for item, complaint in wrong.items():  # one of several processes cannot stop the run
        item.stash[_WRONG] = complaint


def _take_turn(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long tests whose turn it is not."""
    turn = config.getoption("--turn")
    shared = {name: takes for name, takes in config.stash[LONG].items() if not name.startswith(ALWAYS)}
    chosen = rotated(parts(shared)[turn % PARTS], turn)
    places = {name: number for number, name in enumerate(chosen)}
    left_out = [item for item in items if item.nodeid in config.stash[LONG] and item.nodeid not in places]
    items[:] = [item for item in items if item not in set(left_out)]
    items.sort(key=lambda item: places.get(item.nodeid, -1))
    config.hook.pytest_deselected(items=left_out)


def _missing(mark: pytest.Mark) -> Iterator[str]:
    yield from (program for program in mark.args if shutil.which(program) is None)
    for module in mark.kwargs.get("modules", ()):
        if importlib.util.find_spec(module) is None:
            yield f"Python module {module}"
    for right in mark.kwargs.get("rights", ()):
        if not rights.granted(right):
            yield rights.MEANING[right]


def pytest_runtest_setup(item: pytest.Item) -> None:
    if _WRONG in item.stash:
        pytest.fail(item.stash[_WRONG], pytrace=False)
    for mark in item.iter_markers("needs"):
        missing = list(_missing(mark))
        if missing:
            complaint = (
                f"missing here: {', '.join(missing)} (docs/project/development.md says what tests need)"
            )
            if item.config.getoption("--missing") == "fail":
                pytest.fail(complaint, pytrace=False)
            pytest.skip(complaint)
    budget, expected = item.config.getoption("--budget"), _expected(item)
    if budget is not None and expected is not None:
        takes = expected * _pace(item.config)
        if time.monotonic() - _STARTED + takes > budget:
            pytest.skip(f"takes about {takes:.0f} s, more than is left of the {budget:.0f} s for this run")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A machine that has shown to be slower than the marks say is believed for the rest of the run."""
    began, expected = time.monotonic(), _expected(item)
    try:
        with _ends_with_the_run(None if expected is None else item.config.getoption("--budget")):
            return (yield)
    finally:
        if expected is not None and expected >= _TELLING_S:
            pace = (time.monotonic() - began) / expected
            item.config.stash[_PACE] = max(pace, _pace(item.config))


@contextlib.contextmanager
def _ends_with_the_run(budget: float | None) -> Iterator[None]:
    """Skip what still runs when the time of the run is over."""
    if budget is None:
        yield
        return
    began = time.monotonic()

    def stop(*_: object) -> None:
        took = time.monotonic() - began
        pytest.skip(f"stopped after {took:.0f} s: the {budget:.0f} s for this run are over")

    before = signal.signal(signal.SIGUSR2, stop)
    main = threading.main_thread().ident
    assert main is not None
    left = max(_STARTED + budget + _OVERRUN_S - began, 0.0)
    timer = threading.Timer(left, signal.pthread_kill, (main, signal.SIGUSR2))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGUSR2, before)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name every test that was left out: pytest itself counts them by the line that said so."""
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        terminalreporter.section("left out")
    for report in skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        terminalreporter.write_line(f"{report.nodeid}: {str(reason).removeprefix('Skipped: ')}")


def _pace(config: pytest.Config) -> float:
    told: float = config.getoption("--pace")
    return config.stash.get(_PACE, max(told, 1.0))


def _expected(item: pytest.Item) -> float | None:
    """What a long test usually takes, in seconds; None: any other test."""
    long = item.get_closest_marker("long")
    return None if long is None else long.kwargs.get("seconds", 60) + long.kwargs.get("fuzz", 0)


def _planned(item: pytest.Item) -> float:
    """What a long test takes in continuous integration, whatever the fuzzers are given in this run."""
    long = item.get_closest_marker("long")
    assert long is not None
    seconds: float = long.kwargs.get("seconds", 60) + min(long.kwargs.get("fuzz", 0), _FUZZ_S)
    return seconds
