"""`make conformance`: what it reads, what it prints, and when it fails."""

from pathlib import Path

import pytest

from tools import conformance
from tools.conformance import CatalogueError, collect_marks, load_catalogue

BUILT = '{ id = "QB-001", section = "2.1.1", status = "built", line = "A session is one TCP stream." }'
UNPROVEN = '{ id = "QB-002", section = "2.1.1", status = "built", line = "The acceptor listens on 1801." }'
LATER = (
    '{ id = "QB-003", section = "2", status = "not-built", reason = "later: transactions", line = "Ack." }'
)
PARTLY = LATER.replace("QB-003", "QB-004").replace("not-built", "partly")
PROOF = '@pytest.mark.rule("{}")\ndef test_it():\n    pass\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Make a project of one document with the given rules, and of one test file with the given text."""

    def make(*rules: str, tests: str = "", title: str = 'title = "Document"') -> Path:
        (tmp_path / "catalogue").mkdir(exist_ok=True)
        (tmp_path / "tests").mkdir(exist_ok=True)
        (tmp_path / "catalogue" / "document.toml").write_text(f"{title}\nrule = [{', '.join(rules)}]\n")
        (tmp_path / "tests" / "test_one.py").write_text(tests)
        monkeypatch.setattr(conformance, "load_catalogue", lambda: load_catalogue(tmp_path / "catalogue"))
        monkeypatch.setattr(conformance, "collect_marks", lambda: collect_marks(tmp_path / "tests"))
        return tmp_path

    return make


def test_counts_proven_unproven_and_not_built(project, capsys):
    project(BUILT, UNPROVEN, PARTLY, LATER, tests=PROOF.format("QB-001") + PROOF.format("QB-004"))
    assert conformance.main([]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["Document"],
        ["1", "built", "and", "proven", "by", "a", "test"],
        ["1", "built,", "not", "proven", "by", "a", "test"],
        ["1", "built", "in", "part"],
        ["1", "later:", "transactions"],
        ["1", "not", "built"],
        ["1", "later:", "transactions"],
    ]


def test_details_name_the_rules_that_are_not_proven(project, capsys):
    project(BUILT, UNPROVEN, LATER, tests=PROOF.format("QB-001"))
    assert conformance.main(["--details"]) == 0
    printed = capsys.readouterr().out
    assert "QB-002  2.1.1  The acceptor listens on 1801." in printed
    assert "QB-003  2  Ack." in printed
    assert "QB-001" not in printed


@pytest.mark.parametrize(
    "long",
    [
        "pytestmark = pytest.mark.long(seconds=9)\n{}",
        'pytestmark = [pytest.mark.long, pytest.mark.needs("tshark")]\n{}',
        "@pytest.mark.long(seconds=9)\n{}",
    ],
)
def test_rules_that_only_long_tests_prove_are_named(project, capsys, long):
    short = '@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.long)])\n'
    project(BUILT, UNPROVEN, tests=long.format(PROOF.format("QB-001") + short + PROOF.format("QB-002")))
    assert conformance.main(["--details"]) == 0
    printed = capsys.readouterr().out.splitlines()
    named = 2 if "pytestmark" in long else 1
    assert printed[2].split() == [f"{named}", "of", "them", "in", "make", "test-long", "only"]
    assert [line.split()[0] for line in printed[3 : 3 + named]] == ["QB-001", "QB-002"][:named]


@pytest.mark.parametrize(
    ("rules", "mark", "complaint"),
    [
        ([BUILT], "QB-999", "test_one.py:1: no rule QB-999 in the catalogue"),
        ([LATER], "QB-003", "test_one.py:1: proves QB-003, which the catalogue says is not built"),
        ([BUILT, BUILT], "QB-001", "QB-001: listed 2 times"),
    ],
)
def test_fails_where_marks_and_catalogue_contradict_each_other(project, capsys, rules, mark, complaint):
    project(*rules, tests=PROOF.format(mark))
    assert conformance.main([]) == 1
    assert complaint in capsys.readouterr().err


def test_several_ids_in_a_mark_and_marks_on_classes_and_modules_count(tmp_path):
    (tmp_path / "test_one.py").write_text(
        'pytestmark = pytest.mark.rule("QB-001")\n'
        '@pytest.mark.rule("QB-002", "QB-003")\nclass TestIt:\n    pass\n'
        'CASES = [pytest.param(1, marks=pytest.mark.rule("QB-004"))]\n'
    )
    assert [mark.rule for mark in collect_marks(tmp_path)] == ["QB-001", "QB-002", "QB-003", "QB-004"]


def test_a_computed_id_is_refused(project, capsys):
    project(BUILT, tests="@pytest.mark.rule(RULE)\ndef test_it():\n    pass\n")
    assert conformance.main([]) == 1
    assert "written out as strings" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        (BUILT.replace("QB-001", "AMB-01-x"), "not an id"),
        (BUILT.replace('"built"', '"done"'), "status is one of"),
        (BUILT.replace('"built"', '"not-built"'), "a reason stands with"),
        (LATER.replace('"not-built"', '"built"'), "a reason stands with"),
        (BUILT.replace("one TCP stream", "x" * 160), "at most 160 characters"),
        (BUILT.replace("section", "chapter"), "unknown key chapter"),
        (BUILT.replace('"2.1.1"', "2.1"), "every value is a string"),
    ],
)
def test_a_malformed_entry_is_named(project, entry, complaint):
    folder = project(entry) / "catalogue"
    with pytest.raises(CatalogueError, match=complaint) as caught:
        load_catalogue(folder)
    assert "document.toml: rule 1" in str(caught.value)


@pytest.mark.parametrize("title", ["", "title = 1", "title = "])
def test_a_document_without_a_title_is_refused(project, title):
    folder = project(BUILT, title=title) / "catalogue"
    with pytest.raises(CatalogueError, match=r"document\.toml"):
        load_catalogue(folder)
