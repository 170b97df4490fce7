"""A message as applications see it, with the names that MSMQ gives its properties."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from msmq_fast.protocol.errors import InsufficientResources
from msmq_fast.protocol.frames import CORRELATION_ID_SIZE, IN_FIELDS, INFINITE, LONG_LIVED, InFlag
from msmq_fast.protocol.resources import MessageInfo

VT_BSTR = 8  # UTF-16 text
VT_LPSTR = 30  # 8-bit text
VT_LPWSTR = 31  # UTF-16 text with a NUL
VT_ARRAY_UI1 = 0x2011  # bytes

EXPRESS = 0
RECOVERABLE = 1

_NO_CORRELATION = bytes(CORRELATION_ID_SIZE)


@dataclass(slots=True)
class Message:
    """A message to be sent, or one received. The fields from `message_id` on are filled by the queue manager.

    Times are seconds since 1970, time-outs seconds. `acknowledge` is a sum of 1 positive arrival, 2
    positive receive, 4 negative arrival, 8 negative receive; `journal` of 1 dead letter, 2 journal.
    """

    body: bytes = b""
    label: str = ""
    delivery: int = EXPRESS
    priority: int = 3
    body_type: int = 0
    app_specific: int = 0
    correlation_id: bytes = _NO_CORRELATION
    extension: bytes = b""
    response_queue: str | None = None
    admin_queue: str | None = None
    acknowledge: int = 0
    journal: int = 0
    message_class: int = 0
    id: bytes = b""
    sent_time: int = 0
    arrived_time: int = 0
    arrival_seq: int = 0
    destination_queue: str | None = None
    flags: int = 0
    sender_id: bytes | None = None
    abort_count: int = 0
    move_count: int = 0
    time_to_reach_queue: int = LONG_LIVED
    time_to_be_received: int = INFINITE
    reason: int = 0  # of a dead letter: the class that says why it is one; `message_class` is the same then
    lookup_id: int = 0
    tag: int = 0  # of a delivery in a subscription, see Subscription.acknowledge
    dead_letter_queue: str | None = None  # to be sent: where it goes if it fails, see `journal`
    # To be sent: how it is protected. `authentication` is 1 or 2 for a signature of MSMQ 1.0 or 2.0, made by
    # the server with a certificate of the caller, the one whose MD5 is `certificate`, else the internal one;
    # `privacy_level` is 1 base, 3 enhanced or 5 advanced, at least. `attach_sender`: with the caller's SID.
    authentication: int = 0
    privacy_level: int = 0
    hash_algorithm: int = 0
    encryption_algorithm: int = 0
    certificate: bytes = b""
    attach_sender: bool = False

    @classmethod
    def of_text(cls, text: str, **properties: Any) -> Message:
        """A message whose body is UTF-16 text (VT_BSTR), as the ActiveX formatter and COM write it."""
        return cls(body=text.encode("utf-16-le"), body_type=VT_BSTR, **properties)

    @property
    def text(self) -> str:
        """The body as text, by its body type; UTF-8 where the type says nothing.

        Raises UnicodeDecodeError.
        """
        if self.body_type in (VT_BSTR, VT_LPWSTR):
            return bytes(self.body).decode("utf-16-le").rstrip("\0")
        if self.body_type == VT_LPSTR:
            return bytes(self.body).decode("latin-1").rstrip("\0")
        return bytes(self.body).decode()

    @property
    def recoverable(self) -> bool:
        """Kept on disk by every queue manager on its way."""
        return self.delivery == RECOVERABLE

    @property
    def transactional(self) -> bool:
        """Sent within a transaction."""
        return bool(self.flags & InFlag.TRANSACTIONAL)

    @property
    def authenticated(self) -> bool:
        """The receiving queue manager verified its signature, by a certificate that is registered for its
        sender.
        """
        return bool(self.flags & InFlag.AUTHENTICATED)

    @property
    def signature(self) -> str:
        """`verified`: as `authenticated`; `unknown_signer`: it carries a signature or a certificate, but none
        that is registered for its sender, and anybody can make one; `none`: it carries none.
        """
        if self.authenticated:
            return "verified"
        return "unknown_signer" if self.flags & InFlag.UNKNOWN_SIGNER else "none"

    @property
    def source_machine(self) -> UUID | None:
        """GUID of the queue manager that first sent the message."""
        return UUID(bytes_le=self.id[:16]) if self.id else None

    @property
    def message_id(self) -> str:
        """`{guid}\\ordinal`, empty for a message that was not received."""
        return format_message_id(self.id) if self.id else ""

    def to_json(self) -> MessageInfo:
        """The message with the keys of the command line's JSON."""
        return {
            "lookup_id": self.lookup_id,
            "arrival_seq": self.arrival_seq,
            "message_id": self.message_id,
            "label": self.label,
            "body_b64": b64encode(self.body).decode(),
            "body_size": len(self.body),
            "body_type": self.body_type,
            "priority": self.priority,
            "class": self.message_class,
            "correlation_id": self.correlation_id.hex(),
            "app_specific": self.app_specific,
            "extension_b64": b64encode(self.extension).decode(),
            "delivery": "recoverable" if self.recoverable else "express",
            "transactional": self.transactional,
            "sent_time": self.sent_time,
            "arrived_time": self.arrived_time,
            "time_to_reach_queue": self.time_to_reach_queue,
            "time_to_be_received": self.time_to_be_received,
            "response_queue": self.response_queue,
            "admin_queue": self.admin_queue,
            "destination_queue": self.destination_queue,
            "source_machine": str(self.source_machine) if self.id else None,
            "sender_id_b64": b64encode(self.sender_id).decode() if self.sender_id else None,
            "authenticated": self.authenticated,
            "signature": self.signature,
            "acknowledge": self.acknowledge,
            "journal": self.journal,
            "abort_count": self.abort_count,
            "move_count": self.move_count,
            "reason": self.reason,
        }


def format_message_id(raw: bytes) -> str:
    """`{guid}\\ordinal` of the 20 bytes of a message identifier."""
    return f"{{{UUID(bytes_le=raw[:16])}}}\\{int.from_bytes(raw[16:20], 'little')}"


def bulk(message: Message, limit: int) -> int:
    """About what the message takes in a frame, in bytes.

    Raises InsufficientResources where body and extension pass `limit`: such a frame would end the
    connection.
    """
    content = len(message.body) + len(message.extension)
    if content > limit:
        raise InsufficientResources(
            f"the message is too large: {content} bytes, and a packet has {limit} at most"
        )
    return content + 4 * len(message.label) + 64


def to_wire(message: Message) -> tuple[Any, ...]:
    """The message array of a SEND frame; trailing defaults are left out."""
    m = message
    head = (m.body, m.label, m.delivery, m.priority, m.body_type, m.app_specific)
    tail = (
        m.correlation_id,
        m.extension,
        m.response_queue,
        m.admin_queue,
        m.acknowledge,
        m.journal,
        m.time_to_reach_queue,
        m.time_to_be_received,
        m.message_class,
        m.dead_letter_queue,
    )
    protection = (
        m.authentication,
        m.privacy_level,
        m.hash_algorithm,
        m.encryption_algorithm,
        m.certificate,
        m.attach_sender,
    )
    if protection != _UNPROTECTED:
        return head + tail + protection
    return head if tail == _PLAIN_TAIL else head + tail


_PLAIN_TAIL = (_NO_CORRELATION, b"", None, None, 0, 0, LONG_LIVED, INFINITE, 0, None)

_UNPROTECTED = (0, 0, 0, 0, b"", False)

_new = object.__new__
_positional: Callable[..., Message] = Message  # its fields stand in the order of the wire


def from_wire(fields: list[Any], tag: int = 0) -> Message:
    """A message of a MESSAGE or DELIVERY frame; positions of later versions are ignored."""
    if len(fields) < IN_FIELDS:  # of a server that knows fewer
        return _positional(*fields[1:], lookup_id=fields[0], tag=tag)
    # Without the constructor, whose 33 arguments take three times as long as the rest of a message.
    m = _new(Message)
    (
        m.lookup_id,
        m.body,
        m.label,
        m.delivery,
        m.priority,
        m.body_type,
        m.app_specific,
        m.correlation_id,
        m.extension,
        m.response_queue,
        m.admin_queue,
        m.acknowledge,
        m.journal,
        m.message_class,
        m.id,
        m.sent_time,
        m.arrived_time,
        m.arrival_seq,
        m.destination_queue,
        m.flags,
        m.sender_id,
        m.abort_count,
        m.move_count,
        m.time_to_reach_queue,
        m.time_to_be_received,
        m.reason,
    ) = fields if len(fields) == IN_FIELDS else fields[:IN_FIELDS]
    m.tag = tag
    m.dead_letter_queue = None
    m.authentication = m.privacy_level = m.hash_algorithm = m.encryption_algorithm = 0
    m.certificate = b""
    m.attach_sender = False
    return m
