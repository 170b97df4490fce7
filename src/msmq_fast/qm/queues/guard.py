"""Checks the access rights for operations on queues and on the queue manager (X-42, DM-085)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from msmq_fast.protocol.errors import IllegalPropertyValue
from msmq_fast.qm.access import Access
from msmq_fast.qm.queues.queue import NOBODY, Queue, QueueKind
from msmq_fast.qm.queues.system import INTERNAL_KEYS, JOURNAL
from msmq_fast.security.authorizer import CONNECTED_NETWORK, MACHINE, QUEUE, Authorizer, ObjectKind
from msmq_fast.security.check import Decision
from msmq_fast.security.defaults import DefaultPolicy, machine_descriptor, queue_descriptor
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.edit import merge, needed_to_change
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.masks import ConnectedNetworkRight, MachineRight, QueueRight, Standard
from msmq_fast.security.sid import Sid
from msmq_fast.security.token import Token

_OPEN: Final = {
    Access.RECEIVE: (int(QueueRight.RECEIVE_MESSAGE), "receive"),
    Access.PEEK: (int(QueueRight.PEEK_MESSAGE), "peek"),
    Access.SEND: (int(QueueRight.WRITE_MESSAGE), "send"),
    Access.MOVE: (int(QueueRight.PEEK_MESSAGE), "move"),
}
_JOURNAL: Final = {  # which messages the journal of a queue gets
    Access.RECEIVE: int(QueueRight.RECEIVE_JOURNAL_MESSAGE),
}
_MACHINE_JOURNAL: Final = {
    Access.RECEIVE: int(MachineRight.RECEIVE_JOURNAL_QUEUE_MESSAGE),
    Access.PEEK: int(MachineRight.PEEK_JOURNAL_QUEUE_MESSAGE),
}
_DEADLETTER: Final = {
    Access.RECEIVE: int(MachineRight.RECEIVE_DEADLETTER_MESSAGE),
    Access.PEEK: int(MachineRight.PEEK_DEADLETTER_MESSAGE),
}
_OWNER_RULE: Final = "the owner can only be the caller or one of the caller's groups"
_OF_THE_MACHINE: Final = (QueueKind.OUTGOING, QueueKind.SYSTEM, QueueKind.CONNECTOR)
_CONNECTOR: Final = int(ConnectedNetworkRight.CN_OPEN_CONNECTOR)
_ADMINISTER: Final = int(MachineRight.SET_MACHINE_PROPERTIES)


class Guard:
    """Checks whether a caller has the right to an operation. A `token` of None means the queue manager
    itself, which has all rights.

    `machine` is the security descriptor of the queue manager (QM-23). Methods that check a right raise
    ACCESS_DENIED if the caller does not have it.
    """

    def __init__(self, authorizer: Authorizer, policy: DefaultPolicy) -> None:
        self.authorizer = authorizer
        self.policy = policy
        self.machine: SecurityDescriptor = machine_descriptor(policy)

    # ---- what callers do

    def open(self, token: Token | None, queue: Queue, access: Access) -> None:
        """Check the right to open a queue with `access` (DM-085)."""
        if token is None:
            return
        if access.admin:
            self._on_machine(token, _ADMINISTER, f"administer {queue.name or 'an outgoing queue'}")
            return
        if queue.kind is QueueKind.OUTGOING:
            return  # every caller may send to other queue managers; they check for themselves
        operation = _OPEN[access][1]
        descriptor, right, kind = self._to_open(queue, access)
        if kind is QUEUE:
            self._on_queue(token, queue, right, operation)
        elif kind is MACHINE:
            self._on_machine(token, right, f"{operation} from {queue.name}")
        else:
            self.authorizer.check(token, descriptor, right, kind, queue.name, f"{operation} from")

    def _to_open(self, queue: Queue, access: Access) -> tuple[SecurityDescriptor, int, ObjectKind]:
        """Return the right that opening a queue of this computer needs, with the descriptor that grants it
        and the kind of object that it protects.
        """
        if queue.kind is QueueKind.CONNECTOR and queue.security is not NOBODY:
            return queue.security, _CONNECTOR, CONNECTED_NETWORK
        if queue.kind is QueueKind.CONNECTOR:
            return self.machine, _ADMINISTER, MACHINE
        if queue.kind in _OF_THE_MACHINE:
            journal = queue.part is not None and queue.part.key == JOURNAL.part.key
            rights = _MACHINE_JOURNAL if journal else _DEADLETTER
            return self.machine, rights.get(access, _ADMINISTER), MACHINE
        right = _OPEN[access][0]
        if queue.part is not None and queue.part.journal:
            right = _JOURNAL.get(access, right)
        return queue.security, right, QUEUE

    def peekable(self, token: Token | None, queues: Iterable[Queue]) -> list[bool]:
        """Return for each local queue whether the caller may open it to peek, as `open` decides; queues with
        equal descriptors cost one decision. Only the queue manager opens its internal queues. Does not audit
        a refusal.
        """
        decided, found = dict[tuple[bytes, int], bool](), list[bool]()
        for queue in queues:
            descriptor, right, kind = self._to_open(queue, Access.PEEK)
            key = descriptor.encoded, right
            if key not in decided:
                decided[key] = token is None or self.authorizer.allows(token, descriptor, right, kind)
            found.append(decided[key] and queue.key not in INTERNAL_KEYS)
        return found

    def read(self, token: Token | None, queue: Queue) -> None:
        """Check the right to read the messages of a queue in bulk without removing them."""
        if token is None or token.reader:
            return
        if queue.kind is QueueKind.OUTGOING:
            self._on_machine(token, _ADMINISTER, f"read {queue.name or 'an outgoing queue'}")
        else:
            self.open(token, queue, Access.PEEK)

    def may_read(self, token: Token | None, queue: Queue) -> bool:
        """Whether the caller has the right that `read` checks, for an application queue. Does not audit a
        refusal.
        """
        if token is None or token.reader:
            return True
        return self.authorizer.allows(token, queue.security, int(QueueRight.PEEK_MESSAGE), QUEUE)

    def readable(self, token: Token | None, queues: Sequence[Queue]) -> Sequence[Queue]:
        """Return the application queues that `may_read` is true for; queues with equal descriptors cost one
        decision.
        """
        if token is None or token.reader:
            return queues
        decided, found = dict[bytes, bool](), list[Queue]()
        for queue in queues:
            encoded = queue.security.encoded
            granted = decided.get(encoded)
            if granted is None:
                granted = decided[encoded] = self.may_read(token, queue)
            if granted:
                found.append(queue)
        return found

    def read_everything(self, token: Token | None, operation: str) -> None:
        """Check the right to read data about all queues."""
        if token is None or not token.reader:
            self._on_machine(token, _ADMINISTER, operation)

    def create(self, token: Token | None) -> None:
        """Check the right to create a queue."""
        self._on_machine(token, int(MachineRight.CREATE_QUEUE), "create a queue")

    def delete(self, token: Token | None, queue: Queue) -> None:
        """Check the right to delete a queue."""
        self._on_queue(token, queue, int(QueueRight.DELETE_QUEUE), "delete")

    def read_properties(self, token: Token | None, queue: Queue) -> None:
        """Check the right to read the properties of a queue."""
        if queue.kind in _OF_THE_MACHINE:
            self._on_machine(token, int(MachineRight.GET_MACHINE_PROPERTIES), f"look at {queue.name}")
        else:
            self._on_queue(token, queue, int(QueueRight.GET_QUEUE_PROPERTIES), "get properties")

    def read_machine(self, token: Token | None) -> None:
        """Check the right to read the properties of the queue manager."""
        self._on_machine(token, int(MachineRight.GET_MACHINE_PROPERTIES), "get properties")

    def sees(self, token: Token | None, queue: Queue) -> bool:
        """Whether a queue appears in the lists that a caller gets. Does not audit a refusal.

        Administrators see all queues: they can take ownership of a queue, so they must know which queues
        exist.
        """
        if token is None or token.administrator:
            return True
        if queue.kind in _OF_THE_MACHINE:
            right = int(MachineRight.GET_MACHINE_PROPERTIES)
            return self.authorizer.allows(token, self.machine, right, MACHINE)
        right = int(QueueRight.GET_QUEUE_PROPERTIES)
        return self.authorizer.allows(token, queue.security, right, QUEUE)

    def visible(self, token: Token | None, queues: Sequence[Queue]) -> Sequence[Queue]:
        """Return the queues that `sees` is true for; queues with equal descriptors cost one decision."""
        if token is None or token.administrator:
            return queues
        of_machine = self.authorizer.allows(
            token, self.machine, int(MachineRight.GET_MACHINE_PROPERTIES), MACHINE
        )
        right, decided, found = int(QueueRight.GET_QUEUE_PROPERTIES), dict[bytes, bool](), list[Queue]()
        for queue in queues:
            if queue.kind in _OF_THE_MACHINE:
                seen: bool | None = of_machine
            else:
                encoded = queue.security.encoded
                seen = decided.get(encoded)
                if seen is None:
                    seen = decided[encoded] = self.authorizer.allows(token, queue.security, right, QUEUE)
            if seen:
                found.append(queue)
        return found

    def write_properties(self, token: Token | None, queue: Queue) -> None:
        """Check the right to change the properties of a queue."""
        if queue.kind in _OF_THE_MACHINE:
            self.administer(token, f"set properties of {queue.name}")
        else:
            self._on_queue(token, queue, int(QueueRight.SET_QUEUE_PROPERTIES), "set properties")

    def administer(self, token: Token | None, operation: str) -> None:
        """Check the right to administer the queue manager; `operation` names the operation for the error text
        and the audit.
        """
        self._on_machine(token, _ADMINISTER, operation)

    # ---- descriptors

    def new_descriptor(
        self, token: Token | None, supplied: SecurityDescriptor | None, machine: Sid | None = None
    ) -> SecurityDescriptor:
        """Returns the security descriptor of a new queue that `token` creates; `supplied` is the descriptor
        that the caller gave, if any, `machine` the SID of the computer, if it has one.

        Raises ILLEGAL_PROPERTY_VALUE if the descriptor is invalid.
        """
        result = queue_descriptor(replace(self.policy, machine=machine), token, supplied)
        self._check_owner(token, "a new queue", None, result)
        return _sound(result)

    def read_permissions(self, token: Token | None, queue: Queue | None) -> SecurityDescriptor:
        """Check the right to read the security descriptor of `queue`, or of the queue manager if `queue` is
        None; returns the descriptor.
        """
        if queue is None:
            self._on_machine(token, int(MachineRight.GET_MACHINE_PERMISSIONS), "get permissions")
            return self.machine
        self._on_queue(token, queue, int(QueueRight.GET_QUEUE_PERMISSIONS), "get permissions")
        return queue.security

    def sees_permissions(self, token: Token | None, queue: Queue | None) -> bool:
        """Whether a caller may read the security descriptor of `queue`, or of the queue manager if `queue` is
        None. Does not audit a refusal.
        """
        if token is None:
            return True
        if queue is None:
            right = int(MachineRight.GET_MACHINE_PERMISSIONS)
            return self.authorizer.allows(token, self.machine, right, MACHINE)
        right = int(QueueRight.GET_QUEUE_PERMISSIONS)
        return self.authorizer.allows(token, queue.security, right, QUEUE)

    def change_permissions(
        self, token: Token | None, queue: Queue | None, given: SecurityDescriptor
    ) -> SecurityDescriptor:
        """Check the right to change the security descriptor of `queue`, or of the queue manager if `queue` is
        None. Returns the new descriptor: the parts that `given` contains are replaced.

        Also raises ILLEGAL_PROPERTY_VALUE if the result is invalid.
        """
        old = self.machine if queue is None else queue.security
        new = merge(old, given)
        needed = needed_to_change(old, new)
        if not needed:
            # A caller without the right does not learn whether this would have been a change.
            needed = int(Standard.WRITE_DAC)
        if queue is None:
            self._on_machine(token, needed, "change permissions")
        else:
            self._on_queue(token, queue, needed, "change permissions")
        self._check_owner(token, "the queue manager" if queue is None else queue.name, old, new)
        return _sound(new)

    def explain(self, token: Token, queue: Queue | None, desired: int) -> Decision:
        """Returns the decision whether `token` has the rights `desired`, with its reasons; writes no audit
        record.
        """
        if queue is None:
            return self.authorizer.decide(token, self.machine, desired, MACHINE)
        return self.authorizer.decide(token, queue.security, desired, QUEUE)

    def open_to_everybody(self, queue: Queue) -> bool:
        """Whether every sender may put messages into a queue."""
        return self.authorizer.everybody(queue.security, int(QueueRight.WRITE_MESSAGE), QUEUE)

    # ---- inside

    def _check_owner(
        self, token: Token | None, name: str, old: SecurityDescriptor | None, new: SecurityDescriptor
    ) -> None:
        """Raises ACCESS_DENIED if the owner changes to an account that is not the caller's own, unless the
        caller is an administrator.
        """
        if token is None or token.administrator or new.owner in token.sids:
            return
        if old is None or old.owner != new.owner:
            raise self.authorizer.refuse(token, name, "change permissions", _OWNER_RULE)

    def _on_queue(self, token: Token | None, queue: Queue, right: int, operation: str) -> None:
        if token is not None:
            self.authorizer.check(token, queue.security, right, QUEUE, queue.name, operation)

    def _on_machine(self, token: Token | None, right: int, operation: str) -> None:
        if token is not None:
            self.authorizer.check(token, self.machine, right, MACHINE, "the queue manager", operation)


def _sound(descriptor: SecurityDescriptor) -> SecurityDescriptor:
    try:
        SecurityDescriptor.from_bytes(descriptor.encoded)
    except SecurityDataError as error:
        raise IllegalPropertyValue(f"security: {error}") from None
    return descriptor
