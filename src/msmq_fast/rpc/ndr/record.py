"""Values of structures and parameters: a class with a slot for each, made from its declaration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, make_dataclass
from typing import TYPE_CHECKING, Any

__all__ = ["Record", "record_class"]


class Record:
    """A structure, or the parameters of an operation: an attribute for each, named as in the IDL."""

    __slots__: tuple[str, ...] = ()

    if TYPE_CHECKING:

        def __init__(self, *values: Any, **named: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    __hash__ = None  # type: ignore[assignment] # records change

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"


def record_class(name: str, defaults: Mapping[str, Any]) -> type[Record]:
    """A class of records: its fields, and what they are unless given. Takes values in order or by name."""
    # a data class, since nothing makes instances faster than its __init__; the docstring saves dataclasses
    # the time to make one
    fields = [(key, Any, field(default=value)) for key, value in defaults.items()]
    text = {"__doc__": f"{name}: {', '.join(defaults)}"}
    return make_dataclass(name, fields, bases=(Record,), namespace=text, slots=True, repr=False, eq=False)
