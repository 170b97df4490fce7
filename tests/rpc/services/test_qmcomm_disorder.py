"""Dependent clients and remote readers that call anything in any order with anything: every call ends with a
result or a fault, and nothing is left when they have gone.
"""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

import pytest

from msmq_fast.rpc.idl.qmcomm import QMCOMM
from msmq_fast.rpc.idl.qmcomm2 import QMCOMM2
from msmq_fast.rpc.ndr.operations import Op
from msmq_fast.rpc.ndr.types import ContextHandle
from msmq_fast.rpc.services.reads import Action
from tests.support.rpc.dependents import NOBODY, ORDERS, Dependent, DependentWorld, named, sent, wanted
from tests.support.rpc.peers import ADMIN, MadeCall, caller
from tests.support.rpc.values import Values

BOTH = r"DIRECT=OS:HOST\private$\both"
NAMES = (ORDERS, BOTH, r"DIRECT=OS:HOST\private$\nosuch", r"DIRECT=OS:OTHER\private$\far")
UOWS = [bytes([number]) * 16 for number in range(3)]
OPERATIONS = [(table, op) for table in (QMCOMM, QMCOMM2) for op in table.ops if not op.obsolete]
GET_PORT = 31
OFTEN = {"open_queue_internal": 6, "send_message_ex": 10, "receive_message_ex": 12, "create_cursor_ex": 3}
WEIGHTS = [OFTEN.get(op.name, 1) for _, op in OPERATIONS]
NUMBERS = {"pdwQMContext": "hQMContext", "pdwContext": "hQueue"}
"""Which parameters take what others gave."""


class Chaos:
    """One client and what it remembers of results."""

    def __init__(self, remote: DependentWorld, random: Random, who: Any) -> None:
        self.client: Dependent = remote.dependent(who)
        self.values = Values(random)
        self.random = random
        self.handles: defaultdict[str, list[bytes]] = defaultdict(list)
        self.numbers: defaultdict[str, list[int]] = defaultdict(lambda: [0])
        self.calls: list[MadeCall] = []

    def step(self) -> None:
        """A call of any operation; most parameters are such that something can come of it."""
        (table, op) = self.random.choices(OPERATIONS, WEIGHTS)[0]
        args = self.values.arguments(op)
        peer = self.client.qmcomm if table is QMCOMM else self.client.qmcomm2
        given = {name: getattr(args, name) for name in op.inputs}
        for name in given:
            if self.random.random() < 0.95:
                given |= self._sensible(op, name)
        call = peer.begin(op.name, **given)
        self.calls.append(call)
        if call.results is not None:
            self._remember(op, call.results)
        elif call.fault_status is None and self.random.random() < 0.5:
            call.abandon()

    def _sensible(self, op: Op, name: str) -> dict[str, Any]:
        random = self.random
        kind = op.inputs[name]
        if isinstance(kind, ContextHandle):
            known = self.handles[kind.kind]
            return {name: random.choice(known[-4:])} if known else {}
        match name:
            case "pQueueFormat":
                return {name: named(random.choice(NAMES))}
            case "dwDesiredAccess":
                return {name: random.choice((1, 2, 0x20, 0x81, 0xA0))}
            case "dwShareMode" | "hRemoteQueue" | "dwpRemoteContext":
                return {name: int(random.random() < 0.1)}
            case "pUow":
                return {name: random.choice(UOWS)}
            case "hQMContext" | "hCursor" | "hQueue":
                return {name: random.choice(self.numbers[name][-4:])}
            case "ptb":
                uow = random.choice((None, None, None, *UOWS))
                if op.name == "receive_message_ex":
                    action = random.choice((Action.RECEIVE, Action.PEEK_CURRENT, Action.PEEK_NEXT))
                    timeout, cursor = (
                        random.choice((0, 1, 0xFFFFFFFF)),
                        random.choice(self.numbers["hCursor"][-4:]),
                    )
                    size = random.choice((2, 50))
                    return {name: wanted(int(action), timeout=timeout, cursor=cursor, body=size, pUow=uow)}
                return {name: sent(random.randbytes(random.choice((1, 20))), pUow=uow)}
        return {}

    def _remember(self, op: Op, results: Any) -> None:
        for name, kind in op.outputs.items():
            value = getattr(results, name)
            if isinstance(kind, ContextHandle) and value is not None:
                self.handles[kind.kind].append(value)
            elif name in NUMBERS and value:
                self.numbers[NUMBERS[name]].append(value)
        cursor = getattr(results, "pcc", None)
        if cursor is not None:
            self.numbers["hCursor"].append(cursor.hCursor)


@pytest.mark.rule("MP-007", "MP-210", "MP-211", "MP-212")
@pytest.mark.parametrize("seed", range(12))
def test_clients_without_order(seed: int) -> None:
    random = Random(seed)
    remote = DependentWorld(ndr64=bool(seed & 1))
    world = remote.world
    world.create("both", transactional=True)
    clients = [Chaos(remote, random, who) for who in (ADMIN, ADMIN, caller(), NOBODY)]
    for _ in range(300):
        random.choice(clients).step()
        if random.random() < 0.05:
            world.advance(random.choice((0.01, 1, 700)))
    for chaos in clients:
        chaos.client.lose()
        for call in chaos.calls:
            assert not call.alive
            result = getattr(call.results, "result", 0)
            assert result == 0 or result >> 31 or call.opnum == GET_PORT
    assert len(remote.server.queues) == len(remote.server.transactions) == len(remote.queues) == 0
    assert len(world.manager.transactions) == 0
    for queue in world.manager.queues():
        assert not queue.descriptors
        assert len(queue.readers) == 0
    for name in ("orders", "both"):
        left = world.bodies(name)
        assert [world.receive(name) for _ in left] == left
