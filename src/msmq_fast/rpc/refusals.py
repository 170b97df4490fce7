"""PDUs that are refused: the answer to the client, and the reason for the log."""

from __future__ import annotations

from msmq_fast.rpc.faults import PROTOCOL_ERROR
from msmq_fast.rpc.pdu import NakReason

__all__ = ["BindRefused", "PduRefused"]


class PduRefused(Exception):
    """The PDU is answered with a fault; the connection is closed unless `kept` (MS-RPCE 3.3.3.5.7).

    A `call_id` of None means that of the PDU. `reason` is the key of the counter, `detail` is for the log.
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
    """The bind is answered with a bind_nak, and the connection is closed."""

    def __init__(self, reason: str, nak: NakReason = NakReason.NOT_SPECIFIED, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.nak = nak
        self.detail = detail
