"""Moving messages between a queue and its subqueues (MS-MQDMPR 3.1.7.1.16; DM-142 … DM-147)."""

from __future__ import annotations

from msmq_fast._native.moving import move as move_message
from msmq_fast._native.positions import PositionState
from msmq_fast.protocol.errors import (
    AccessDenied,
    InvalidParameter,
    MessageLocked,
    MessageNotFound,
    TransactionUsage,
)
from msmq_fast.qm.access import Access
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.qm.records import stored
from msmq_fast.store.completion import Completion

_AVAILABLE = int(PositionState.STATE_AVAILABLE)
_LOCKED = (int(PositionState.STATE_LOCKED), int(PositionState.STATE_PURGE_PENDING))


def check_move(
    source: Queue, lookup_id: int, access: Access, target: Queue, *, transactional: bool = False
) -> None:
    """Check that a message may be moved to `target`, which is open with `access`.

    Raises ACCESS_DENIED if `target` is not open for moving; INVALID_PARAMETER unless `source` and `target`
    are a queue and its subqueue, or two subqueues of one queue; TRANSACTION_USAGE if the move is
    `transactional`, but the queue is not; MESSAGE_NOT_FOUND; MESSAGE_LOCKED_UNDER_TRANSACTION.
    """
    if access is not Access.MOVE:
        raise AccessDenied("the target queue is not open with the access MOVE")
    if target is source or target.family is not source.family:
        raise InvalidParameter("messages can only be moved between a queue and its subqueues")
    if transactional and not target.transactional:
        raise TransactionUsage("a transaction cannot move messages of a queue that is not transactional")
    state = source.core.positions.state(lookup_id) if 0 <= lookup_id < 1 << 64 else 0
    if state in _LOCKED:
        raise MessageLocked("the message is locked")
    if state != _AVAILABLE:
        raise MessageNotFound(f"no message has the lookup identifier {lookup_id}")


def move(source: Queue, lookup_id: int, access: Access, target: Queue, caller: int = 0) -> Completion[None]:
    """Move an available message, which keeps its LookupIdentifier; resolved when the move is durable (DU-11).
    `caller` is the number of the program in the feed.

    Raises what `check_move` raises.
    """
    check_move(source, lookup_id, access, target)
    done: Completion[None] = Completion()

    def moved(status: int) -> None:
        stored(done, status, None)

    if not move_message(source.core, lookup_id, target.core, moved, caller):
        raise MessageNotFound(f"no message has the lookup identifier {lookup_id}")
    return done
