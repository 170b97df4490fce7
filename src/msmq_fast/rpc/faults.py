"""Failures of calls: the status of a fault PDU (C706 appendix E, MS-RPCE 3.3.3.5.1)."""

from __future__ import annotations

from typing import Final

__all__ = [
    "ACCESS_DENIED",
    "CANCELLED",
    "CONTEXT_MISMATCH",
    "NO_CALL_ACTIVE",
    "NO_MEMORY",
    "OP_RANGE",
    "PROTOCOL_ERROR",
    "RPC_X_BAD_STUB_DATA",
    "SECURITY_ERROR",
    "SERVER_TOO_BUSY",
    "UNKNOWN_AUTH_SERVICE",
    "UNKNOWN_IF",
    "UNSPECIFIED",
    "RpcFault",
    "wire_status",
]

ACCESS_DENIED: Final = 0x00000005
"""ERROR_ACCESS_DENIED; also the answer to requests that are too large (MS-RPCE 3.3.3.5.4)."""
NO_CALL_ACTIVE: Final = 0x000006BD
"""RPC_S_NO_CALL_ACTIVE"""
UNKNOWN_AUTH_SERVICE: Final = 0x000006D3
"""RPC_S_UNKNOWN_AUTHN_SERVICE"""
RPC_X_BAD_STUB_DATA: Final = 0x000006F7
SECURITY_ERROR: Final = 0x00000721
"""RPC_S_SEC_PKG_ERROR"""
CANCELLED: Final = 0x1C00000D
"""nca_s_fault_cancel"""
UNSPECIFIED: Final = 0x1C000012
"""nca_s_fault_unspec"""
CONTEXT_MISMATCH: Final = 0x1C00001A
"""nca_s_fault_context_mismatch"""
NO_MEMORY: Final = 0x1C00001B
"""nca_s_fault_remote_no_memory"""
OP_RANGE: Final = 0x1C010002
"""nca_s_op_rng_error"""
UNKNOWN_IF: Final = 0x1C010003
"""nca_s_unk_if"""
PROTOCOL_ERROR: Final = 0x1C01000B
"""nca_s_proto_error"""
SERVER_TOO_BUSY: Final = 0x1C010014
"""nca_s_server_too_busy"""

_NEVER_SENT: Final = frozenset(
    (
        0x00000000,
        0x80000001,
        0x80000002,
        0x80000003,
        0xC0000005,
        0xC0000006,
        0xC000001D,
        0xC0000096,
        0xC00000AA,
        0xC00000FD,
        0xC0000194,
        0xC0000235,
        0xC0000409,
        0xC0000420,
    )
)


class RpcFault(Exception):
    """Raised to end the call with a fault PDU of this status. `detail` is for the log."""

    def __init__(self, status: int, detail: str = "") -> None:
        self.status = status
        self.detail = detail
        super().__init__(f"fault 0x{status:08X}{': ' + detail if detail else ''}")


def wire_status(status: int) -> int:
    """Returns the status to send for `status`, as an unsigned number.

    It is `status` itself, or nca_s_fault_unspec if a server must not send `status` (MS-RPCE 3.3.3.5.1).
    """
    status &= 0xFFFFFFFF
    return UNSPECIFIED if status in _NEVER_SENT else status
