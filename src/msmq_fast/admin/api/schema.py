"""JSON Schemas of the management API: made from the resources of the protocol, and checked against values.

The same schema checks a request and appears in the OpenAPI document. Only the keywords that `check` knows are
used: type, enum, properties, required, additionalProperties, items, minimum, maximum, minLength, maxLength,
minItems, maxItems, pattern, default, description, title.
"""

from __future__ import annotations

import binascii
import dataclasses
import re
import types
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final, Union, get_args, get_origin, get_type_hints, is_typeddict

from msmq_fast.admin.api.errors import bad_request
from msmq_fast.protocol.text import quoted

__all__ = [
    "Schema",
    "anything",
    "array",
    "check",
    "choice",
    "decoded",
    "flag",
    "number",
    "of",
    "record",
    "text",
]

Schema = dict[str, Any]
"""A JSON Schema (draft 2020-12, as in OpenAPI 3.1)."""

U32: Final = 2**32 - 1
_LEAST: Final = -(2**63)  # of a number in MessagePack, in which the API asks the queue manager
_MOST: Final = 2**64 - 1
_DEEPEST: Final = 16  # levels of a value whose properties are free
_WORDS: Final = {
    "string": "text",
    "integer": "a whole number",
    "boolean": "true or false",
    "object": "an object",
    "array": "an array",
    "null": "null",
}


def text(
    about: str = "", *, least: int = 0, most: int = 4096, pattern: str = "", default: str | None = None
) -> Schema:
    """Return the schema of a text of `least` to `most` characters. `pattern` must match the whole text."""
    found: Schema = {"type": "string", "minLength": least, "maxLength": most}
    if pattern:
        found["pattern"] = f"^{pattern}$"
    return _described(found, about, default)


def choice(values: tuple[str, ...], about: str = "", *, default: str | None = None) -> Schema:
    """Return the schema of one of several words."""
    return _described({"type": "string", "enum": list(values)}, about, default)


def number(about: str = "", *, least: int = 0, most: int = U32, default: int | None = None) -> Schema:
    """Return the schema of a whole number within bounds."""
    return _described({"type": "integer", "minimum": least, "maximum": most}, about, default)


def flag(about: str = "", *, default: bool | None = None) -> Schema:
    """Return the schema of a truth value."""
    return _described({"type": "boolean"}, about, default)


def array(items: Schema, about: str = "", *, least: int = 0, most: int | None = None) -> Schema:
    """Return the schema of a list of `least` to `most` items."""
    found: Schema = {"type": "array", "items": items}
    if least:
        found["minItems"] = least
    if most is not None:
        found["maxItems"] = most
    return _described(found, about, None)


def record(title: str, properties: Mapping[str, Schema], *required: str, about: str = "") -> Schema:
    """Return the schema of an object with exactly these properties, of which `required` must be present."""
    found: Schema = {
        "title": title,
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
    }
    if required:
        found["required"] = list(required)
    return _described(found, about, None)


def anything(title: str, about: str = "") -> Schema:
    """Return the schema of an object with any properties."""
    return _described({"title": title, "type": "object"}, about, None)


def _described(schema: Schema, about: str, default: Any) -> Schema:
    if about:
        schema["description"] = about
    if default is not None:
        schema["default"] = default
    return schema


def of(kind: Any) -> Schema:
    """Return the schema of a resource, a TypedDict, or a type of one of their fields.

    The fields of a resource that have a value of None are left out of its JSON, so none of them is nullable.
    """
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        named = {item.name: _field(hints[item.name]) for item in dataclasses.fields(kind)}
        return record(kind.__name__, named)
    if is_typeddict(kind):
        hints = get_type_hints(kind)
        named = {name: _field(hint) for name, hint in hints.items()}
        return record(kind.__name__, named, *sorted(kind.__required_keys__))
    return _field(kind)


def _field(hint: Any) -> Schema:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        kinds = [one for one in get_args(hint) if one not in (type(None), bytes)]
        found = _field(kinds[0])
        return found if type(None) not in get_args(hint) else found | {"type": [found["type"], "null"]}
    if origin in (tuple, list):
        return array(_field(get_args(hint)[0]))
    if origin is dict or hint is dict:
        return {"type": "object"}
    if hint is object:
        return {}  # any value
    if hint is bool:
        return {"type": "boolean"}
    if hint is int:
        return {"type": "integer", "minimum": _LEAST, "maximum": _MOST}
    if hint is float:
        return {"type": "number"}
    if hint in (str, bytes):
        return {"type": "string"}
    return of(hint)


def check(schema: Schema, value: Any, where: str) -> Any:
    """Return `value`, which came from outside; objects get the defaults of their missing properties. `where`
    names the value in messages. Raises Refusal (BAD_REQUEST).
    """
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    kind = _kind(value)
    if kinds and kind not in kinds:
        raise bad_request(f"{where} must be {' or '.join(_WORDS[one] for one in kinds)}")
    if "enum" in schema and value not in schema["enum"]:
        raise bad_request(f"{where} must be one of {', '.join(schema['enum'])}")
    match kind:
        case "string":
            _check_text(schema, value, where)
        case "integer":
            _check_range(value, schema.get("minimum", _LEAST), schema.get("maximum", _MOST), where)
        case "array":
            _check_range(len(value), schema.get("minItems"), schema.get("maxItems"), f"the length of {where}")
            items = schema.get("items", {})
            return [check(items, one, f"{where}[{index}]") for index, one in enumerate(value)]
        case "object" if "properties" in schema:
            return _check_object(schema, value, where)
        case "object":
            _check_free(value, where, 0)
    return value


def _check_free(value: Any, where: str, depth: int) -> None:
    """Check that a frame can carry a value with free properties."""
    if depth > _DEEPEST:
        raise bad_request(f"{where} has more than {_DEEPEST} levels")
    match value:
        case dict():
            for name, one in value.items():
                _check_text({}, name, f"a name in {where}")
                _check_free(one, where, depth + 1)
        case list() | tuple():
            for one in value:
                _check_free(one, where, depth + 1)
        case str():
            _check_text({}, value, f"a text in {where}")
        case int():
            _check_range(value, _LEAST, _MOST, f"a number in {where}")


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case dict():
            return "object"
        case None:
            return "null"
    return "number"


def _check_text(schema: Schema, value: str, where: str) -> None:
    _check_range(len(value), schema.get("minLength"), schema.get("maxLength"), f"the length of {where}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise bad_request(f"{where} has half of a surrogate pair, which is not a character") from None
    pattern = schema.get("pattern")
    if pattern is not None and re.search(pattern, value) is None:
        raise bad_request(f"{where} is {quoted(value)}, which does not match {pattern}")


def _check_range(value: int, least: int | None, most: int | None, where: str) -> None:
    if least is not None and value < least:
        raise bad_request(f"{where} must be at least {least}")
    if most is not None and value > most:
        raise bad_request(f"{where} must be at most {most}")


def _check_object(schema: Schema, value: dict[str, Any], where: str) -> dict[str, Any]:
    properties = schema["properties"]
    if schema.get("additionalProperties") is False:
        for name in value:
            if name not in properties:
                raise bad_request(
                    f"{where} has no property {quoted(str(name))}; it has {', '.join(properties)}"
                )
    for name in schema.get("required", ()):
        if name not in value:
            raise bad_request(f"{where} needs the property {name}")
    found = {name: check(properties[name], one, f"{where}.{name}") for name, one in value.items()}
    for name, one in properties.items():
        if name not in found and "default" in one:
            found[name] = one["default"]
    return found


def decoded(encoded: str, name: str) -> bytes:
    """Return the bytes that the property `name` holds in base64. Raises Refusal (BAD_REQUEST)."""
    try:
        return b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise bad_request(f"{name} is not valid base64") from None
