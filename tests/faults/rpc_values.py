"""Parameters of calls that get far: handles that are open, names that exist, actions that there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from random import Random
from typing import Any

from msmq_fast.packet.names import parse_format_name
from msmq_fast.rpc.idl.epm import TWR
from msmq_fast.rpc.idl.mqmq import QUEUE_FORMAT
from msmq_fast.rpc.idl.qm2qm import QM2QM
from msmq_fast.rpc.idl.qmcomm import QMCOMM
from msmq_fast.rpc.idl.qmcomm2 import TRANSFER_BUFFER_V2
from msmq_fast.rpc.ndr.record import Record
from msmq_fast.rpc.ndr.types import ContextHandle, Integer, NdrType, Struct
from msmq_fast.rpc.services.queueformat import queue_format
from msmq_fast.rpc.services.reads import Action
from msmq_fast.rpc.services.towers import TcpTower
from msmq_fast.rpc.syntaxes import NDR, NDR64, SyntaxId
from tests.support.rpc.dependents import sent, wanted
from tests.support.rpc.values import Values

NAMES = (
    *(r"DIRECT=OS:HOST\private$\orders",) * 6,
    *(r"DIRECT=OS:HOST\private$\orders", r"DIRECT=OS:HOST\private$\ledger", r"DIRECT=OS:.\private$\orders"),
    *(r"DIRECT=OS:HOST\private$\orders;sub", r"DIRECT=OS:HOST\private$\nowhere", "MULTICAST=234.1.1.1:8001"),
    *(r"DIRECT=TCP:203.0.113.9\private$\x", r"DIRECT=OS:elsewhere\private$\x", "DIRECT=HTTP://far/msmq/x"),
)
PATHS = (*(rf".\private$\{name}" for name in ("orders", "ledger", "made")), r"HOST\private$\made", "far\\x")
_MAPPED = (QMCOMM, QM2QM)
UNITS = (bytes(16), bytes(range(16)), bytes(range(1, 17)))

_CHOICES: dict[str, tuple[Any, ...]] = {
    "Action": (*Action, Action.RECEIVE, Action.RECEIVE),
    "RequestTimeout": (0, 0, 0, 5000, 0xFFFFFFFF),
    "dwRequestID": (1, 2),
    "dwRequestId": (1, 2),
    "dwDesiredAccess": (1, 1, 1, 2, 0x20, 0x80000001),
    "dwAccess": (1, 1, 0x20, 4),
    "dwShareMode": (0, 0, 0, 1),
    "dwObjectType": (1,),
    "dwQueryType": tuple(range(6)),
    "lpwcsPathName": PATHS,
    "pTransactionId": UNITS,
    "usClass": (0, 0xC004),
    "princ_name_size": (0, 1, 100),
    "inquiry_type": tuple(range(5)),
    "vers_option": tuple(range(6)),
}
_QUEUE_NUMBERS = ("hQueue", "pQueue", "dwpContext", "dwQueue", "hRemoteQueue")
_PROPERTIES = tuple(range(100, 130))


class Known:
    """What a client was told: context handles by their types, numbers by what they stand for."""

    def __init__(self) -> None:
        self.handles: defaultdict[str, list[bytes]] = defaultdict(list)
        self.numbers: defaultdict[str, list[int]] = defaultdict(list)

    def learn(self, results: Record, kinds: Mapping[str, NdrType]) -> None:
        """From the response to a call."""
        for name, kind in kinds.items():
            value = getattr(results, name)
            if isinstance(kind, ContextHandle) and value is not None:
                self._keep(self.handles[kind.kind], bytes(value))
            elif name == "phQueue" and value:
                self._keep(self.numbers["queue"], value)
            elif name == "phCursor":
                self._keep(self.numbers["cursor"], value)
            elif name == "pcc":
                self._keep(self.numbers["cursor"], value.hCursor)
            elif name == "pdwQMContext":
                self._keep(self.numbers["context"], value)
            elif name == "pMoveContext":
                self._keep(self.numbers["move"], value)
            elif name == "pSequenceId":
                self._keep(self.numbers["lookup"], value)
            elif name == "lpRemoteReadDesc2":
                self._keep(self.numbers["lookup"], value.SequentialId)

    @staticmethod
    def _keep(pool: list[Any], value: Any) -> None:
        pool.append(value)
        del pool[:-6]


class Plausible(Values):
    """Values for requests of a client that knows something. Now and then they are random all the same."""

    def __init__(self, random: Random, known: Known) -> None:
        super().__init__(random)
        self._known = known

    def value(self, kind: NdrType, scope: Mapping[str, Any]) -> Any:
        """A value; see Values."""
        random = self._random
        if isinstance(kind, Struct) and random.random() < 0.85:
            if kind is QUEUE_FORMAT:
                return queue_format(parse_format_name(random.choice(NAMES)))
            if kind is TRANSFER_BUFFER_V2:
                return self._buffer()
            if kind is TWR:
                interface = random.choice(_MAPPED)
                tower = TcpTower(SyntaxId(interface.uuid, *interface.version), random.choice((NDR, NDR64)), 0)
                octets = tower.encode()
                return TWR(len(octets), octets)
        if isinstance(kind, ContextHandle) and random.random() < 0.9:
            pools = self._known.handles
            pool = pools[kind.kind] if random.random() < 0.9 else [h for some in pools.values() for h in some]
            if pool:
                return pool[-1] if random.random() < 0.6 else random.choice(pool)
        return super().value(kind, scope)

    def _buffer(self) -> Record:
        random = self._random
        unit = random.choice(UNITS) if random.random() < 0.2 else None
        if random.random() < 0.5:
            made: Record = sent(random.randbytes(random.choice((0, 5, 3000))), pUow=unit)
        else:
            made = wanted(
                random.choice((Action.RECEIVE, Action.PEEK_CURRENT, Action.PEEK_NEXT)),
                timeout=random.choice((0, 0, 5000, 0xFFFFFFFF)),
                cursor=self._number("cursor") if random.random() < 0.3 else 0,
                body=random.choice((None, 0, 100, 5000)),
                pUow=unit,
            )
        return made

    def _fields(self, fields: Mapping[str, NdrType], given: Mapping[str, Any]) -> dict[str, Any]:
        values = super()._fields(fields, given)
        random = self._random
        if random.random() < 0.1:
            return values
        queue = self._number("queue")
        for name, kind in fields.items():
            if name in _QUEUE_NUMBERS and isinstance(kind, Integer):
                values[name] = queue
            elif name in _CHOICES and not isinstance(kind, Struct):
                values[name] = random.choice(_CHOICES[name])
            elif name in ("hCursor", "Cursor"):
                values[name] = self._number("cursor") if random.random() < 0.4 else 0
            elif name == "hQMContext":
                values[name] = self._number("context")
            elif name == "ullContextTo":
                values[name] = self._number("move")
            elif name == "pUow" and isinstance(values[name], bytes):
                values[name] = random.choice(UNITS)
            elif name == "aProp" and values[name]:
                values[name] = [random.choice(_PROPERTIES) for _ in values[name]]
        if "lpClientName" in fields:
            values["hRemoteQueue"] = values["dwpRemoteContext"] = 0
        if "ulAction" in fields:
            self._read(values, fields)
        elif "LookupId" in fields:
            values["LookupId"] = self._lookup_id()
        return values

    def _read(self, values: dict[str, Any], fields: Mapping[str, NdrType]) -> None:
        """A read whose parameters belong together, most of the time."""
        random = self._random
        action = random.choice((Action.RECEIVE, random.choice(tuple(Action))))
        looks_up = action & 0x40000000
        values["ulAction"] = action
        if random.random() < 0.1:
            return
        values["ulTimeout"] = 0 if looks_up else random.choice((0, 0, 0, 5000, 0xFFFFFFFF))
        values["hCursor"] = self._number("cursor") if not looks_up and random.random() < 0.3 else 0
        if "LookupId" in fields:
            values["LookupId"] = self._lookup_id() if looks_up else 0

    def _lookup_id(self) -> int:
        return self._random.choice((1, 0xFFFFFFFFFFFFFFFF, self._number("lookup")))

    def _number(self, kind: str) -> int:
        pool = self._known.numbers[kind]
        if not pool:
            return 1
        return pool[-1] if self._random.random() < 0.6 else self._random.choice(pool)
