"""The base class of all NDR codecs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from msmq_fast.rpc.ndr.stream import Reader, Writer

__all__ = ["Codec", "Correlation", "check_length", "correlated"]

Correlation = str | int | None
"""Where a count comes from: the name of a field or parameter, a constant, or None if no value gives it."""


class Codec(ABC):
    """Reads and writes one type in one transfer syntax.

    An encoded value has two parts (C706 14.3.12.3). `read` and `write` handle the flat part. `read_deferred`
    and `write_deferred` handle the targets of its pointers, which follow the flat part of the outermost
    construction. `scope` is the structure, or the record of parameters, whose fields give the counts of
    arrays and select the arms of unions.
    """

    align: int
    least: int
    """The fewest bytes that the flat part takes."""
    points: bool = False
    """Whether the type has a deferred part."""

    @abstractmethod
    def read(self, reader: Reader, scope: Any) -> Any:
        """Reads the flat part. Returns the value; if the value also has a deferred part, returns what
        `read_deferred` needs to complete it. Raises RpcFault.
        """

    def read_deferred(self, reader: Reader, value: Any, scope: Any) -> Any:
        """Reads the deferred part and returns the complete value; `value` is the result of `read`. Raises
        RpcFault.
        """
        return value

    @abstractmethod
    def write(self, writer: Writer, value: Any, scope: Any) -> None:
        """Writes the flat part."""

    def write_deferred(self, writer: Writer, value: Any, scope: Any) -> None:  # noqa: B027 - most have none
        """Writes the deferred part."""

    def read_whole(self, reader: Reader, scope: Any) -> Any:
        """Reads the flat part and the deferred part. Raises RpcFault."""
        value = self.read(reader, scope)
        return self.read_deferred(reader, value, scope) if self.points else value

    def write_whole(self, writer: Writer, value: Any, scope: Any) -> None:
        """Writes the flat part and the deferred part."""
        self.write(writer, value, scope)
        if self.points:
            self.write_deferred(writer, value, scope)


def correlated(correlation: Correlation, scope: Any) -> int | None:
    """Returns the count that `correlation` gives: a number, or the value of the field of `scope` with this
    name.

    Returns None if `correlation` is None, or if the count is in the request and a response is read without
    its request.
    """
    if correlation.__class__ is str:
        count: int | None = getattr(scope, correlation)
        return count
    return correlation  # type: ignore[return-value]


def check_length(correlation: Correlation, scope: Any, length: int) -> None:
    """Raises ValueError if a value to be written contradicts the field that gives its length."""
    expected = correlated(correlation, scope)
    if expected is not None and expected != length:
        raise ValueError(f"{correlation} is {expected}, but the array has {length} elements")
