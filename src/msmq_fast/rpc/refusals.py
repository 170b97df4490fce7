"""Exceptions for rejected PDUs: the answer to the client, and the reason for the log."""

from __future__ import annotations

from msmq_fast.rpc.faults import PROTOCOL_ERROR
from msmq_fast.rpc.pdu import NakReason

__all__ = ["BindRefused", "PduRefused"]


class PduRefused(Exception):
    """Raised to answer a PDU with a fault. The connection is then closed unless `kept` is True (MS-RPCE
    3.3.3.5.7).

    If `call_id` is None, the fault has the call_id of the PDU. `reason` is the name under which the refusal
    is counted, `detail` is for the log.
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
    """Raised to answer a bind with a bind_nak, and to close the connection."""

    def __init__(self, reason: str, nak: NakReason = NakReason.NOT_SPECIFIED, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.nak = nak
        self.detail = detail
