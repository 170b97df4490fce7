"""The marks that tests/conftest.py gives a meaning: `rule`, `needs`, and `long` under a time budget."""

import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(pytester: pytest.Pytester):
    """Run pytest on one test file, under the project's conftest and settings."""
    pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    pytester.makeini("[pytest]\nmarkers = rule(*ids)\n    long\n    needs(*programs)\n")

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


def test_a_missing_program_fails_and_does_not_skip(run):
    result = run('@pytest.mark.needs("sh", "no-such-program")\ndef test_it(): pass')
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*not installed: no-such-program*"])


def test_a_missing_module_fails_and_does_not_skip(run):
    result = run('@pytest.mark.needs(modules=["json", "no_such_module"])\ndef test_it(): pass')
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*not installed: Python module no_such_module*"])


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


def test_a_slow_machine_is_believed_for_the_rest_of_the_run(run, monkeypatch: pytest.MonkeyPatch):
    """A test that took twice its time lets the next ones be expected to take twice theirs."""

    class Clock:
        now = 0.0

        def __call__(self) -> float:
            return self.now

    monkeypatch.setattr(time, "monotonic", Clock())
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


def test_without_a_budget_every_long_test_runs(run):
    run("@pytest.mark.long(seconds=10_000_000)\ndef test_it(): pass").assert_outcomes(passed=1)
