"""The catalogue in docs/conformance: complete, in our own words, in agreement with the marks of the tests."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.conformance import collect_marks, contradictions, load_catalogue

pytestmark = pytest.mark.smoke

IDS = Path(__file__).with_name("rule_ids.txt")


def expected_ids() -> Iterator[str]:
    for line in IDS.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        prefix, width, *ranges = line.split()
        for part in ranges:
            first, _, last = part.partition("-")
            for number in range(int(first), int(last or first) + 1):
                yield f"{prefix}{number:0{width}}"


def catalogue_rules():
    return [rule for document in load_catalogue() for rule in document.rules]


def test_every_rule_of_the_inventories_is_listed_exactly_once():
    listed = Counter(rule.id for rule in catalogue_rules())
    assert listed == Counter(expected_ids())
    assert listed.total() == 1582


def test_lines_speak_of_the_documents_only():
    internal = re.compile(r"\bseed|AMB-\d|\bDA-\d|TOY-\d|\[[DXE]\]|work order|<\d+>", re.IGNORECASE)
    assert [rule.id for rule in catalogue_rules() if internal.search(f"{rule.section} {rule.line}")] == []


def test_marks_and_catalogue_agree():
    assert contradictions(load_catalogue(), collect_marks()) == []
