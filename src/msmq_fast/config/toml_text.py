"""Writes values as TOML."""

from __future__ import annotations

import json

__all__ = ["toml_text"]


def toml_text(value: object) -> str:
    """Return a text, number, bool, or list of these in TOML syntax."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        if "\\" in value and value.isprintable() and "'" not in value:
            return f"'{value}'"
        # A basic string of TOML has the escapes of JSON; JSON leaves only DEL as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_text, value))}]"
    if isinstance(value, int | float):
        return f"{value:.12g}" if isinstance(value, float) else str(value)
    raise TypeError(f"a {type(value).__name__} cannot be written as TOML")
