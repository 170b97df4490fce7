"""The state that qmcomm and qmcomm2 share for dependent clients (MS-MQMP): the policy, open queues and
transactions.

Dependent clients are programs that have no queue manager of their own and use this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msmq_fast.protocol.errors import IllegalOperation
from msmq_fast.rpc.services.dependent.queues import DependentQueues
from msmq_fast.rpc.services.dependent.transactions import DependentTransactions

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager

__all__ = ["DependentPolicy", "SupportingServer"]


@dataclass(frozen=True, slots=True)
class DependentPolicy:
    """The settings for dependent clients: what they are allowed to do."""

    enabled: bool = True
    """LocalQueueManager.SupportingServer: False rejects all operations for dependent clients (MS-MQMP
    3.1.4).
    """
    anonymous_outgoing: bool = False
    """Whether callers without a name may send to other computers, and have acknowledgments sent to these."""


class SupportingServer:
    """The server for dependent clients. The services of qmcomm and qmcomm2 share one object."""

    def __init__(self, manager: QueueManager, policy: DependentPolicy) -> None:
        self.manager = manager
        self.policy = policy
        self.queues = DependentQueues(manager, anonymous_outgoing=policy.anonymous_outgoing)
        self.transactions = DependentTransactions(manager)

    def serving(self) -> None:
        """Raises ILLEGAL_OPERATION if this computer is not a supporting server."""
        if not self.policy.enabled:
            raise IllegalOperation("this server does not serve dependent clients")
