"""Every rule number in the code and the docs resolves: a reader who meets one finds its text.

`make lint` checks src/ and docs/ (tools/prose.py); here are the rest, and the check itself.
"""

from pathlib import Path

from tools.conformance import load_catalogue
from tools.prose import LISTED, published, unresolved

ROOT = Path(__file__).resolve().parents[2]


def test_every_rule_number_of_the_benchmarks_resolves() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "bench").rglob("*.py"))}
    assert len(texts) > 10
    assert {path: missing for path in texts if (missing := unresolved(texts[path], published()))} == {}


def test_the_families_are_those_of_the_catalogue() -> None:
    listed = {rule.id.partition("-")[0] for document in load_catalogue() for rule in document.rules}
    assert listed == LISTED


def test_a_number_without_text_is_found() -> None:
    known = frozenset({"A-17", "A-18", "QB-001"})
    assert unresolved("A-17 … A-19, QB-001 and QB-1, a SID S-1-5-7, UTF-8, DA-999", known) == {
        "A-19",
        "QB-1",
        "DA-999",
    }
