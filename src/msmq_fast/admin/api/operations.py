"""The table of all operations."""

from __future__ import annotations

from typing import Final

from msmq_fast.admin.api import messages, queues, server
from msmq_fast.admin.api.operation import Operation

__all__ = ["BY_NAME", "OPERATIONS"]

OPERATIONS: Final[tuple[Operation, ...]] = (
    *server.OPERATIONS,
    *queues.OPERATIONS,
    *messages.OPERATIONS,
)

BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}
