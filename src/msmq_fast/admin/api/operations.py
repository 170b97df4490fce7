"""The table of all operations."""

from __future__ import annotations

from typing import Final

from msmq_fast.admin.api import (
    access,
    audit,
    batches,
    config,
    definitions,
    directory,
    messages,
    outgoing,
    queues,
    rights,
    series,
    server,
    sessions,
    tracing,
    transactions,
    users,
)
from msmq_fast.admin.api.operation import Operation

__all__ = ["BY_NAME", "OPERATIONS"]

OPERATIONS: Final[tuple[Operation, ...]] = (
    *server.OPERATIONS,
    *queues.OPERATIONS,
    *rights.OPERATIONS,
    *messages.OPERATIONS,
    *batches.OPERATIONS,
    *outgoing.OPERATIONS,
    *transactions.OPERATIONS,
    *sessions.OPERATIONS,
    *access.OPERATIONS,
    *audit.OPERATIONS,
    *users.OPERATIONS,
    *config.OPERATIONS,
    *series.OPERATIONS,
    *tracing.OPERATIONS,
    *directory.OPERATIONS,
    *definitions.OPERATIONS,
)

BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}
