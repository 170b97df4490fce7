"""Pointers: a referent identifier in the flat part, what it points to deferred (C706 14.3.11, 14.3.12)."""

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
    """The attributes of pointers."""

    REF = "ref"
    """Never NULL."""
    UNIQUE = "unique"
    """Possibly NULL."""
    FULL = "ptr"
    """Possibly NULL; several may point to the same value, which is sent once."""


class Pointer(Scalar):
    """A pointer: None, or what it points to.

    `counted_by` is the name of the field that dictates how many elements the target has: if that is not 0,
    NULL is refused (MS-RPCE 3.1.1.5.3.3.1.2).
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
        """`resolve` gives the codec of what it points to. Types are recursive through pointers: `link`
        calls it when all that the pointer may be part of has been compiled.
        """
        super().__init__(syntax, syntax.pointer_code, syntax.pointer)
        self._kind = kind
        self._resolve = resolve
        self._counted_by = counted_by

    def link(self) -> None:
        """Find the target. Call once, before the first use."""
        self._target = self._resolve()

    def lower(self, writer: Writer, value: Any) -> int:
        if value is None:
            if self._kind is PointerKind.REF:
                raise ValueError("NULL in a reference pointer")
            return 0
        return writer.next_referent()

    def read_deferred(self, reader: Reader, value: int, scope: Any) -> Any:
        if value == 0:
            if self._kind is PointerKind.REF:
                raise bad_stub("NULL in a reference pointer")
            if self._counted_by is not None and getattr(scope, self._counted_by):
                raise bad_stub("NULL pointer for an array with elements")
            return None
        if not reader.nesting:
            raise bad_stub("pointers are nested too deeply")
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
            raise ValueError(f"NULL for an array, but {self._counted_by} is not 0")
