"""The actions of management (MS-MQMR 3.1.4.2). Each needs the right to administer the queue manager; the
audit lists it.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from msmq_fast.protocol.errors import InvalidParameter
from msmq_fast.protocol.text import quoted
from msmq_fast.store.completion import Completion

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.qm.queues.outgoing import OutgoingQueue
    from msmq_fast.security.token import Token

__all__ = ["MachineAction", "QueueAction", "act_on_machine", "act_on_queue", "action_of"]

_LONGEST = 64  # characters of an action that an error repeats


class MachineAction(Enum):
    """The actions on the queue manager."""

    CONNECT = "CONNECT"
    DISCONNECT = "DISCONNECT"
    TIDY = "TIDY"


class QueueAction(Enum):
    """The actions on an outgoing queue."""

    PAUSE = "PAUSE"
    RESUME = "RESUME"
    EOD_RESEND = "EOD_RESEND"


def action_of(text: str) -> MachineAction | QueueAction:
    """Returns the action with a name, in capitals or not. Raises INVALID_PARAMETER."""
    name = text.upper() if len(text) <= _LONGEST else ""
    for kind in (MachineAction, QueueAction):
        if name in kind.__members__:
            return kind[name]
    known = ", ".join([*MachineAction.__members__, *QueueAction.__members__])
    raise InvalidParameter(f"unknown action {quoted(text[:_LONGEST])}: the actions are {known}")


def act_on_machine(manager: QueueManager, token: Token, action: MachineAction) -> Completion[None]:
    """Do an action on the queue manager. Raises ACCESS_DENIED."""
    manager.guard.administer(token, f"{action.value.lower()} the queue manager")
    if action is MachineAction.TIDY:
        # The store reuses the room of removed messages by itself. The document's Purge Queue event for every
        # queue would delete all messages of the host.
        manager.audit.act(token, "tidy", "the queue manager")
    else:
        manager.set_online(action is MachineAction.CONNECT, token=token)
    return Completion.of(None)


def act_on_queue(
    manager: QueueManager, token: Token, action: QueueAction, queue: OutgoingQueue
) -> Completion[None]:
    """Do an action on an outgoing queue; resolved when its result is durable. Raises ACCESS_DENIED, and
    QUEUE_NOT_ACTIVE for a resend of a paused queue.
    """
    manager.guard.administer(token, f"{action.value.lower()} the outgoing queue {queue.name}")
    match action:
        case QueueAction.PAUSE:
            return manager.pause(queue, token=token)
        case QueueAction.RESUME:
            return manager.resume(queue, token=token)
        case QueueAction.EOD_RESEND:
            manager.kick(queue, token=token)
            return Completion.of(None)
