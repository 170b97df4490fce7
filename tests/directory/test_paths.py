"""Distinguished names."""

from __future__ import annotations

import pytest

from msmq_fast.directory.paths import escaped, name_hash, queue_name, root_of

# Single entries of the table in MS-MQDSSM 2.2.5: the hash of one character below 256 is its entry.
TABLE = {1: 0x82E0FE45, 2: 0x3302DCCD, 14: 0x990C1663}


@pytest.mark.rule("DS-29", "SM-012")
@pytest.mark.parametrize(("index", "value"), TABLE.items())
def test_the_hash_of_one_character_is_its_entry_in_the_table(index: int, value: int) -> None:
    assert name_hash(chr(index)) == f"{value:08x}"


@pytest.mark.rule("DS-29")
def test_long_queue_names_are_cut_and_told_apart() -> None:
    names = [f"{'n' * 70}{number}" for number in range(2)]
    cut = [queue_name(name) for name in names]
    assert [len(name) for name in cut] == [64, 64]
    assert cut[0] != cut[1]
    assert all(name.startswith("n" * 55 + "-") for name in cut)
    assert queue_name("N" * 70)[56:] == queue_name("n" * 70)[56:]  # the hash knows no case
    assert queue_name("n" * 63) == "n" * 63


def test_special_characters_stand_behind_a_backslash() -> None:
    assert escaped("a=b/c#d<e>f") == r"a\=b\/c\#d\<e\>f"


@pytest.mark.rule("DS-29")
def test_the_root() -> None:
    assert root_of("corp.example.net") == "DC=corp,DC=example,DC=net"
    assert root_of("") == "DC=workgroup"
