"""Operations of interfaces: how the runtime, the services and the client encode and decode requests and
responses.
"""

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
    """A parameter of an operation.

    If the parameter is a `ref` pointer, `kind` is the type of its target, since such a pointer has no bytes
    on the wire.
    """

    name: str
    kind: NdrType
    direction: Direction


def In(name: str, kind: NdrType) -> Parameter:
    """Declares an `[in]` parameter."""
    return Parameter(name, kind, Direction.IN)


def Out(name: str, kind: NdrType) -> Parameter:
    """Declares an `[out]` parameter."""
    return Parameter(name, kind, Direction.OUT)


def InOut(name: str, kind: NdrType) -> Parameter:
    """Declares an `[in, out]` parameter."""
    return Parameter(name, kind, Direction.BOTH)


class Op:
    """One operation. `name` is the name of the service's method. An `obsolete` operation only reserves its
    number.

    `Args` is the class of requests, with an attribute for each [in] parameter. `Results` is the class of
    responses, with an attribute for each [out] parameter, and `result` for the returned value. A response
    also has an attribute for each [in] parameter. These are not sent, but they may give counts or select the
    arms of unions in parameters that are sent. Create responses with `results(args)`.
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
        """Compiles the codecs for the compiler's transfer syntax. Raises TypeError for a type that cannot be
        encoded.
        """
        self._requests[compiler.syntax] = compiler.parameters(self.inputs)
        self._responses[compiler.syntax] = compiler.parameters(self.outputs)

    def results(self, args: Any, **outs: Any) -> Record:
        """Returns the response to a request.

        `outs` gives the values of parameters by name. Of the other parameters, [in, out] parameters keep the
        values of the request, and [out] parameters are zero. An array of bytes that is zero has the length
        that an [in] parameter requires.
        """
        values = {name: getattr(args, name) for name in self.inputs} | outs
        for name, kind in self.outputs.items():
            if name not in values:
                demanded = kind.shape.size if isinstance(kind, Bytes) else None
                values[name] = bytes(values[demanded]) if isinstance(demanded, str) else kind.zero()
        return self.Results(**values)

    def decode_request(self, stub: Buffer, *, ndr64: bool, big_endian: bool = False) -> Record:
        """Returns the [in] parameters of a request from its stub.

        Raises RpcFault(RPC_X_BAD_STUB_DATA) for a stub that breaks a rule of MS-RPCE 3.1.1.5.3 or a `range`.
        No memory is allocated for a count whose elements would not fit in the stub.
        """
        return self._requests[_syntax(ndr64, big_endian)].read(stub, self.Args)

    def encode_request(self, args: Record, *, ndr64: bool, big_endian: bool = False) -> bytes:
        """Returns the stub of a request.

        Raises ValueError, TypeError, AttributeError or struct.error for values that contradict the
        declaration.
        """
        return self._requests[_syntax(ndr64, big_endian)].encode(args)

    def decode_response(
        self, stub: Buffer, args: Record | None = None, *, ndr64: bool, big_endian: bool = False
    ) -> Record:
        """Returns the [out] parameters of a response from its stub. With `args`, the request, also checks the
        counts that depend on [in] parameters. Raises RpcFault.
        """
        record = self.Results()
        if args is not None:
            for name in self.inputs:
                setattr(record, name, getattr(args, name))
        return self._responses[_syntax(ndr64, big_endian)].decode(stub, record)

    def encode_response(self, values: Record, *, ndr64: bool, big_endian: bool = False) -> bytes:
        """Returns the stub of a response; raises what `encode_request` raises.

        `big_endian` is the byte order of the PDU that carries the stub. A server may answer in its own byte
        order, since the receiver converts (C706 14.1).
        """
        return self._responses[_syntax(ndr64, big_endian)].encode(values)


@dataclass(frozen=True)
class InterfaceTable:
    """An interface: its name, its identity and its operations in the order of their numbers."""

    name: str
    uuid: UUID
    version: tuple[int, int]
    ops: Sequence[Op]

    def __post_init__(self) -> None:
        if [op.opnum for op in self.ops] != list(range(len(self.ops))):
            raise ValueError(f"{self.name}: the operation numbers have a gap or a duplicate")
        for compiler in (Compiler(syntax) for syntax in SYNTAXES):
            for op in self.ops:
                op.compile(compiler)

    def op(self, name: str) -> Op:
        """Returns the operation with this name. Raises KeyError."""
        for op in self.ops:
            if op.name == name:
                return op
        raise KeyError(name)


def _syntax(ndr64: bool, big_endian: bool) -> Syntax:
    if ndr64:
        if big_endian:
            raise bad_stub("NDR64 stubs must be little-endian")
        return NDR64
    return NDR_BIG_ENDIAN if big_endian else NDR


def _default(kind: NdrType) -> Any:
    return None if isinstance(kind, Struct) else kind.zero()
