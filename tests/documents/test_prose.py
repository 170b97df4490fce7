"""The check of the language finds planted sentences, leaves good ones alone, and lets no count go up."""

from pathlib import Path

import pytest

from tools import prose

pytestmark = pytest.mark.smoke

KNOWN = frozenset({"QB-199"})


def patterns(text: str, *, markdown: bool = False) -> list[str]:
    return [pattern for _, pattern, _ in prose.findings(text, markdown=markdown, known=KNOWN)]


@pytest.mark.parametrize(
    ("sentence", "pattern"),
    [
        ("Nobody reads the queue.", "pronoun"),
        ("the peer who dialled", "pronoun"),
        ("Whoever asks gets an answer", "pronoun"),
        ("somebody has it open, he closes it", "pronoun"),
        ("a writer is forgotten after so long", "duration"),
        ("at most once in so long", "duration"),
        ("'x' is no path name", "is-no"),
        ("as QB-999 says", "rule"),
    ],
)
def test_planted_sentences_are_found(sentence: str, pattern: str) -> None:
    assert pattern in patterns(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "The caller reads the queue; its session is no longer open.",
        "whose messages the heads hold",
        "QB-199: the session closes after 30 s.",
    ],
)
def test_good_sentences_pass(sentence: str) -> None:
    assert not patterns(sentence)


def test_wide_lines_are_found_in_text_only() -> None:
    wide = "word " * 30
    link = f"{'word ' * 20}[words](https://example.org/{'a' * 80})"
    assert patterns(wide, markdown=True) == ["width"]
    assert not patterns(wide)
    assert not patterns(f"| {wide} |", markdown=True)
    assert not patterns(f"```\n{wide}\n```\n", markdown=True)
    assert not patterns(link, markdown=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("# nobody\n", encoding="utf-8")
    (tmp_path / "prose.txt").write_text("src/a.py pronoun 1\n", encoding="utf-8")
    return tmp_path


def run(tree: Path, *arguments: str) -> int:
    return prose.main([*arguments], tree, tree / "prose.txt")


def test_a_count_may_go_down_and_not_up(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tree) == 0
    (tree / "src" / "a.py").write_text("# nobody\n# is no name\n", encoding="utf-8")
    assert run(tree) == 1
    assert "src/a.py:2: is-no: is no" in capsys.readouterr().out
    assert run(tree, "--write") == 1
    (tree / "src" / "a.py").write_text("# the caller\n", encoding="utf-8")
    assert run(tree) == 0
    assert run(tree, "--write") == 0
    assert not (tree / "prose.txt").read_text(encoding="utf-8")


def test_a_file_may_move_but_its_counts_serve_once(tree: Path) -> None:
    (tree / "src" / "a.py").rename(tree / "src" / "b.py")
    assert run(tree) == 0
    (tree / "src" / "c.py").write_text("# nobody\n", encoding="utf-8")
    assert run(tree) == 1
    assert run(tree, "--write") == 1
    (tree / "src" / "c.py").unlink()
    assert run(tree, "--write") == 0
    assert (tree / "prose.txt").read_text(encoding="utf-8") == "src/b.py pronoun 1\n"
