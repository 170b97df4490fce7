"""Any file and any environment is a configuration or a list of mistakes, never another exception."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.config.effective import effective
from msmq_fast.config.loading import load, variable
from msmq_fast.config.mistakes import ConfigError, Mistake
from msmq_fast.config.renamed import RENAMED
from msmq_fast.config.sections import LISTS, SECTIONS, keys_of
from msmq_fast.config.toml_text import toml_text

KEYS = [f"{name}.{key}" for name, section in SECTIONS.items() for key in keys_of(section)] + list(RENAMED)
LISTED = [f"{name}.{key}" for name, table in LISTS.items() for key in keys_of(table)]
WORDS = (
    "auto",
    "off",
    "unlimited",
    "0x10",
    "1e9",
    "64 MiB",
    "-1",
    "10.0.0.0/8",
    "http://a/*",
    "*",
    "{",
    "\\\\",
)
TEXTS = st.sampled_from(WORDS) | st.text(max_size=40)
SCALARS = TEXTS | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.floats()
VALUES = SCALARS | st.lists(SCALARS, max_size=4)


def loaded(text: str, environment: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "msmq.toml"
        file.write_text(text, encoding="utf-8", newline="")
        mistakes: list[Mistake] = []
        try:
            assert effective(load(file, environment, {}))
        except ConfigError as error:
            mistakes = error.mistakes
        assert all("\n" not in str(mistake) for mistake in mistakes)


def dotted(entries: list[tuple[str, object]]) -> str:
    """One table for each key; a name that repeats would not be TOML."""
    seen = dict(entries)
    return "".join(f"{name} = {toml_text(value)}\n" for name, value in seen.items())


@given(st.lists(st.tuples(st.sampled_from(KEYS), VALUES), max_size=8))
def test_any_value_of_any_key(entries: list[tuple[str, object]]) -> None:
    loaded(dotted(entries), {})


@given(st.lists(st.tuples(st.sampled_from(LISTED), VALUES), max_size=4))
def test_any_value_in_a_list_of_tables(entries: list[tuple[str, object]]) -> None:
    loaded(
        "".join(
            f"[[{name.partition('.')[0]}]]\n{dotted([(name.partition('.')[2], value)])}"
            for name, value in entries
        ),
        {},
    )


@given(st.dictionaries(st.sampled_from(KEYS).map(variable), TEXTS, max_size=6))
def test_any_text_in_any_variable(environment: dict[str, str]) -> None:
    loaded("", environment)


@given(st.lists(st.tuples(st.sampled_from([*SECTIONS, *LISTS, "listen", "other"]), VALUES), max_size=4))
def test_any_value_in_place_of_a_section(entries: list[tuple[str, object]]) -> None:
    loaded(dotted(entries), {})


@given(TEXTS, TEXTS)
def test_any_name_of_a_section_or_a_key(section: str, key: str) -> None:
    loaded(f"[{json.dumps(section)}]\n[log]\n{json.dumps(key)} = 1\n[{json.dumps(key)}.x]\n", {key: section})


@given(st.text(alphabet=st.sampled_from("[]{}=.,#\"'\\ \n\tabc019_-"), max_size=120))
def test_any_text_is_toml_or_a_mistake(text: str) -> None:
    loaded(text, {})


def test_a_file_that_is_too_large_is_a_mistake(tmp_path: Path) -> None:
    file = tmp_path / "msmq.toml"
    file.write_bytes(b"#" * ((8 << 20) + 1))
    with pytest.raises(ConfigError, match=r"msmq\.toml: is larger than 8 MiB"):
        load(file, {}, {})
    with pytest.raises(ConfigError, match="/dev/zero: is larger than 8 MiB"):
        load(Path("/dev/zero"), {}, {})
