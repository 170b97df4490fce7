"""The marks that tests/conftest.py gives a meaning: `rule`, `needs`, and `long` under a time budget."""

import re
import time
from pathlib import Path

import pytest

from tests import rights
from tests.rotation import PARTS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(pytester: pytest.Pytester):
    """Run pytest on one test file, under the project's conftest and settings."""
    pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    pytester.makeini("[pytest]\nmarkers = rule(*ids)\n    ci\n    long\n    needs(*programs)\n")

    def run_file(text: str, *arguments: str) -> pytest.RunResult:
        pytester.makepyfile(f"import pytest\n{text}")
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments)

    return run_file


def test_a_known_rule_is_accepted(run):
    run('@pytest.mark.rule("QB-001", "DM-055")\ndef test_it(): pass').assert_outcomes(passed=1)


def test_an_unknown_rule_stops_the_run_before_any_test(run):
    result = run('@pytest.mark.rule("QB-999")\ndef test_it(): pass\ndef test_other(): pass')
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*test_it: no rule 'QB-999' in docs/conformance*"])


@pytest.mark.parametrize(
    ("needs", "complaint"),
    [
        ('"sh", "no-such-program"', "missing here: no-such-program"),
        ('modules=["json", "no_such_module"]', "missing here: Python module no_such_module"),
        ('rights=["root"]', "missing here: the rights of root"),
    ],
)
def test_what_is_missing_is_named_or_fails(run, monkeypatch: pytest.MonkeyPatch, needs: str, complaint: str):
    """In make test and in .ci/run the test is left out by its name; in make test-long it fails."""
    monkeypatch.setattr(rights, "granted", {"root": False}.__getitem__)
    text = f"@pytest.mark.needs({needs})\ndef test_it(): pass"
    result = run(text)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*left out*", f"*::test_it: {complaint}*"])
    result = run(text, "--missing=fail")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{complaint}*"])


def test_what_is_there_is_used(run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rights, "granted", {"root": True}.__getitem__)
    text = '@pytest.mark.needs("sh", modules=["json"], rights=["root"])\ndef test_it(): pass'
    run(text, "--missing=fail").assert_outcomes(passed=1)


def test_every_right_can_be_asked_for():
    assert {right: type(rights.granted(right)) for right in rights.MEANING} == dict.fromkeys(
        rights.MEANING, bool
    )
    with pytest.raises(KeyError):
        rights.granted("no such right")


def test_make_test_long_fails_where_something_is_missing():
    makefile = ROOT.joinpath("Makefile").read_text()
    assert "-m long --missing=fail $(ARGS)" in makefile
    assert makefile.count("--missing") == 1


def test_what_is_not_long_is_in_the_tier_ci(run):
    text = "def test_short(): pass\n@pytest.mark.long\ndef test_long(): pass"
    result = run(text, "-m", "ci", "-v")
    result.assert_outcomes(passed=1, deselected=1)
    result.stdout.fnmatch_lines(["*::test_short PASSED*"])


def test_no_test_skips_itself():
    """What a test needs stands in its mark, so that --missing decides."""
    own = {"tests/conftest.py", "tests/conformance/test_marks.py"}
    skipping = re.compile(r"pytest\.skip\(|mark\.skip|importorskip")
    found = [
        str(path.relative_to(ROOT))
        for path in sorted(ROOT.glob("tests/**/*.py"))
        if skipping.search(path.read_text(encoding="utf-8"))
    ]
    assert [path for path in found if path not in own] == []


def test_a_turn_runs_its_part_and_nothing_that_runs_each_time(run, pytester: pytest.Pytester):
    always = pytester.path / "tests" / "interop" / "conversations" / "test_always.py"
    always.parent.mkdir(parents=True)
    always.write_text("import pytest\npytestmark = pytest.mark.long\ndef test_always(): pass\n")
    text = "@pytest.mark.long(seconds=200)\n@pytest.mark.parametrize('n', range(20))\ndef test_it(n): pass"
    ran: list[str] = []
    for number in range(PARTS, 2 * PARTS):
        result = run(text, f"--turn={number}", "--import-mode=importlib", "-m", "long", "-v")
        ran += [line.split()[0] for line in result.outlines if " PASSED" in line]
    assert sorted(ran) == sorted(f"{ran[0].partition('[')[0]}[{number}]" for number in range(20))


def test_several_processes_share_the_files_and_leave_rooms_whole(run, pytester: pytest.Pytester):
    """A mark that is wrong fails its test there."""
    where = "import os\ndef test_it(): print('run by', os.environ['PYTEST_XDIST_WORKER'], __name__)"
    for name in ("spark/test_a", "qm/test_c", "spark/test_b"):
        file = pytester.path / "tests" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(where)
    text = '@pytest.mark.rule("QB-999")\ndef test_wrong(): pass\n'
    result = run(text, "--numprocesses=2", "--dist=loadfile", "--import-mode=importlib", "-rP")
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*test_wrong: no rule 'QB-999' in docs/conformance*"])
    ran = dict(reversed(line.split()[-2:]) for line in result.outlines if line.startswith("run by"))
    assert len(ran) == 3
    assert ran["tests.spark.test_a"] == ran["tests.spark.test_b"]


def test_long_tests_that_do_not_fit_into_the_budget_are_skipped_by_name(run):
    result = run(
        "@pytest.mark.long(seconds=1)\ndef test_short(): pass\n"
        "@pytest.mark.long(seconds=10_000_000)\ndef test_too_long(): pass\n"
        "def test_unmarked(): pass",
        "--budget=1000000",
        "-rs",
    )
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["*takes about 10000000 s, more than is left*"])


@pytest.fixture
def still_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """time.monotonic() of the run returns its own attribute `now`, which tests change."""

    class Clock:
        now = 0.0

        def __call__(self) -> float:
            return self.now

    monkeypatch.setattr(time, "monotonic", Clock())


@pytest.mark.usefixtures("still_clock")
def test_a_slow_machine_is_believed_for_the_rest_of_the_run(run):
    """A test that took twice its time lets the next ones be expected to take twice theirs."""
    result = run(
        "import time\n"
        "@pytest.mark.long(seconds=100)\ndef test_slow(): time.monotonic.now += 200\n"
        "@pytest.mark.long(seconds=100)\ndef test_next(): pass\n"
        "@pytest.mark.long(seconds=60)\ndef test_last(): pass",
        "--budget=350",
        "-rs",
    )
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["*takes about 200 s, more than is left*"])


def test_a_machine_that_is_known_to_be_slow_is_believed_from_the_beginning(run):
    text = "@pytest.mark.long(seconds=400_000)\ndef test_it(): pass"
    run(text, "--budget=1000000", "--pace=2").assert_outcomes(passed=1)
    result = run(text, "--budget=1000000", "--pace=3", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*takes about 1200000 s, more than is left*"])


@pytest.mark.usefixtures("still_clock")
def test_what_runs_when_the_time_is_over_is_stopped_and_named(run):
    """What it has opened is closed, and the next tests are left out."""
    result = run(
        "import signal, time\n"
        "@pytest.fixture\n"
        "def late():\n    time.monotonic.now += 400\n    yield\n    print('closed')\n"
        "@pytest.mark.long(seconds=0)\ndef test_endless(late): signal.pause()\n"
        "@pytest.mark.long(seconds=1)\ndef test_next(): pass\n",
        "--budget=350",
        "-s",
    )
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(
        [
            "*closed*",
            "*::test_endless: stopped after 0 s: the 350 s for this run are over",
            "*::test_next: takes*",
        ]
    )


def test_without_a_budget_every_long_test_runs(run):
    run("@pytest.mark.long(seconds=10_000_000)\ndef test_it(): pass").assert_outcomes(passed=1)
