"""Creates the classes that hold the values of structures and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, make_dataclass
from typing import TYPE_CHECKING, Any

__all__ = ["Record", "record_class"]


class Record:
    """The values of a structure, or of the parameters of an operation: one attribute for each, named as in
    the IDL.
    """

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
    """Returns a new class of records. `defaults` has its fields and their default values. Its
    constructor takes values in order or by name.
    """
    # A data class, because its generated __init__ is the fastest way to create instances. Setting the
    # docstring saves dataclasses the time to generate one.
    fields = [(key, Any, field(default=value)) for key, value in defaults.items()]
    text = {"__doc__": f"{name}: {', '.join(defaults)}"}
    return make_dataclass(name, fields, bases=(Record,), namespace=text, slots=True, repr=False, eq=False)
