"""Structures (C706 14.3.6, 14.3.7; MS-RPCE 2.2.5.3.4) and the parameters of operations."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from msmq_fast.rpc.ndr.arrays import Array
from msmq_fast.rpc.ndr.codec import Codec
from msmq_fast.rpc.ndr.record import Record
from msmq_fast.rpc.ndr.scalars import Run, Scalar
from msmq_fast.rpc.ndr.stream import Buffer, Reader, Writer, bad_stub
from msmq_fast.rpc.ndr.syntax import Syntax

__all__ = ["FixedStructure", "Members", "Parameters", "Structure", "structure"]

Members = Sequence[tuple[str, Codec]]
_STREAM_ALIGN = 8
"""Stubs begin at a position with this alignment in bytes, which suffices for every type."""


def structure(syntax: Syntax, record: type[Record], members: Members) -> Codec:
    """Returns the codec of a structure whose values are instances of `record`."""
    scalars = [codec for _, codec in members if isinstance(codec, Scalar)]
    if len(scalars) == len(members):
        return FixedStructure(syntax, record, [name for name, _ in members], scalars)
    return Structure(syntax, record, members)


class _Structure(Codec):
    """The base of structure codecs: the targets of the structure's pointers follow in the order of the
    pointers.
    """

    def __init__(self, record: type[Record], members: Members) -> None:
        self.align = max(codec.align for _, codec in members)
        self._record = record
        self._pointing = [(name, codec) for name, codec in members if codec.points]
        self.points = bool(self._pointing)

    def read_deferred(self, reader: Reader, value: Record, scope: Any) -> Record:
        for name, codec in self._pointing:
            setattr(value, name, codec.read_deferred(reader, getattr(value, name), value))
        return value

    def write_deferred(self, writer: Writer, value: Record, scope: Any) -> None:
        for name, codec in self._pointing:
            codec.write_deferred(writer, getattr(value, name), value)


class FixedStructure(_Structure):
    """A structure that has only scalars and pointers; one run reads or writes them."""

    def __init__(
        self, syntax: Syntax, record: type[Record], names: Sequence[str], scalars: Sequence[Scalar]
    ) -> None:
        super().__init__(record, list(zip(names, scalars, strict=True)))
        self._run = Run(syntax, scalars, self.align, pad_end=syntax.wide)
        self.least = self._run.size
        self._values = _values_of(names)

    def read(self, reader: Reader, scope: Any) -> Record:
        return self._record(*self._run.read(reader))

    def write(self, writer: Writer, value: Record, scope: Any) -> None:
        self._run.write(writer, self._values(value))


class Structure(_Structure):
    """A structure that contains a union, a varying array or another structure, or ends with an array.

    If the structure ends with a conformant array, the maximum count of the array precedes the structure and
    the gap that aligns it.
    """

    def __init__(self, syntax: Syntax, record: type[Record], members: Members) -> None:
        super().__init__(record, members)
        self.least = sum(codec.least for _, codec in members)
        self._mask = self.align - 1
        self._end_mask = self._mask if syntax.wide else 0
        name, last = members[-1]
        self._array = (name, last) if isinstance(last, Array) and last.shape.conformant else None
        self._steps = _steps(
            syntax, members if self._array is None else members[:-1], self.align, single=_Member
        )

    def read(self, reader: Reader, scope: Any) -> Record:
        record = self._record()
        array = self._array
        maximum = array[1].shape.read_maximum(reader) if array is not None else 0
        reader.claim(self._mask, 0)
        for step in self._steps:
            step.read(reader, record)
        if array is not None:
            setattr(record, array[0], array[1].read_body(reader, record, maximum))
        reader.skip_gap(self._end_mask)
        return record

    def write(self, writer: Writer, value: Record, scope: Any) -> None:
        if self._array is not None:
            name, array = self._array
            array.shape.write_maximum(writer, value, array.length_of(getattr(value, name)))
        writer.align(self._mask)
        for step in self._steps:
            step.write(writer, value)
        if self._array is not None:
            array.write_body(writer, getattr(value, name), value)
        writer.align(self._end_mask)


class Parameters:
    """The parameters of an operation in one direction.

    Each parameter is complete, including the targets of its pointers, before the next one begins.
    """

    def __init__(self, syntax: Syntax, members: Members) -> None:
        self._steps = _steps(syntax, members, _STREAM_ALIGN, single=_Parameter)
        only = self._steps[0] if len(self._steps) == 1 else None
        self._only = only if isinstance(only, _Scalars) and only.pointer is None else None

    def read(self, stub: Buffer, make: type[Record]) -> Record:
        """Decodes a stub (see `decode`) and returns the parameters in a new record of the class `make`, which
        has exactly these fields.
        """
        if self._only is None:
            return self.decode(stub, make())
        run = self._only.run
        try:
            values = run.unpack_from(stub)
        except struct.error:
            raise bad_stub("the stub is truncated") from None
        return make(*(run.lifted(values) if run.lifts else values))

    def decode(self, stub: Buffer, record: Record) -> Record:
        """Decodes a stub, and sets the parameters as fields of `record`. Ignores bytes after the last
        parameter. Raises RpcFault.
        """
        reader = Reader(stub)
        for step in self._steps:
            step.read(reader, record)
        return record

    def encode(self, record: Record) -> bytes:
        """Returns the stub with the parameters in `record`. Raises ValueError, struct.error, TypeError or
        AttributeError for values that do not fit their types.
        """
        if self._only is not None:
            return self._only.run.write_all(self._only.values(record))
        writer = Writer()
        for step in self._steps:
            step.write(writer, record)
        return b"".join(writer.parts)


class _Scalars:
    """Consecutive scalar members. Among parameters, only the last of them may be a pointer."""

    def __init__(self, names: Sequence[str], run: Run, pointer: Codec | None) -> None:
        self._names = tuple(names)
        self._last = names[-1]
        self.run = run
        self.values = _values_of(names)
        self.pointer = pointer

    def read(self, reader: Reader, record: Record) -> None:
        for name, value in zip(self._names, self.run.read(reader), strict=True):
            setattr(record, name, value)
        if self.pointer is not None:
            value = self.pointer.read_deferred(reader, getattr(record, self._last), record)
            setattr(record, self._last, value)

    def write(self, writer: Writer, record: Record) -> None:
        self.run.write(writer, self.values(record))
        if self.pointer is not None:
            self.pointer.write_deferred(writer, getattr(record, self._last), record)


class _Member:
    """One member of a structure. The codec of the structure reads and writes the deferred parts of all
    members.
    """

    whole = False

    def __init__(self, name: str, codec: Codec) -> None:
        self._name = name
        self._codec = codec

    def read(self, reader: Reader, record: Record) -> None:
        setattr(record, self._name, self._codec.read(reader, record))

    def write(self, writer: Writer, record: Record) -> None:
        self._codec.write(writer, getattr(record, self._name), record)


class _Parameter(_Member):
    """One parameter, with its flat part and its deferred part."""

    whole = True

    def read(self, reader: Reader, record: Record) -> None:
        setattr(record, self._name, self._codec.read_whole(reader, record))

    def write(self, writer: Writer, record: Record) -> None:
        self._codec.write_whole(writer, getattr(record, self._name), record)


def _steps(
    syntax: Syntax, members: Members, align: int, *, single: type[_Member]
) -> list[_Scalars | _Member]:
    """Returns the steps that read consecutive members from a position with alignment `align`.

    Consecutive scalars, whose gaps are then known, form one step together; every other member is a step of
    its own.
    """
    steps: list[_Scalars | _Member] = []
    names: list[str] = []
    scalars: list[Scalar] = []
    run_align = align

    def close() -> None:
        nonlocal names, scalars, run_align
        if scalars:
            pointer = scalars[-1] if scalars[-1].points and single.whole else None
            steps.append(_Scalars(names, Run(syntax, scalars, run_align), pointer))
        names, scalars, run_align = [], [], 0

    for name, codec in members:
        if not isinstance(codec, Scalar):
            close()
            steps.append(single(name, codec))
            continue
        if run_align and codec.align > run_align:
            close()
        run_align = run_align or codec.align
        names.append(name)
        scalars.append(codec)
        if codec.points and single.whole:
            close()
    close()
    return steps


def _values_of(names: Sequence[str]) -> Callable[[Any], Sequence[Any]]:
    """Returns a function that returns the values of the fields `names` of a record."""
    if len(names) == 1:
        only = attrgetter(names[0])
        return lambda record: (only(record),)
    return attrgetter(*names)
