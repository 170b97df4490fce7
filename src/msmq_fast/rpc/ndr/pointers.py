"""Pointers: the flat part has a referent identifier, the target is deferred (C706 14.3.11, 14.3.12)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from msmq_fast.rpc.ndr.codec import Codec
from msmq_fast.rpc.ndr.scalars import Scalar
from msmq_fast.rpc.ndr.stream import Reader, Writer, bad_stub
from msmq_fast.rpc.ndr.syntax import Syntax

__all__ = ["Pointer", "PointerKind"]


class PointerKind(Enum):
    """The pointer attributes of the IDL."""

    REF = "ref"
    """Never NULL."""
    UNIQUE = "unique"
    """Possibly NULL."""
    FULL = "ptr"
    """Possibly NULL; several pointers may have the same target, which is sent once."""


class Pointer(Scalar):
    """A pointer. Its value is None for a NULL pointer, otherwise the value of its target.

    `counted_by` is the name of the field that gives the number of elements in the target. If that number is
    not 0, NULL is rejected (MS-RPCE 3.1.1.5.3.3.1.2).
    """

    converts = True
    points = True

    _target: Codec

    def __init__(
        self,
        syntax: Syntax,
        kind: PointerKind,
        resolve: Callable[[], Codec],
        counted_by: str | None = None,
    ) -> None:
        """`resolve` returns the codec of the target.

        A type can contain itself through a pointer. Therefore `link` calls `resolve` only when all types that
        may contain the pointer have been compiled.
        """
        super().__init__(syntax, syntax.pointer_code, syntax.pointer)
        self._kind = kind
        self._resolve = resolve
        self._counted_by = counted_by

    def link(self) -> None:
        """Looks up the codec of the target. Call once, before the first use."""
        self._target = self._resolve()

    def lower(self, writer: Writer, value: Any) -> int:
        if value is None:
            if self._kind is PointerKind.REF:
                raise ValueError("a reference pointer is NULL")
            return 0
        return writer.next_referent()

    def read_deferred(self, reader: Reader, value: int, scope: Any) -> Any:
        if value == 0:
            if self._kind is PointerKind.REF:
                raise bad_stub("a reference pointer is NULL")
            if self._counted_by is not None and getattr(scope, self._counted_by):
                raise bad_stub("the pointer to an array is NULL, although its count is not 0")
            return None
        if not reader.nesting:
            raise bad_stub("the pointers are nested too deeply")
        reader.nesting -= 1
        if self._kind is PointerKind.FULL:
            identity = (value, self._target)
            if identity not in reader.referents:
                reader.referents[identity] = self._target.read_whole(reader, scope)
            target = reader.referents[identity]
        else:
            target = self._target.read_whole(reader, scope)
        reader.nesting += 1
        return target

    def write_deferred(self, writer: Writer, value: Any, scope: Any) -> None:
        if value is not None:
            self._target.write_whole(writer, value, scope)
        elif self._counted_by is not None and getattr(scope, self._counted_by):
            raise ValueError(f"the array is NULL, but {self._counted_by} is not 0")
