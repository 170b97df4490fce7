"""Unions (C706 14.3.8, MS-RPCE 2.2.5.3.4.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msmq_fast.rpc.ndr.codec import Codec
from msmq_fast.rpc.ndr.scalars import Scalar
from msmq_fast.rpc.ndr.stream import Reader, Writer, bad_stub
from msmq_fast.rpc.ndr.syntax import Syntax

__all__ = ["Union"]


class Union(Codec):
    """A non-encapsulated union. The field `switch` of the scope selects its arm; the value of the union is
    that of the arm.

    The discriminant is sent twice, as that field and in front of the arm, and both must agree (MS-RPCE
    3.1.1.5.3.2.1.11). Without ms_union, an arm has its own alignment in NDR. In NDR64 the union and the arm
    have the largest alignment of all arms.
    """

    def __init__(self, syntax: Syntax, switch: str, tag: Scalar, arms: Mapping[int, Codec | None]) -> None:
        """`arms` maps discriminants to codecs. An arm that is None has no members, and nothing is sent for
        it.
        """
        codecs = [arm for arm in arms.values() if arm is not None]
        self.align = max(tag.align, *(arm.align for arm in codecs))
        self.least = tag.least
        self.points = any(arm.points for arm in codecs)
        self._mask = self.align - 1 if syntax.wide else 0
        self._switch = switch
        self._tag = tag
        self._arms = dict(arms)

    def read(self, reader: Reader, scope: Any) -> Any:
        reader.claim(self._mask, 0)
        tag = self._tag.read(reader, scope)
        if tag != getattr(scope, self._switch):
            raise bad_stub("the discriminant of a union differs from switch_is")
        if tag not in self._arms:
            raise bad_stub("the discriminant selects no arm of the union")
        arm = self._arms[tag]
        if arm is None:
            return None
        reader.claim(self._mask, 0)
        return arm.read(reader, scope)

    def read_deferred(self, reader: Reader, value: Any, scope: Any) -> Any:
        arm = self._arms[getattr(scope, self._switch)]
        return value if arm is None else arm.read_deferred(reader, value, scope)

    def write(self, writer: Writer, value: Any, scope: Any) -> None:
        tag = getattr(scope, self._switch)
        if tag not in self._arms:
            raise ValueError(f"the union has no arm for {self._switch} {tag}")
        writer.align(self._mask)
        self._tag.write(writer, tag, scope)
        arm = self._arms[tag]
        if arm is not None:
            writer.align(self._mask)
            arm.write(writer, value, scope)

    def write_deferred(self, writer: Writer, value: Any, scope: Any) -> None:
        arm = self._arms[getattr(scope, self._switch)]
        if arm is not None:
            arm.write_deferred(writer, value, scope)
