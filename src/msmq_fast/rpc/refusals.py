"""PDUs that are refused: the answer to the client, and the reason for the log."""

from __future__ import annotations

from msmq_fast.rpc.faults import PROTOCOL_ERROR
from msmq_fast.rpc.pdu import NakReason

__all__ = ["BindRefused", "PduRefused"]


class PduRefused(Exception):
    """A fault PDU answers, and unless the connection is `kept` it is closed then (MS-RPCE 3.3.3.5.7).

    `call_id` is that of the PDU where it is None. `reason` counts, `detail` is for the log.
    """

    def __init__(
        self,
        reason: str,
        status: int = PROTOCOL_ERROR,
        *,
        call_id: int | None = None,
        context_id: int = 0,
        kept: bool = False,
        executed: bool = True,
        detail: str = "",
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.call_id = call_id
        self.context_id = context_id
        self.kept = kept
        self.executed = executed
        """False sets PFC_DID_NOT_EXECUTE, in the cases where Windows does (RP-34)."""
        self.detail = detail


class BindRefused(Exception):
    """A bind_nak answers, and the connection is closed then."""

    def __init__(self, reason: str, nak: NakReason = NakReason.NOT_SPECIFIED, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.nak = nak
        self.detail = detail
