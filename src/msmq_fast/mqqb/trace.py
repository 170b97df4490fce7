"""Report messages, which show the route of traced messages (MS-MQQB 3.1.5.8.9, 3.1.7.1.7)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

from msmq_fast._native.framing import ParsedMessage
from msmq_fast.mqqb.forwarding import destination_name
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName, NameKind
from msmq_fast.packet.properties import DebugHeader
from msmq_fast.packet.text import encode_text
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.properties import Delivery

_HOPS = 0x1F
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Reports:
    """Sends a report about each traced message, if reports are enabled (EnableReportMessages).

    `send` enqueues a report for a queue, and discards a report that cannot be delivered. `unix_time` returns
    seconds; reports contain UTC. `usual` is the GUID of the public report queue for traced messages that name
    no report queue; messages that arrive over HTTP never name one (MC-MQSRM 2.2.6.6).
    """

    def __init__(
        self,
        send: Callable[[FormatName, Message], None],
        unix_time: Callable[[], int],
        usual: UUID | None = None,
    ) -> None:
        self._send = send
        self._unix_time = unix_time
        self._usual = usual

    def arrived(self, message: ParsedMessage, _: object = None) -> None:
        """Report that a message was put into its destination queue or into an outgoing queue."""
        self._report(message, _target(message))

    def sent(self, message: ParsedMessage, address: str) -> None:
        """Report that a message was written to a connection with `address`."""
        hops = message.user_flags & _HOPS
        hop = f"<NEXT HOP>{address}</NEXT HOP>\r\n<HOP COUNT>{hops:02X} </HOP COUNT>\r\n"
        self._report(message, _target(message) + hop)

    def _report(self, message: ParsedMessage, body: str) -> None:
        if not message.debug_offset or message.message_class == MessageClass.REPORT:
            return
        queue = DebugHeader.decode(message.packet, message.debug_offset)[0].queue or self._usual
        if queue is None:
            return
        report = Message(
            body=encode_text(body),
            label=self._label(message),
            delivery=Delivery.EXPRESS,
            message_class=MessageClass.REPORT,
        )
        self._send(FormatName(NameKind.PUBLIC, queue), report)

    def _label(self, message: ParsedMessage) -> str:
        source = str(UUID(bytes_le=message.source)).upper()
        now = datetime.fromtimestamp(self._unix_time(), UTC)
        date = f"{_DAYS[now.weekday()]},{_MONTHS[now.month - 1]} {now:%d %y}"
        half = "PM" if now.hour >= 12 else "AM"
        return (
            f"{source[:4]}:{message.message_id:08X}:{message.user_flags & _HOPS:02X} received by {source}"
            f" at {now:%I:%M:%S} {half} {date}"
        )


def _target(message: ParsedMessage) -> str:
    name = destination_name(message, UUID(bytes_le=message.destination_manager))
    return (
        f"<MESSAGE ID>{message.message_id:08X}</MESSAGE ID>\r\n"
        f"<TARGET QUEUE>{'' if name is None else name}</TARGET QUEUE>\r\n"
    )
