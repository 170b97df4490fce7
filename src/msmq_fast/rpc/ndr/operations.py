"""Operations of interfaces: requests and responses, as the runtime, the services and the client use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any
from uuid import UUID

from msmq_fast.rpc.ndr.plan import Compiler
from msmq_fast.rpc.ndr.record import Record, record_class
from msmq_fast.rpc.ndr.stream import Buffer, bad_stub
from msmq_fast.rpc.ndr.structs import Parameters
from msmq_fast.rpc.ndr.syntax import NDR, NDR64, NDR_BIG_ENDIAN, SYNTAXES, Syntax
from msmq_fast.rpc.ndr.types import Bytes, NdrType, Struct

__all__ = ["In", "InOut", "InterfaceTable", "Op", "Out", "Parameter"]


class Direction(Enum):
    """The direction of a parameter."""

    IN = "in"
    OUT = "out"
    BOTH = "in, out"


@dataclass(frozen=True)
class Parameter:
    """A parameter of an operation. A `ref` pointer is not written: `kind` is what it points to."""

    name: str
    kind: NdrType
    direction: Direction


def In(name: str, kind: NdrType) -> Parameter:
    """`[in]`"""
    return Parameter(name, kind, Direction.IN)


def Out(name: str, kind: NdrType) -> Parameter:
    """`[out]`"""
    return Parameter(name, kind, Direction.OUT)


def InOut(name: str, kind: NdrType) -> Parameter:
    """`[in, out]`"""
    return Parameter(name, kind, Direction.BOTH)


class Op:
    """One operation. `name` is that of the service's method; `obsolete` ones only hold their number.

    `Args` is the class of requests: an attribute for each [in] parameter. `Results` that of responses: one
    for each [out] parameter, `result` for the returned value, and one for each [in] parameter too, which is
    not sent but may dictate counts and arms of what is. Make results with `results(args)`.
    """

    def __init__(
        self,
        opnum: int,
        name: str,
        parameters: Sequence[Parameter] = (),
        returns: NdrType | None = None,
        *,
        obsolete: bool = False,
    ) -> None:
        self.opnum = opnum
        self.name = name
        self.obsolete = obsolete
        self.inputs = {p.name: p.kind for p in parameters if p.direction is not Direction.OUT}
        self.outputs = {p.name: p.kind for p in parameters if p.direction is not Direction.IN}
        if returns is not None:
            self.outputs["result"] = returns
        requests = {name: _default(kind) for name, kind in self.inputs.items()}
        responses = {name: _default(kind) for name, kind in self.outputs.items()}
        self.Args = record_class(f"{name}_args", requests)
        self.Results = record_class(f"{name}_results", dict.fromkeys(self.inputs) | responses)
        self._requests: dict[Syntax, Parameters] = {}
        self._responses: dict[Syntax, Parameters] = {}

    def compile(self, compiler: Compiler) -> None:
        """Be ready for the compiler's syntax. Raises TypeError for what has no representation."""
        self._requests[compiler.syntax] = compiler.parameters(self.inputs)
        self._responses[compiler.syntax] = compiler.parameters(self.outputs)

    def results(self, args: Any, **outs: Any) -> Record:
        """Results for a request: [in, out] parameters as they came, those of `outs`, everything else zero.
        Arrays of bytes are as long as an [in] parameter demands."""
        values = {name: getattr(args, name) for name in self.inputs} | outs
        for name, kind in self.outputs.items():
            if name not in values:
                demanded = kind.shape.size if isinstance(kind, Bytes) else None
                values[name] = bytes(values[demanded]) if isinstance(demanded, str) else kind.zero()
        return self.Results(**values)

    def decode_request(self, stub: Buffer, *, ndr64: bool, big_endian: bool = False) -> Record:
        """The [in] parameters. Raises RpcFault(RPC_X_BAD_STUB_DATA) for a stub that breaks a rule of MS-RPCE
        3.1.1.5.3 or a `range`; nothing is allocated for counts that the stub cannot hold."""
        return self._requests[_syntax(ndr64, big_endian)].read(stub, self.Args)

    def encode_request(self, args: Record, *, ndr64: bool, big_endian: bool = False) -> bytes:
        """The stub of a request. Raises ValueError, TypeError, AttributeError or struct.error for values that
        contradict the declaration."""
        return self._requests[_syntax(ndr64, big_endian)].encode(args)

    def decode_response(
        self, stub: Buffer, args: Record | None = None, *, ndr64: bool, big_endian: bool = False
    ) -> Record:
        """The [out] parameters; counts that [in] parameters dictate are checked if `args`, the request, is
        given. Raises RpcFault."""
        record = self.Results()
        if args is not None:
            for name in self.inputs:
                setattr(record, name, getattr(args, name))
        return self._responses[_syntax(ndr64, big_endian)].decode(stub, record)

    def encode_response(self, values: Record, *, ndr64: bool, big_endian: bool = False) -> bytes:
        """The stub of a response; errors as `encode_request`. A server may answer in its own byte order,
        since the receiver converts (C706 14.1): `big_endian` is that of the PDU the stub will stand in."""
        return self._responses[_syntax(ndr64, big_endian)].encode(values)


@dataclass(frozen=True)
class InterfaceTable:
    """An interface: its name, identity and operations in the order of their numbers."""

    name: str
    uuid: UUID
    version: tuple[int, int]
    ops: Sequence[Op]

    def __post_init__(self) -> None:
        if [op.opnum for op in self.ops] != list(range(len(self.ops))):
            raise ValueError(f"{self.name}: a number is missing or twice")
        for compiler in (Compiler(syntax) for syntax in SYNTAXES):
            for op in self.ops:
                op.compile(compiler)

    def op(self, name: str) -> Op:
        """The operation of that name. Raises KeyError."""
        for op in self.ops:
            if op.name == name:
                return op
        raise KeyError(name)


def _syntax(ndr64: bool, big_endian: bool) -> Syntax:
    if ndr64:
        if big_endian:
            raise bad_stub("NDR64 is little-endian")
        return NDR64
    return NDR_BIG_ENDIAN if big_endian else NDR


def _default(kind: NdrType) -> Any:
    return None if isinstance(kind, Struct) else kind.zero()
