"""The structures of MS-MQMQ and MS-MQQB 2.2: names, headers, packets, message classes, error codes."""

from msmq_fast.packet.classes import MessageClass
from msmq_fast.packet.errors import MSMQError, PacketFault
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName, PathName

__all__ = ["FormatName", "MSMQError", "Message", "MessageClass", "PacketFault", "PathName"]
