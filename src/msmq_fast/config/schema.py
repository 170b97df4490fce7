"""The JSON schema of the configuration file, for completion and checks in TOML editors."""

from __future__ import annotations

from dataclasses import MISSING, Field
from typing import Any, Final

from msmq_fast.config.sections import LISTS, NEEDED, SECTIONS, keys_of

__all__ = ["json_schema", "purpose"]

_DRAFT: Final = "http://json-schema.org/draft-07/schema#"  # the one that Taplo and VS Code understand best


def json_schema() -> dict[str, object]:
    """Return the schema as an object that `json.dumps` accepts. Unknown keys are errors, as they are for the
    server.
    """
    properties: dict[str, object] = {}
    for name, section in SECTIONS.items():
        parent = properties
        *groups, last = name.split(".")
        for group in groups:
            # A group of sections such as [listen.*] has no keys of its own.
            inner = parent.setdefault(group, _object({}, f"Sections [{group}.*]"))
            parent = inner["properties"]  # type: ignore[index]
        parent[last] = _object(_keys(section), purpose(section))
    for name, table in LISTS.items():
        item = _object(_keys(table), purpose(table)) | {"required": list(NEEDED[name])}
        properties[name] = {"type": "array", "items": item}
    return {"$schema": _DRAFT, "title": "msmq-fast"} | _object(properties, "Configuration of msmq-fast")


def purpose(section: type) -> str:
    """Return the purpose of a section: the first line of its docstring after "Section [name]: "."""
    first = (section.__doc__ or "").partition("\n")[0]
    return first.partition("]: ")[2].rstrip(".")


def _object(properties: dict[str, object], description: str) -> dict[str, object]:
    return {
        "type": "object",
        "description": description,
        "additionalProperties": False,
        "properties": properties,
    }


def _keys(section: type) -> dict[str, object]:
    return {name: _key(entry) for name, entry in keys_of(section).items()}


def _key(entry: Field[Any]) -> dict[str, object]:
    kind = entry.metadata["kind"]
    assert entry.default is not MISSING  # noqa: S101 - kinds.key gives each key one
    return {**kind.schema, "description": entry.metadata["about"], "default": kind.to_toml(entry.default)}
