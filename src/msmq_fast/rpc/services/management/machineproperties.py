"""The properties of the queue manager: PROPID_MGMT_MSMQ_… (MS-MQMR 2.2.3.1 and 3.1.4.1, MS-MQMQ 2.3.11).

Lists contain the queues that the caller may see, as the lists of every other interface do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from msmq_fast.qm.queues.queue import QueueKind
from msmq_fast.release import release
from msmq_fast.rpc.services.management.queueproperties import format_name
from msmq_fast.rpc.services.management.values import NULL, VarType, i8, text, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.qm.queues.queue import Queue
    from msmq_fast.rpc.ndr.record import Record
    from msmq_fast.security.token import Token

__all__ = ["MACHINE_PROPERTIES", "MachineProperty", "machine_value"]


class MachineProperty(IntEnum):
    """PROPID_MGMT_MSMQ_…"""

    ACTIVEQUEUES = 1
    PRIVATEQ = 2
    DSSERVER = 3
    CONNECTED = 4
    TYPE = 5
    BYTES_IN_ALL_QUEUES = 6


_PARTS: Final = (QueueKind.JOURNAL, QueueKind.SUBQUEUE)


@dataclass(frozen=True, slots=True)
class _Subject:
    """The queue manager whose properties are read, and the caller that reads them."""

    manager: QueueManager
    token: Token

    def visible(self, queues: Sequence[Queue]) -> Sequence[Queue]:
        """The queues that the caller may see."""
        return self.manager.guard.visible(self.token, queues)


def _active(subject: _Subject) -> Record:
    """Queues with messages, or that are open (1.1); journals and subqueues belong to other queues."""
    manager = subject.manager
    found = [
        queue for queue in manager.queues() if queue.kind not in _PARTS and (queue.active or queue.messages)
    ]
    return texts(format_name(manager, queue) for queue in subject.visible(found))


def _private(subject: _Subject) -> Record:
    queues = subject.manager.in_order((QueueKind.PRIVATE,)).queues
    return texts(queue.name for queue in subject.visible(queues))


def _connected(subject: _Subject) -> Record:
    connected = subject.manager.outgoing_queues.connection_active
    return text("CONNECTED" if connected else "DISCONNECTED")


def _directory_server(subject: _Subject) -> Record:
    """The first of DirectoryServerList, which is empty if the directory is in this queue manager."""
    servers = subject.manager.directory.events.provider.directory_servers
    return text(servers[0]) if servers else NULL


def _bytes(subject: _Subject) -> Record:
    return i8(sum(queue.bytes for queue in subject.manager.queues()))


MACHINE_PROPERTIES: Final[dict[int, tuple[VarType, Callable[[_Subject], Record]]]] = {
    MachineProperty.ACTIVEQUEUES: (VarType.LPWSTRS, _active),
    MachineProperty.PRIVATEQ: (VarType.LPWSTRS, _private),
    MachineProperty.DSSERVER: (VarType.LPWSTR, _directory_server),
    MachineProperty.CONNECTED: (VarType.LPWSTR, _connected),
    MachineProperty.TYPE: (VarType.LPWSTR, lambda _: text(f"msmq-fast {release()}")),
    MachineProperty.BYTES_IN_ALL_QUEUES: (VarType.I8, _bytes),
}
"""The type and the value of each property, by number."""


def machine_value(manager: QueueManager, token: Token, number: int) -> Record:
    """Returns the value of a property of the queue manager. Raises KeyError for an unknown number, and
    INSUFFICIENT_RESOURCES for a list that is too long.
    """
    return MACHINE_PROPERTIES[number][1](_Subject(manager, token))
