"""The interface qmmgmt (MS-MQMR): tools on Windows, such as the MMC snap-in, look at this queue manager and
its queues, pause and resume outgoing queues, and take the queue manager offline.

To add a property, write it into the table of queueproperties.py or machineproperties.py in management/.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.protocol.errors import InvalidParameter, PropertyError, QueueNotActive, QueueNotFound, error
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.rpc.idl.qmmgmt import MGMT_MACHINE, MGMT_QUEUE, QMMGMT
from msmq_fast.rpc.interface import InterfacePolicy
from msmq_fast.rpc.services.deferring import when
from msmq_fast.rpc.services.management.actions import (
    MachineAction,
    QueueAction,
    act_on_machine,
    act_on_queue,
    action_of,
)
from msmq_fast.rpc.services.management.machineproperties import MACHINE_PROPERTIES, machine_value
from msmq_fast.rpc.services.management.queueproperties import QUEUE_PROPERTIES, queue_value
from msmq_fast.rpc.services.management.values import VarType
from msmq_fast.rpc.services.queueformat import name_of
from msmq_fast.rpc.stubs.qmmgmt import ActionArgs, ActionResults, GetInfoArgs, GetInfoResults

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.qm.queues.queue import Queue
    from msmq_fast.rpc.call import Call
    from msmq_fast.rpc.ndr.record import Record

__all__ = ["QmMgmtService"]

_ASKING: Final = (VarType.NULL, VarType.EMPTY)
"""The types with which callers leave the type to the server."""


class QmMgmtService:
    """Serves qmmgmt. Calls have no state: each stands for itself."""

    table = QMMGMT

    def __init__(self, manager: QueueManager, policy: InterfacePolicy | None = None) -> None:
        """The access lists of the queue manager and of its queues decide, unless `policy` restricts
        callers.
        """
        self._manager = manager
        self.policy = policy or InterfacePolicy()

    def failed(self, call: Call, args: Any, hresult: int) -> Any:
        """Returns the results of a failed operation; the values of properties stay as they were given."""
        return QMMGMT.ops[call.opnum].results(args, result=hresult)

    def get_info(self, call: Call, args: GetInfoArgs) -> GetInfoResults:
        """R_QMMgmtGetInfo (3.1.4.1)."""
        manager, token = self._manager, call.caller.token
        described = args.pObjectFormat
        machine = self._is_machine(described)
        _check(args.aProp, args.apVar, MACHINE_PROPERTIES if machine else QUEUE_PROPERTIES)
        manager.serving()
        if machine:
            manager.guard.read_machine(token)
            values = [machine_value(manager, token, number) for number in args.aProp]
        else:
            queue = self._find(described.object)
            manager.guard.read_properties(token, queue)
            values = [queue_value(manager, queue, number) for number in args.aProp]
        return GetInfoResults(cp=args.cp, apVar=values)

    def action(self, call: Call, args: ActionArgs) -> ActionResults | None:
        """R_QMMgmtAction (3.1.4.2); answered when the change is durable."""
        manager, token = self._manager, call.caller.token
        machine = self._is_machine(args.pObjectFormat)
        action = action_of(args.lpwszAction)
        manager.serving()
        if isinstance(action, MachineAction):
            if not machine:
                raise InvalidParameter(f"{action.value} is an action on the queue manager, not on a queue")
            done = act_on_machine(manager, token, action)
        else:
            done = act_on_queue(manager, token, action, self._outgoing(args.pObjectFormat, action))
        return when(done, self.failed, call, args, ActionResults())

    # ---- objects

    @staticmethod
    def _is_machine(described: Record) -> bool:
        """Whether an object is the queue manager. Raises INVALID_PARAMETER unless it is that or a queue."""
        if described.type not in (MGMT_MACHINE, MGMT_QUEUE):
            raise InvalidParameter(f"objects of type {described.type} are not managed")
        return bool(described.type == MGMT_MACHINE)

    def _find(self, given: Record | None) -> Queue:
        """Returns the queue that a QUEUE_FORMAT names: one of this computer, or an outgoing queue.

        Nothing is created, looked up or connected for a name. Raises QUEUE_NOT_FOUND, QUEUE_NOT_ACTIVE for a
        name of another computer to which there is no outgoing queue, INVALID_PARAMETER, and the errors of
        illegal names.
        """
        if given is None:
            raise InvalidParameter("the QUEUE_FORMAT is missing")
        name = name_of(given)
        registry = self._manager.registry
        target = registry.resolve(str(name))
        queue = registry.find(target) if target.local else registry.outgoing_of(target.name)
        if queue is None and target.local:
            raise QueueNotFound(f"there is no queue {name} on this computer")
        if queue is None:
            raise QueueNotActive(f"there is no outgoing queue to {name}")
        return queue

    def _outgoing(self, described: Record, action: QueueAction) -> OutgoingQueue:
        if described.type != MGMT_QUEUE:
            raise InvalidParameter(f"{action.value} is an action on an outgoing queue")
        queue = self._find(described.object)
        if not isinstance(queue, OutgoingQueue):
            raise InvalidParameter(f"{queue.name} is not an outgoing queue: {action.value} is for these only")
        return queue


def _check(numbers: Sequence[int], given: Sequence[Record], known: dict[int, tuple[VarType, Any]]) -> None:
    """Raises ILLEGAL_PROPID for a property that the object does not have, PROPERTY for one that is asked for
    twice or with another type.
    """
    for number, variant in zip(numbers, given, strict=True):
        if number not in known:
            raise error("MQ_ERROR_ILLEGAL_PROPID", f"the object has no property {number}")
        if variant.vt not in (*_ASKING, known[number][0]):
            raise PropertyError(f"the property {number} has the type {known[number][0]}, not {variant.vt}")
    if len(set(numbers)) < len(numbers):
        raise PropertyError("a property is asked for twice")
