"""The fields of the log line for a refused message, besides its identifier and the reason."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from msmq_fast._native.receive import Receiver
from msmq_fast.mqqb.forwarding import destination_name
from msmq_fast.packet.base import NULL_GUID
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.text import printable, quoted

__all__ = ["about_message"]

_MOST_NAME, _MOST_LABEL = 300, 60  # characters: a line of a log stays readable


def about_message(receiver: Receiver, own: UUID) -> Mapping[str, str]:
    """Returns the identifier, the queue, the peer and the label of the current message of `receiver`.

    `own` is the GUID of this queue manager. Peers choose these texts, so they are escaped and shortened.
    """
    message = receiver.message()
    manager = UUID(bytes_le=message.destination_manager)
    try:
        name = destination_name(message, own if manager == NULL_GUID else manager)
    except (MSMQError, ValueError):
        name = None
    return {
        "message_id": receiver.describe(),
        "queue": "" if name is None else printable(str(name))[:_MOST_NAME],
        "peer": receiver.address,
        "label": quoted(message.label[:_MOST_LABEL]) if message.label else "",
    }
