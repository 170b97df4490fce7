"""The generated reference: the page, the example and the schema agree with the classes, and can be used."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from msmq_fast.config.loading import load
from msmq_fast.config.schema import json_schema
from msmq_fast.config.sections import LISTS, SECTIONS, Config, keys_of
from msmq_fast.config.toml_text import toml_text
from tools.configuration import DIRECTORY, FILES

pytestmark = pytest.mark.smoke

EXAMPLE = DIRECTORY / "msmq-fast.example.toml"


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_current(name: str) -> None:
    """Write them anew with `python -m tools.configuration --write`."""
    assert (DIRECTORY / name).read_text(encoding="utf-8") == FILES[name]()


def test_every_key_has_one_row_on_the_page() -> None:
    page = (DIRECTORY / "configuration.md").read_text(encoding="utf-8")
    found = {
        name: re.findall(r"^\| `(\w+)`(?: ↻)? \| `.*?` \|", text, re.MULTILINE)
        for name, text in re.findall(r"^## \[+([\w.]+)\]+: .(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    }
    assert found == {name: list(keys_of(section)) for name, section in (SECTIONS | LISTS).items()}


def test_the_example_changes_nothing(tmp_path: Path) -> None:
    from_example, defaults = load(EXAMPLE, {}, {}), load(None, {}, {})
    for name in SECTIONS:
        assert from_example.section(name) == defaults.section(name)


def test_every_default_of_the_example_is_the_default() -> None:
    """Without the # each line is TOML, and its value is what the server has without it."""
    text = re.sub(r"^#(?=\[\[|\w+ = )", "", EXAMPLE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    document = tomllib.loads(text)
    for name, section in SECTIONS.items():
        keys = keys_of(section)
        table = inner(document, name)
        assert table.keys() == keys.keys()
        for key, value in table.items():
            assert keys[key].metadata["kind"].check(value) == keys[key].default, key
    for name, table in LISTS.items():
        assert document[name][0].keys() == keys_of(table).keys()


def test_the_schema_takes_the_defaults_and_knows_every_key() -> None:
    schema = json.loads(json.dumps(json_schema()))
    assert schema["properties"].keys() == {name.partition(".")[0] for name in SECTIONS} | LISTS.keys()
    for name, section in SECTIONS.items():
        described = inner(schema, *(f"properties.{part}" for part in name.split(".")))["properties"]
        assert described.keys() == keys_of(section).keys()
        for key, entry in described.items():
            assert entry["description"]
            assert fits(entry, entry["default"]), (name, key)


def inner(document: Any, *names: str) -> Any:
    """The table of a dotted name, or of several, one in the other."""
    for part in ".".join(names).split("."):
        document = document[part]
    return document


def fits(schema: dict[str, object], value: object) -> bool:
    """Whether a value agrees with the words of JSON schema that ours uses."""
    if "anyOf" in schema:
        return any(fits(one, value) for one in schema["anyOf"])  # type: ignore[attr-defined]
    if "const" in schema:
        return value == schema["const"]
    if "enum" in schema:
        return value in schema["enum"]  # type: ignore[operator]
    if "pattern" in schema:
        return isinstance(value, str) and bool(re.search(str(schema["pattern"]), value))
    types = {"string": str, "boolean": bool, "integer": int, "number": (int, float), "array": list}
    wanted = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return any(isinstance(value, types[one]) for one in wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value", ["", 'a"b', r".\private$\q", "a\nb", "\x7f", "ü'", True, 5, 0.5, ["a", "b"], []]
)
def test_a_value_survives_as_toml(value: object) -> None:
    assert tomllib.loads(f"key = {toml_text(value)}") == {"key": value}


@pytest.mark.parametrize("name", SECTIONS)
def test_a_value_is_read_back_from_its_toml(name: str) -> None:
    section = Config().section(name)
    for key, entry in keys_of(type(section)).items():
        kind, value = entry.metadata["kind"], getattr(section, key)
        assert kind.check(tomllib.loads(f"key = {toml_text(kind.to_toml(value))}")["key"]) == value, key
