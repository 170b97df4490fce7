"""Values for the declared types, made at random and consistent: what dictates a count or an arm fits."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any
from uuid import UUID

from msmq_fast.rpc.idl.epm import EPM
from msmq_fast.rpc.idl.mgmt import MGMT
from msmq_fast.rpc.idl.qm2qm import QM2QM
from msmq_fast.rpc.idl.qmcomm import QMCOMM
from msmq_fast.rpc.idl.qmcomm2 import QMCOMM2
from msmq_fast.rpc.idl.qmmgmt import QMMGMT
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from msmq_fast.rpc.ndr.operations import Op
from msmq_fast.rpc.ndr.record import Record
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

TABLES = (QM2QM, QMCOMM, QMCOMM2, REMOTE_READ, QMMGMT, EPM, MGMT)
OPERATIONS = [(table.name, op) for table in TABLES for op in table.ops if not op.obsolete]
_DEPTH = 4
_VECTOR_OF_VARIANTS = 0x100C
_TEXTS = ("", "a", "OS:host\\private$\\q", "ümläut", "\U0001f600", "x" * 40)


class Values:
    """Values from a generator of random numbers."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._depth = 0

    def arguments(self, op: Op) -> Record:
        """A request."""
        return op.Args(**self._fields(op.inputs, {}))

    def results(self, op: Op, args: Record) -> Record:
        """A response to it."""
        given = {name: getattr(args, name) for name in op.inputs}
        return op.Results(**(given | self._fields(op.outputs, given)))

    def value(self, kind: NdrType, scope: Mapping[str, Any]) -> Any:
        """A value; `scope` has the fields that dictate something."""
        random = self._random
        match kind:
            case Integer(code):
                return self._integer(code)
            case Range(_, low, high):
                return random.choice((low, random.randint(low, min(high, low + 40))))
            case Enum16():
                return random.randint(0, 5)
            case Uuid():
                return UUID(int=random.getrandbits(128))
            case ContextHandle():
                return random.choice((None, random.randbytes(20)))
            case FixedBytes(size):
                return random.randbytes(size)
            case Bytes(shape):
                return random.randbytes(self._length(shape, scope))
            case WChars(shape):
                return random.randbytes(2 * self._length(shape, scope))
            case ArrayOf(element, shape):
                return [self.value(element, scope) for _ in range(self._length(shape, scope))]
            case StringType(wide, shape):
                return self._text(wide, shape, scope)
            case Ptr():
                return self._pointer(kind, scope)
            case UnionOf(switch, _, arms):
                arm = arms[scope[switch]]
                return None if arm is None else self.value(arm, scope)
            case Struct():
                return kind(**self._fields(kind.fields, {}))
        raise TypeError(kind)

    def _fields(self, fields: Mapping[str, NdrType], given: Mapping[str, Any]) -> dict[str, Any]:
        """Values of all fields, and of those of `given` that dictate something and did not fit."""
        dictated: dict[str, Any] = {}
        for kind in fields.values():
            self._dictate(kind, fields, given, dictated)
        scope = {**given, **dictated}
        values = {
            name: dictated[name] if name in dictated else self.value(fields[name], scope) for name in fields
        }
        return dictated | values

    def _dictate(
        self, kind: NdrType, fields: Mapping[str, NdrType], given: Mapping[str, Any], dictated: dict[str, Any]
    ) -> None:
        """Choose what dictates a count or an arm of this field."""
        while isinstance(kind, Ptr):
            kind = _target(kind)
        random = self._random
        if isinstance(kind, UnionOf):
            switch = fields[kind.switch]
            arms = [arm for arm in kind.arms if not isinstance(switch, Range) or arm <= switch.high]
            if self._depth >= _DEPTH:
                arms = [arm for arm in arms if arm != _VECTOR_OF_VARIANTS]
            dictated[kind.switch] = random.choice(arms)
        elif isinstance(kind, StringType) and isinstance(kind.shape.size, str):
            dictated[kind.shape.size] = 64
        elif isinstance(kind, Bytes | WChars | ArrayOf):
            size, length = kind.shape.size, kind.shape.length
            if isinstance(size, str) and size not in dictated and (size in fields or size not in given):
                declared = fields[size]
                low = declared.low if isinstance(declared, Range) else 0
                dictated[size] = random.randint(low, low + 4)
            if isinstance(length, str) and length not in dictated and isinstance(size, str):
                most = dictated[size] if size in dictated else given[size]
                dictated[length] = random.randint(0, min(most, 4))

    def _length(self, shape: ArrayShape, scope: Mapping[str, Any]) -> int:
        for correlation in (shape.length, shape.size):
            if isinstance(correlation, int):
                return correlation
            if correlation is not None:
                length: int = scope[correlation]
                return length
        return self._random.randint(0, 4)

    def _text(self, wide: bool, shape: ArrayShape, scope: Mapping[str, Any]) -> str:
        texts = [text for text in _TEXTS if wide or text.isascii()]
        if isinstance(shape.size, str):
            texts = [text for text in texts if len(text) < scope[shape.size]]
        return self._random.choice(texts or [""])

    def _pointer(self, kind: Ptr, scope: Mapping[str, Any]) -> Any:
        target = _target(kind)
        counted = isinstance(target, Bytes | WChars | ArrayOf) and isinstance(target.shape.size, str)
        needed = counted and scope[target.shape.size]  # type: ignore[union-attr]
        if not needed and self._random.random() < 0.3:
            return None
        self._depth += 1
        value = self.value(target, scope)
        self._depth -= 1
        return value

    def _integer(self, code: str) -> int:
        bits = {"b": 8, "h": 16, "i": 32, "q": 64}[code.lower()]
        low = -(1 << (bits - 1)) if code.islower() else 0
        high = low + (1 << bits) - 1
        return self._random.choice((low, high, 0, 1, self._random.randint(low, high)))


def _target(kind: Ptr) -> NdrType:
    return kind.target if isinstance(kind.target, NdrType) else kind.target()
