"""Compiles the declarations of types into codecs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from msmq_fast.rpc.ndr.arrays import ByteArray, ElementArray, Shape, WideArray
from msmq_fast.rpc.ndr.codec import Codec
from msmq_fast.rpc.ndr.pointers import Pointer
from msmq_fast.rpc.ndr.scalars import Guid, Handle, Octets, Scalar
from msmq_fast.rpc.ndr.strings import String
from msmq_fast.rpc.ndr.structs import Parameters, structure
from msmq_fast.rpc.ndr.syntax import Syntax
from msmq_fast.rpc.ndr.types import (
    ArrayOf,
    ArrayShape,
    Bytes,
    ContextHandle,
    Enum16,
    FixedBytes,
    Integer,
    NdrType,
    Ptr,
    Range,
    StringType,
    Struct,
    UnionOf,
    Uuid,
    WChars,
)
from msmq_fast.rpc.ndr.unions import Union

__all__ = ["Compiler"]

_SIZES = {"b": 1, "B": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "Q": 8}


class Compiler:
    """Compiles the codecs for one transfer syntax. All uses of a type share one codec."""

    def __init__(self, syntax: Syntax) -> None:
        self.syntax = syntax
        self._codecs: dict[NdrType, Codec] = {}
        self._pointers: list[Pointer] = []

    def parameters(self, members: Mapping[str, NdrType]) -> Parameters:
        """Returns the codec of the parameters `members`. Raises TypeError if a type cannot be encoded."""
        compiled = [(name, self._codec(kind)) for name, kind in members.items()]
        while self._pointers:
            self._pointers.pop().link()
        return Parameters(self.syntax, compiled)

    def _codec(self, kind: NdrType) -> Codec:
        codec = self._codecs.get(kind)
        if codec is None:
            codec = self._codecs[kind] = self._new(kind)
        return codec

    def _new(self, kind: NdrType) -> Codec:
        syntax = self.syntax
        match kind:
            case Integer(code):
                return Scalar(syntax, code, _SIZES[code])
            case Range(base, low, high):
                return Scalar(syntax, base.code, _SIZES[base.code], low, high)
            case Enum16():
                return Scalar(syntax, "I", 4) if syntax.wide else Scalar(syntax, "H", 2)
            case Uuid():
                return Guid(syntax)
            case ContextHandle():
                return Handle(syntax)
            case FixedBytes(size):
                return Octets(syntax, size)
            case Bytes(shape):
                return ByteArray(self._shape(shape), shape.most)
            case WChars(shape):
                return WideArray(syntax, self._shape(shape), shape.most)
            case StringType(wide, shape):
                return String(syntax, self._shape(shape), wide=wide, most=shape.most)
            case ArrayOf(element, shape):
                return ElementArray(self._shape(shape), self._codec(element), shape.most)
            case Ptr():
                return self._pointer(kind)
            case UnionOf(switch, tag, arms):
                tag_codec = self._codec(tag)
                if not isinstance(tag_codec, Scalar):
                    raise TypeError(f"a value of type {tag} cannot select the arm of a union")
                codecs = {value: None if arm is None else self._codec(arm) for value, arm in arms.items()}
                return Union(syntax, switch, tag_codec, codecs)
            case Struct():
                return structure(
                    syntax, kind.record, [(name, self._codec(field)) for name, field in kind.fields.items()]
                )
        raise TypeError(f"{kind} cannot be encoded: the type has no representation on the wire")

    def _pointer(self, kind: Ptr) -> Pointer:
        target = kind.target if isinstance(kind.target, NdrType) else kind.target()
        counted_by = None
        if isinstance(target, Bytes | WChars | ArrayOf | StringType) and isinstance(target.shape.size, str):
            counted_by = target.shape.size
        pointer = Pointer(self.syntax, kind.kind, partial(self._codec, target), counted_by)
        self._pointers.append(pointer)
        return pointer

    def _shape(self, shape: ArrayShape) -> Shape:
        return Shape(
            self.syntax,
            conformant=shape.conformant,
            varying=shape.varying,
            size=shape.size,
            length=shape.length,
        )
