"""Checks the payload arrays of requests before anything is done with them."""

from __future__ import annotations

from typing import Any

from msmq_fast.protocol.errors import InvalidParameter
from msmq_fast.protocol.frames import unpack_payload

_WORDS = {
    str: "text",
    bytes: "binary",
    int: "a whole number from 0",
    bool: "a bool",
    dict: "a map",
    list: "an array",
    type(None): "nil",
}


class Field:
    """One position of a payload: its name, its types, and its default if it is optional."""

    __slots__ = ("default", "maximum", "name", "required", "types")

    def __init__(self, name: str, *types: type, maximum: int = 0xFFFF_FFFF, default: Any = ...) -> None:
        self.name = name
        self.types = types
        self.maximum = maximum
        self.required = default is ...
        self.default = default

    def check(self, value: Any) -> Any:
        """Return `value`. Raises InvalidParameter if it has another type, or is a number out of range."""
        # bool is a subclass of int, hence the exact comparison
        if type(value) in self.types and (type(value) is not int or 0 <= value <= self.maximum):
            return value
        words = " or ".join(_WORDS[kind] for kind in self.types)
        raise InvalidParameter(
            f"{self.name} must be {words}, at most {self.maximum}"
            if int in self.types
            else f"{self.name} must be {words}"
        )


def arguments(payload: memoryview, *fields: Field) -> list[Any]:
    """Return the checked values of a payload array.

    Raises InvalidParameter, and WireError for bytes that are not a msgpack value.
    """
    values = unpack_payload(payload)
    if not isinstance(values, list) or len(values) > len(fields):
        raise InvalidParameter(f"the payload must be an array of at most {len(fields)} values")
    result = [field.check(value) for field, value in zip(fields, values, strict=False)]
    for field in fields[len(values) :]:
        if field.required:
            raise InvalidParameter(f"{field.name} is missing")
        result.append(field.default)
    return result
