"""Values of structures and parameters: a class with slots for each, made from its declaration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, make_dataclass
from typing import TYPE_CHECKING, Any

__all__ = ["Record", "record_class"]


class Record:
    """A structure, or the parameters of an operation: an attribute for each, named as in the IDL."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __init__(self, *values: Any, **named: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...


def record_class(name: str, defaults: Mapping[str, Any]) -> type[Record]:
    """A class of records: its fields and what they are unless given. Takes values in order or by name."""
    fields = [(key, Any, field(default=value)) for key, value in defaults.items()]
    return make_dataclass(name, fields, bases=(Record,), slots=True)
