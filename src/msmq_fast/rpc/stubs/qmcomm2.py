"""qmcomm2: its operations by name, and the types of their requests and results.

Made by tools/rpcstubs.py from rpc/idl/qmcomm2.py; do not edit.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from msmq_fast.rpc.idl.qmcomm2 import QMCOMM2

if TYPE_CHECKING:
    from dataclasses import dataclass

    from msmq_fast.rpc.ndr.record import Record

    @dataclass
    class SendMessageInternalExArgs:
        pQueueFormat: Record
        ptb: Record
        pMessageID: Record | None

    @dataclass
    class SendMessageInternalExResults:
        pQueueFormat: Record | None = None
        ptb: Record | None = None
        pMessageID: Record | None = None
        result: int = 0

    @dataclass
    class SendMessageExArgs:
        hQueue: bytes | None
        ptb: Record
        pMessageID: Record | None

    @dataclass
    class SendMessageExResults:
        hQueue: bytes | None = None
        ptb: Record | None = None
        pMessageID: Record | None = None
        result: int = 0

    @dataclass
    class ReceiveMessageExArgs:
        hQMContext: int
        ptb: Record

    @dataclass
    class ReceiveMessageExResults:
        hQMContext: int | None = None
        ptb: Record | None = None
        result: int = 0

    @dataclass
    class CreateCursorExArgs:
        hQueue: bytes | None
        pcc: Record

    @dataclass
    class CreateCursorExResults:
        hQueue: bytes | None = None
        pcc: Record | None = None
        result: int = 0

else:
    SendMessageInternalExArgs = QMCOMM2.op("send_message_internal_ex").Args
    SendMessageInternalExResults = QMCOMM2.op("send_message_internal_ex").Results
    SendMessageExArgs = QMCOMM2.op("send_message_ex").Args
    SendMessageExResults = QMCOMM2.op("send_message_ex").Results
    ReceiveMessageExArgs = QMCOMM2.op("receive_message_ex").Args
    ReceiveMessageExResults = QMCOMM2.op("receive_message_ex").Results
    CreateCursorExArgs = QMCOMM2.op("create_cursor_ex").Args
    CreateCursorExResults = QMCOMM2.op("create_cursor_ex").Results


class Opnum(IntEnum):
    """The numbers of the operations."""

    SEND_MESSAGE_INTERNAL_EX = 0
    SEND_MESSAGE_EX = 1
    RECEIVE_MESSAGE_EX = 2
    CREATE_CURSOR_EX = 3


__all__ = [
    "CreateCursorExArgs",
    "CreateCursorExResults",
    "Opnum",
    "ReceiveMessageExArgs",
    "ReceiveMessageExResults",
    "SendMessageExArgs",
    "SendMessageExResults",
    "SendMessageInternalExArgs",
    "SendMessageInternalExResults",
]
