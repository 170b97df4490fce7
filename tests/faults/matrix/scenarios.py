"""One script for each durability unit (MS-MQDMPR inventory, 8.4). Every step happens or not."""

from __future__ import annotations

from tests.faults.matrix.scenarios_messages import COUNTERS, ENQUEUE, EXPIRY, KEEP, LEASE, RECEIVE, SEND_AWAY
from tests.faults.matrix.scenarios_peers import FINAL, INBOUND, NUMBERS, ORDERED, STREAM
from tests.faults.matrix.scenarios_queues import CREATE, DELETE, MOVE, PROPERTIES, PURGE
from tests.faults.matrix.scenarios_transactions import ABORT_PREPARED, COMMIT, PREPARE

SCENARIOS = [
    ENQUEUE,
    SEND_AWAY,
    RECEIVE,
    KEEP,
    COMMIT,
    PREPARE,
    ABORT_PREPARED,
    PURGE,
    DELETE,
    CREATE,
    MOVE,
    STREAM,
    INBOUND,
    ORDERED,
    FINAL,
    EXPIRY,
    PROPERTIES,
    COUNTERS,
    NUMBERS,
    LEASE,
]
