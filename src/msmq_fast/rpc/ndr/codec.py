"""The base of all codecs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from msmq_fast.rpc.ndr.stream import Reader, Writer

__all__ = ["Codec", "Correlation", "check_length", "correlated"]

Correlation = str | int | None
"""The source of a count: the name of a field or parameter, a constant, or nothing."""


class Codec(ABC):
    """One type in one syntax.

    Its representation has two parts (C706 14.3.12.3): the flat one (`read`, `write`), and what its pointers
    point to (`read_deferred`, `write_deferred`), which follows when the flat part of the outermost
    construction has ended. `scope` is the structure, or the parameters, whose fields dictate counts and arms.
    """

    align: int
    least: int
    """The fewest bytes that the flat part takes."""
    points: bool = False
    """Whether there is a deferred part."""

    @abstractmethod
    def read(self, reader: Reader, scope: Any) -> Any:
        """The value, as far as the flat part has it. Raises RpcFault."""

    def read_deferred(self, reader: Reader, value: Any, scope: Any) -> Any:
        """The value, now complete, from what `read` returned. Raises RpcFault."""
        return value

    @abstractmethod
    def write(self, writer: Writer, value: Any, scope: Any) -> None:
        """Write the flat part."""

    def write_deferred(self, writer: Writer, value: Any, scope: Any) -> None:  # noqa: B027 - most have none
        """Write what is deferred."""

    def read_whole(self, reader: Reader, scope: Any) -> Any:
        """Both parts."""
        value = self.read(reader, scope)
        return self.read_deferred(reader, value, scope) if self.points else value

    def write_whole(self, writer: Writer, value: Any, scope: Any) -> None:
        """Both parts."""
        self.write(writer, value, scope)
        if self.points:
            self.write_deferred(writer, value, scope)


def correlated(correlation: Correlation, scope: Any) -> int | None:
    """The count that `correlation` dictates; None if it dictates none, or if a response is read without its
    request."""
    if correlation.__class__ is str:
        count: int | None = getattr(scope, correlation)
        return count
    return correlation  # type: ignore[return-value]


def check_length(correlation: Correlation, scope: Any, length: int) -> None:
    """Raise ValueError when a value that is to be written contradicts the field that dictates its length."""
    expected = correlated(correlation, scope)
    if expected is not None and expected != length:
        raise ValueError(f"{correlation} is {expected}, the array has {length} elements")
