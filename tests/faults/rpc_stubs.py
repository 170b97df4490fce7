"""Requests whose stubs lie: of every operation, every word of its parameters, among them every count, offset
and pointer of every array, made wrong in turn. The NDR tables say which of them are no parameters any more.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from msmq_fast.rpc.faults import RPC_X_BAD_STUB_DATA, RpcFault
from msmq_fast.rpc.idl.epm import EPM
from msmq_fast.rpc.idl.mgmt import MGMT
from msmq_fast.rpc.idl.qm2qm import QM2QM
from msmq_fast.rpc.idl.qmcomm import QMCOMM
from msmq_fast.rpc.idl.qmcomm2 import QMCOMM2
from msmq_fast.rpc.idl.qmmgmt import QMMGMT
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from msmq_fast.rpc.ndr.operations import InterfaceTable, Op
from msmq_fast.rpc.ndr.types import NdrType, Ptr
from tests.support.rpc import wire
from tests.support.rpc.values import Values

SERVED: Mapping[str, Sequence[InterfaceTable]] = {
    "rpc": (QMCOMM, QMCOMM2, REMOTE_READ, QMMGMT, MGMT),
    "qm2qm": (QM2QM, MGMT),
    "epm": (EPM, MGMT),
}
_SAMPLES = 2
_ANSWERS = (wire.BIND_ACK, wire.ALTER_RESPONSE, wire.RESPONSE, wire.FAULT)
_WORDS = (0, 1, 0x00420001, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


class Lie(NamedTuple):
    """A request, and whether a server must see that its parameters are none."""

    context: int
    opnum: int
    stub: bytes
    bad: bool


class _Full(Values):
    """Values without NULL pointers."""

    def _pointer(self, kind: Ptr, scope: Mapping[str, Any]) -> Any:
        target = kind.target if isinstance(kind.target, NdrType) else kind.target()
        self._depth += 1
        value = self.value(target, scope)
        self._depth -= 1
        return value


def opening(port: str) -> bytes:
    """A bind and an alter_context, call_id 1 and 2: each interface in NDR, and under the next number in
    NDR64, for which one PDU would not do."""
    found: dict[wire.Syntax, list[wire.Context]] = {wire.NDR: [], wire.NDR64: []}
    for number, table in enumerate(SERVED[port]):
        interface = (str(table.uuid), *table.version)
        found[wire.NDR].append((2 * number, interface, [wire.NDR]))
        found[wire.NDR64].append((2 * number + 1, interface, [wire.NDR64]))
    bind = wire.bind(found[wire.NDR], 1, flags=wire.WHOLE | wire.MPX)
    return bind + wire.alter(found[wire.NDR64], 2)


def lies(port: str, random: Random, share: float = 1.0) -> Iterator[Lie]:
    """All of them, or a share that is drawn."""
    for number, table in enumerate(SERVED[port]):
        for op in table.ops:
            if op.obsolete or not op.inputs:
                continue
            for ndr64 in (False, True):
                for stub in _spoiled(op, random, ndr64=ndr64):
                    if random.random() >= share:
                        continue
                    yield Lie(2 * number + ndr64, op.opnum, stub, _is_bad(op, stub, ndr64=ndr64))


def _spoiled(op: Op, random: Random, *, ndr64: bool) -> Iterator[bytes]:
    for _ in range(_SAMPLES):
        stub = op.encode_request(_Full(random).arguments(op), ndr64=ndr64)
        for at in range(0, len(stub) - 3, 4):
            (value,) = struct.unpack_from("<I", stub, at)
            for word in {*_WORDS, value + 1 & 0xFFFFFFFF, value - 1 & 0xFFFFFFFF, value * 2 & 0xFFFFFFFF}:
                if word != value:
                    yield stub[:at] + struct.pack("<I", word) + stub[at + 4 :]
            yield stub[:at]


def _is_bad(op: Op, stub: bytes, *, ndr64: bool) -> bool:
    try:
        op.decode_request(stub, ndr64=ndr64)
    except RpcFault as fault:
        return fault.status == RPC_X_BAD_STUB_DATA
    return False


class Batch:
    """One connection: its opening, and requests one after the other; what has to come back."""

    def __init__(self, port: str, told: Sequence[Lie]) -> None:
        self.port = port
        self.bad = [False, False, *(lie.bad for lie in told)]  # by call_id, less one
        self.answers = len(self.bad)
        pieces = [opening(port)]
        for call_id, lie in enumerate(told, 3):
            pieces.append(wire.request(call_id, lie.opnum, lie.stub, lie.context))
        self.stream = b"".join(pieces)

    def check(self, stream: bytes) -> Counter[int]:
        """The faults by status in what came back, once each request has its answer, and each lie that can be
        known as one the fault that is due."""
        answered: set[int] = set()
        faults: Counter[int] = Counter()
        at = 0
        while at < len(stream):
            kind, flags = stream[at + 2], stream[at + 3]
            length, call_id = struct.unpack_from("<H2xI", stream, at + 8)
            status = struct.unpack_from("<I", stream, at + 24)[0] if kind == wire.FAULT else 0
            faults[status] += kind == wire.FAULT
            assert kind in _ANSWERS, stream[at : at + 32].hex()
            assert (status == RPC_X_BAD_STUB_DATA) == self.bad[call_id - 1], (call_id, hex(status))
            if flags & wire.LAST:
                assert call_id not in answered
                answered.add(call_id)
            at += length
        assert len(answered) == self.answers
        return +faults


def batches(random: Random, size: int, share: float = 1.0) -> list[Batch]:
    """Lies in connections of so many."""
    found: list[Batch] = []
    for port in SERVED:
        told = list(lies(port, random, share))
        random.shuffle(told)
        found += [Batch(port, told[at : at + size]) for at in range(0, len(told), size)]
    return found
